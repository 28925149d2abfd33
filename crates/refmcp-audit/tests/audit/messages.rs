//! Rules about messages: JSON-RPC, ids, batches, `_meta`, results without sessions.

use refmcp_audit::recording::{EventKind, Side};
use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::script::{
    Example, SESSIONS, Script, client, error, initialize, initialized, notification, request, result, server,
    stateless_request, stateless_result,
};

fn session() -> Script {
    Script::session("stdio", "2025-06-18", json!({}), json!({"tools": {}}))
}

fn stateless() -> Script {
    Script::without_session("stdio", json!({"tools": {}}))
}

/// The client pings.
fn asked() -> Script {
    session().client(request(1, "ping", json!({})))
}

/// The server pings, and the client has an answer for it.
fn server_asked() -> Script {
    session().server(request(1, "ping", json!({})))
}

/// Both ping and are answered.
fn answered() -> Script {
    asked()
        .server(result(1, json!({})))
        .server(request("a", "ping", json!({})))
        .client(result("a", json!({})))
}

fn call(id: impl Into<Value>) -> Value {
    stateless_request(id, "tools/call", json!({"name": "t", "arguments": {}}))
}

fn called(id: impl Into<Value>) -> Value {
    stateless_result(id, json!({"content": []}))
}

pub(crate) fn examples() -> Vec<Example> {
    [envelopes(), ids(), responses(), batches(), metas(), stateless_results()].into_iter().flatten().collect()
}

