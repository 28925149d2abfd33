//! Reports as SARIF 2.1.0: a result for each way in which a rule was broken, at its line of the recording.
//!
//! Rules that were kept or not exercised are no results; the counts of all are properties of the run. A run in which nothing was
//! judged has not been successful.

use std::fmt::Write;

use refmcp_proto::rule::Level;
use serde_json::{Value, json};

use super::model::{Conclusion, JudgementReport, Report};
use super::rule::{ExchangeReport, RuleReport, ViolationReport};
use crate::verdict::RuleOutcome;
use crate::visible::{multi_line, one_line};

/// A report as SARIF.
///
/// # Errors
///
/// None that is known: strings, numbers and lists of them are written.
pub fn sarif(report: &Report) -> serde_json::Result<String> {
    let mut rules: Vec<&RuleReport> = Vec::new();
    let mut results = Vec::new();
    for (judgement, rule) in report.broken() {
        let index = rules.iter().position(|known| known.id == rule.id).unwrap_or_else(|| {
            rules.push(rule);
            rules.len() - 1
        });
        let target = report.checked.as_ref().map(|checked| &*checked.target);
        let of_rule = rule.violations.iter();
        results.extend(of_rule.map(|violation| result(judgement, rule, index, violation, target)));
    }
    let is_judged = report.conclusion != Conclusion::NothingJudged;
    let mut invocation = json!({ "executionSuccessful": is_judged });
    if let Some(members) = invocation.as_object_mut().filter(|_| !is_judged) {
        let notification = json!({ "level": "error", "message": { "text": report.summary() } });
        members.insert("toolExecutionNotifications".to_owned(), json!([notification]));
    }
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "refmcp",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules.iter().map(|rule| descriptor(rule)).collect::<Vec<_>>(),
            } },
            "invocations": [invocation],
            "artifacts": report.recordings.iter().filter(|file| file.is_written()).map(|file| json!({
                "location": { "uri": uri(&file.name) },
            })).collect::<Vec<_>>(),
            "results": results,
            "columnKind": "unicodeCodePoints",
            "properties": { "conclusion": report.conclusion, "counts": report.counts },
        }],
    });
    serde_json::to_string_pretty(&document).map(|json| json + "\n")
}

fn descriptor(rule: &RuleReport) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.text },
        "helpUri": rule.link,
        "defaultConfiguration": { "level": level(rule) },
        "properties": { "level": rule.level.to_string() },
    })
}

fn level(rule: &RuleReport) -> &'static str {
    match rule.level {
        Level::Must | Level::May => "error",
        Level::Should => "warning",
        Level::Note => "note",
    }
}

fn result(
    judgement: &JudgementReport,
    rule: &RuleReport,
    index: usize,
    violation: &ViolationReport,
    target: Option<&str>,
) -> Value {
    let message = format!("The {}: {}. Expected: {}.", rule.party, violation.what, violation.expected);
    let parts = violation.exchange.iter().flat_map(ExchangeReport::parts);
    let parts: String = parts.map(|(label, part)| format!("\n\n{label}:\n{}", multi_line(part))).collect();
    // Without a recording nothing else shows it.
    let unwritten = violation.evidence.iter().filter(|evidence| evidence.line == 0);
    let parts =
        parts + &unwritten.map(|it| format!("\n\nsent:\n{}", multi_line(&it.text))).collect::<String>();
    let revisions = if violation.revisions.is_empty() { &judgement.revisions } else { &violation.revisions };
    let mut result = json!({
        "ruleId": rule.id,
        "ruleIndex": index,
        "kind": "fail",
        "level": level(rule),
        "message": { "text": format!("{}{parts}", one_line(&message)) },
        "occurrenceCount": violation.count,
        "partialFingerprints": { "violation/v1": format!("{}/{}/{}", rule.id, rule.party, violation.what) },
        "properties": {
            "party": rule.party,
            "outcome": RuleOutcome::Broken,
            "client": judgement.client,
            "server": judgement.server,
            "transport": judgement.transport,
            "revisions": revisions,
            "exchange": violation.exchange,
        },
    });
    let mut add = |name: &str, value: Value| {
        if let Some(members) = result.as_object_mut() {
            members.insert(name.to_owned(), value);
        }
    };
    if let Some(excuse) = &rule.excuse {
        add("suppressions", json!([{ "kind": "external", "justification": excuse }]));
    }
    if let Some(target) = target {
        let place = json!({ "fullyQualifiedName": target, "kind": "resource" });
        add("locations", json!([{ "logicalLocations": [place] }]));
    }
    if let Some(evidence) = &violation.evidence {
        let location = match evidence.line {
            0 => json!({ "logicalLocations": [{ "fullyQualifiedName": evidence.to_string() }] }),
            line => json!({ "physicalLocation": {
                "artifactLocation": { "uri": uri(&evidence.file) },
                "region": { "startLine": line, "snippet": { "text": evidence.text } },
            } }),
        };
        add("locations", json!([location]));
    }
    result
}

/// The name of a file as a URI reference.
fn uri(name: &str) -> String {
    if name == "-" {
        return "stdin".to_owned();
    }
    let mut uri = String::new();
    for byte in name.replace('\\', "/").bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_uri_references() {
        assert_eq!(uri("runs/one two#3.jsonl"), "runs/one%20two%233.jsonl");
        assert_eq!((uri("-"), uri("ä:b")), ("stdin".to_owned(), "%C3%A4%3Ab".to_owned()));
    }
}
