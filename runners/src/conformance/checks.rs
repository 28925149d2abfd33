//! What the suite found in a scenario: only what went well, or was excused beforehand, is right.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// A check of the suite, as far as it is looked at here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    name: String,
    status: String,
    #[serde(default)]
    description: String,
    error_message: Option<String>,
}

/// A check that cannot go well.
#[derive(Debug, Clone, Copy)]
pub(super) struct Excuse {
    pub(super) scenario: &'static str,
    /// The name of the check; several may have the same id.
    pub(super) check: &'static str,
    pub(super) status: &'static str,
    pub(super) because: &'static str,
}

/// What is wrong in the scenario whose results are in this folder.
pub(super) fn faults(folder: &Path, excuses: &[Excuse]) -> Result<Vec<String>> {
    let path = folder.join("checks.json");
    let text = fs::read_to_string(&path).with_context(|| format!("there is no {}", path.display()))?;
    judge(&text, excuses).with_context(|| format!("in {}", path.display()))
}

fn judge(checks: &str, excuses: &[Excuse]) -> Result<Vec<String>> {
    let checks: Vec<Check> = serde_json::from_str(checks).context("the checks cannot be read")?;
    ensure!(!checks.is_empty(), "nothing was checked");
    let excuses_it =
        |excuse: &Excuse, check: &Check| excuse.check == check.name && excuse.status == check.status;
    let bad = checks.iter().filter(|check| {
        let is_well = matches!(check.status.as_str(), "SUCCESS" | "INFO");
        !is_well && !excuses.iter().any(|excuse| excuses_it(excuse, check))
    });
    let bad = bad.map(|check| {
        let why = check.error_message.as_deref().unwrap_or(&check.description);
        format!("{} {} ({}): {why}", check.status, check.id, check.name)
    });
    let stale = excuses.iter().filter(|excuse| !checks.iter().any(|check| excuses_it(excuse, check)));
    let stale = stale.map(|excuse| {
        let Excuse { check, status, because, .. } = excuse;
        format!("{check} was to be {status} because {because}; it is not any more")
    });
    Ok(bad.chain(stale).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EXCUSE: Excuse = Excuse { scenario: "s", check: "A", status: "SKIPPED", because: "it is old" };

    fn found(statuses: &[&str], excuses: &[Excuse]) -> Vec<String> {
        let check = |status: &&str| json!({"id": "a", "name": "A", "status": status, "errorMessage": "why"});
        let checks: Vec<_> = statuses.iter().map(check).collect();
        judge(&json!(checks).to_string(), excuses).unwrap()
    }

    #[test]
    fn warnings_and_skips_are_faults() {
        assert_eq!(found(&["SUCCESS", "INFO"], &[]), [""; 0]);
        for status in ["FAILURE", "WARNING", "SKIPPED"] {
            assert_eq!(found(&["SUCCESS", status], &[]), [format!("{status} a (A): why")]);
        }
    }

    #[test]
    fn a_check_without_a_reason_says_what_it_is_about() {
        let check = json!([{"id": "a", "name": "A", "status": "FAILURE", "description": "is right"}]);
        assert_eq!(judge(&check.to_string(), &[]).unwrap(), ["FAILURE a (A): is right"]);
    }

    #[test]
    fn an_excuse_holds_for_what_it_names() {
        assert_eq!(found(&["SUCCESS", "SKIPPED"], &[EXCUSE]), [""; 0]);
        assert_eq!(found(&["SKIPPED", "FAILURE"], &[EXCUSE]), ["FAILURE a (A): why"]);
        let other = Excuse { check: "B", ..EXCUSE };
        assert_eq!(found(&["SKIPPED"], &[other]).len(), 2);
    }

    #[test]
    fn an_excuse_that_is_not_needed_is_a_fault() {
        let stale = "A was to be SKIPPED because it is old; it is not any more";
        assert_eq!(found(&["SUCCESS"], &[EXCUSE]), [stale]);
    }

    #[test]
    fn nothing_checked_is_nothing_known() {
        assert!(judge("[]", &[]).is_err());
        assert!(judge("{}", &[]).is_err());
        assert!(judge("[{\"id\": \"a\"}]", &[]).is_err());
    }
}
