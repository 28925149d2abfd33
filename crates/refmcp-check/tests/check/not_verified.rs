//! What could not be found out is told, with the reason: it is neither kept nor skipped.

use refmcp_check::{CheckReport, Checker, Options, Outcome};
use refmcp_proto::revision::Revision;
use serde_json::{Value, json};

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

/// The tool of our server with an output schema that is called first.
const STRUCTURED: &str = "get_weather";

/// The list of tools with another output schema.
fn with_output_schema(asked: &Asked, reply: &mut Reply, schema: &Value) {
    if asked.method() == "tools/list" {
        reply.edit(|message| {
            for tool in message["result"]["tools"].as_array_mut().into_iter().flatten() {
                if tool["name"] == STRUCTURED {
                    tool["outputSchema"] = schema.clone();
                }
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_schema_that_cannot_be_compiled_judges_nothing() {
    let change = Change::after(|asked, reply| with_output_schema(asked, reply, &json!({ "type": 5 })));
    let report = probed(change, SESSIONS, &["call-tools"]).await;
    let why = format!("the outputSchema of {STRUCTURED} cannot be compiled: ");
    assert_not_verified(&report, "call-tools", "TOOL-06", &why);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_is_too_much_work_is_not_verified() {
    let change = Change::after(|asked, reply| {
        let child = json!({ "properties": { "c": { "$ref": "#" } } });
        with_output_schema(asked, reply, &json!({ "allOf": [child, child] }));
        if asked.method() == "tools/call" && asked.message["params"]["name"] == STRUCTURED {
            let deep = (0..60).fold(json!({}), |inner, _| json!({ "c": inner }));
            reply.edit(|message| message["result"]["structuredContent"] = deep);
        }
    });
    let report = probed(change, SESSIONS, &["call-tools"]).await;
    let why =
        format!("structuredContent of {STRUCTURED} is too much work to compare with its outputSchema: ");
    assert_not_verified(&report, "call-tools", "TOOL-06", &why);
}

/// Many items, each answered at once.
fn many(asked: &Asked) -> Option<Reply> {
    let list = |member: &str, item: fn(usize) -> Value| {
        let items: Vec<Value> = (0..300).map(item).collect();
        Some(Reply::new(200, &[result(asked, &json!({ member: items }))]))
    };
    match asked.method() {
        "tools/list" => list("tools", |number| {
            let (schema, hints) = (json!({ "type": "object" }), json!({ "readOnlyHint": true }));
            json!({ "name": format!("t{number}"), "inputSchema": schema, "annotations": hints })
        }),
        "resources/list" => list("resources", |number| json!({ "uri": format!("a:{number}"), "name": "r" })),
        "prompts/list" => list("prompts", |number| json!({ "name": format!("p{number}") })),
        "tools/call" => Some(Reply::new(200, &[result(asked, &json!({ "content": [] }))])),
        "resources/read" => Some(Reply::new(200, &[result(asked, &json!({ "contents": [] }))])),
        "prompts/get" => Some(Reply::new(200, &[result(asked, &json!({ "messages": [] }))])),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_beyond_a_limit_are_told() {
    let probes = ["call-tools", "read-resources", "get-prompts"];
    let report = probed(Change::instead(many), SESSIONS, &probes).await;
    for (probe, rule, why) in [
        ("call-tools", "TOOL-06", "200 of 300 tools were called: 200 at most, and for 12 seconds"),
        ("read-resources", "RES-02", "resources/read was tried for 100 of 300 items: for 100 at most"),
        ("get-prompts", "PROMPT-03", "prompts/get was tried for 100 of 300 items: for 100 at most"),
    ] {
        assert_not_verified(&report, probe, rule, why);
    }
}

/// Tools are called, and never answer.
fn silent(asked: &Asked) -> Option<Reply> {
    (asked.method() == "tools/call").then(|| Reply::new(200, &[]))
}

#[tokio::test(start_paused = true)]
async fn calls_that_take_too_long_in_all_are_broken_off_and_told() {
    let report = probed(Change::instead(silent), SESSIONS, &["call-tools"]).await;
    assert_not_verified(&report, "call-tools", "TOOL-06", "7 of ");
    let late = format!("a call of {STRUCTURED} is answered with no response in time");
    assert_not_verified(&report, "call-tools", "TOOL-06", &late);
}
