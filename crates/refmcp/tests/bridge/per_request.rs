//! Requests that stand for themselves, over streamable HTTP, to a server that all of them share.

use std::net::TcpStream;

use serde_json::{Value, json};

use crate::listener::Listener;
use crate::support::Server;
use crate::support::http::Response;
use crate::support::{STATELESS, Version, children_of, kill, text_of};
use crate::{CHILD, ways};

fn post(listener: &Listener, id: impl Into<Value>, tool: &str, params: Value) -> Response {
    Response::read(start(listener, id, tool, params))
}

fn start(listener: &Listener, id: impl Into<Value>, tool: &str, mut params: Value) -> TcpStream {
    params["name"] = json!(tool);
    let head = [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
    let head = head.map(|(name, value)| format!("{name}: {value}"));
    listener.start("POST", &head, &Version::Stateless.request(id, "tools/call", &params))
}

fn listener() -> Listener {
    Listener::open("http://127.0.0.1:0/mcp", &CHILD)
}

#[test]
fn clients_that_use_the_same_id_at_once_get_their_own_answers() {
    let listener = listener();
    let calls = (0..16).flat_map(|client| [json!(1), json!("1")].map(|id| (format!("{client} {id}"), id)));
    let call = |(word, id): (String, Value)| {
        let started = start(&listener, id.clone(), "echo", json!({ "arguments": { "message": word } }));
        (word, id, started)
    };
    let calls: Vec<_> = calls.map(call).collect();
    for (word, id, started) in calls {
        let answer = Response::read(started).json();
        assert_eq!((&answer["id"], text_of(&answer)), (&id, word.as_str()), "{answer}");
    }
}

#[test]
fn progress_comes_under_the_clients_own_token() {
    let listener = listener();
    let params = || json!({ "arguments": { "steps": 3, "step_ms": 5 }, "_meta": { "progressToken": "t" } });
    let responses = [post(&listener, 1, "long_task", params()), post(&listener, 1, "long_task", params())];
    for mut response in responses {
        for step in 1..=3 {
            let progress = response.event().unwrap();
            assert_eq!(progress["params"]["progressToken"], "t", "{progress}");
            assert_eq!(progress["params"]["progress"], f64::from(step), "{progress}");
        }
        let answer = response.event().unwrap();
        assert!(answer["id"] == 1 && answer["result"].is_object(), "{answer}");
        assert_eq!(response.event(), None);
    }
}

#[test]
fn log_messages_reach_a_client_that_asks_for_them() {
    let listener = listener();
    let meta = json!({ "io.modelcontextprotocol/logLevel": "debug" });
    let mut response = post(&listener, 1, "log_all", json!({ "arguments": {}, "_meta": meta }));
    let mut logged = 0;
    loop {
        let message = response.event().unwrap();
        match message["method"].as_str() {
            Some(method) => assert_eq!(method, "notifications/message", "{message}"),
            None => break assert!(message["result"].is_object(), "{message}"),
        }
        logged += 1;
    }
    assert_eq!(logged, 8);
}

#[test]
fn a_client_that_disconnects_cancels_its_request() {
    let listener = listener();
    let arguments = json!({ "steps": 10_000, "step_ms": 20, "tag": "gone" });
    let mut response =
        post(&listener, 1, "long_task", json!({ "arguments": arguments, "_meta": { "progressToken": 1 } }));
    assert!(response.event().is_some());
    drop(response);
    let stopped = |_| {
        let answer = post(&listener, 2, "cancellations", json!({ "arguments": { "tag": "gone" } })).json();
        answer["result"]["structuredContent"]["cancelled"].as_array().is_some_and(|all| all.len() == 1)
    };
    assert!((0..2000).any(stopped), "it was not cancelled");
}

#[test]
fn headers_must_say_what_the_body_says() {
    let listener = listener();
    let call = Version::Stateless.call(1, "echo", &json!({ "message": "x" }));
    let lines = |method: &str, name: &str, version: &str| {
        [
            format!("MCP-Protocol-Version: {version}"),
            format!("Mcp-Method: {method}"),
            format!("Mcp-Name: {name}"),
        ]
    };
    assert_eq!(listener.send("POST", &lines("tools/call", "echo", STATELESS), &call).status, 200);
    assert_eq!(
        listener.send("POST", &lines("tools/call", "=?base64?ZWNobw==?=", STATELESS), &call).status,
        200
    );
    for wrong in [
        lines("tools/list", "echo", STATELESS),
        lines("tools/call", "sum", STATELESS),
        lines("tools/call", "echo", "2025-11-25"),
    ] {
        let response = listener.send("POST", &wrong, &call);
        assert_eq!(response.status, 400, "{wrong:?}");
        assert_eq!(response.json()["error"]["code"], -32020, "{wrong:?}");
    }
    let unstated = Version::Session("").call(1, "echo", &json!({ "message": "x" }));
    assert_eq!(listener.send("POST", &lines("tools/call", "echo", STATELESS), &unstated).status, 400);
    let unknown = Version::Stateless.request(1, "nonsense", &json!({}));
    let response = listener.send("POST", &lines("nonsense", "", STATELESS)[..2], &unknown);
    assert_eq!(response.status, 404);
    assert_eq!(response.json()["error"]["code"], -32601);
    for method in ["GET", "DELETE"] {
        assert_eq!(listener.send(method, &lines("x", "y", STATELESS)[..1], "").status, 405, "{method}");
    }
}

#[test]
fn subscriptions_are_notified_under_their_own_id() {
    let listener = listener();
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let head = [format!("MCP-Protocol-Version: {STATELESS}"), "Mcp-Method: subscriptions/listen".to_owned()];
    let listen = |id: &str| {
        listener.send("POST", &head, &Version::Stateless.request(id, "subscriptions/listen", &params))
    };
    let mut ears = [("left", listen("left")), ("right", listen("right"))];
    let key = "io.modelcontextprotocol/subscriptionId";
    for (id, ear) in &mut ears {
        let first = ear.event().unwrap();
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        assert_eq!(first["params"]["_meta"][key], *id, "{first}");
    }
    let added = post(&listener, 1, "add_tool", json!({ "arguments": { "name": "heard_of" } })).json();
    assert!(added["result"]["isError"] != true, "{added}");
    for (id, ear) in &mut ears {
        let told = ear.event().unwrap();
        assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
        assert_eq!(told["params"]["_meta"][key], *id, "{told}");
    }
}

#[test]
fn arguments_that_headers_repeat_are_repeated_to_the_server() {
    let server = Server::start(&[]);
    let listener = Listener::open("http://127.0.0.1:0/mcp", &ways(&server)[0]);
    let tool = "test_x_mcp_header";
    let head = [
        ("MCP-Protocol-Version", STATELESS),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
        ("Mcp-Param-Region", "=?base64?S8O2bG4=?="),
    ];
    let head = head.map(|(name, value)| format!("{name}: {value}"));
    let call = Version::Stateless.call(1, tool, &json!({ "region": "Köln" }));
    let answer = listener.send("POST", &head, &call).json();
    assert_eq!(text_of(&answer), "Region: Köln", "{answer}");
    // The bridge knows itself what to repeat.
    let answer = listener.send("POST", &head[..3], &call).json();
    assert_eq!(text_of(&answer), "Region: Köln", "{answer}");
}

#[test]
fn a_server_that_has_died_is_started_again() {
    let listener = listener();
    let echo = || post(&listener, 1, "echo", json!({ "arguments": { "message": "here" } })).json();
    assert_eq!(text_of(&echo()), "here");
    let server = children_of(listener.process.id())[0];
    kill(server);
    // Until its end is noticed, an answer may be that there is none.
    assert!((0..2000).any(|_| text_of(&echo()) == "here"), "no answer any more");
    assert!(!children_of(listener.process.id()).contains(&server));
}
