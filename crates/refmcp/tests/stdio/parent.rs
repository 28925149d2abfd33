//! A client that dies while another process still holds the server's input open.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Client, PATIENCE};

/// Waits until `ready` gives something.
fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process is there and not only waiting to be collected.
fn runs(process: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

/// Kills the holder of the pipe, and the server if it is still there.
struct Cleanup(Vec<String>);

impl Drop for Cleanup {
    fn drop(&mut self) {
        for process in self.0.iter().filter(|process| runs(process)) {
            // It may end just now.
            let _ = Command::new("kill").args(["-9", process]).stderr(Stdio::null()).status();
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
    let holder = wait_for("the holder", || read("holder")).trim().to_owned();
    let server = wait_for("the server", || read("server")).trim().to_owned();
    let _cleanup = Cleanup(vec![holder.clone(), server.clone()]);
    wait_for("an answer", || read("answers"));
    assert!(runs(&server) && runs(&holder));

    shell.kill().expect("it ran");
    shell.wait().expect("it is our child");
    wait_for("the end of the server", || (!runs(&server)).then_some(()));
    assert!(runs(&holder), "the pipe was still open");
    assert_eq!(read("errors"), None, "nothing is said about it");
}
