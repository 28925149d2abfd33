//! Rules about tools.

use refmcp_audit::verdict::Role;
use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::exchange::server;
use crate::script::{Example, Script};

fn session(revision: &str, capabilities: Value) -> Script {
    Script::session("stdio", revision, json!({}), capabilities)
}

/// A server that lists a tool.
fn listing(tool: Value) -> Script {
    listing_all(json!([tool]))
}

fn listing_all(tools: Value) -> Script {
    let session = session("2025-11-25", json!({"tools": {}}));
    session.asks(1, "tools/list", json!({})).answers(1, json!({"tools": tools}))
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// A call of a tool that has an output schema.
fn structured(result: Value) -> Script {
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
    let tool = json!({"name": "a", "inputSchema": {"type": "object"}, "outputSchema": schema});
    listing(tool).asks(2, "tools/call", json!({"name": "a", "arguments": {}})).answers(2, result)
}

/// The same of a tool with a long output schema that was listed often.
fn listed_often(result: Value) -> Script {
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}, "description": "x".repeat(8 << 10)});
    let tools = json!([{"name": "a", "inputSchema": {"type": "object"}, "outputSchema": schema}]);
    let mut script = session("2025-11-25", json!({"tools": {}}));
    for id in 1..20 {
        script = script.asks(id, "tools/list", json!({})).answers(id, json!({"tools": tools}));
    }
    script.asks(20, "tools/call", json!({"name": "a", "arguments": {}})).answers(20, result)
}

/// A call with any result.
fn called(revision: &str, capabilities: Value, result: Value) -> Script {
    session(revision, capabilities).asks(2, "tools/call", json!({"name": "a"})).answers(2, result)
}

fn block(revision: &str, block: Value) -> Script {
    called(revision, json!({"tools": {}, "resources": {}}), json!({"content": [block]}))
}

/// Lists without a session, each of these names.
fn lists(lists: [[&str; 2]; 2]) -> Script {
    let mut script = Script::new("stdio");
    for (id, names) in lists.into_iter().enumerate() {
        let id = id as u64;
        let result = json!({"tools": names.map(tool), "ttlMs": 0, "cacheScope": "public"});
        script = script.asks_alone(id, "tools/list", json!({}), json!({})).completes(id, result);
    }
    script
}

