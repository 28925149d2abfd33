//! `--faults`: what goes wrong as planned, and what our client makes of it, over every transport.

use crate::http::Relay;
use crate::support::{Process, REFMCP, Server, User, program};

/// A plan, the exit code of a call, and what it prints.
struct Row(&'static str, i32, &'static str);

/// What a call through a relay with this plan comes to, where the result is `done`.
const MESSAGES: [Row; 7] = [
    Row("tools/call: answer twice", 0, "done"),
    Row("tools/call: wrong id", 4, "an answer to a request that was never made"),
    Row("tools/call: result and error", 4, "both result and error"),
    Row("tools/call: malformed json", 4, "the text ends too early"),
    Row("tools/call: answer after 50ms", 0, "done"),
    Row("tools/call: unknown request", 0, "done"),
    Row("tools/call 2: no answer", 0, "done"),
];

/// Calls a tool of the server at a URL, or of one that is started by the words after `--`.
fn call(user: &User, url: Option<&str>, more: &[&str]) -> (i32, String) {
    let words =
        [&["call"], url.as_slice(), &["long_task", "steps=1", "step_ms=1", "--timeout", "20"], more].concat();
    let mut command = program(&words);
    command.env("REFMCP_STATE_DIR", user.path("state"));
    let exit = Process::spawn(command).exit();
    (exit.status.code().unwrap_or(-1), format!("{words:?}: {:?} {}", exit.lines, exit.errors))
}

/// The same over stdio, through a relay with this plan.
fn call_over_stdio(user: &User, plan: &str) -> (i32, String) {
    call(user, None, &["--", REFMCP, "relay", "--faults", plan, "--", REFMCP, "stdio"])
}

#[test]
fn messages_go_wrong_over_stdio() {
    let user = User::new();
    for Row(plan, code, text) in MESSAGES {
        let (exit, printed) = call_over_stdio(&user, plan);
        assert_eq!((exit, printed.contains(text)), (code, true), "{printed}");
    }
    let (exit, printed) = call_over_stdio(&user, "tools/call: cut after byte 9");
    assert_eq!(
        (exit, printed.contains("the connection ended before the answer came")),
        (4, true),
        "{printed}"
    );
}

#[test]
fn messages_go_wrong_over_http_and_websocket() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    for (scheme, path) in [("http", "/mcp"), ("ws", "/mcp/ws")] {
        for version in ["legacy", "modern"] {
            for Row(plan, code, text) in MESSAGES {
                let relay = Relay::open(&url, &["--faults", plan]);
                let target = format!("{scheme}://{}{path}", relay.address);
                let (exit, printed) = call(&user, Some(&target), &["--protocol-version", version]);
                assert_eq!((exit, printed.contains(text)), (code, true), "{scheme} {version} {printed}");
            }
        }
    }
}

#[test]
fn requests_over_http_are_refused_as_planned() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    for Row(plan, code, text) in [
        Row("tools/call: status 503 retry 7", 4, "try again in 7 s"),
        Row("tools/call: status 401", 3, "not authorized"),
        Row("tools/call: content type text/html", 4, "text/html"),
        Row("tools/call: expire session", 4, "no longer knows the session"),
        // What was sent before is not lost: the stream is resumed.
        Row("tools/call: cut after event 1", 0, "done"),
    ] {
        let relay = Relay::open(&url, &["--faults", plan]);
        let target = format!("http://{}/mcp", relay.address);
        let (exit, printed) = call(&user, Some(&target), &["--protocol-version", "legacy"]);
        assert_eq!((exit, printed.contains(text)), (code, true), "{printed}");
    }
}

#[test]
fn a_plan_that_is_not_understood_is_named() {
    for (plan, text) in
        [("x: y", "`y` is no fault"), ("missing.txt", "cannot read the fault plan missing.txt")]
    {
        let exit = Process::spawn(program(&["relay", "--faults", plan, "--", "cat"])).exit();
        assert!(exit.errors.contains(text), "{exit:?}");
    }
}
