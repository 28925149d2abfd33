//! The question before a file is written, at a terminal.

use super::support::{Terminal, User};

/// Runs a command at a terminal where this is typed; its exit code and what the terminal shows.
fn at_terminal(user: &User, words: &[&str], typed: &str) -> (i32, String) {
    let mut command = user.command(words);
    let mut terminal = Terminal::start(command.env("TERM", "xterm").env("NO_COLOR", "1"), 160);
    terminal.press(typed);
    let status = terminal.ended();
    (status.code().unwrap_or(-1), terminal.all.clone())
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
