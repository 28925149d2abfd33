//! `--timeout` holds for the whole command, whatever the server does not do.

use std::io::{BufRead, BufReader, Read, Write};
use std::thread;
use std::time::Duration;

use crate::support::http::listening;
use crate::{User, scripted};

/// How much longer than its time a command may take, on a machine that does other things as well.
const SLACK: Duration = Duration::from_secs(6);

fn in_time(ended: &crate::support::Ended, timeout: u64) {
    assert_eq!((ended.code, ended.out.as_str()), (4, ""), "{ended:?}");
    let said = |text: &str| ended.err.contains(&format!("within {timeout}{text}"));
    assert!(said(" s") || said("s"), "{ended:?}");
    let limit = Duration::from_secs(timeout);
    assert!(ended.took >= limit && ended.took < limit + SLACK, "{ended:?}");
}

#[test]
fn a_server_that_never_answers_is_left_over_every_transport() {
    let user = User::new();
    let address = listening(|mut stream| {
        let mut bytes = [0; 4096];
        while stream.read(&mut bytes).is_ok_and(|length| length > 0) {}
    });
    for scheme in ["http", "sse+http", "ws"] {
        in_time(&user.run(&["list", "--timeout", "2", &format!("{scheme}://{address}/mcp")]), 2);
    }
    in_time(&user.with_script(&["list", "--timeout", "2"], "exec sleep 100"), 2);
}

#[test]
fn connecting_and_asking_share_the_time() {
    let user = User::new();
    // A quarter of the time for each of its answers, and none to the call.
    let server = format!(
        "exec 3>&1; slowly() {{ {} ; }}; slowly",
        scripted(
            r#"{"tools":{}}"#,
            &[("tools/list", r#""result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#)],
        )
    )
    .replace(
        "printf '{\"jsonrpc\"",
        "case \"$line\" in *tools/call*) sleep 100 ;; esac; sleep 0.8; printf '{\"jsonrpc\"",
    );
    in_time(&user.with_script(&["call", "t", "--timeout", "4"], &server), 4);
    let ended = user.with_script(&["call", "t", "--total-timeout", "4"], &server);
    assert!(ended.err.contains("no answer within 4 s; --total-timeout SECONDS"), "{ended:?}");
}

#[test]
fn methods_beyond_the_protocol_have_no_more_time() {
    let user = User::new();
    let server = scripted(r#"{"tools":{},"models":{},"metadata":{}}"#, &[]).replace(
        "printf '{\"jsonrpc\"",
        "case \"$line\" in *models/*|*metadata/*) sleep 100 ;; esac; printf '{\"jsonrpc\"",
    );
    for words in [
        &["list", "models", "--timeout", "2"][..],
        &["models", "select", "m", "--timeout", "2"],
        &["metadata", "--timeout", "2"],
        &["list", "tools", "--model", "m", "--timeout", "2"],
    ] {
        let ended = user.with_script(words, &server);
        in_time(&ended, 2);
        assert!(ended.err.contains("--timeout SECONDS gives the server more time"), "{words:?}: {ended:?}");
    }
}

#[test]
fn a_server_that_sends_anything_but_the_answer_is_left() {
    let user = User::new();
    let address = listening(|stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        let mut length = 0;
        loop {
            let mut line = String::new();
            if !reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                return;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
        while stream.write_all(b": alive\n\n").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
    in_time(&user.run(&["list", "--timeout", "2", &format!("http://{address}/mcp")]), 2);
}

#[test]
fn progress_gives_a_call_its_time_once_more() {
    let user = User::new();
    let ended = user.with_stdio(&["call", "long_task", "steps=8", "step_ms=1000", "--timeout", "6"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "done: 8 of 8 steps\n"), "{ended:?}");
    let total = ["call", "long_task", "steps=200", "step_ms=500", "--timeout", "30", "--total-timeout", "3"];
    let ended = user.with_stdio(&total);
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(ended.err.contains("--total-timeout"), "{ended:?}");
}

#[test]
fn a_server_that_floods_an_sse_stream_is_left_in_time() {
    let user = User::new();
    for line in [": keep-alive\n\n", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"] {
        let flood = line.repeat(2000);
        let address = listening(move |mut stream| {
            let mut bytes = [0; 4096];
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
            if stream.read(&mut bytes).is_ok() && stream.write_all(head.as_bytes()).is_ok() {
                while stream.write_all(flood.as_bytes()).is_ok() {}
            }
        });
        let ended = user.run(&["list", "tools", "--timeout", "2", &format!("http://{address}/mcp")]);
        assert_eq!((ended.code, ended.out.as_str()), (4, ""), "{ended:?}");
        assert!(ended.took < Duration::from_secs(2) + SLACK, "{ended:?}");
    }
}
