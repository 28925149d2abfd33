//! Rules about pages, caching and log messages.

use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::exchange::{client, server};
use crate::script::{Example, Script};

fn session() -> Script {
    Script::session("stdio", "2025-06-18", json!({}), json!({"prompts": {}, "tools": {}, "logging": {}}))
}

/// A first page with a cursor.
fn first() -> Script {
    session().asks(1, "prompts/list", json!({})).answers(1, json!({"prompts": [], "nextCursor": "x"}))
}

fn second(method: &str, cursor: Value) -> Script {
    first().asks(2, method, json!({"cursor": cursor}))
}

/// Two pages without a session.
fn scopes(first: &str, second: &str) -> Script {
    let page = |scope: &str, next: Value| {
        let mut page = json!({"prompts": [], "ttlMs": 1, "cacheScope": scope});
        if !next.is_null() {
            page["nextCursor"] = next;
        }
        page
    };
    Script::new("stdio")
        .asks_alone(1, "prompts/list", json!({}), json!({}))
        .completes(1, page(first, json!("x")))
        .asks_alone(2, "prompts/list", json!({"cursor": "x"}), json!({}))
        .completes(2, page(second, Value::Null))
}

fn stateless(method: &str, params: Value, result: Value) -> Script {
    Script::new("stdio").asks_alone(1, method, params, json!({})).completes(1, result)
}

fn log(level: &str) -> Value {
    json!({"level": level, "data": "x"})
}

fn logged(capabilities: Value, level: &str) -> Script {
    Script::session("stdio", "2025-03-26", json!({}), capabilities)
        .notifies("notifications/message", log(level))
}

fn level_set(level: &str) -> Script {
    session()
        .asks(1, "logging/setLevel", json!({"level": "warning"}))
        .answers(1, json!({}))
        .notifies("notifications/message", log(level))
}

fn wanted(meta: Value, level: &str) -> Script {
    Script::new("stdio")
        .asks_alone(1, "tools/call", json!({"name": "a", "_meta": meta}), json!({}))
        .notifies("notifications/message", log(level))
        .completes(1, json!({"content": []}))
}

pub(crate) fn examples() -> Vec<Example> {
    let hinted = |hints: Value| {
        let mut result = json!({"contents": [{"uri": "a:b", "text": "x"}]});
        result.as_object_mut().unwrap().extend(hints.as_object().unwrap().clone());
        stateless("resources/read", json!({"uri": "a:b"}), result)
    };
    let next = |cursor: Value| {
        session().asks(1, "prompts/list", json!({})).answers(1, json!({"prompts": [], "nextCursor": cursor}))
    };
    let warning = json!({"io.modelcontextprotocol/logLevel": "warning"});
    vec![
        client(
            &rule::PAGE_01,
            second("prompts/list", json!("x")),
            vec![
                second("prompts/list", json!("y")),
                second("tools/list", json!("x")),
                second("prompts/list", json!(null)),
                second("prompts/list", json!(2)),
            ],
        ),
        server(
            &rule::PAGE_03,
            second("prompts/list", json!("x")).answers(2, json!({"prompts": []})),
            vec![second("prompts/list", json!("x")).refuses(2, -32602)],
        ),
        server(&rule::PAGE_04, next(json!("")), vec![next(json!(null)), next(json!(1))]),
        server(
            &rule::CACHE_01,
            hinted(json!({"ttlMs": 0, "cacheScope": "private"})),
            vec![
                hinted(json!({})),
                hinted(json!({"ttlMs": -1, "cacheScope": "private"})),
                hinted(json!({"ttlMs": 1.5, "cacheScope": "private"})),
                hinted(json!({"ttlMs": 1, "cacheScope": "mine"})),
            ],
        ),
        server(&rule::CACHE_07, scopes("public", "public"), vec![scopes("public", "private")]),
        server(
            &rule::T_16,
            stateless("prompts/get", json!({"name": "a"}), json!({"messages": []})),
            vec![stateless(
                "prompts/get",
                json!({"name": "a"}),
                json!({"messages": [], "ttlMs": 1, "cacheScope": "public"}),
            )],
        ),
        server(&rule::LOG_01, logged(json!({"logging": {}}), "info"), vec![logged(json!({}), "info")]),
        server(&rule::LOG_02, level_set("warning"), vec![level_set("notice")]),
        server(
            &rule::LOG_03,
            wanted(warning.clone(), "error"),
            vec![wanted(json!({}), "error"), wanted(warning, "info")],
        ),
        server(
            &rule::LOG_06,
            logged(json!({"logging": {}}), "emergency"),
            vec![logged(json!({"logging": {}}), "fatal")],
        ),
        client(
            &rule::LOG_06,
            session().asks(1, "logging/setLevel", json!({"level": "alert"})),
            vec![
                session().asks(1, "logging/setLevel", json!({"level": "trace"})),
                Script::new("stdio").asks_alone(
                    1,
                    "tools/call",
                    json!({"name": "a", "_meta": {"io.modelcontextprotocol/logLevel": 3}}),
                    json!({}),
                ),
            ],
        ),
    ]
}

#[test]
fn a_cursor_from_before_the_recording_is_not_judged() {
    let judged =
        Script::new("stdio").asks_alone(1, "prompts/list", json!({"cursor": "x"}), json!({})).judge();
    assert!(judged.verdicts.get(&rule::PAGE_01, refmcp_audit::verdict::Role::Client).is_none());
}
