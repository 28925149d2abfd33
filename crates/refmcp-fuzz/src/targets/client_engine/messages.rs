//! Messages of a server, and calls and input of a host, drafted from the input.

use refmcp_proto::model::{ElicitParams, InputRequest, JsonObject, keys};
use refmcp_proto::revision::Revision;
use serde_json::{Value, json};

use crate::input::Input;

/// A response to a request of the client.
pub(super) fn response(input: &mut Input<'_>, exchange: u64, method: &str) -> Value {
    let versions = Revision::ALL.map(Revision::as_str);
    let version = versions.get(input.below(versions.len() + 1)).copied().unwrap_or("1999-01-01");
    let result = match (method, input.below(7)) {
        (_, 0) => {
            let code = input.pick(&[-32_601, -32_602, -32_600, -32_022, -1]);
            let data = json!({ "supported": [version], "requested": "x" });
            let error = json!({ "code": code, "message": "no", "data": data });
            return json!({ "jsonrpc": "2.0", "id": exchange, "error": error });
        }
        (_, 1) => input.pick(&["null", "7", "{}", "[]", "\"\""]).parse().unwrap_or_default(),
        ("initialize", _) => {
            let info = json!({ "name": "s", "version": "1" });
            json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": info })
        }
        ("server/discover", _) => {
            json!({ "supportedVersions": [version], "capabilities": {}, "resultType": "complete" })
        }
        (_, 2 | 3) => {
            let requests = json!({
                "a": { "method": "roots/list" },
                "b": { "method": "elicitation/create", "params": form() },
                "c": { "method": input.pick(&["roots/list", "sampling/createMessage", "no/such"]), "params": sampling() },
            });
            let mut result = json!({ "resultType": "input_required", "inputRequests": requests });
            match input.below(4) {
                0 => result["requestState"] = json!("state"),
                1 => result["inputRequests"] = json!({ "a": { "method": "roots/list" } }),
                2 => result = json!({ "resultType": "input_required", "requestState": "state" }),
                _ => {}
            }
            result
        }
        (_, 4) => json!({ "resultType": "other" }),
        _ => json!({ "content": [], "structuredContent": {}, "tools": [], "resultType": "complete" }),
    };
    json!({ "jsonrpc": "2.0", "id": exchange, "result": result })
}

/// A request of the server.
pub(super) fn request(input: &mut Input<'_>) -> Value {
    let id = if input.flag() { json!(input.below(4)) } else { json!(input.below(4).to_string()) };
    let (method, mut params) = match input.below(10) {
        6 => ("tasks/get", task(input)),
        7 => ("tasks/result", task(input)),
        8 => ("tasks/cancel", task(input)),
        9 => ("tasks/list", json!({ "cursor": input.pick(&["1", "2", "9", "x"]) })),
        0 => ("roots/list", json!({})),
        1 => ("elicitation/create", form()),
        2 => (
            "elicitation/create",
            json!({ "mode": "url", "message": "m", "url": "https://u", "elicitationId": "e" }),
        ),
        3 => ("sampling/createMessage", sampling()),
        4 => ("ping", json!({})),
        _ => ("no/such", json!({})),
    };
    if input.below(3) == 0 {
        params["task"] = input.pick(&["{}", "{\"ttl\":2000}", "7"]).parse().unwrap_or_default();
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Names a task of the client, or one that never was.
fn task(input: &mut Input<'_>) -> Value {
    json!({ "taskId": input.pick(&["task-0", "task-1", "task-2", "task-3", "none"]) })
}

/// A notification of the server.
pub(super) fn notification(input: &mut Input<'_>, exchange: u64) -> Value {
    let (method, params) = match input.below(6) {
        0 => ("notifications/progress", json!({ "progressToken": exchange, "progress": input.byte() })),
        1 => ("notifications/cancelled", json!({ "requestId": input.below(4) })),
        2 => ("notifications/cancelled", json!({ "requestId": exchange })),
        3 => ("notifications/message", json!({ "level": "info", "data": 1 })),
        4 => {
            let meta = json!({ keys::SUBSCRIPTION_ID: exchange });
            ("notifications/tools/list_changed", json!({ "_meta": meta }))
        }
        _ => ("notifications/elicitation/complete", json!({ "elicitationId": "e" })),
    };
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// A call of the host: method, name, and parameters.
pub(super) fn call(input: &mut Input<'_>) -> (&'static str, Option<&'static str>, &'static str) {
    input.pick(&[
        ("tools/call", Some("t"), r#"{"name":"t","arguments":{"a":1}}"#),
        ("tools/list", None, "{}"),
        ("resources/read", Some("file:///a"), r#"{"uri":"file:///a"}"#),
        ("resources/subscribe", None, r#"{"uri":"file:///a"}"#),
        ("prompts/get", Some("p"), r#"{"name":"p"}"#),
        ("ping", None, "{}"),
        ("logging/setLevel", None, r#"{"level":"info"}"#),
        ("subscriptions/listen", None, r#"{"notifications":{"toolsListChanged":true}}"#),
    ])
}

/// Members of `_meta`, some of which are the protocol's.
pub(super) fn meta() -> JsonObject {
    let members = json!({ "example.com/a": 1, keys::PROTOCOL_VERSION: "mine", keys::PROGRESS_TOKEN: "mine" });
    members.as_object().cloned().unwrap_or_default()
}

/// The input that a request asks for.
pub(super) fn input(request: &InputRequest) -> Value {
    match request {
        InputRequest::Roots => json!({ "roots": [{ "uri": "file:///r" }] }),
        InputRequest::Elicit(ElicitParams::Url(_)) => json!({ "action": "accept" }),
        InputRequest::Elicit(_) => json!({ "action": "accept", "content": { "name": "n" } }),
        InputRequest::Sample(_) => {
            json!({ "role": "assistant", "content": { "type": "text", "text": "t" }, "model": "m" })
        }
    }
}

fn form() -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    json!({ "mode": "form", "message": "m", "requestedSchema": schema })
}

fn sampling() -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "t" } });
    json!({ "messages": [message], "maxTokens": 1 })
}
