//! A recorded server, served again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{REFMCP, User, http, signal, wait_for};
use crate::{ASK, record};

/// A mock that listens; killed when it is dropped.
struct Mock {
    child: Child,
    address: String,
}

impl Mock {
    fn start(user: &User, file: &str, options: &[&str]) -> Self {
        let words = [&["replay", file, "--serve", "127.0.0.1:0"][..], options].concat();
        let log = std::fs::File::create(user.path("mock.log")).unwrap();
        let mut child = user.command(&words).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("://").nth(1).unwrap_or_else(|| panic!("no address: {line}"));
        let address = address.split('/').next().unwrap().to_owned();
        Self { child, address }
    }

    fn post(&self, headers: &[(&str, &str)], body: &str) -> http::Response {
        http::send(&self.address, "POST /mcp", headers, body)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn clients_of_every_transport_get_what_is_recorded() {
    for version in ["2025-06-18", "2026-07-28"] {
        let user = User::new();
        record(&user, version, "a.jsonl");
        let call = [&["call"][..], &ASK, &["--protocol-version", version]].concat();
        let expected = user.with_stdio(&call);
        let came = user.with(&call, &[REFMCP, "replay", &user.word("a.jsonl"), "--stdio"]);
        assert_eq!((came.code, &came.out, &*came.err), (0, &expected.out, ""), "{version} over stdio");
        let mock = Mock::start(&user, "a.jsonl", &["--record", "mock.jsonl"]);
        for (scheme, path) in [("http", "/mcp"), ("ws", "/mcp"), ("sse+http", "/sse")] {
            if version == "2026-07-28" && scheme == "sse+http" {
                continue;
            }
            let target = format!("{scheme}://{}{path}", mock.address);
            let words = [&["call", &target][..], &ASK, &["--protocol-version", version]].concat();
            // One after the other, and from the beginning each time.
            for _ in 0..2 {
                let came = user.run(&words);
                assert_eq!((came.code, &came.out, &*came.err), (0, &expected.out, ""), "{version} {target}");
            }
            let replayed = user.run(&["replay", "a.jsonl", &target]);
            assert_eq!(replayed.code, 0, "{replayed:?}");
        }
        signal("TERM", mock.child.id());
        wait_for("the end of the mock", || {
            let text = user.read("mock.jsonl");
            (text.contains("\"side\":\"server\"") && text.contains("\"transport\":\"websocket\""))
                .then_some(())
        });
        let report = user.run(&["report", "mock.jsonl", "--party", "client", "-o", "json"]);
        assert_eq!(
            serde_json::from_str::<Value>(&report.out).unwrap()["conclusion"],
            "kept",
            "{}",
            report.out
        );
    }
}

#[test]
fn what_is_not_recorded_is_an_error_that_says_what_is() {
    let user = User::new();
    record(&user, "2025-06-18", "a.jsonl");
    let words = ["call", "echo", "message=x", "--yes", "--protocol-version", "2025-06-18"];
    let came = user.with(&words, &[REFMCP, "replay", &user.word("a.jsonl"), "--stdio"]);
    let why = "the recording has no tools/call echo; it has tools/call ask_user";
    assert_eq!(came.code, 1, "{came:?}");
    assert!(
        came.err.contains(&format!("refmcp: {why}\n")) && came.err.contains(&format!("{why} (-32603)")),
        "{came:?}"
    );
    let mock = Mock::start(&user, "a.jsonl", &[]);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let answer = mock.post(&[("Connection", "close")], list);
    let (status, text) = (answer.status, answer.text());
    assert!(status == 404 && text.contains("-32601") && text.contains("prompts/list"), "{text}");
    wait_for("the line on stderr", || {
        user.read("mock.log").contains("no request prompts/list").then_some(())
    });
}

#[test]
fn what_is_no_request_of_a_client_is_refused() {
    let user = User::new();
    record(&user, "2025-06-18", "a.jsonl");
    let mock = Mock::start(&user, "a.jsonl", &[]);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(mock.post(&[], ping).status, 200);
    assert_eq!(mock.post(&[], "no json").status, 400);
    assert_eq!(mock.post(&[("mcp-session-id", "unknown")], ping).status, 404);
    assert_eq!(mock.post(&[("Host", "evil.example")], ping).status, 403);
    assert_eq!(mock.post(&[("Origin", "https://evil.example")], ping).status, 403);
    assert_eq!(http::send(&mock.address, "PUT /mcp", &[], "").status, 405);
    assert_eq!(http::send(&mock.address, "DELETE /mcp", &[], "").status, 404);
    assert_eq!(http::send(&mock.address, "POST /messages?sessionId=x", &[], ping).status, 404);
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(17 << 20));
    assert_eq!(mock.post(&[], &long).status, 413);
    assert_eq!(mock.post(&[], ping).status, 200, "it goes on");
}
