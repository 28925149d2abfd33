//! Each probe: a server that breaks one rule is reported for it, and ours, which keeps it, is not.

use std::collections::BTreeSet;

use refmcp_check::{CheckResult, Checker, Options, Outcome, Target, checked_rules};
use refmcp_client::child::ChildProcess;
use serde_json::json;
use tokio::task::JoinSet;

use crate::altered::Change;
use crate::examples::{Example, ExampleTransport, SESSIONS, STATELESS, examples};

async fn target(change: Change, transport: ExampleTransport) -> Target {
    match transport {
        ExampleTransport::Pipe => change.pipe(),
        ExampleTransport::Http => change.http().await,
    }
}

/// What the probe of an example says of a server.
async fn results(example: &Example, change: Change) -> Vec<CheckResult> {
    let mut options = Options::default();
    options.revisions = vec![example.revision];
    options.probes = vec![example.probe.to_owned()];
    let report = Checker::new(target(change, example.transport).await, options).run(|_| {}).await;
    assert!(report.revisions.contains(example.revision), "{}: {:?}", example.probe, report.unsupported);
    report.results
}

/// Tries all examples at the same time: some wait for what never comes.
async fn try_all<F: Future<Output = ()> + Send + 'static>(each: fn(Example) -> F) {
    let mut running: JoinSet<()> = examples().into_iter().map(each).collect();
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_breaks_a_rule_is_reported_for_this_rule_alone() {
    try_all(|example| async move {
        let found = results(&example, example.change).await;
        let broken: BTreeSet<&str> =
            found.iter().filter(|it| it.violation().is_some()).map(|it| it.rule.id).collect();
        let expected: BTreeSet<&str> = example.rules.iter().copied().collect();
        assert_eq!(broken, expected, "{}: {found:#?}", example.probe);
        for violation in found.iter().filter_map(CheckResult::violation) {
            assert!(!violation.what.is_empty() && !violation.expected.is_empty(), "{}", example.probe);
            assert!(
                !violation.exchange.request.is_empty() && !violation.exchange.repeat.is_empty(),
                "{violation:#?}"
            );
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_keeps_a_rule_is_not_reported() {
    try_all(|example| async move {
        let unchanged = Change::after(|_, _| {});
        let found = results(&example, example.beside.unwrap_or(unchanged)).await;
        for rule in example.rules {
            let outcomes: Vec<&Outcome> =
                found.iter().filter(|it| it.rule.id == *rule).map(|it| &it.outcome).collect();
            let all_kept = !outcomes.is_empty() && outcomes.iter().all(|it| **it == Outcome::Kept);
            assert!(all_kept, "{} {rule}: {outcomes:#?}", example.probe);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_outlives_its_input_is_reported() {
    let answer =
        json!({ "supportedVersions": [STATELESS.as_str()], "capabilities": {}, "resultType": "complete" });
    let script = |end: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":'"$id"',"result":{answer}}}"#);
        let id = r#"id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')"#;
        format!("while read -r line; do {id}; echo '{line}'; done; {end}")
    };
    for (end, is_broken) in [("exit 0", false), ("exec sleep 30", true)] {
        let child = ChildProcess::new("sh").args(["-c", &script(end)]);
        let mut options = Options::default();
        options.revisions = vec![STATELESS];
        options.probes = vec!["end-of-input".to_owned()];
        let report = Checker::new(Target::child(child), options).run(|_| {}).await;
        let [found] = &report.results[..] else { panic!("{report:#?}") };
        assert_eq!(found.violation().is_some(), is_broken, "{}", found.outcome);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_auditor_finds_has_its_request_too() {
    // Probes run side by side, and one asks with a cursor that is refused: only lists are doubled, so that whichever comes
    // first is one.
    let twice = Change::after(|asked, reply| {
        if asked.method() == "prompts/list" && reply.texts.iter().all(|text| text.contains("\"result\"")) {
            reply.texts.extend(reply.texts.clone());
        }
    });
    let mut options = Options::default();
    options.revisions = vec![SESSIONS];
    let report = Checker::new(twice.pipe(), options).run(|_| {}).await;
    let found = report.broken().find(|it| it.probe == "audit" && it.rule.id == "RPC-05").unwrap();
    let exchange = &found.violation().unwrap().exchange;
    assert!(
        exchange.request.contains("prompts/list") && exchange.answer.contains("prompts"),
        "{exchange:#?}"
    );
    assert!(exchange.repeat.contains("--only RPC-05"), "{}", exchange.repeat);
    assert_eq!(report.report(None).broken().filter(|(_, it)| it.breaks_must()).count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_answer_has_its_request_too() {
    let long = Change::after(|asked, reply| {
        if asked.method() == "tools/call" && asked.message["params"]["name"] == "get_weather" {
            reply.edit(|message| {
                message["result"]["content"] = json!([{ "type": "text", "text": "x".repeat(100_000) }]);
                message["result"]["structuredContent"] = json!({ "temperature": "warm" });
            });
        }
    });
    let mut options = Options::default();
    options.revisions = vec![SESSIONS];
    options.only = vec![&refmcp_proto::rule::TOOL_06];
    let report = Checker::new(long.pipe(), options).run(|_| {}).await;
    for probe in ["audit", "call-tools"] {
        let found = report.broken().find(|it| it.probe == probe).unwrap_or_else(|| panic!("{probe}"));
        let exchange = &found.violation().unwrap().exchange;
        assert!(exchange.answer.len() < 10_000, "{}", exchange.answer.len());
        let request: serde_json::Value = serde_json::from_str(&exchange.request).unwrap();
        assert_eq!(
            (&request["method"], &request["params"]["name"]),
            (&json!("tools/call"), &json!("get_weather"))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_that_the_auditor_judges_can_be_asked_for_alone() {
    let unknown = Change::after(|asked, reply| {
        if asked.method() == "tools/call" {
            reply.edit(|message| {
                if let Some(content) = message.pointer_mut("/result/content") {
                    *content = json!([{ "type": "unknown" }]);
                }
            });
        }
    });
    let mut options = Options::default();
    options.revisions = vec![SESSIONS];
    options.only = vec![&refmcp_proto::rule::TOOL_16];
    let report = Checker::new(unknown.pipe(), options).run(|_| {}).await;
    assert_eq!(report.broken().count(), 1, "{report:#?}");
    assert!(report.results.iter().all(|it| it.rule.id == "TOOL-16" && it.probe == "audit"), "{report:#?}");
}

#[test]
fn every_rule_that_is_checked_has_examples() {
    let checked: BTreeSet<&str> = checked_rules().map(|rule| rule.id).collect();
    // These have tests of their own.
    let elsewhere = ["STDIO-09", "SSE-01", "SSE-02", "SSE-05"];
    let shown: BTreeSet<&str> = examples().iter().flat_map(|it| it.rules).copied().chain(elsewhere).collect();
    assert_eq!(checked, shown);
}
