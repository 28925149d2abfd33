//! Rules about roots, sampling and elicitation.

use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::exchange::{client, server};
use crate::script::{Example, Script};

/// A client with these capabilities.
fn session(revision: &str, capabilities: Value) -> Script {
    Script::session("stdio", revision, capabilities, json!({}))
}

/// A server asks, and a client answers.
fn exchange(revision: &str, capabilities: Value, method: &str, params: Value, result: Value) -> Script {
    session(revision, capabilities).server_asks(100, method, params).client_answers(100, result)
}

fn roots_changed(capabilities: Value) -> Script {
    session("2025-03-26", capabilities).client_notifies("notifications/roots/list_changed", json!({}))
}

fn roots(uri: &str) -> Script {
    let result = json!({"roots": [{"uri": uri}]});
    exchange("2025-06-18", json!({"roots": {}}), "roots/list", json!({}), result)
}

/// A request without a session is answered with an input request, and repeated with the response.
fn without_session(capabilities: Value, request: Value, response: Value) -> Script {
    let wanted = json!({"inputRequests": {"k": request}, "requestState": "s"});
    let repeated =
        json!({"name": "a", "arguments": {}, "requestState": "s", "inputResponses": {"k": response}});
    Script::new("stdio")
        .asks_alone(1, "tools/call", json!({"name": "a", "arguments": {}}), capabilities.clone())
        .answers_as(1, "input_required", wanted)
        .asks_alone(2, "tools/call", repeated, capabilities)
        .completes(2, json!({"content": []}))
}

fn message(role: &str, content: Value) -> Value {
    json!({"role": role, "content": content})
}

fn text() -> Value {
    json!({"type": "text", "text": "x"})
}

fn sample(content: Value) -> Value {
    json!({"role": "assistant", "content": content, "model": "m"})
}

/// A server asks for a sample of these messages.
fn sampling(revision: &str, messages: Value) -> Script {
    sampling_with(revision, json!({"tools": {}}), json!({"messages": messages, "maxTokens": 9}))
}

fn sampling_with(revision: &str, capability: Value, params: Value) -> Script {
    let capabilities = json!({"sampling": capability});
    exchange(revision, capabilities, "sampling/createMessage", params, sample(text()))
}

/// A client answers with this content.
fn sampled(revision: &str, content: Value) -> Script {
    let params = json!({"messages": [message("user", text())], "maxTokens": 9});
    let capabilities = json!({"sampling": {"tools": {}}});
    exchange(revision, capabilities, "sampling/createMessage", params, sample(content))
}

/// A server shows a form with one field, and the client answers.
fn form(revision: &str, field: Value, result: Value) -> Script {
    let schema = json!({"type": "object", "properties": {"f": field}, "required": ["f"]});
    let params = json!({"message": "?", "requestedSchema": schema});
    exchange(revision, json!({"elicitation": {}}), "elicitation/create", params, result)
}

fn field(revision: &str, field: Value) -> Script {
    form(revision, field, json!({"action": "decline"}))
}

fn filled(result: Value) -> Script {
    form("2025-06-18", json!({"type": "string"}), result)
}

fn visit(revision: &str, modes: Value, more: Value) -> Script {
    let mut params = json!({"mode": "url", "message": "?", "url": "https://a.example/"});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let result = json!({"action": "accept"});
    exchange(revision, json!({"elicitation": modes}), "elicitation/create", params, result)
}

/// A call is refused until URLs are visited.
fn url_required(data: Value) -> Script {
    Script::session("stdio", "2025-11-25", json!({"elicitation": {"url": {}}}), json!({"tools": {}}))
        .asks(1, "tools/call", json!({"name": "a"}))
        .refuses_with(1, -32042, data)
}

fn sampling_examples() -> Vec<Example> {
    let tools =
        json!({"messages": [], "maxTokens": 9, "tools": [{"name": "a", "inputSchema": {"type": "object"}}]});
    let context = |capability, context: &str| {
        let params = json!({"messages": [], "maxTokens": 9, "includeContext": context});
        sampling_with("2025-11-25", capability, params)
    };
    let uses = |id: &str| json!([{"type": "tool_use", "id": id, "name": "a", "input": {}}]);
    let gives = |id: &str| json!([{"type": "tool_result", "toolUseId": id, "content": []}]);
    let mixed = json!([{"type": "tool_result", "toolUseId": "1", "content": []}, text()]);
    let talk = |second: Value| {
        sampling("2025-11-25", json!([message("assistant", uses("1")), message("user", second)]))
    };
    vec![
        server(
            &rule::SAMP_04,
            sampling_with("2025-11-25", json!({"tools": {}}), tools.clone()),
            vec![
                sampling_with("2025-11-25", json!({}), tools.clone()),
                without_session(
                    json!({"sampling": {}}),
                    json!({"method": "sampling/createMessage", "params": tools}),
                    sample(text()),
                ),
            ],
        ),
        server(
            &rule::SAMP_05,
            talk(gives("1")),
            vec![talk(gives("2")), talk(mixed), talk(text()), {
                sampling("2025-11-25", json!([message("user", gives("1"))]))
            }],
        ),
        client(&rule::SAMP_05, sampled("2025-11-25", uses("1")), vec![sampled("2025-11-25", gives("1"))]),
        server(
            &rule::SAMP_06,
            context(json!({"context": {}}), "allServers"),
            vec![context(json!({}), "thisServer")],
        ),
        server(
            &rule::SAMP_09,
            sampling("2025-11-25", json!([message("user", json!([text(), text()]))])),
            vec![
                sampling("2025-11-25", json!([message("user", json!("x"))])),
                sampling("2025-11-25", json!([message("user", json!([{}]))])),
            ],
        ),
        client(&rule::SAMP_09, sampled("2025-11-25", text()), vec![sampled("2025-11-25", json!("x"))]),
        server(
            &rule::SAMP_11,
            sampling("2025-03-26", json!([message("user", text())])),
            vec![
                sampling("2025-03-26", json!([message("user", json!([text()]))])),
                sampling("2025-03-26", json!([message("user", uses("1")[0].clone())])),
                sampling("2024-11-05", json!([message("user", json!({"type": "audio"}))])),
            ],
        ),
        client(
            &rule::SAMP_11,
            sampled("2025-03-26", text()),
            vec![sampled("2025-03-26", json!([text()])), sampled("2025-03-26", json!("x"))],
        ),
    ]
}

