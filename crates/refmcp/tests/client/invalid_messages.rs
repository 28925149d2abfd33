//! Servers that print what is no message.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::http::listening;
use crate::{REFMCP, User, scripted};

#[test]
fn a_server_that_prints_and_then_works_is_used_with_a_warning() {
    let user = User::new();
    let script = r#"echo 'Listening'; echo '{"level":30,"msg":"up"}'; exec "$0" stdio"#;
    let ended = user.with(&["call", "echo", "message=hi"], &["sh", "-c", script, REFMCP]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "hi\n"), "{ended:?}");
    let warnings = "refmcp: ignored from the server: not a message: Listening\n\
                    refmcp: a stdio server must write nothing but messages to standard output; log to stderr instead\n\
                    refmcp: ignored from the server: not a message: {\"level\":30,\"msg\":\"up\"}\n";
    assert_eq!(ended.err, warnings);
}

/// A prompt or an answer that lacks its line end is reported while the server still runs, not when its time is over.
#[test]
fn a_line_without_an_end_is_reported_at_once() {
    let user = User::new();
    // The server works once the warning is there, so it must come before anything else does.
    let script =
        r#"printf '%s > ' "$KEY"; until grep -q 'not ended' err; do sleep 0.05; done; echo; exec "$0" stdio"#;
    let words = ["call", "echo", "message=hi", "--", "KEY=hush-hush-hush", "sh", "-c", script, REFMCP];
    let err = File::create(user.path("err")).unwrap();
    let ended = user.command(&words).stderr(err).output().unwrap();
    let err = fs::read_to_string(user.path("err")).unwrap();
    assert_eq!(ended.stdout, b"hi\n", "{err}");
    let first = "refmcp: the server has begun a line and not ended it: *** > ; waiting for the rest, up to 60 s in all (--timeout)\n";
    assert!(err.starts_with(first) && !err.contains("hush"), "{err}");
    let answers = r#"while read -r line; do printf '{"jsonrpc":"2.0","id":1,"result":{}}'; done"#;
    let ended = user.with_script(&["list", "--timeout", "6"], answers);
    let mut lines = ended.err.lines();
    let told = r#"not ended it: {"jsonrpc":"2.0","id":1,"result":{}}; waiting for the rest, up to 6 s in all (--timeout)"#;
    assert!(lines.next().unwrap().contains(told), "{ended:?}");
    assert!(lines.next().unwrap().contains("must end each message with a line break"), "{ended:?}");
}

