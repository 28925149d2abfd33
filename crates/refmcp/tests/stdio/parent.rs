//! A client that dies while another process still holds the server's input open.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::{Client, is_running, wait_for, wait_until};

/// Kills the holder of the pipe, and the server if it is still there.
struct Cleanup(Vec<u32>);

impl Drop for Cleanup {
    fn drop(&mut self) {
        for process in self.0.iter().filter(|process| is_running(**process)) {
            // It may end just now.
            let _ = Command::new("kill").args(["-9", &process.to_string()]).stderr(Stdio::null()).status();
        }
    }
}

#[test]
fn the_server_does_not_outlive_its_client() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str| dir.path().join(name);
    fs::write(file("opening"), Client::initialize("2025-06-18") + "\n").expect("written");
    // The client is a shell: it starts the server and something that holds the pipe, then ends once it is told to.
    let script = r#"
        mkfifo pipe
        sleep 600 > pipe 2> /dev/null < /dev/null &
        echo $! > holder
        "$0" stdio < pipe > answers 2> errors &
        echo $! > server
        cat opening > pipe
        read line
    "#;
    let mut shell = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_refmcp")])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("a shell starts");
    let read = |name: &str| fs::read_to_string(file(name)).ok().filter(|text| text.ends_with('\n'));
    let id = |name: &str| wait_for(name, || read(name)).trim().parse::<u32>().unwrap();
    let (holder, server) = (id("holder"), id("server"));
    let _cleanup = Cleanup(vec![holder, server]);
    wait_for("an answer", || read("answers"));
    assert!(is_running(server) && is_running(holder));

    shell.kill().expect("it ran");
    shell.wait().expect("it is our child");
    wait_until("the end of the server", || !is_running(server));
    assert!(is_running(holder), "the pipe was still open");
    assert_eq!(read("errors"), None, "nothing is said about it");
}