fn form_examples() -> Vec<Example> {
    let accepted = |content: Value| json!({"action": "accept", "content": content});
    let titled = json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]});
    let several = json!({"type": "array", "items": {"enum": ["a"]}});
    let stateless = |content: Value| {
        let schema = json!({"type": "object", "properties": {"f": {"type": "string"}}, "required": ["f"]});
        let params = json!({"mode": "form", "message": "?", "requestedSchema": schema});
        let request = json!({"method": "elicitation/create", "params": params});
        without_session(json!({"elicitation": {}}), request, accepted(content))
    };
    let whole = |schema: Value| {
        let params = json!({"message": "?", "requestedSchema": schema});
        let decline = json!({"action": "decline"});
        exchange("2025-06-18", json!({"elicitation": {}}), "elicitation/create", params, decline)
    };
    vec![
        server(
            &rule::ELIC_04,
            field("2025-06-18", json!({"type": "string", "format": "email"})),
            vec![
                field("2025-06-18", json!({"type": "object", "properties": {}})),
                field("2025-11-25", json!({"type": "string", "format": "ipv4"})),
                field("2025-11-25", json!({})),
                whole(json!({"type": "array"})),
                whole(json!({"type": "object"})),
            ],
        ),
        server(
            &rule::ELIC_05,
            field("2025-06-18", json!({"type": "string", "enum": ["a"], "enumNames": ["A"]})),
            vec![field("2025-06-18", titled.clone()), field("2025-06-18", several.clone())],
        ),
        server(
            &rule::ELIC_06,
            field("2025-11-25", titled),
            vec![
                field("2025-11-25", json!({"type": "string", "oneOf": [{"title": "A"}]})),
                field("2025-11-25", json!({"type": "array", "items": {"type": "string"}})),
            ],
        ),
        client(
            &rule::ELIC_08,
            filled(json!({"action": "cancel", "content": {}})),
            vec![
                filled(json!({"action": "reject"})),
                filled(json!({"action": "decline", "content": {"f": "x"}})),
                filled(json!({})),
            ],
        ),
        client(
            &rule::ELIC_16,
            stateless(json!({"f": "x"})),
            vec![
                stateless(json!({"f": 1})),
                filled(accepted(json!({}))),
                filled(json!({"action": "accept"})),
                form("2025-11-25", several, accepted(json!({"f": "a"}))),
            ],
        ),
    ]
}

fn url_examples() -> Vec<Example> {
    let both = json!({"form": {}, "url": {}});
    let id = json!({"elicitationId": "1"});
    let completed = |id: &str| {
        visit("2025-11-25", json!({"url": {}}), json!({"elicitationId": "1"}))
            .notifies("notifications/elicitation/complete", json!({"elicitationId": id}))
    };
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    let declared =
        |elicitation| session("2025-11-25", json!({"elicitation": elicitation})).asks(1, "ping", json!({}));
    vec![
        client(
            &rule::ELIC_01,
            declared(both.clone()),
            vec![
                declared(json!({"page": {}})),
                declared(json!(true)),
                Script::new("stdio").asks_alone(
                    1,
                    "tools/list",
                    json!({}),
                    json!({"elicitation": {"page": {}}}),
                ),
            ],
        ),
        server(
            &rule::ELIC_02,
            visit("2025-11-25", both, id.clone()),
            vec![
                visit("2025-11-25", json!({}), id.clone()),
                exchange(
                    "2025-11-25",
                    json!({"elicitation": {"url": {}}}),
                    "elicitation/create",
                    form,
                    json!({"action": "decline"}),
                ),
            ],
        ),
        server(
            &rule::ELIC_13,
            completed("1"),
            vec![completed("2"), visit("2025-11-25", json!({"url": {}}), json!({}))],
        ),
        server(
            &rule::ELIC_14,
            url_required(json!({"elicitations": [
                {"mode": "url", "message": "?", "url": "https://a.example/", "elicitationId": "1"}
            ]})),
            vec![
                url_required(json!({})),
                url_required(json!({"elicitations": [{"mode": "url", "url": "https://a.example/"}]})),
            ],
        ),
    ]
}

pub(crate) fn examples() -> Vec<Example> {
    let mut examples = vec![
        client(
            &rule::ROOT_01,
            roots_changed(json!({"roots": {"listChanged": true}})),
            vec![roots_changed(json!({}))],
        ),
        client(
            &rule::ROOT_02,
            roots_changed(json!({"roots": {"listChanged": true}})),
            vec![roots_changed(json!({"roots": {}}))],
        ),
        client(
            &rule::ROOT_03,
            roots("file:///a"),
            vec![
                roots("/a"),
                roots("https://a.example/"),
                without_session(
                    json!({"roots": {}}),
                    json!({"method": "roots/list"}),
                    json!({"roots": [{"uri": "a"}]}),
                ),
            ],
        ),
    ];
    examples.extend(sampling_examples());
    examples.extend(form_examples());
    examples.extend(url_examples());
    examples
}
