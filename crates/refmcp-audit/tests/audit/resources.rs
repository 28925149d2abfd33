//! Rules about resources, prompts and completion.

use refmcp_audit::verdict::Role;
use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::exchange::{client, server};
use crate::script::{Example, Script};

fn session(revision: &str, capabilities: Value) -> Script {
    Script::session("stdio", revision, json!({}), capabilities)
}

fn read(contents: Value) -> Script {
    session("2025-06-18", json!({"resources": {}}))
        .asks(1, "resources/read", json!({"uri": "a:b"}))
        .answers(1, contents)
}

fn template(template: &str) -> Script {
    session("2025-06-18", json!({"resources": {}}))
        .asks(1, "resources/templates/list", json!({}))
        .answers(1, json!({"resourceTemplates": [{"name": "a", "uriTemplate": template}]}))
}

/// A client subscribes, and is told of an update.
fn updated(uri: &str) -> Script {
    session("2025-06-18", json!({"resources": {"subscribe": true}}))
        .asks(1, "resources/subscribe", json!({"uri": "file:///a"}))
        .answers(1, json!({}))
        .notifies("notifications/resources/updated", json!({"uri": uri}))
}

fn prompt(capabilities: Value, revision: &str, content: Value) -> Script {
    session(revision, capabilities)
        .asks(1, "prompts/get", json!({"name": "a", "arguments": {"b": "c"}}))
        .answers(1, json!({"messages": [{"role": "user", "content": content}]}))
}

fn completion(capabilities: Value, values: usize) -> Script {
    let params = json!({"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "b", "value": ""}});
    session("2025-03-26", capabilities)
        .asks(1, "completion/complete", params)
        .answers(1, json!({"completion": {"values": vec!["x"; values]}}))
}

pub(crate) fn examples() -> Vec<Example> {
    let listed = |capabilities| {
        session("2025-03-26", capabilities)
            .asks(1, "resources/list", json!({}))
            .answers(1, json!({"resources": []}))
    };
    let notified = |capabilities, method: &str| {
        session("2025-03-26", json!({"resources": capabilities})).notifies(method, json!({"uri": "a:b"}))
    };
    let prompts_changed = |capabilities| {
        session("2025-03-26", json!({"prompts": capabilities}))
            .notifies("notifications/prompts/list_changed", json!({}))
    };
    let arguments = |arguments: Value| {
        session("2025-06-18", json!({"prompts": {}})).asks(
            1,
            "prompts/get",
            json!({"name": "a", "arguments": arguments}),
        )
    };
    let text = json!({"type": "text", "text": "x"});
    let embedded = |resource: Value| {
        prompt(json!({"prompts": {}}), "2025-06-18", json!({"type": "resource", "resource": resource}))
    };
    vec![
        server(
            &rule::RES_01,
            listed(json!({"resources": {}})),
            vec![
                listed(json!({})).provoked_by(&rule::LIFE_14, Role::Client),
                notified(json!({}), "notifications/resources/list_changed"),
                notified(json!({"listChanged": true}), "notifications/resources/updated"),
            ],
        ),
        server(
            &rule::RES_02,
            read(json!({"contents": [{"uri": "a:b", "text": ""}, {"uri": "a:c", "blob": "aGk="}]})),
            vec![
                read(json!({"contents": [{"uri": "a:b"}]})),
                read(json!({"contents": [{"text": "x"}]})),
                read(json!({"contents": [{"uri": "a:b", "blob": "a"}]})),
                read(json!({})),
            ],
        ),
        client(
            &rule::RES_05,
            Script::new("stdio").asks_alone(
                1,
                "subscriptions/listen",
                json!({"notifications": {"resourceSubscriptions": ["a:b"]}}),
                json!({}),
            ),
            vec![Script::new("stdio").asks_alone(1, "resources/subscribe", json!({"uri": "a:b"}), json!({}))],
        ),
        server(&rule::RES_08, template("a:{b}{?c*}"), vec![template("a:{b"), template("a:{b c}")]),
        server(&rule::RES_09, updated("file:///a/b"), vec![updated("file:///b")]),
        server(
            &rule::PROMPT_01,
            prompts_changed(json!({"listChanged": true})),
            vec![
                prompts_changed(json!({})),
                prompt(json!({}), "2025-03-26", text.clone()).provoked_by(&rule::LIFE_14, Role::Client),
                session("2025-03-26", json!({}))
                    .asks(1, "prompts/list", json!({}))
                    .answers(1, json!({"prompts": []}))
                    .provoked_by(&rule::LIFE_14, Role::Client),
            ],
        ),
        server(
            &rule::PROMPT_03,
            embedded(json!({"uri": "a:b", "mimeType": "text/plain", "text": "x"})),
            vec![
                embedded(json!({"uri": "a:b", "text": "x"})),
                embedded(json!({"mimeType": "text/plain", "text": "x"})),
                embedded(json!({"uri": "a:b", "mimeType": "text/plain"})),
                prompt(
                    json!({"prompts": {}}),
                    "2025-06-18",
                    json!({"type": "image", "data": "!", "mimeType": "image/png"}),
                ),
            ],
        ),
        client(
            &rule::PROMPT_05,
            arguments(json!({"a": "1"})),
            vec![arguments(json!({"a": 1})), arguments(json!(["a"]))],
        ),
        server(
            &rule::COMP_01,
            completion(json!({"completions": {}}), 1),
            vec![completion(json!({}), 1).provoked_by(&rule::LIFE_14, Role::Client)],
        ),
        server(
            &rule::COMP_02,
            completion(json!({"completions": {}}), 100),
            vec![completion(json!({"completions": {}}), 101)],
        ),
    ]
}
