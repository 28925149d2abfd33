//! `watch` ends with its server, and says so, and with the reader of its output.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::User;
use crate::support::Server;

#[test]
fn a_watch_whose_server_stops_says_so_and_fails() {
    for (version, signal) in [("2026-07-28", "TERM"), ("2026-07-28", "KILL"), ("2025-11-25", "TERM")] {
        let (user, mut server) = (User::new(), Server::start(&[]));
        let url = format!("http://{}/mcp", server.address);
        let mut command = user.command(&["watch", &url, "--protocol-version", version, "--timeout", "5"]);
        let mut watch = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut shown = BufReader::new(watch.stdout.take().unwrap());
        shown.read_line(&mut line).unwrap();
        assert_eq!(line, "listening\n", "{version}");
        server.signal(signal);
        server.exit();
        let status = watch.wait().unwrap();
        let mut said = String::new();
        watch.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(status.code(), Some(4), "{version} {signal}: {said}");
        assert!(said.contains("the connection is lost: "), "{version} {signal}: {said}");
    }
}

#[test]
fn a_watch_that_is_not_read_any_more_ends() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    for (version, output) in [("2026-07-28", "text"), ("2025-11-25", "text"), ("2025-11-25", "jsonl")] {
        let mut command = user.command(&["watch", &url, "--protocol-version", version, "-o", output]);
        let mut watch = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(watch.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(ended(&mut watch), (Some(0), String::new()), "{version} {output}");
    }
    // Nor does a shell that waits for a line.
    let mut command = user.command(&["shell", &url]);
    let mut shell =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = shell.stdin.take();
    drop(shell.stdout.take());
    assert_eq!(ended(&mut shell), (Some(0), String::new()), "shell");
    drop(stdin);
}

/// The exit code and what was said on stderr, of a process that ends by itself.
fn ended(process: &mut Child) -> (Option<i32>, String) {
    let end = Instant::now() + Duration::from_secs(20);
    while process.try_wait().unwrap().is_none() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Nothing happens to one that has ended.
    process.kill().unwrap();
    let mut said = String::new();
    process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (process.wait().unwrap().code(), said)
}
