//! Clients that do many things wrong, each against the built server: each fault is a finding of its own that names the message and
//! says what to do.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::piped;
use crate::support::{INITIALIZE, STATELESS, Server, User, http};

/// What the report says that the client did wrong: rule and fault. The server has done nothing wrong.
fn findings(report: &str) -> BTreeSet<String> {
    let report: Value = serde_json::from_str(report).unwrap();
    let judgements = report["judgements"].as_array().unwrap().iter();
    let rules = judgements.flat_map(|judgement| judgement["rules"].as_array().unwrap());
    let mut found = BTreeSet::new();
    for rule in rules.filter(|rule| rule["outcome"] == "broken") {
        let is_of_server = rule["party"] == "server";
        assert!(!is_of_server || rule["level"] == "should", "{rule:#}");
        for violation in rule["violations"].as_array().unwrap().iter().filter(|_| !is_of_server) {
            let (expected, evidence) = (violation["expected"].as_str().unwrap(), &violation["evidence"]);
            assert!(expected.len() > 10, "what to do is said: {violation:#}");
            assert!(!evidence["text"].as_str().unwrap().is_empty(), "the message is shown: {violation:#}");
            found.insert(format!(
                "{}: {}",
                rule["id"].as_str().unwrap(),
                violation["what"].as_str().unwrap()
            ));
        }
    }
    found
}

fn assert_found(report: &str, expected: &[&[&str]]) {
    let found = findings(report);
    let expected: BTreeSet<String> = expected.iter().copied().flatten().map(|&it| it.to_owned()).collect();
    let (missing, more) = (expected.difference(&found), found.difference(&expected));
    let differs = (missing.collect::<Vec<_>>(), more.collect::<Vec<_>>());
    assert_eq!(differs, (Vec::new(), Vec::new()), "missing, and not expected");
    assert!(found.len() >= 30, "{} findings", found.len());
}

/// What the client sends in a session of 2025-11-25, over any transport.
const OF_SESSION: &[&str] = &[
    r#"{"id":20,"method":"ping"}"#,
    r#"{"jsonrpc":"1.0","id":20,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":21,"method":"ping","params":[1]}"#,
    r#"{"jsonrpc":"2.0","id":22,"Method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0""#,
    r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"ping","_meta":{"progressToken":1}}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"ping","params":{"_meta":{"not a name":1}}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":"none"}}"#,
    r#"[{"jsonrpc":"2.0","id":8,"method":"ping"}]"#,
    r#"{"jsonrpc":"2.0","id":9,"method":"notifications/cancelled","params":{"requestId":4}}"#,
    r#"{"jsonrpc":"2.0","id":13,"method":"server/discover","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":14,"method":"roots/list","params":{}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#,
    r#"{"jsonrpc":"2.0","method":"roots/list_changed"}"#,
    r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":77,"result":{},"error":{"code":1,"message":"m"}}"#,
    r#"{"jsonrpc":"2.0","id":77,"error":{"message":"m"}}"#,
    r#"{"jsonrpc":"2.0","id":15,"method":"tools/call","params":{"name":"echo","arguments":{"message":"x"},"_meta":{"progressToken":1.5}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"none","progress":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#,
    r#"{"jsonrpc":"2.0","method":"$/progress","params":{}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":500}}"#,
    r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":16}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    r#"{"jsonrpc":"2.0","id":40,"method":"logging/setLevel","params":{"level":"loud"}}"#,
    r#"{"jsonrpc":"2.0","id":41,"method":"tools/list","params":{"cursor":"mine"}}"#,
];

