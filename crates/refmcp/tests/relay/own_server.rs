//! `serve --faults` and `stdio --faults`: every fault of the language over each transport, and what our client makes of it.

use crate::support::{Process, REFMCP, Server, User, program};

/// A plan and what a call comes to over each transport: the text that is printed, with exit code 0 where it is `done`.
struct Row {
    plan: &'static str,
    http_with_session: &'static str,
    http: &'static str,
    http_sse: &'static str,
    websocket: &'static str,
    stdio: &'static str,
}

const fn row(plan: &'static str, texts: [&'static str; 5]) -> Row {
    let [http_with_session, http, http_sse, websocket, stdio] = texts;
    Row { plan, http_with_session, http, http_sse, websocket, stdio }
}

const DONE: &str = "done: 1 of 1 steps";
const TIMEOUT: &str = "no answer within";
const ENDED: &str = "the connection ended before the answer came";
const NEVER_MADE: &str = "an answer to a request that was never made";
const BOTH: &str = "both result and error";
const TOO_EARLY: &str = "the text ends too early";
const NOISE: &str = "this line is no message";
const REFUSED: &str = "refused with status 403";
const HTML: &str = "content of type text/html";
const NO_TYPE: &str = "without content of a known type";

const ROWS: [Row; 20] = [
    row("tools/call: no answer", [TIMEOUT; 5]),
    row("tools/call: answer after 50ms", [DONE; 5]),
    row("tools/call: answer twice", [DONE; 5]),
    row("tools/call: wrong id", [NEVER_MADE; 5]),
    row("tools/call: result and error", [BOTH; 5]),
    row("tools/call: other shape", [DONE; 5]),
    row("tools/call: malformed json", [TOO_EARLY; 5]),
    row("tools/call: noise", [NOISE, NOISE, DONE, DONE, DONE]),
    row("tools/call: oversized 64K", [DONE; 5]),
    row("tools/call: unknown request", [DONE; 5]),
    row("tools/call: cut after event 1", [DONE, ENDED, ENDED, ENDED, ENDED]),
    row("tools/call: cut after byte 9", [DONE, ENDED, ENDED, ENDED, ENDED]),
    row("tools/call: slow 2000", [DONE; 5]),
    row("tools/call: status 403", [REFUSED, REFUSED, REFUSED, DONE, DONE]),
    row("tools/call: content type text/html", [HTML, HTML, DONE, DONE, DONE]),
    row("tools/call: no header content-type", [NO_TYPE, NO_TYPE, DONE, DONE, DONE]),
    row("tools/call: expire session", ["no longer knows the session", DONE, DONE, DONE, DONE]),
    row("tools/call: close 1005", [DONE, DONE, DONE, ENDED, DONE]),
    row(
        "stream: wrong endpoint http://127.0.0.1:9/x",
        [DONE, DONE, "an endpoint that is not taken", DONE, DONE],
    ),
    row("stream: status 503", [DONE, DONE, "refused with status 503", DONE, DONE]),
];

/// Calls a tool; asserts what comes of it.
fn expect(user: &User, plan: &str, words: &[&str], text: &str) {
    let mut command = program(&[&["call"], words].concat());
    command.env("REFMCP_STATE_DIR", user.path("state"));
    let exit = Process::spawn(command).exit();
    let printed = format!("{:?} {}", exit.lines, exit.errors);
    let code = if text == DONE { 0 } else { 4 };
    assert_eq!((exit.status.code(), printed.contains(text)), (Some(code), true), "{plan}: {printed}");
}

fn every_fault(scheme: &str, path: &str, version: &str, text: fn(&Row) -> &'static str) {
    let user = User::new();
    for row in &ROWS {
        let server = Server::start(&["--faults", row.plan]);
        let url = format!("{scheme}://{}{path}", server.address);
        let options = ["long_task", "steps=1", "step_ms=1", "--timeout", timeout(row)];
        let words = [&[url.as_str()], &options[..], &["--protocol-version", version]].concat();
        expect(&user, row.plan, &words, text(row));
    }
}

/// Short only where it is waited for.
fn timeout(row: &Row) -> &'static str {
    match row.plan {
        "tools/call: no answer" | "tools/call: wrong id" => "3",
        "tools/call: result and error" | "tools/call: malformed json" => "3",
        _ => "60",
    }
}

#[test]
fn over_streamable_http_with_sessions() {
    every_fault("http", "/mcp", "legacy", |row| row.http_with_session);
}

#[test]
fn over_streamable_http_without_sessions() {
    every_fault("http", "/mcp", "modern", |row| row.http);
}

#[test]
fn over_http_sse() {
    every_fault("sse+http", "/sse", "legacy", |row| row.http_sse);
}

#[test]
fn over_websocket() {
    every_fault("ws", "/mcp/ws", "modern", |row| row.websocket);
}

#[test]
fn over_stdio() {
    let user = User::new();
    for row in &ROWS {
        let options = ["long_task", "steps=1", "step_ms=1", "--timeout", timeout(row)];
        let words = [&options[..], &["--", REFMCP, "stdio", "--faults", row.plan]].concat();
        expect(&user, row.plan, &words, row.stdio);
    }
}

#[test]
fn the_addresses_that_are_told_are_those_of_the_relay() {
    let server =
        Server::start(&["--auth", "builtin", "--auth-login", "auto", "--faults", "every ping: no answer"]);
    let metadata = server.get("/.well-known/oauth-protected-resource/mcp");
    assert!(metadata.contains(&format!("http://{}/mcp", server.address)), "{metadata}");
    let foreign = server.get("/mcp").replace(&server.address, "");
    assert!(!foreign.contains("127.0.0.1:"), "no other port is named: {foreign}");
}

#[test]
fn what_cannot_be_done_is_refused_with_what_to_do_instead() {
    for more in
        [&["--tls-cert", "c", "--tls-key", "k"][..], &["--unix", "s"], &["--trusted-proxy", "10.0.0.1"]]
    {
        let words = [&["serve", "--faults", "ping: noise"], more].concat();
        let exit = Process::spawn(program(&words)).exit();
        assert_eq!(exit.status.code(), Some(1), "{exit:?}");
        assert!(exit.errors.contains("refmcp relay --faults PLAN URL"), "{exit:?}");
    }
}