/// A list on two pages.
fn pages(first: &str, second: &str) -> Script {
    session("2025-11-25", json!({"tools": {}}))
        .asks(1, "tools/list", json!({}))
        .answers(1, json!({"tools": [tool(first)], "nextCursor": "x"}))
        .asks(2, "tools/list", json!({"cursor": "x"}))
        .answers(2, json!({"tools": [tool(second)]}))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(crate) fn examples() -> Vec<Example> {
    let changed = |capabilities| {
        session("2025-03-26", json!({"tools": capabilities}))
            .notifies("notifications/tools/list_changed", json!({}))
    };
    let resource = json!({"type": "resource", "resource": {"uri": "a:b", "text": "x"}});
    vec![
        server(
            &rule::TOOL_01,
            called("2025-03-26", json!({"tools": {}}), json!({"content": []})),
            vec![
                called("2025-03-26", json!({}), json!({"content": []}))
                    .provoked_by(&rule::LIFE_14, Role::Client),
                session("2025-03-26", json!({}))
                    .asks(1, "tools/list", json!({}))
                    .answers(1, json!({"tools": []}))
                    .provoked_by(&rule::LIFE_14, Role::Client),
            ],
        ),
        server(&rule::TOOL_02, changed(json!({"listChanged": true})), vec![changed(json!({}))]),
        server(&rule::TOOL_03, lists([["a", "b"], ["a", "b"]]), vec![lists([["a", "b"], ["b", "a"]])]),
        server(
            &rule::TOOL_04,
            pages("a.b-C_1", "b"),
            vec![
                listing(tool("")),
                listing(tool("two words")),
                listing(tool(&"a".repeat(129))),
                listing_all(json!([tool("a"), tool("a")])),
                pages("a", "a"),
            ],
        ),
        server(
            &rule::TOOL_05,
            listing(tool("a")),
            vec![
                listing(json!({"name": "a"})),
                listing(json!({"name": "a", "inputSchema": null})),
                listing(json!({"name": "a", "inputSchema": {}})),
                listing(json!({"name": "a", "inputSchema": {"type": "string"}})),
            ],
        ),
        server(
            &rule::TOOL_06,
            structured(json!({"content": [text(r#"{"n":1}"#)], "structuredContent": {"n": 1}})),
            vec![
                structured(json!({"content": [text(r#"{"n":"1"}"#)], "structuredContent": {"n": "1"}})),
                structured(json!({"content": [text("{}")], "structuredContent": {}})),
                structured(json!({"content": [text("1")]})),
                listed_often(json!({"content": [text(r#"{"n":"1"}"#)], "structuredContent": {"n": "1"}})),
            ],
        ),
        server(
            &rule::TOOL_07,
            structured(json!({"content": [text(r#"{ "n": 1.0 }"#)], "structuredContent": {"n": 1}})),
            vec![
                structured(json!({"content": [text("one")], "structuredContent": {"n": 1}})),
                structured(json!({"content": [], "structuredContent": {"n": 1}})),
                structured(json!({"structuredContent": {"n": 1}})),
            ],
        ),
        server(
            &rule::TOOL_14,
            called("2025-06-18", json!({"tools": {}, "resources": {}}), json!({"content": [resource]})),
            vec![called("2025-06-18", json!({"tools": {}}), json!({"content": [resource]}))],
        ),
        server(
            &rule::TOOL_16,
            block("2025-06-18", json!({"type": "image", "data": "aGk=", "mimeType": "image/png"})),
            vec![
                block("2025-06-18", json!({"type": "image", "data": "a b", "mimeType": "image/png"})),
                block("2025-06-18", json!({"type": "image", "data": "aGk="})),
                block("2024-11-05", json!({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"})),
                block("2025-03-26", json!({"type": "resource_link", "uri": "a:b", "name": "b"})),
                block("2025-06-18", json!({"type": "resource", "resource": {"text": "x"}})),
                block("2025-06-18", json!({"type": "resource", "resource": {"uri": "a:b", "blob": "?"}})),
                block("2025-06-18", json!({"text": "x"})),
                block("2025-06-18", json!({"type": "txt", "text": "x"})),
                called("2025-06-18", json!({"tools": {}}), json!({})),
            ],
        ),
        server(
            &rule::T_28,
            structured(json!({"content": [text(r#"{"n":1}"#)], "structuredContent": {"n": 1}})),
            vec![called(
                "2025-06-18",
                json!({"tools": {}}),
                json!({"content": [text("[1]")], "structuredContent": [1]}),
            )],
        ),
    ]
}

#[test]
fn failed_calls_and_interim_results_need_no_structured_content() {
    let failed = structured(json!({"content": [text("no")], "isError": true})).judge();
    assert_eq!(failed.broken().count(), 0);
    let interim = json!({"requestState": "s", "inputRequests": {"k": {"method": "roots/list"}}});
    let script = Script::new("stdio")
        .asks_alone(1, "tools/call", json!({"name": "a"}), json!({"roots": {}}))
        .answers_as(1, "input_required", interim)
        .judge();
    assert_eq!(script.broken().count(), 0, "{:?}", script.broken().collect::<Vec<_>>());
}

#[test]
fn a_schema_that_takes_too_much_work_is_not_judged() {
    let mut definitions = json!({"0": {"type": "object"}});
    for level in 1..=12 {
        let below = json!({"$ref": format!("#/$defs/{}", level - 1)});
        definitions[level.to_string()] = json!({"allOf": vec![below; 10]});
    }
    let schema = json!({"$ref": "#/$defs/12", "$defs": definitions, "type": "object"});
    let tool = json!({"name": "a", "inputSchema": {"type": "object"}, "outputSchema": schema});
    let judged = listing(tool)
        .asks(2, "tools/call", json!({"name": "a"}))
        .answers(2, json!({"content": [text("{}")], "structuredContent": {}}))
        .judge();
    assert!(judged.verdicts.iter().all(|verdict| verdict.rule.id != "TOOL-06"));
}

#[test]
fn findings_about_a_list_name_the_first_tool_that_shows_them() {
    let schema = json!({"type": "objekt"});
    let tools = json!([tool("a"), {"name": "b c", "inputSchema": schema}, {"name": "d\u{1b}e", "inputSchema": schema}, tool("a")]);
    let judgement = listing_all(tools).judge();
    let told = |rule| -> Vec<String> {
        let verdict = judgement.verdicts.get(rule, Role::Server).unwrap();
        verdict.violations.iter().map(|violation| violation.what.clone()).collect()
    };
    let names =
        "the name of the tool \"b c\" and one more has other characters or another length than names have";
    assert_eq!(told(&rule::TOOL_04), [names, "two tools of one list have the name \"a\""]);
    let schemas = "the inputSchema of the tool \"b c\" and one more is no schema of type object";
    assert_eq!(told(&rule::TOOL_05), [schemas]);
    let hostile = listing(tool("d\u{1b}e")).judge();
    let verdict = hostile.verdicts.get(&rule::TOOL_04, Role::Server).unwrap();
    assert!(verdict.violations[0].what.contains("\"d\\u{1b}e\""), "{verdict:?}");
}