const FOUND_IN_SESSION: &[&str] = &[
    "RPC-01: member \"jsonrpc\" is missing",
    "RPC-01: member \"jsonrpc\" is not \"2.0\"",
    "RPC-01: member \"params\" is not an object",
    "RPC-01: key \"Method\" differs from a known one only in case",
    "RPC-01: _meta stands beside params",
    "RPC-01: _meta is no object",
    "RPC-02: member \"id\" is neither a string nor an integer",
    "RPC-03: the id 4 is used a second time in the session",
    "RPC-05: a response to no request",
    "RPC-06: an answer has both result and error",
    "RPC-06: member \"error\": missing field `code`",
    "RPC-07: notifications/cancelled has an id",
    "RPC-10: a batch where the revision has none",
    "RPC-16: the key not a name of _meta is no name",
    "LIFE-08: server/discover, which the revision does not have",
    "LIFE-08: roots/list, which only the other side sends",
    "LIFE-08: notifications/message, which only the other side sends",
    "LIFE-08: roots/list_changed, which is no notification of the protocol",
    "LIFE-11: initialize was cancelled",
    "PAGE-01: a cursor that the server did not give for this list",
    "LOG-06: a log level that does not exist",
    "PROG-01: progressToken is neither a string nor an integer",
    "PROG-01: progress for a token that no request has",
    "PROG-01: a progress notification without a progressToken",
    "PROG-01: $/progress, which is no notification of the protocol",
    "CANC-01: notifications/cancelled without requestId",
    "CANC-01: request 500 was cancelled, which was never sent",
    "CANC-01: $/cancelRequest, which is no notification of the protocol",
];

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[test]
fn over_stdio() {
    let user = User::new();
    let early = r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#;
    let opening =
        [early, INITIALIZE, r#"{"jsonrpc":"2.0","method":"initialized"}"#, INITIALIZED, INITIALIZED];
    let again = INITIALIZE.replace("\"id\":1", "\"id\":2");
    let lines: Vec<&str> = opening.iter().chain(&[&*again]).chain(OF_SESSION).copied().collect();
    let ended = piped(&user, &["stdio", "--audit", "--report", "r.json"], &(lines.join("\n") + "\n"));
    assert_eq!(ended.code, 0, "{ended:?}");
    let of_stdio = [
        "LIFE-01: tools/list before initialize",
        "LIFE-01: initialize a second time in a session",
        "LIFE-02: initialized, which is no notification of the protocol",
        "LIFE-02: notifications/initialized a second time",
        "STDIO-03: a line on standard input is no JSON",
    ];
    assert_found(&user.read("r.json"), &[FOUND_IN_SESSION, &of_stdio]);
}

const JSON: (&str, &str) = ("Content-Type", "application/json");
const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");
const VERSION: &str = "MCP-Protocol-Version";

/// Sends a request over a connection of its own, and reads its response to the end.
fn send(server: &Server, request: &str, headers: &[(&str, &str)], body: &str) -> (Option<String>, String) {
    let headers = [headers, &[("Connection", "close")]].concat();
    let response = http::send(&server.address, request, &headers, body);
    (response.header("mcp-session-id").map(str::to_owned), response.text())
}

fn post(server: &Server, headers: &[(&str, &str)], body: &str) -> String {
    send(server, "POST /mcp", headers, body).1
}

/// What the report has of a server, which ends with it.
fn report_of(mut server: Server, user: &User) -> String {
    server.signal("INT");
    assert!(server.exit().success());
    user.read("r.json")
}

#[test]
fn over_http_with_its_heads() {
    let user = User::new();
    let server = Server::start(&["--audit", "--report", &user.word("r.json")]);
    let (session, _) = send(&server, "POST /mcp", &[JSON, ACCEPT], INITIALIZE);
    let session = session.unwrap();
    let (session, version) = (("Mcp-Session-Id", &*session), (VERSION, "2025-11-25"));
    for body in [INITIALIZED].iter().chain(OF_SESSION) {
        post(&server, &[JSON, ACCEPT, session, version], body);
    }
    let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string();
    post(&server, &[JSON, ("Accept", "application/json"), session, version], &ping(50));
    post(&server, &[JSON, ACCEPT, version], &ping(51));
    post(&server, &[JSON, ACCEPT, session], &ping(52));
    post(&server, &[JSON, ACCEPT, session, (VERSION, "2025-06-18")], &ping(53));
    send(&server, "GET /mcp", &[("Accept", "application/json"), session, version], "");
    let of_heads = [
        "RPC-01: not JSON: the text ends too early at byte 16",
        "HTTP-03: Accept of a POST does not list both kinds of responses",
        "HTTP-13: Accept of a GET does not list events",
        "HTTP-19: a request of a session has no Mcp-Session-Id",
        "LIFE-09: a request after initialize has no MCP-Protocol-Version",
        "LIFE-15: MCP-Protocol-Version is not the revision that was agreed on",
    ];
    assert_found(&report_of(server, &user), &[FOUND_IN_SESSION, &of_heads]);
}

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A client of 2026-07-28 and its next id.
struct Stateless(Server, u64);

impl Stateless {
    fn meta() -> Value {
        json!({ META_VERSION: STATELESS, META_CAPABILITIES: { "elicitation": {}, "roots": {} } })
    }

    /// Sends a body with the headers of this method and name.
    fn send(&self, method: &str, name: &str, body: &str) -> Value {
        let mut headers = vec![JSON, ACCEPT, (VERSION, STATELESS), ("Mcp-Method", method)];
        headers.extend((!name.is_empty()).then_some(("Mcp-Name", name)));
        serde_json::from_str(&post(&self.0, &headers, body)).unwrap_or_default()
    }

    fn message(&mut self, method: &str, mut params: Value) -> String {
        self.1 += 1;
        if params.get("_meta").is_none() {
            params["_meta"] = Self::meta();
        }
        json!({ "jsonrpc": "2.0", "id": self.1, "method": method, "params": params }).to_string()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let body = self.message(method, params);
        self.send(method, &name, &body)
    }

    /// A call of `echo` with another member of `_meta`.
    fn echo_with(&mut self, key: &str, value: Value) {
        let mut meta = Self::meta();
        meta[key] = value;
        self.ask("tools/call", json!({ "name": "echo", "arguments": { "message": "x" }, "_meta": meta }));
    }

    fn notify(&self, method: &str, mut params: Value) {
        params["_meta"] = Self::meta();
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send(method, "", &body.to_string());
    }

    /// Repeats a call of a tool with the answers to what it asked for.
    fn repeat(&mut self, name: &str, arguments: &Value, members: &Value) {
        let mut params = json!({ "name": name, "arguments": arguments });
        params.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self.ask("tools/call", params);
    }
}

#[test]
fn over_http_without_sessions() {
    let user = User::new();
    let server = Server::start(&["--audit", "--report", &user.word("r.json")]);
    let mut client = Stateless(server, 0);
    client.ask("tools/list", json!({}));
    for body in [
        r#"{"id":1,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0""#,
        r#"{"jsonrpc":"2.0","id":1,"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{},"_meta":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
        &format!("[{}]", client.message("tools/list", json!({}))),
    ] {
        client.send("tools/list", "", body);
    }
    // `_meta`.
    client.ask("tools/list", json!({ "_meta": { META_VERSION: STATELESS } }));
    client.echo_with("io.modelcontextprotocol/clientInfo", json!("me"));
    client.echo_with("a/b/c", json!(1));
    client.echo_with("traceparent", json!("1"));
    client.echo_with("tracestate", json!("x"));
    client.echo_with("progressToken", json!([]));
    client.echo_with("io.modelcontextprotocol/logLevel", json!("loud"));
    client.echo_with(META_VERSION, json!("2025-06-18"));
    // What the revision does not have, or this side.
    client.ask("notifications/cancelled", json!({ "requestId": 1 }));
    for method in ["ping", "logging/setLevel", "roots/list"] {
        client.ask(method, json!({}));
    }
    client.notify("notifications/initialized", json!({}));
    client.notify("notifications/message", json!({ "level": "info", "data": "x" }));
    client.notify("cancelled", json!({ "requestId": 1 }));
    // Headers.
    let (list, echo) = (client.message("tools/list", json!({})), json!({ "name": "echo", "arguments": {} }));
    let version = (VERSION, STATELESS);
    let method = ("Mcp-Method", "tools/list");
    post(&client.0, &[JSON, ("Accept", "application/json"), version, method], &list);
    post(&client.0, &[JSON, ACCEPT, version], &list);
    post(&client.0, &[JSON, ACCEPT, method], &list);
    post(&client.0, &[JSON, ACCEPT, (VERSION, "2025-11-25"), method], &list);
    client.send("tools/call", "", &list);
    for name in ["", "other", "=?base64?not base64?="] {
        let body = client.message("tools/call", echo.clone());
        client.send("tools/call", name, &body);
    }
    send(&client.0, "GET /mcp", &[("Accept", "text/event-stream"), version, ("Last-Event-ID", "1")], "");
    // Subscriptions.
    for filter in [json!(null), json!({ "toolsListChanged": 1 }), json!({ "resourceSubscriptions": "a:b" })] {
        client.ask("subscriptions/listen", json!({ "notifications": filter }));
    }
    // Input that the server asks for.
    let asked = client.ask("tools/call", json!({ "name": "list_roots", "arguments": {} }))["result"].take();
    let state = asked["requestState"].as_str().unwrap();
    let answers = json!({ "roots": { "roots": [] } });
    let (none, right) = (json!({}), json!({ "inputResponses": answers, "requestState": state }));
    client.repeat("list_roots", &none, &json!({ "inputResponses": answers }));
    client.repeat(
        "list_roots",
        &none,
        &json!({ "inputResponses": answers, "requestState": format!("{state}x") }),
    );
    client.repeat("list_roots", &json!({ "x": 1 }), &right);
    client.repeat("ask_user", &none, &right);
    client.repeat("list_roots", &none, &json!({ "inputResponses": {}, "requestState": state }));
    assert_found(&report_of(client.0, &user), &[FOUND_WITHOUT_SESSION]);
}

const FOUND_WITHOUT_SESSION: &[&str] = &[
    "RPC-01: member \"jsonrpc\" is missing",
    "RPC-01: member \"params\" is not an object",
    "RPC-01: not JSON: the text ends too early at byte 16",
    "RPC-01: _meta stands beside params",
    "RPC-02: member \"id\" is neither a string nor an integer",
    "RPC-05: a response to no request",
    "RPC-06: member \"error\": missing field `code`",
    "RPC-07: notifications/cancelled has an id",
    "RPC-10: a batch where the revision has none",
    "RPC-16: the key a/b/c of _meta is no name",
    "RPC-17: traceparent of _meta has not the format of the W3C",
    "RPC-17: tracestate of _meta has not the format of the W3C",
    "STATE-04: params._meta names no protocolVersion",
    "STATE-04: params._meta has no clientCapabilities",
    "STATE-04: clientInfo of params._meta has no name or no version",
    "STATE-17: ping, which the revision does not have",
    "STATE-17: logging/setLevel, which the revision does not have",
    "STATE-17: roots/list, which only the other side sends",
    "STATE-17: notifications/initialized, which the revision does not have",
    "STATE-17: notifications/message, which only the other side sends",
    "T-11: params._meta names a revision with sessions",
    "MHTTP-02: Accept of a POST does not list both kinds of responses",
    "MHTTP-07: GET resumes a stream after an event",
    "MHTTP-08: mcp-protocol-version repeats a protocolVersion that _meta does not have",
    "MHTTP-08: there is no mcp-protocol-version",
    "MHTTP-08: mcp-protocol-version is not protocolVersion of _meta",
    "MHTTP-09: there is no mcp-method",
    "MHTTP-09: mcp-method is not method",
    "MHTTP-09: there is no mcp-name",
    "MHTTP-09: mcp-name is not name or uri",
    "MHTTP-16: mcp-name is no base64 of UTF-8",
    "LOG-06: a log level that does not exist",
    "PROG-01: progressToken is neither a string nor an integer",
    "CANC-04: cancelled, which is no notification of the protocol",
    "MRTR-05: tools/call was repeated before all input was there",
    "MRTR-06: tools/call was repeated without the requestState of the result",
    "MRTR-06: tools/call was repeated with other params",
    "MRTR-07: tools/call has a requestState that no result had",
    "MRTR-07: tools/call has the requestState of another request",
    "SUB-01: subscriptions/listen has no filter in notifications",
    "SUB-01: the filter of subscriptions/listen has a list that is no boolean",
    "SUB-01: the filter of subscriptions/listen has names that are no array of strings",
];
