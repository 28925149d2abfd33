//! Servers that only know standard input and output are reached over streamable HTTP, in sessions.

use serde_json::json;

use crate::listener::Listener;
use crate::support::{Process, Version, children_of, kill, program, text_of};
use crate::{CHILD, SESSIONS};

const HTTP: &str = "http://127.0.0.1:0/mcp";
const VERSION: Version = Version::Session("2025-11-25");

#[test]
fn every_revision_with_sessions() {
    let listener = Listener::open(HTTP, &CHILD);
    for revision in SESSIONS {
        let session = listener.session(revision);
        let call = Version::Session(revision).call(1, "echo", &json!({ "message": revision }));
        let answer = listener.send("POST", std::slice::from_ref(&session), &call).json();
        assert_eq!(text_of(&answer), revision, "{answer}");
    }
}

#[test]
fn the_address_that_is_printed_can_be_connected_to() {
    let listener = Listener::open("http://0.0.0.0:0/mcp", &CHILD);
    assert!(!listener.url.contains("0.0.0.0"), "{}", listener.url);
    listener.session("2025-11-25");
    let words = [&["--allow-host", "mcp.example"], &CHILD[..]].concat();
    let listener = Listener::open("ws://0.0.0.0:0/x", &words);
    assert!(
        listener.url.starts_with("ws://mcp.example:") && listener.url.ends_with("/x"),
        "{}",
        listener.url
    );
    let listener = Listener::open("http://localhost:0/mcp", &CHILD);
    assert!(listener.url.starts_with("http://localhost:"), "{}", listener.url);
}

#[test]
fn sessions_are_apart_and_end() {
    let listener = Listener::open(HTTP, &CHILD);
    let (one, other) = ([listener.session("2025-11-25")], [listener.session("2025-11-25")]);
    assert_ne!(one, other);
    let add = VERSION.call(1, "add_tool", &json!({ "name": "here_only" }));
    assert!(listener.send("POST", &one, &add).json()["result"]["isError"] != true);
    let call = VERSION.call(1, "here_only", &json!({}));
    assert!(listener.send("POST", &one, &call).json()["result"]["content"].is_array());
    assert!(listener.send("POST", &other, &call).json()["error"].is_object());
    assert_eq!(listener.send("DELETE", &one, "").status, 204);
    for method in ["POST", "GET", "DELETE"] {
        assert_eq!(listener.send(method, &one, &call).status, 404, "{method}");
        assert_eq!(listener.send(method, &[], &call).status, 400, "{method}");
    }
    let call = VERSION.call(1, "echo", &json!({ "message": "still here" }));
    assert_eq!(text_of(&listener.send("POST", &other, &call).json()), "still here");
}

#[test]
fn notifications_of_a_call_come_with_its_response() {
    let listener = Listener::open(HTTP, &CHILD);
    let session = [listener.session("2025-11-25")];
    let params = json!({
        "name": "long_task", "arguments": { "steps": 3, "step_ms": 1 }, "_meta": { "progressToken": "t" },
    });
    let mut response = listener.send("POST", &session, &VERSION.request(1, "tools/call", &params));
    for step in 1..=3 {
        let progress = response.event().unwrap();
        assert_eq!(progress["params"]["progressToken"], "t", "{progress}");
        assert_eq!(progress["params"]["progress"], f64::from(step));
    }
    let answer = response.event().unwrap();
    assert!(answer["id"] == 1 && answer["result"].is_object(), "{answer}");
    assert_eq!(response.event(), None, "the answer is the end");
}

