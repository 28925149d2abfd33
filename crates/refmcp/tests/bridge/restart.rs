//! Servers that are started again, and sessions that they have lost: what clients have set stays set, and nothing of
//! before is taken for something of now.

use serde_json::{Value, json};

use refmcp_testkit::ports::free_port;

use crate::CHILD;
use crate::listener::Listener;
use crate::support::http::Response;
use crate::support::{Process, STATELESS, Version, children_of, kill, program, text_of, wait_until};

const VERSION: Version = Version::Session("2025-11-25");
const URI: &str = "file:///resources/notes.txt";

fn call(listener: &Listener, session: &[String], tool: &str, arguments: &Value) -> Response {
    listener.send("POST", session, &VERSION.call(1, tool, arguments))
}

/// A session that has subscribed to a resource and wants errors alone.
fn set_up(listener: &Listener) -> [String; 1] {
    let session = [listener.session("2025-11-25")];
    for (method, params) in
        [("resources/subscribe", json!({ "uri": URI })), ("logging/setLevel", json!({ "level": "error" }))]
    {
        let done = listener.send("POST", &session, &VERSION.request(1, method, &params)).json();
        assert!(done["result"].is_object(), "{done}");
    }
    session
}

/// Shows that the session hears of the resource and of errors, and of nothing else.
fn is_as_set(listener: &Listener, session: &[String], what: &str) {
    let mut standing = listener.send("GET", session, "");
    assert_eq!(standing.status, 200, "{}", standing.head);
    let mut response = call(listener, session, "log_all", &json!({}));
    let mut levels = Vec::new();
    while let Some(message) = response.event().filter(|message| message["method"].is_string()) {
        levels.push(message["params"]["level"].as_str().unwrap_or_default().to_owned());
    }
    assert_eq!(levels, ["error", "critical", "alert", "emergency"], "{what}");
    let touched = call(listener, session, "touch_resource", &json!({ "uri": URI })).json();
    assert!(touched["result"]["isError"] != true, "{what}: {touched}");
    let told = standing.event().unwrap();
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(URI)),
        "{what}"
    );
}

fn wait_for_server(listener: &Listener, session: &[String]) {
    let echo = || text_of(&call(listener, session, "echo", &json!({ "message": "here" })).json()) == "here";
    wait_until("the server", echo);
}

#[test]
fn subscriptions_and_log_level_are_set_again_once_the_server_was_started_again() {
    for version in ["2025-11-25", "2026-07-28"] {
        let to = [&["--protocol-version", version][..], &CHILD].concat();
        let listener = Listener::open("http://127.0.0.1:0/mcp", &to);
        let session = set_up(&listener);
        is_as_set(&listener, &session, &format!("{version}, before"));
        for child in children_of(listener.process.id()) {
            kill(child);
        }
        wait_for_server(&listener, &session);
        is_as_set(&listener, &session, &format!("{version}, after"));
    }
}

#[test]
fn subscriptions_and_log_level_are_set_again_once_the_server_has_lost_the_session() {
    let port = free_port().to_string();
    let start = || {
        let server = Process::spawn(program(&["serve", "--port", &port]));
        while !server.next_line().expect("it says where it listens").contains("/mcp") {}
        server
    };
    let server = start();
    let to = ["--protocol-version", "2025-11-25", "--to", &format!("http://127.0.0.1:{port}/mcp")];
    let listener = Listener::open("http://127.0.0.1:0/mcp", &to);
    let session = set_up(&listener);
    is_as_set(&listener, &session, "before");
    drop(server);
    let _again = start();
    wait_for_server(&listener, &session);
    is_as_set(&listener, &session, "after");
}

#[test]
fn an_answer_to_a_server_that_has_died_reaches_no_call_of_the_next() {
    let listener = Listener::open(
        "http://127.0.0.1:0/mcp",
        &[&["--protocol-version", "2025-11-25"][..], &CHILD].concat(),
    );
    let post = |params: &Value| {
        let name = params["name"].as_str().unwrap();
        let head = [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "tools/call"), ("Mcp-Name", name)];
        let head = head.map(|(name, value)| format!("{name}: {value}"));
        listener.send("POST", &head, &Version::Stateless.request(1, "tools/call", params)).json()
    };
    let ask = json!({ "name": "ask_user", "arguments": { "form": "confirm" } });
    let answered = |asked: &Value, confirm: bool| {
        let (key, _) = asked["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
        let mut params = ask.clone();
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"] = json!({ key: { "action": "accept", "content": { "confirm": confirm } } });
        params
    };
    let first = post(&ask);
    for child in children_of(listener.process.id()) {
        kill(child);
    }
    // The next call to the next server waits for its client, with the numbers that the first had.
    let mut second = Value::Null;
    wait_until("the next server", || {
        second = post(&ask);
        second["result"]["inputRequests"].is_object()
    });
    let refused = post(&answered(&first, false));
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("has ended; make it again"), "{refused}");
    let done = post(&answered(&second, true));
    assert!(text_of(&done).contains("true"), "{done}");
}
