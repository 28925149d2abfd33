//! Started without a client: streams that are closed, files, or nowhere.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Client, Process, Version, program};

fn shell(redirections: &str) -> Process {
    let mut command = Command::new("sh");
    let script = format!("exec \"$0\" stdio {redirections}");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_refmcp")]).env_remove("REFMCP_LOG");
    Process::spawn(command)
}

#[test]
fn input_from_nowhere_ends_at_once() {
    for redirection in ["<&-", "< /dev/null"] {
        let exit = shell(redirection).exit();
        assert_eq!((exit.status.code(), exit.errors.as_str()), (Some(0), ""), "{redirection}: {exit:?}");
        assert!(exit.lines.is_empty());
    }
}

#[test]
fn output_to_nowhere_is_borne() {
    for redirection in [">&-", "> /dev/null", "2>&-"] {
        let mut process = shell(redirection);
        process.send_line(Client::initialize("2025-06-18"));
        process.close_input();
        let exit = process.exit();
        assert!(!exit.errors.contains("panicked"), "{redirection}: {exit:?}");
        assert_eq!(exit.status.code(), Some(0), "{redirection}: {exit:?}");
    }
}

/// More answers than are queued at once: each of them must be in the file.
#[test]
fn input_and_output_may_be_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let (input, output) = (dir.path().join("in"), dir.path().join("out"));
    let calls = 400;
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "echo", "arguments": { "message": "x".repeat(20_000) } })),
        ("tools/call", json!({ "name": "big_result", "arguments": { "bytes": 65_536 } })),
        ("tools/call", json!({ "name": "slow", "arguments": { "ms": 50 } })),
    ] {
        let request = |id: u64| Version::Stateless.request(id, method, &params) + "\n";
        let lines: String = (0..calls).map(request).collect();
        fs::write(&input, lines).expect("written");
        let mut command = program(&["stdio"]);
        command.stdin(File::open(&input).expect("opened")).stdout(File::create(&output).expect("made"));
        assert_eq!(Process::spawn_redirected(command).exit().status.code(), Some(0));
        let written = fs::read_to_string(&output).expect("read");
        let mut ids: Vec<u64> = written
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].as_u64().expect("a number"))
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..calls).collect::<Vec<u64>>(), "{method} {params:.50}");
    }
}

/// Some clients use socket pairs in place of pipes.
#[test]
fn input_and_output_may_be_sockets() {
    use std::io::{BufRead, BufReader, Write};
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    ours.set_read_timeout(Some(crate::support::TEST_TIMEOUT)).expect("set");
    let stream = || Stdio::from(OwnedFd::from(theirs.try_clone().expect("cloned")));
    let mut command = program(&["stdio"]);
    command.stdin(stream()).stdout(stream());
    let process = Process::spawn_redirected(command);
    drop(theirs);
    writeln!(&ours, "{}", Version::Stateless.call(7, "echo", &json!({ "message": "over a socket" })))
        .expect("written");
    let mut line = String::new();
    BufReader::new(&ours).read_line(&mut line).expect("read");
    assert!(line.contains("over a socket"), "{line}");
    drop(ours);
    assert_eq!(process.exit().status.code(), Some(0));
}

/// A log that cannot be written must not end the session.
#[test]
fn the_reader_of_the_log_may_leave() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = program(&["--log", "trace", "stdio"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(writer);
    let mut process = Process::spawn_redirected(command);
    process.start_reading();
    drop(reader);
    let mut client = Client::with(Version::Session("2025-06-18"), process);
    client.is_served();
    client.process.send_line("no message");
    client.next();
    client.is_served();
    client.process.close_input();
    assert_eq!(client.process.exit().status.code(), Some(0));
}

#[test]
fn an_empty_environment_is_enough() {
    let mut command = program(&["stdio"]);
    command.env_clear().current_dir("/");
    let mut client = Client::with(Version::Session("2025-06-18"), Process::spawn(command));
    client.is_served();
}