fn envelopes() -> Vec<Example> {
    let misplaced = |script: Script, message: Value| {
        let mut message = message;
        message["_meta"] = json!({"progressToken": 1});
        script.client(message)
    };
    vec![
        client(
            &rule::RPC_01,
            answered(),
            vec![
                Script::session("http+sse", "2025-06-18", json!({}), json!({})).client_invalid("{oops"),
                session().client_invalid(r#"{"id":1,"method":"ping"}"#),
                session().client_invalid(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#),
                session().client_invalid(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#),
                session()
                    .client_invalid(r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}"#)
                    .server(error(7, -32600, json!(null))),
                session().client_invalid(r#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#),
                session().client_invalid("[]"),
                Script::session("websocket", "2025-06-18", json!({}), json!({})).client_invalid("hello"),
                misplaced(session(), request(1, "ping", json!({}))).server(result(1, json!({}))),
                misplaced(session(), notification("notifications/x", json!({}))),
                misplaced(stateless(), request(1, "tools/list", json!({}))).server(error(
                    1,
                    -32602,
                    json!(null),
                )),
                session().client(request(1, "ping", json!({"_meta": 5}))).server(result(1, json!({}))),
                Script::session("stdio", "2025-03-26", json!({}), json!({}))
                    .client(json!([request(1, "ping", json!({})), 5]))
                    .server(json!([result(1, json!({}))])),
            ],
        ),
        server(
            &rule::RPC_01,
            answered(),
            vec![
                asked().server_invalid(r#"{"jsonrpc":"2.0","id":1}"#),
                asked().server_invalid(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#),
                session().server(json!({"jsonrpc": "2.0", "method": "notifications/x", "_meta": {}})),
            ],
        ),
        client(
            &rule::RPC_02,
            answered(),
            vec![
                session().client_invalid(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#),
                session().client_invalid(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#),
                session().client_invalid(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#),
            ],
        ),
        server(
            &rule::RPC_02,
            answered(),
            vec![session().server_invalid(r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#)],
        ),
    ]
}

fn ids() -> Vec<Example> {
    let mut examples = Vec::new();
    for revision in SESSIONS {
        let session =
            |side| Script::recorded_by(side, "stdio").opens(revision, json!({}), json!({"tools": {}}));
        for side in [Side::Client, Side::Server] {
            let again =
                |script: Script| script.client(request(1, "ping", json!({}))).server(result(1, json!({})));
            examples.push(client(&rule::RPC_03, again(session(side)), vec![again(again(session(side)))]));
            let again = |script: Script| {
                script.server(request("p", "ping", json!({}))).client(result("p", json!({})))
            };
            examples.push(server(&rule::RPC_03, again(session(side)), vec![again(again(session(side)))]));
        }
    }
    // A request that was refused is repeated as it was.
    let refused = EventKind::Refused { status: 429, reason: "load".to_owned(), why: String::new() };
    let headers = [
        ("mcp-protocol-version", "2025-06-18"),
        ("mcp-session-id", "s"),
        ("accept", "application/json, text/event-stream"),
    ];
    let repeated = Script::new("http")
        .http(1, "POST", "/mcp", &headers[2..])
        .client(request(0, "initialize", initialize("2025-06-18", json!({}))))
        .server(result(0, initialized("2025-06-18", json!({}))))
        .http(9, "POST", "/mcp", &headers)
        .client(notification("notifications/initialized", json!({})))
        .http(2, "POST", "/mcp", &headers)
        .client(request(1, "ping", json!({})))
        .then(refused)
        .http(3, "POST", "/mcp", &headers)
        .client(request(1, "ping", json!({})))
        .server(result(1, json!({})));
    examples.push(client(&rule::RPC_03, repeated, vec![]));
    let two = |id: i64| stateless().client(call(1)).client(call(id)).server(called(1)).server(called(id));
    let free = stateless().client(call(1)).server(called(1)).client(call(1)).server(called(1));
    let cancelled = stateless()
        .client(call(1))
        .client(notification("notifications/cancelled", json!({"requestId": 1})))
        .client(call(1))
        .server(called(1));
    let reused = stateless().client(call(1)).client(call(1)).server(called(1));
    examples.extend([
        client(&rule::RPC_04, two(2), vec![reused]),
        client(&rule::RPC_04, free, vec![]),
        client(&rule::RPC_04, cancelled, vec![]),
    ]);
    examples
}

fn responses() -> Vec<Example> {
    let both = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#;
    let unfinished = |script: Script| script.after(60_000);
    vec![
        server(
            &rule::RPC_05,
            answered(),
            vec![
                asked().server(result(2, json!({}))),
                asked().server(result("1", json!({}))),
                asked().server(result(1, json!({}))).server(result(1, json!({}))),
                asked().server_invalid(r#"{"jsonrpc":"2.0","result":{}}"#),
                Script::new("stdio")
                    .client(request(1, "initialize", initialize("2025-06-18", json!({}))))
                    .server(error(Value::Null, -32601, json!(null))),
            ],
        ),
        client(
            &rule::RPC_05,
            answered(),
            vec![
                server_asked().client(result(7, json!({}))),
                answered().client(result("a", json!({}))),
                stateless().client(result(9, json!({}))),
            ],
        ),
        server(
            &rule::RPC_06,
            answered(),
            vec![
                asked().server_invalid(both),
                asked().server_invalid(r#"{"jsonrpc":"2.0","id":1,"error":{"message":"m"}}"#),
                asked().server_invalid(r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"m"}}"#),
                asked().server_invalid(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#),
                session().client(request(1, "example/method", json!({}))).server(result(1, json!("done"))),
            ],
        ),
        client(
            &rule::RPC_06,
            answered(),
            vec![
                server_asked().client_invalid(both),
                server_asked().client_invalid(r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#),
            ],
        ),
        client(
            &rule::RPC_07,
            session(),
            vec![
                answered()
                    .client(request(5, "notifications/cancelled", json!({"requestId": 1})))
                    .server(error(5, -32601, json!(null))),
                session().server(notification("notifications/x", json!({}))).client(error(
                    Value::Null,
                    -32601,
                    json!(null),
                )),
            ],
        ),
        server(
            &rule::RPC_07,
            session().server(notification("notifications/x", json!({}))),
            vec![session().server(error(Value::Null, -32601, json!(null)))],
        ),
        server(
            &rule::RPC_22,
            answered(),
            vec![
                unfinished(session().client(request(1, "tools/list", json!({})))),
                unfinished(stateless().client(stateless_request(1, "tools/list", json!({})))),
            ],
        ),
        client(
            &rule::RPC_22,
            answered(),
            vec![unfinished(
                Script::session("stdio", "2025-06-18", json!({"roots": {}}), json!({})).server(request(
                    1,
                    "roots/list",
                    json!({}),
                )),
            )],
        ),
        // A call may take its time, and a recording may break off.
        server(
            &rule::RPC_22,
            answered().client(request(9, "tools/call", json!({"name": "t"}))).after(600_000),
            vec![],
        ),
    ]
}

fn batches() -> Vec<Example> {
    let session = |revision| Script::session("stdio", revision, json!({}), json!({"tools": {}}));
    let batch = json!([request(1, "ping", json!({})), request(2, "ping", json!({}))]);
    let answers = json!([result(1, json!({})), result(2, json!({}))]);
    let initialize = |revision| request(0, "initialize", initialize(revision, json!({})));
    let mut examples = vec![
        server(
            &rule::RPC_08,
            session("2025-03-26").client(batch.clone()).server(answers.clone()),
            vec![session("2025-03-26").client(batch.clone()).server(error(Value::Null, -32600, json!(null)))],
        ),
        client(
            &rule::RPC_08,
            session("2025-03-26").server(batch.clone()).client(answers.clone()),
            vec![session("2025-03-26").server(batch.clone()).client(error(Value::Null, -32600, json!(null)))],
        ),
        client(
            &rule::RPC_09,
            session("2025-03-26"),
            vec![Script::new("stdio").client(json!([initialize("2025-03-26")]))],
        ),
        client(
            &rule::RPC_10,
            stateless(),
            vec![
                stateless().client(json!([call(1)])).server(error(Value::Null, -32600, json!(null))),
                Script::new("stdio").client(json!([initialize("2025-11-25")])),
            ],
        ),
    ];
    for revision in SESSIONS.into_iter().filter(|revision| *revision != "2025-03-26") {
        let batched =
            session(revision).client(batch.clone()).server(result(1, json!({}))).server(result(2, json!({})));
        examples.push(client(&rule::RPC_10, session(revision), vec![batched]));
        let pinged = session(revision).server(request(1, "ping", json!({}))).client(result(1, json!({})));
        let batched =
            session(revision).server(batch.clone()).client(result(1, json!({}))).client(result(2, json!({})));
        examples.push(server(&rule::RPC_10, pinged, vec![batched]));
    }
    examples
}

fn metas() -> Vec<Example> {
    let ping = |meta: Value| request(1, "ping", json!({"_meta": meta}));
    let pings = |meta| session().client(ping(meta)).server(result(1, json!({})));
    let answers = |meta: Value| asked().server(result(1, json!({"_meta": meta})));
    let traced = |key: &str, value: Value| {
        let params = json!({"name": "t", "_meta": {key: value}});
        stateless().client(stateless_request(1, "tools/call", params)).server(called(1))
    };
    let traces = |value: &str| {
        stateless()
            .client(call(1))
            .server(stateless_result(1, json!({"content": [], "_meta": {"traceparent": value}})))
    };
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    vec![
        client(
            &rule::RPC_16,
            pings(json!({"com.example/a.b": 1, "progressToken": 1})),
            vec![
                pings(json!({"not a name": 1})),
                pings(json!({"com.example/": 1, "1st.label/x": 1})),
                pings(json!({"a/b/c": 1})),
            ],
        ),
        server(&rule::RPC_16, answers(json!({"x": 1})), vec![answers(json!({"-x": 1}))]),
        client(
            &rule::RPC_17,
            traced("traceparent", json!(parent)),
            vec![
                traced("traceparent", json!("1")),
                traced("traceparent", json!(1)),
                traced("tracestate", json!("vendor")),
                traced("baggage", json!("key")),
            ],
        ),
        server(&rule::RPC_17, traces(parent), vec![traces("00-1-2-3")]),
    ]
}

fn stateless_results() -> Vec<Example> {
    let answers = |message: Value| stateless().client(call(1)).server(message);
    let untyped = json!({"content": [], "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}});
    let typed = |kind: Value| stateless_result(1, json!({"content": [], "resultType": kind}));
    let declared = json!({"name": "t", "_meta": {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"com.example/x": {}}}}});
    let extended = stateless().client(stateless_request(1, "tools/call", declared)).server(typed(json!("x")));
    // A server of sessions does not know what it was asked.
    let older = Script::new("stdio").client(call(1)).server(result(1, json!({"content": []})));
    vec![
        server(
            &rule::RPC_11,
            answers(called(1)),
            vec![answers(result(1, untyped)), answers(typed(json!(5)))],
        ),
        server(&rule::RPC_22, older, vec![]),
        server(&rule::RPC_13, answers(called(1)), vec![answers(typed(json!("partial")))]),
        server(&rule::RPC_11, extended, vec![]),
        server(
            &rule::RPC_14,
            answers(error(1, -32603, json!(null))),
            vec![
                answers(error(1, -32002, json!(null))),
                answers(error(1, -32042, json!(null))),
                answers(error(1, -32050, json!(null))),
            ],
        ),
        server(
            &rule::RPC_15,
            answers(called(1)),
            vec![
                stateless().server(request(1, "roots/list", json!({}))),
                stateless().server(request(1, "ping", json!({}))).client(result(1, json!({}))),
            ],
        ),
    ]
}
