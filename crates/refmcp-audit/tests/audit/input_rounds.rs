//! Rules about requests that need input.

use refmcp_audit::recording::Side;
use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::script::{Example, Script, client, notification, server, stateless_request, stateless_result};

fn discovered() -> Script {
    Script::recorded_by(Side::Server, "stdio").discovers(json!({"tools": {}, "prompts": {}}))
}

/// A request whose client can be asked, with these members.
fn call(id: i64, members: Value) -> Value {
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "roots": {}}});
    let mut params = json!({"name": "t", "arguments": {"a": 1}, "_meta": meta});
    params.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    stateless_request(id, "tools/call", params)
}

fn called(id: i64) -> Value {
    stateless_result(id, json!({"content": []}))
}

fn requires(id: i64, members: Value) -> Value {
    let mut whole = json!({"resultType": "input_required"});
    whole.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    stateless_result(id, whole)
}

fn name_form() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": schema}})
}

fn asked(requests: Value) -> Script {
    discovered()
        .client(call(1, json!({})))
        .server(requires(1, json!({"inputRequests": requests, "requestState": "s"})))
}

fn answers() -> Value {
    json!({"a": {"action": "accept", "content": {"name": "n"}}, "b": {"roots": []}})
}

/// The client was asked for two things.
fn round() -> Script {
    asked(json!({"a": name_form(), "b": {"method": "roots/list"}}))
}

fn repeated(members: Value) -> Script {
    round().client(call(2, members)).server(called(2))
}

pub(crate) fn examples() -> Vec<Example> {
    let right = || repeated(json!({"inputResponses": answers(), "requestState": "s"}));
    let ends = |result: Value| discovered().client(call(1, json!({}))).server(result);
    let mut requests_with_envelope = name_form();
    requests_with_envelope["id"] = json!(1);
    requests_with_envelope["jsonrpc"] = json!("2.0");
    let sampling = json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
    let lists = discovered()
        .client(stateless_request(1, "tools/list", json!({})))
        .server(requires(1, json!({"requestState": "s"})));
    let streamed = Script::without_session("http", json!({"tools": {}}))
        .on_stream(4)
        .client(call(1, json!({})))
        .server(requires(1, json!({"requestState": "s"})))
        .server(notification("notifications/example", json!({})));
    vec![
        server(&rule::MRTR_01, round(), vec![lists]),
        server(
            &rule::MRTR_02,
            round(),
            vec![ends(requires(1, json!({}))), ends(requires(1, json!({"requestState": {"a": 1}})))],
        ),
        server(
            &rule::MRTR_03,
            round(),
            vec![
                asked(json!([name_form()])),
                asked(json!({"a": {"method": "tools/list"}})),
                asked(json!({"a": {"method": "ping"}})),
                asked(json!({"a": {"params": {}}})),
                asked(json!({"a": requests_with_envelope})),
            ],
        ),
        server(&rule::MRTR_04, round(), vec![asked(json!({"a": sampling}))]),
        server(
            &rule::MRTR_12,
            round(),
            vec![
                ends(requires(1, json!({"requestState": "s", "ttlMs": 5, "cacheScope": "private"}))),
                streamed,
            ],
        ),
        client(
            &rule::MRTR_05,
            right(),
            vec![
                repeated(json!({"inputResponses": {"b": {"roots": []}}, "requestState": "s"})),
                repeated(json!({"requestState": "s"})),
            ],
        ),
        client(
            &rule::MRTR_06,
            right(),
            vec![
                // The state is dropped, comes from nowhere, or other parts of the request differ.
                repeated(json!({"inputResponses": answers()})),
                discovered()
                    .client(call(1, json!({})))
                    .server(requires(1, json!({"inputRequests": {"a": name_form()}})))
                    .client(call(
                        2,
                        json!({"inputResponses": {"a": {"action": "cancel"}}, "requestState": "x"}),
                    ))
                    .server(called(2)),
                repeated(json!({"inputResponses": answers(), "requestState": "s", "arguments": {"a": 2}})),
                round()
                    .client(call(1, json!({"inputResponses": answers(), "requestState": "s"})))
                    .server(called(1)),
                repeated(
                    json!({"inputResponses": {"a": {"action": "decline"}, "b": {"roots": []}, "c": {}}, "requestState": "s"}),
                ),
                discovered().client(call(1, json!({"inputResponses": answers()}))).server(called(1)),
            ],
        ),
        client(
            &rule::MRTR_07,
            right(),
            vec![
                repeated(json!({"inputResponses": answers(), "requestState": "S"})),
                repeated(json!({"inputResponses": answers(), "requestState": "s", "name": "other"})),
            ],
        ),
        // The state alone asks the client to come again.
        client(
            &rule::MRTR_06,
            ends(requires(1, json!({"requestState": "s"})))
                .client(call(2, json!({"requestState": "s"})))
                .server(called(2)),
            vec![],
        ),
        // A second round has a state of its own.
        client(
            &rule::MRTR_07,
            round()
                .client(call(2, json!({"inputResponses": answers(), "requestState": "s"})))
                .server(requires(2, json!({"inputRequests": {"c": name_form()}, "requestState": "u"})))
                .client(call(3, json!({"inputResponses": {"c": {"action": "cancel"}}, "requestState": "u"})))
                .server(called(3)),
            vec![],
        ),
    ]
}
