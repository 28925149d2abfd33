//! Rules about subscriptions.

use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::script::{
    Example, Script, client, error, notification, server, stateless_request, stateless_result,
};

fn discovered(transport: &str) -> Script {
    let listed = json!({"listChanged": true});
    Script::without_session(
        transport,
        json!({"tools": listed, "prompts": listed, "resources": {"subscribe": true}, "logging": {}}),
    )
}

fn filter() -> Value {
    json!({"toolsListChanged": true, "resourceSubscriptions": ["a:b"]})
}

fn listens(transport: &str, filter: Value) -> Script {
    let meta = json!({"io.modelcontextprotocol/logLevel": "debug"});
    let params = json!({"notifications": filter, "_meta": meta});
    // Over HTTP+SSE what is posted is answered on the other stream.
    let answered_on = if transport == "http+sse" { 0 } else { 1 };
    let listen = stateless_request(7, "subscriptions/listen", params);
    discovered(transport).on_stream(1).client(listen).on_stream(answered_on)
}

fn labelled(method: &str, id: Value, mut params: Value) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
    notification(method, params)
}

fn acknowledged(filter: Value) -> Value {
    labelled("notifications/subscriptions/acknowledged", json!(7), json!({"notifications": filter}))
}

fn open(transport: &str) -> Script {
    listens(transport, filter()).server(acknowledged(filter()))
}

fn changed(id: Value) -> Value {
    labelled("notifications/tools/list_changed", id, json!({}))
}

fn ended(label: Value) -> Value {
    stateless_result(7, json!({"_meta": {"io.modelcontextprotocol/subscriptionId": label}}))
}

pub(crate) fn examples() -> Vec<Example> {
    ["stdio", "http", "http+sse"].into_iter().flat_map(of_transport).chain([streams()]).collect()
}

fn of_transport(transport: &str) -> Vec<Example> {
    let open = || open(transport);
    let listens = |filter| listens(transport, filter);
    let right = || open().server(changed(json!(7))).server(ended(json!(7)));
    let refused = |filter: Value| listens(filter).server(error(7, -32602, json!(null)));
    let log = |mut params: Value| {
        params["level"] = json!("info");
        params["data"] = json!("text");
        params
    };
    vec![
        client(
            &rule::SUB_01,
            right(),
            vec![
                refused(json!(null)),
                refused(json!(["toolsListChanged"])),
                refused(json!({"toolsListChanged": "yes"})),
                refused(json!({"resourceSubscriptions": "a:b"})),
                refused(json!({"resourceSubscriptions": [1]})),
            ],
        ),
        server(
            &rule::SUB_02,
            right(),
            vec![
                open().server(labelled("notifications/prompts/list_changed", json!(7), json!({}))),
                listens(json!({"toolsListChanged": true}))
                    .server(acknowledged(json!({"toolsListChanged": true})))
                    .server(labelled("notifications/resources/updated", json!(7), json!({"uri": "a:b"}))),
            ],
        ),
        server(
            &rule::SUB_03,
            right(),
            vec![
                listens(filter()).server(changed(json!(7))).server(acknowledged(filter())),
                listens(filter()).server(acknowledged(json!({"promptsListChanged": true}))),
                listens(filter()).server(acknowledged(json!({"resourceSubscriptions": ["a:b", "c:d"]}))),
                listens(filter()).server(labelled(
                    "notifications/subscriptions/acknowledged",
                    json!(7),
                    json!({}),
                )),
                open().server(acknowledged(filter())),
            ],
        ),
        server(
            &rule::SUB_04,
            right(),
            vec![
                open().server(changed(json!("7"))),
                open().server(changed(json!(8))),
                open().server(notification("notifications/tools/list_changed", json!({}))),
                open().server(ended(json!("7"))),
                open().server(stateless_result(7, json!({}))),
            ],
        ),
        server(
            &rule::SUB_07,
            right(),
            vec![open().server(labelled("notifications/message", json!(7), log(json!({}))))],
        ),
    ]
}

/// Ends of streams, which only HTTP has.
fn streams() -> Example {
    server(&rule::SUB_06, open("http").server(ended(json!(7))).ended(), vec![open("http").ended()])
}
