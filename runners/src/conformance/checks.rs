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
pub(super) struct ExpectedFailure {
    pub(super) scenario: &'static str,
    /// The name of the check; several may have the same id.
    pub(super) check: &'static str,
    pub(super) status: &'static str,
    pub(super) because: &'static str,
}

/// What is wrong in the scenario whose results are in this folder.
pub(super) fn faults(folder: &Path, expected: &[ExpectedFailure]) -> Result<Vec<String>> {
    let path = folder.join("checks.json");
    let text = fs::read_to_string(&path).with_context(|| format!("there is no {}", path.display()))?;
    parse_faults(&text, expected).with_context(|| format!("in {}", path.display()))
}

fn parse_faults(checks: &str, expected: &[ExpectedFailure]) -> Result<Vec<String>> {
    let checks: Vec<Check> = serde_json::from_str(checks).context("the checks cannot be read")?;
    ensure!(!checks.is_empty(), "nothing was checked");
    let is_expected = |failure: &ExpectedFailure, check: &Check| {
        failure.check == check.name && failure.status == check.status
    };
    let bad = checks.iter().filter(|check| {
        let is_well = matches!(check.status.as_str(), "SUCCESS" | "INFO");
        !is_well && !expected.iter().any(|failure| is_expected(failure, check))
    });
    let bad = bad.map(|check| {
        let why = check.error_message.as_deref().unwrap_or(&check.description);
        format!("{} {} ({}): {why}", check.status, check.id, check.name)
    });
    let stale = expected.iter().filter(|failure| !checks.iter().any(|check| is_expected(failure, check)));
    let stale = stale.map(|failure| {
        let ExpectedFailure { check, status, because, .. } = failure;
        format!("{check} was to be {status} because {because}; it is not any more")
    });
    Ok(bad.chain(stale).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EXPECTED: ExpectedFailure =
        ExpectedFailure { scenario: "s", check: "A", status: "SKIPPED", because: "it is old" };

    fn found(statuses: &[&str], expected: &[ExpectedFailure]) -> Vec<String> {
        let check = |status: &&str| json!({"id": "a", "name": "A", "status": status, "errorMessage": "why"});
        let checks: Vec<_> = statuses.iter().map(check).collect();
        parse_faults(&json!(checks).to_string(), expected).unwrap()
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
        assert_eq!(parse_faults(&check.to_string(), &[]).unwrap(), ["FAILURE a (A): is right"]);
    }

    #[test]
    fn an_excuse_holds_for_what_it_names() {
        assert_eq!(found(&["SUCCESS", "SKIPPED"], &[EXPECTED]), [""; 0]);
        assert_eq!(found(&["SKIPPED", "FAILURE"], &[EXPECTED]), ["FAILURE a (A): why"]);
        let other = ExpectedFailure { check: "B", ..EXPECTED };
        assert_eq!(found(&["SKIPPED"], &[other]).len(), 2);
    }

    #[test]
    fn an_excuse_that_is_not_needed_is_a_fault() {
        let stale = "A was to be SKIPPED because it is old; it is not any more";
        assert_eq!(found(&["SUCCESS"], &[EXPECTED]), [stale]);
    }

    #[test]
    fn nothing_checked_is_nothing_known() {
        assert!(parse_faults("[]", &[]).is_err());
        assert!(parse_faults("{}", &[]).is_err());
        assert!(parse_faults("[{\"id\": \"a\"}]", &[]).is_err());
    }
}
