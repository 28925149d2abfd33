//! What our build says of foreign software, compared with what is known of it: a violation that is new or gone fails.
//!
//! `interop/referee` has what is known. A line is a program, a transport, a rule that it breaks, and the revisions in which it does;
//! what follows `#` is for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// Broken rules, each with the revision in which it is broken.
pub(crate) type Broken = BTreeSet<(String, String)>;

/// What programs are known to break: by program and transport.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Known(BTreeMap<(String, String), Broken>);

impl Known {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let mut known = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            match words[..] {
                [] => {}
                [program, transport, rule, ref revisions @ ..] if !revisions.is_empty() => {
                    let broken = revisions.iter().map(|revision| (rule.to_owned(), (*revision).to_owned()));
                    known.0.entry((program.to_owned(), transport.to_owned())).or_default().extend(broken);
                }
                _ => bail!("line {number} is not PROGRAM TRANSPORT RULE REVISION…"),
            }
        }
        Ok(known)
    }

    /// What this program breaks over this transport.
    pub(crate) fn of(&self, program: &str, transport: &str) -> Broken {
        self.0.get(&(program.to_owned(), transport.to_owned())).cloned().unwrap_or_default()
    }
}

/// The lines of a file for what a program breaks over a transport.
pub(crate) fn lines(program: &str, transport: &str, broken: &Broken) -> String {
    let mut revisions = BTreeMap::<&str, Vec<&str>>::new();
    for (rule, revision) in broken {
        revisions.entry(rule).or_default().push(revision);
    }
    let mut text = String::new();
    for (rule, revisions) in revisions {
        let _ = writeln!(text, "{program} {transport} {rule} {}", revisions.join(" "));
    }
    text
}

/// What differs from what is known, in words. `why` says what was seen of a rule.
pub(crate) fn differences(known: &Broken, found: &Broken, why: impl Fn(&str) -> String) -> Vec<String> {
    let new = found
        .difference(known)
        .map(|(rule, revision)| format!("{rule} is broken in {revision}, which is not known: {}", why(rule)));
    let gone = known.difference(found).map(|(rule, revision)| {
        format!("{rule} is known to be broken in {revision}, and is not found to be")
    });
    new.chain(gone).collect()
}

/// Runs a command of refmcp that prints a report as JSON, and reads it. It ends with one of these codes: 0, 6 where rules were
/// broken, 7 where nothing was judged.
pub(crate) fn report(command: &mut Command, codes: &[i32]) -> Result<Value> {
    let output = command.output().context("the command cannot be started")?;
    let is_expected = output.status.code().is_some_and(|code| codes.contains(&code));
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(is_expected, "{command:?} ended with {}: {complaint}", output.status);
    serde_json::from_slice(&output.stdout).context("the report is no JSON")
}

/// The broken rules of a report, each with its member of the report.
pub(crate) fn broken_rules(report: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let judgements = report["judgements"].as_array().into_iter().flatten();
    let rules = judgements.flat_map(|judgement| judgement["rules"].as_array().into_iter().flatten());
    rules.filter(|rule| rule["outcome"] == "broken").filter_map(|rule| Some((rule["id"].as_str()?, rule)))
}

/// What was seen of a rule, for people.
pub(crate) fn what(report: &Value, rule: &str) -> String {
    let of_rule = broken_rules(report).filter(|(id, _)| *id == rule);
    let violations = of_rule.flat_map(|(_, rule)| rule["violations"].as_array().into_iter().flatten());
    let texts: Vec<&str> = violations.filter_map(|violation| violation["what"].as_str()).collect();
    texts.join("; ")
}

/// What is wrong with the verdicts on a recording of our server with a foreign client, which is about one revision: our server
/// breaks nothing that is demanded, and the client what is known. Where the client `did` something, something was recorded.
pub(crate) fn judge_client(
    refmcp: &Path,
    recordings: &[impl AsRef<Path>],
    known: &Broken,
    revision: &str,
    did: bool,
) -> Result<Vec<String>> {
    let mut command = Command::new(refmcp);
    command.args(["report", "-o", "json"]).args(recordings.iter().map(AsRef::as_ref));
    // A client without the revision or the transport sends nothing.
    let codes = if did { &[0, 6][..] } else { &[0, 6, 7] };
    let report = report(&mut command, codes)?;
    let of_party =
        |party: &'static str| broken_rules(&report).filter(move |(_, rule)| rule["party"] == party);
    let is_demanded = |rule: &Value| matches!(rule["level"].as_str(), Some("must" | "may"));
    let ours = of_party("server").filter(|(_, rule)| is_demanded(rule));
    let mut problems: Vec<String> =
        ours.map(|(id, _)| format!("our server breaks {id}: {}", what(&report, id))).collect();
    let found = of_party("client").map(|(id, _)| (id.to_owned(), revision.to_owned())).collect();
    let known = known.iter().filter(|(_, of)| of == revision).cloned().collect();
    let verdicts = differences(&known, &found, |rule| what(&report, rule));
    problems.extend(verdicts.into_iter().map(|it| format!("the client: {it}")));
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn broken(all: &[(&str, &str)]) -> Broken {
        all.iter().map(|(rule, revision)| ((*rule).to_owned(), (*revision).to_owned())).collect()
    }

    #[test]
    fn what_is_known_is_read_and_written() {
        let text = "a http RPC-08 r1 r2 # a remark\n\n# nothing\na stdio RPC-01 r1\na http RPC-10 r2\n";
        let known = Known::parse(text).unwrap();
        let over_http = broken(&[("RPC-08", "r1"), ("RPC-08", "r2"), ("RPC-10", "r2")]);
        assert_eq!(known.of("a", "http"), over_http);
        assert_eq!(known.of("b", "http"), Broken::new());
        assert_eq!(lines("a", "http", &over_http), "a http RPC-08 r1 r2\na http RPC-10 r2\n");
        for wrong in ["a http RPC-08", "a"] {
            assert!(Known::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn new_and_lost_violations_differ() {
        let known = broken(&[("A", "r1"), ("B", "r1")]);
        assert_eq!(differences(&known, &known, |_| String::new()), Vec::<String>::new());
        let found = differences(&known, &broken(&[("B", "r1"), ("B", "r2")]), |_| "seen".to_owned());
        assert_eq!(
            found,
            [
                "B is broken in r2, which is not known: seen",
                "A is known to be broken in r1, and is not found to be"
            ]
        );
    }

    #[test]
    fn broken_rules_are_found_in_a_report() {
        let rule = |id: &str, outcome: &str| json!({ "id": id, "outcome": outcome, "violations": [{ "what": "this" }, { "what": "that" }] });
        let report = json!({ "judgements": [{ "rules": [rule("A", "kept"), rule("B", "broken")] }] });
        assert_eq!(broken_rules(&report).map(|(id, _)| id).collect::<Vec<_>>(), ["B"]);
        assert_eq!(what(&report, "B"), "this; that");
    }
}