#[test]
fn a_request_of_the_server_is_answered_by_another_post() {
    let listener = Listener::open(HTTP, &CHILD);
    let session = [listener.session("2025-11-25")];
    let mut response =
        listener.send("POST", &session, &VERSION.call(1, "ask_user", &json!({ "form": "confirm" })));
    let question = response.event().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let result = json!({ "action": "accept", "content": { "confirm": true } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    assert_eq!(listener.send("POST", &session, &answer.to_string()).status, 202);
    let outcome = response.json();
    assert!(text_of(&outcome).contains("true"), "{outcome}");
}

#[test]
fn messages_without_a_request_come_over_the_get_stream() {
    let listener = Listener::open(HTTP, &CHILD);
    let session = [listener.session("2025-11-25")];
    let mut standing = listener.send("GET", &session, "");
    assert_eq!(standing.status, 200, "{}", standing.head);
    let add = VERSION.call(1, "add_tool", &json!({ "name": "another" }));
    assert!(listener.send("POST", &session, &add).json()["result"].is_object());
    let told = standing.event().unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    // A later stream gets what is said from then on; the first is closed.
    let mut later = listener.send("GET", &session, "");
    assert_eq!(standing.event(), None);
    let remove = VERSION.call(2, "remove_tool", &json!({ "name": "another" }));
    assert!(listener.send("POST", &session, &remove).json()["result"].is_object());
    assert_eq!(later.event().unwrap()["method"], "notifications/tools/list_changed");
}

#[test]
fn a_cancelled_request_ends_without_a_response() {
    let listener = Listener::open(HTTP, &CHILD);
    let session = [listener.session("2025-11-25")];
    let params = json!({
        "name": "long_task", "arguments": { "steps": 10_000, "step_ms": 20 }, "_meta": { "progressToken": 1 },
    });
    let mut response = listener.send("POST", &session, &VERSION.request(1, "tools/call", &params));
    assert!(response.event().is_some());
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(listener.send("POST", &session, cancel).status, 202);
    while let Some(message) = response.event() {
        assert_eq!(message["method"], "notifications/progress", "{message}");
    }
}

#[test]
fn foreign_origins_are_refused() {
    let listener = Listener::open(HTTP, &CHILD);
    let opening = crate::support::Client::initialize("2025-11-25");
    for line in ["Host: evil.example", "Origin: https://evil.example", "Origin: null"] {
        assert_eq!(listener.send("POST", &[line.to_owned()], &opening).status, 403, "{line}");
    }
    assert_eq!(listener.send("POST", &["Origin: http://localhost:9".to_owned()], &opening).status, 200);
    for (method, body, status) in [("PUT", "", 405), ("POST", "nonsense", 400), ("POST", "{}", 400)] {
        assert_eq!(listener.send(method, &[], body).status, status, "{method} {body}");
    }
}

#[test]
fn pages_that_may_use_the_bridge_may_read_what_it_says() {
    let allowed = ["--allow-origin", "https://page.example"];
    let listener = Listener::open(HTTP, &allowed.into_iter().chain(CHILD).collect::<Vec<_>>());
    let opening = crate::support::Client::initialize("2025-11-25");
    for page in ["https://page.example", "http://localhost:5173"] {
        let origin = format!("Origin: {page}");
        let asks = ["Access-Control-Request-Method: POST", "Access-Control-Request-Headers: mcp-param-city"];
        let head: Vec<String> = [origin.as_str()].into_iter().chain(asks).map(str::to_owned).collect();
        let before = listener.send("OPTIONS", &head, "");
        assert_eq!(before.status, 204, "{}", before.head);
        assert_eq!(before.header("access-control-allow-origin"), Some(page));
        assert_eq!(before.header("access-control-allow-methods"), Some("POST, GET, DELETE"));
        let headers = before.header("access-control-allow-headers").unwrap();
        assert!(headers.contains("mcp-session-id") && headers.contains("mcp-param-city"), "{headers}");
        let response = listener.send("POST", &[origin], &opening);
        assert_eq!(response.status, 200, "{}", response.head);
        assert_eq!(response.header("access-control-allow-origin"), Some(page));
        let exposed = response.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("Mcp-Session-Id"), "{exposed}");
    }
    let evil = listener.send("OPTIONS", &["Origin: https://evil.example".to_owned()], "");
    assert_eq!((evil.status, evil.header("access-control-allow-origin")), (403, None));
    let program = listener.send("POST", &[], &opening);
    assert_eq!(program.header("access-control-allow-origin"), None, "it is no page");
}

#[test]
fn a_server_that_cannot_be_started_ends_the_bridge() {
    let args = ["bridge", "--from", HTTP, "--", "/there/is/no/such/program"];
    let exit = Process::spawn(program(&args)).exit();
    assert_eq!(exit.status.code(), Some(4), "{exit:?}");
    assert!(exit.lines.is_empty() && exit.errors.contains("cannot be started"), "{exit:?}");
}

#[test]
fn a_server_that_dies_fails_its_calls_and_is_started_again() {
    let listener = Listener::open(HTTP, &CHILD);
    let session = [listener.session("2025-11-25")];
    let params = json!({
        "name": "long_task", "arguments": { "steps": 10_000, "step_ms": 20 }, "_meta": { "progressToken": 1 },
    });
    let mut running = listener.send("POST", &session, &VERSION.request(1, "tools/call", &params));
    assert!(running.event().is_some());
    let servers = children_of(listener.process.id());
    servers.iter().copied().for_each(kill);
    let answer = running.json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)), "{answer}");
    let call = VERSION.call(2, "echo", &json!({ "message": "again" }));
    assert_eq!(text_of(&listener.send("POST", &session, &call).json()), "again");
}
