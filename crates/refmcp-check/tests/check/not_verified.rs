//! What could not be found out is told, with the reason: it is neither kept nor skipped.

use refmcp_check::{CheckReport, Checker, Options, Outcome};
use refmcp_proto::revision::Revision;
use serde_json::json;

use crate::altered::{Asked, Change, Reply};
use crate::examples::{SESSIONS, STATELESS, error, result};

/// What these probes say of a changed server.
async fn probed(change: Change, revision: Revision, probes: &[&str]) -> CheckReport {
    let mut options = Options::default();
    options.revisions = vec![revision];
    options.probes = probes.iter().map(|&name| name.to_owned()).collect();
    Checker::new(change.pipe(), options).run(|_| {}).await
}

/// Asserts that a probe could not verify a rule for this reason.
fn assert_not_verified(report: &CheckReport, probe: &str, rule: &str, why: &str) {
    let outcomes: Vec<&Outcome> = report
        .results
        .iter()
        .filter(|result| result.probe == probe && result.rule.id == rule)
        .map(|result| &result.outcome)
        .collect();
    let told = outcomes.iter().any(|it| matches!(it, Outcome::NotVerified(told) if told.contains(why)));
    assert!(told, "{probe} {rule}: {outcomes:#?}");
    let broken = outcomes.iter().any(|it| matches!(it, Outcome::Broken(_) | Outcome::Skipped(_)));
    assert!(!broken, "{probe} {rule}: {outcomes:#?}");
}

fn refuses_lists(asked: &Asked) -> Option<Reply> {
    let is_list = asked.method().ends_with("/list");
    is_list.then(|| Reply::new(200, &[error(asked, -32603)]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_is_refused_is_not_an_empty_one() {
    let probes = [
        "unknown-tool",
        "tool-without-name",
        "missing-argument",
        "call-tools",
        "invalid-cursor",
        "prompt-without-argument",
        "path-out-of-directory",
        "same-lists",
    ];
    let report = probed(Change::instead(refuses_lists), STATELESS, &probes).await;
    let answer = r#" is answered with error -32603: {"#;
    for (probe, rule, method) in [
        ("unknown-tool", "TOOL-09", "tools/list"),
        ("tool-without-name", "TOOL-12", "tools/list"),
        ("missing-argument", "TOOL-10", "tools/list"),
        ("call-tools", "TOOL-06", "tools/list"),
        ("invalid-cursor", "PAGE-03", "tools/list"),
        ("prompt-without-argument", "PROMPT-02", "prompts/list"),
        ("path-out-of-directory", "RES-06", "resources/list"),
        ("same-lists", "STATE-12", "resources/list"),
        ("same-lists", "TOOL-03", "tools/list"),
    ] {
        assert_not_verified(&report, probe, rule, &format!("{method}{answer}"));
    }
    assert_eq!(report.broken().count(), 0, "{report:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_whose_second_page_is_refused_is_not_complete() {
    let change = Change {
        instead: |asked| {
            let cursor = asked.message["params"]["cursor"].is_string();
            (asked.method() == "tools/list" && cursor).then(|| Reply::new(200, &[error(asked, -32603)]))
        },
        after: |asked, reply| {
            if asked.method() == "tools/list" {
                reply.edit(|message| message["result"]["nextCursor"] = json!("next"));
            }
        },
    };
    let report = probed(change, SESSIONS, &["call-tools"]).await;
    assert_not_verified(&report, "call-tools", "TOOL-06", "tools/list is answered with error -32603");
    let kept = report.results.iter().any(|it| it.rule.id == "TOOL-06" && it.outcome == Outcome::Kept);
    assert!(kept, "the tools of the first page are called: {report:#?}");
    let judged = report.report(None);
    let rule = judged.judgements[0].rules.iter().find(|rule| rule.id == "TOOL-06").unwrap();
    assert_eq!(rule.outcome.to_string(), "not verified");
    assert!(rule.reason.as_deref().is_some_and(|why| why.contains("tools/list")), "{rule:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_without_a_list_is_no_empty_list() {
    let change = Change::instead(|asked| {
        (asked.method() == "tools/list").then(|| Reply::new(200, &[result(asked, &json!({}))]))
    });
    let report = probed(change, SESSIONS, &["unknown-tool"]).await;
    let why = "tools/list is answered with a result without the array tools: {";
    assert_not_verified(&report, "unknown-tool", "TOOL-09", why);
}
