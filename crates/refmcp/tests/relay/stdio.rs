//! The relay over standard input and output, with servers that are shell commands.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::Trace;
use crate::support::{Client, Process, REFMCP, Version, children_of, kill, program, wait_until};

fn relay(trace: &Trace, script: &str) -> Command {
    relay_to(trace, &["sh", "-c", script])
}

fn relay_to(trace: &Trace, server: &[&str]) -> Command {
    let mut command = program(&["relay", "--record", trace.path().to_str().unwrap(), "--"]);
    command.args(server);
    command
}

fn start(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Junk, a partial line, a batch, invalid UTF-8, empty lines, CRLF, NUL, and no line break at the end.
fn any_bytes() -> Vec<u8> {
    let mut bytes = b"nonsense\r\n\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".to_vec();
    bytes.extend(b"[{\"jsonrpc\":\"2.0\",\"method\":\"a\"},{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]\n");
    bytes.extend([0xff, 0xfe, 0, b'\n', b'\r', b'\n']);
    bytes.extend((0..=255).cycle().take(200_000));
    bytes.extend(b"\n{\"jsonrpc\":\"2.0\",\"id\":3,\"met");
    bytes
}

#[test]
fn bytes_are_the_same_on_both_sides_and_the_exit_code_is_the_servers() {
    let trace = Trace::new();
    let (from_client, from_server) = (any_bytes(), any_bytes().into_iter().rev().collect::<Vec<u8>>());
    let (got, given) = (trace.folder.path().join("got"), trace.folder.path().join("given"));
    fs::write(&given, &from_server).unwrap();
    let script = format!("cat > {}; cat {}; echo complaint >&2; exit 7", got.display(), given.display());
    let mut child = start(relay(&trace, &script));
    let mut stdin = child.stdin.take().unwrap();
    let sent = from_client.clone();
    let writing = thread::spawn(move || stdin.write_all(&sent).unwrap());
    let ended = child.wait_with_output().unwrap();
    writing.join().unwrap();
    assert_eq!(ended.status.code(), Some(7));
    assert!(fs::read(got).unwrap() == from_client, "what the client sent");
    assert!(ended.stdout == from_server, "what the server sent");
    assert_eq!(ended.stderr, b"complaint\n");

    let lines = trace.lines();
    let (first, last) = (&lines[0], lines.last().unwrap());
    assert_eq!(
        (&first["event"], &first["side"], &first["transport"]),
        (&json!("opened"), &json!("client"), &json!("stdio"))
    );
    assert_eq!(last["event"], "closed");
    let sent: Vec<&Value> = lines.iter().filter(|line| line["direction"] == "sent").collect();
    assert_eq!(sent[0]["text"], "nonsense");
    assert_eq!(sent[1]["message"]["method"], "ping");
    assert!(sent[2]["message"].is_array(), "{}", sent[2]);
    assert_eq!(sent[3]["base64"], STANDARD.encode([0xff, 0xfe, 0]));
    assert!(sent.last().unwrap()["text"].as_str().unwrap().ends_with("\"met"));
    assert!(lines.iter().any(|line| line["direction"] == "received" && line["event"] == "invalid"));
    assert!(lines.iter().any(|line| line["event"] == "stderr" && line["text"] == "complaint\n"));
}

#[test]
fn a_partial_line_is_passed_on_at_once() {
    let trace = Trace::new();
    let process = Process::spawn(relay(&trace, "head -c 3 >&2; echo; cat"));
    process.send("abc");
    wait_until("three bytes at the server", || process.errors().contains("abc"));
    assert_eq!(process.next_line().as_deref(), Some(""), "the server's answer comes while the input is open");
    process.send("d");
    process.send_line("e");
    assert_eq!(process.next_line().as_deref(), Some("de"));
}

#[test]
fn a_line_of_any_length_passes_in_bounded_memory() {
    const BYTES: usize = 128 << 20;
    let trace = Trace::new();
    let script = format!("head -c {BYTES} /dev/zero; echo; head -c {BYTES} | wc -c");
    let mut child = start(relay(&trace, &script));
    let mut stdin = child.stdin.take().unwrap();
    let writing = thread::spawn(move || {
        let chunk = vec![b'x'; 1 << 20];
        (0..BYTES >> 20).for_each(|_| stdin.write_all(&chunk).unwrap());
        stdin
    });
    let mut stdout = child.stdout.take().unwrap();
    let mut chunk = vec![0; 1 << 20];
    let mut read = 0;
    while read <= BYTES {
        read += stdout.read(&mut chunk).unwrap();
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: usize = peak.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap();
    assert!(peak < 96 << 10, "{peak} KiB");
    drop(writing.join().unwrap());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.trim(), BYTES.to_string());
    assert!(child.wait().unwrap().success());
    let long = |direction: &str| {
        trace.lines().iter().any(|line| {
            line["direction"] == direction && line["why"].as_str().is_some_and(|why| why.contains("longer"))
        })
    };
    assert!(long("sent") && long("received"), "{}", trace.text());
}

#[test]
fn signals_reach_the_server_and_its_end_is_the_relays() {
    let script = r#"trap 'echo hup' HUP; trap 'echo usr' USR1; trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"#;
    let trace = Trace::new();
    let process = Process::spawn(relay(&trace, script));
    assert_eq!(process.next_line().as_deref(), Some("ready"));
    for (signal, said) in [("HUP", "hup"), ("USR1", "usr")] {
        process.signal(signal);
        assert_eq!(process.next_line().as_deref(), Some(said));
    }
    process.signal("TERM");
    assert_eq!(process.exit().status.code(), Some(9));
    let killed = Process::spawn(relay(&trace, "kill -9 $$"));
    assert_eq!(killed.exit().status.code(), Some(137));
}

#[test]
fn a_side_that_closes_is_seen_by_the_other() {
    let trace = Trace::new();
    let mut closes = Process::spawn(relay(&trace, "exec >&-; read line; exit 3"));
    assert_eq!(closes.next_line(), None, "the server's output has ended, and the server has not");
    closes.close_input();
    assert_eq!(closes.exit().status.code(), Some(3));
    // A client that no longer reads ends a server that writes.
    let mut unread = Process::spawn_unread(relay(&trace, "while echo more; do :; done"));
    unread.close_output();
    assert_eq!(unread.exit().status.code(), Some(141), "SIGPIPE");
    // A server that no longer reads is not written to.
    let mut deaf = start(relay(&trace, "exec <&-; echo deaf; sleep 60"));
    let mut stdin = deaf.stdin.take().unwrap();
    let mut said = [0; 5];
    deaf.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    wait_until("the end of the input", || stdin.write_all(b"word\n").is_err());
    for child in children_of(deaf.id()) {
        crate::support::signal("KILL", child);
    }
    assert_eq!(deaf.wait().unwrap().code(), Some(137));
}

#[test]
fn what_a_server_leaves_behind_is_not_waited_for() {
    let trace = Trace::new();
    // It holds the output open as long as it is not killed.
    let process = Process::spawn(relay(&trace, "sleep 60 & echo $!; exit 2"));
    let left = process.next_line().unwrap().parse().unwrap();
    assert_eq!(process.exit().status.code(), Some(2));
    kill(left);
}

#[test]
fn a_session_is_in_the_trace_from_both_sides() {
    let trace = Trace::new();
    let mut client =
        Client::with(Version::Session("2025-11-25"), Process::spawn(relay_to(&trace, &[REFMCP, "stdio"])));
    client.is_served();
    client.process.close_input();
    assert!(client.process.exit().status.success());
    let messages: Vec<Value> = trace.lines().into_iter().filter(|line| line["event"] == "message").collect();
    assert_eq!(messages[0]["message"]["method"], "initialize");
    assert_eq!(messages[0]["direction"], "sent");
    assert_eq!(messages[1]["message"]["id"], "init");
    assert_eq!(messages[1]["direction"], "received");
    assert!(messages.iter().any(|line| line["message"]["method"] == "tools/call"));
}
