//! Exit codes: of signals, and of servers that do not speak the protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use crate::support::{Server, signal};
use crate::{REFMCP, User, scripted};

/// Starts a command, waits for this on its standard output, sends the signal, and gives the exit code.
fn code_after(user: &User, words: &[&str], input: &str, wait_for: &str, name: &str) -> (i32, String) {
    let mut command = user.command(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut err = child.stderr.take().unwrap();
    let mut line = String::new();
    while !line.contains(wait_for) {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "{words:?} did not say {wait_for:?}");
    }
    signal(name, child.id());
    let code = child.wait().unwrap().code().unwrap_or(-1);
    let mut said = String::new();
    err.read_to_string(&mut said).unwrap();
    (code, said)
}

#[test]
fn a_signal_that_ends_a_command_is_its_exit_code() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    // With `jsonl`, a message is shown when it passes.
    let slow = ["call", "-o", "jsonl", url.as_str(), "long_task", "steps=600", "step_ms=100"];
    let watch = ["watch", url.as_str()];
    let shell = ["shell", "-o", "jsonl", url.as_str()];
    let to_stdio = ["bridge", "--from", "stdio", "--to", url.as_str()];
    let listens = ["bridge", "--from", "ws://127.0.0.1:0/", "--", REFMCP, "stdio"];
    let silent = ["list", "-o", "jsonl", "--", "sleep", "100"];
    for (words, input, wait_for, speaks) in [
        (&slow[..], "", "long_task", true),
        (&silent, "", "server/discover", true),
        (&watch, "", "listening", false),
        (&shell, "long_task steps=600 step_ms=100\n", "tools/call", true),
        (&to_stdio, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n", "\"id\":1", false),
        (&listens, "", "listening on", false),
    ] {
        for (name, code, said) in
            [("INT", 130, "interrupted"), ("TERM", 143, "terminated"), ("HUP", 129, "the terminal is gone")]
        {
            let (ended, err) = code_after(&user, words, input, wait_for, name);
            assert_eq!(ended, code, "{words:?} {name}: {err}");
            assert_eq!(err.contains(said), speaks, "{words:?} {name}: {err}");
        }
    }
}

#[test]
fn a_server_that_breaks_the_protocol_is_a_server_that_cannot_be_reached() {
    let user = User::new();
    let list = |answer: &str| scripted(r#"{"tools":{}}"#, &[("tools/list", answer)]);
    let other_revision = scripted("{}", &[]).replace("2025-06-18", "1999-01-01");
    for script in [
        list(r#""result":{"tools":7}"#),
        list(r#""result":{"tools":[],"nextCursor":"again"}"#),
        other_revision,
        scripted("{}", &[]).replace("\"protocolVersion\"", "\"version\""),
        "read -r line; exit 0".to_owned(),
    ] {
        let ended = user.with_script(&["list", "tools"], &script);
        assert_eq!((ended.code, ended.out.as_str()), (4, ""), "{script}: {ended:?}");
    }
    // An error that the server answers with is its right.
    let refused = r#""error":{"code":-32000,"message":"closed today"}"#;
    assert_eq!(user.with_script(&["list", "tools"], &list(refused)).code, 1);
    let ended = user.command(&["shell", "--", "sh", "-c", &list(r#""result":{"tools":7}"#)]);
    let mut shell =
        { ended }.stdin(Stdio::piped()).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(b"list tools\n").unwrap();
    assert_eq!(shell.wait().unwrap().code(), Some(4));
}

#[test]
fn the_exit_code_is_the_same_where_stderr_cannot_be_written() {
    let user = User::new();
    let wrong_name = scripted(r#"{"tools":{}}"#, &[("tools/list", r#""result":{"tools":[]}"#)]);
    let junk = format!("echo junk; {wrong_name}");
    for (words, code) in [
        (&["call", "http://127.0.0.1:9/mcp", "x"][..], 4),
        (&["call", "-o", "json", "http://127.0.0.1:9/mcp", "x"], 4),
        (&["list", "tools", "-o", "json"], 1),
        (&["lst"], 1),
        (&["call", "x", "--", "sh", "-c", &wrong_name], 1),
        (&["list", "tools", "--", "sh", "-c", &junk], 0),
        (&["shell", "--", "no-such-program"], 4),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = user.command(words);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(code), "{words:?}");
    }
}
