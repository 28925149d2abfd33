//! The question before a file is written, at a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Command;
use std::sync::mpsc::channel;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

use super::serving::PATIENCE;
use super::{REFMCP, User};

/// Runs a command at a terminal where this is typed; its exit code and what the terminal shows.
fn at_terminal(user: &User, words: &[&str], typed: &str) -> (i32, String) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let slave = File::from(ioctl_tiocgptpeer(&master, flags).unwrap());
    // It makes the terminal the program's own and becomes the program.
    let mut command = Command::new("setsid");
    command.args(["--ctty", REFMCP]).args(words);
    let mut command = user.place(command);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut terminal = File::from(master);
    terminal.write_all(typed.as_bytes()).unwrap();
    let (send, output) = channel();
    std::thread::spawn(move || {
        let mut shown = Vec::new();
        let mut chunk = [0; 4096];
        // Reading fails when no program has the terminal open any more.
        while let Ok(count @ 1..) = terminal.read(&mut chunk) {
            shown.extend_from_slice(&chunk[..count]);
        }
        send.send(String::from_utf8_lossy(&shown).replace('\r', ""))
    });
    let shown = output.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        child.kill().unwrap();
        panic!("{words:?} does not end");
    });
    (child.wait().unwrap().code().unwrap_or(-1), shown)
}

#[test]
fn nothing_is_written_unless_the_answer_is_yes() {
    for (typed, code, end) in [
        ("y\n", 0, "written: .cursor/mcp.json"),
        ("what\nyes\n", 0, "written: .cursor/mcp.json"),
        ("n\n", 1, "nothing was written"),
        ("\n", 1, "nothing was written"),
        ("\x04", 1, "nothing was written"),
    ] {
        let user = User::at_work();
        let (came, shown) = at_terminal(&user, &["install", "cursor"], typed);
        assert!(came == code && shown.contains("+  \"mcpServers\": {\n"), "{typed:?}: {shown}");
        assert!(shown.contains("Write it? [y/N]: ") && shown.contains(end), "{typed:?}: {shown}");
        assert_eq!(user.path("work/.cursor/mcp.json").exists(), code == 0, "{typed:?}: {shown}");
    }
}

#[test]
fn nothing_is_taken_back_unless_the_answer_is_yes() {
    let user = User::at_work();
    user.done(&["install", "cursor", "--yes"]);
    let (code, shown) = at_terminal(&user, &["install", "cursor", "--undo"], "n\n");
    assert!(code == 1 && shown.contains("Take it back? [y/N]: "), "{shown}");
    assert!(user.path("work/.cursor/mcp.json").exists());
    let (code, shown) = at_terminal(&user, &["install", "cursor", "--undo"], "y\n");
    assert!(code == 0 && shown.contains("removed: .cursor/mcp.json"), "{shown}");
    assert!(!user.path("work/.cursor").exists());
}