#[test]
fn a_server_that_only_prints_is_left_soon_and_quoted() {
    let user = User::new();
    for (script, quoted) in [
        ("echo 'usage: server DIR'", "usage: server DIR"),
        ("while read -r line; do echo what; done", "what"),
        ("exec yes", "no message: y"),
        (
            r#"while read -r line; do echo '{"jsonrpc":"2.0","id":1,"result":'; done"#,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":",
        ),
        (r#"while read -r line; do echo '{"jsonrpc":"2.0","id":77,"result":{}}'; done"#, "with the id 77"),
        ("cat", "it sends our own messages back"),
        ("yes | tr -d '\\n'", "it sent a message that is longer than"),
    ] {
        let ended = user.with_script(&["list"], script);
        assert_eq!((ended.code, ended.out.as_str()), (4, ""), "{script}: {ended:?}");
        let last = ended.err.lines().last().unwrap();
        assert!(last.contains(quoted), "{script}: {ended:?}");
        assert!(ended.took < Duration::from_secs(15), "{script}: {ended:?}");
    }
    // A banner of a server that then waits for something else.
    let ended =
        user.with_script(&["list", "--timeout", "2"], "echo listening on port 3000; exec cat >/dev/null");
    let last = ended.err.lines().last().unwrap();
    assert!(
        ended.code == 4 && last.ends_with("it wrote what is no message: listening on port 3000"),
        "{ended:?}"
    );
    assert_eq!(ended.err.matches("log to stderr").count(), 1, "{ended:?}");
    // One that never ends its line.
    let dripping = "while printf x; do sleep 0.02; done";
    let ended = user.with_script(&["list", "--timeout", "2"], dripping);
    let last = ended.err.lines().last().unwrap();
    assert!(ended.code == 4 && last.contains("a line without an end: xx"), "{ended:?}");
    // What a server prints cannot steer the terminal, and a lot of it is not shown.
    let ended = user.with_script(&["list"], r"printf '\033[2J\n'; seq 100");
    assert!(!ended.err.contains('\x1b') && ended.err.lines().count() < 10, "{ended:?}");
}

#[test]
fn an_answer_that_is_nested_too_deep_ends_the_call_and_not_its_time() {
    let user = User::new();
    let deep = format!(r#""result":{{"tools":[],"x":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    let server = crate::scripted(r#"{"tools":{}}"#, &[("tools/list", &deep)]);
    let ended = user.with_script(&["list", "tools"], &server);
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(ended.err.contains("nesting deeper than 128"), "{ended:?}");
    assert!(ended.took < Duration::from_secs(15), "{ended:?}");
}

#[test]
fn an_answer_that_cannot_be_read_ends_the_call_and_not_its_time() {
    let user = User::new();
    let server = crate::scripted(r#"{"tools":{}}"#, &[("tools/list", r#""result":{"tools":[}"#)]);
    let ended = user.with_script(&["list", "tools"], &server);
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(
        ended.err.contains("the server broke the protocol: it sent an answer that cannot be read"),
        "{ended:?}"
    );
    assert!(ended.took < Duration::from_secs(15), "{ended:?}");
    assert_eq!(ended.err.matches("cannot be read").count(), 1, "it is told once: {ended:?}");
    let strange = r#"while read -r line; do echo '{"jsonrpc":"2.0","id":77,"result":{}}'; done"#;
    let ended = user.with_script(&["list", "tools"], strange);
    assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
}

/// A better answer follows, so no error tells of the first one.
#[test]
fn an_answer_that_is_left_out_is_reported() {
    let user = User::new();
    let strange = r#"echo '{"jsonrpc":"2.0","id":77,"result":{}}'; exec "$0" stdio"#;
    let ended = user.with(&["call", "echo", "message=hi"], &["sh", "-c", strange, REFMCP]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "hi\n"), "{ended:?}");
    let told = "refmcp: ignored from the server: it sent an answer to a request that was never made, with the id 77\n";
    assert_eq!(ended.err, told);
}

#[test]
fn the_same_over_websocket() {
    let (user, url) = (User::new(), babbling());
    let ended = user.run(&["list", &url]);
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(ended.err.contains("ignored from the server: not a message: hello"), "{ended:?}");
    assert!(ended.err.lines().last().unwrap().contains("what is no message: hello"), "{ended:?}");
    assert!(ended.took < Duration::from_secs(15), "{ended:?}");
}

/// A server over WebSocket that answers each frame with a greeting.
fn babbling() -> String {
    let address = listening(|mut stream| {
        let mut head = vec![0; 4096];
        let length = stream.read(&mut head).unwrap();
        let head = String::from_utf8_lossy(&head[..length]).into_owned();
        let key = head.lines().find_map(|line| {
            line.to_lowercase().starts_with("sec-websocket-key").then(|| line[18..].trim().to_owned())
        });
        let accept = accept_key(&key.unwrap());
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).unwrap();
        let mut frame = [0; 4096];
        while stream.read(&mut frame).is_ok_and(|length| length > 0) {
            if stream.write_all(b"\x81\x05hello").is_err() {
                break;
            }
        }
    });
    format!("ws://{address}/")
}

fn accept_key(key: &str) -> String {
    let script = format!(
        "printf %s '{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11' | openssl dgst -sha1 -binary | openssl base64 -A"
    );
    let output = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_server_that_ends_no_line_is_given_up_and_quoted() {
    let user = User::new();
    for script in ["printf 'Proceed? '; cat >/dev/null; :", "while read -r line; do printf 'Proceed? '; done"]
    {
        let ended = user.with_script(&["list", "--timeout", "60"], script);
        let last = ended.err.lines().last().unwrap();
        assert!(
            ended.code == 4 && last.contains("a line without an end, and nothing more: Proceed? "),
            "{ended:?}"
        );
        assert!(ended.took < Duration::from_secs(30), "{ended:?}");
    }
    // After the connection is open, more time is no remedy either.
    let answers = scripted(r#"{"tools":{}}"#, &[]).replace(
        "case \"$line\" in\n",
        "case \"$line\" in\n  *tools/list*) printf 'Proceed? '; continue ;;\n",
    );
    let ended = user.with_script(&["list", "tools", "--timeout", "2"], &answers);
    let last = ended.err.lines().last().unwrap();
    let said = "no answer within 2 s; it wrote what is no message: a line without an end: Proceed? ";
    assert!(ended.code == 4 && last.contains(said) && !last.contains("--timeout"), "{ended:?}");
    let told = "not ended it: Proceed? ; waiting for the rest, up to 2 s in all (--timeout)\n";
    assert!(ended.err.contains(told), "{ended:?}");
}
