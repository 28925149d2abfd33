//! One server, typed at.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::tempdir;

use crate::support::{Server, children_of, is_running, signal};
use crate::{REFMCP, in_folder, shell, shell_with_script, shell_with_server, total};

#[test]
fn words_are_completed_and_tools_are_called() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    terminal.press("ech\t");
    terminal.expect("echo ");
    terminal.press("m\t");
    terminal.expect("message=");
    terminal.enter("'good day'");
    terminal.expect("'good day'\n");
    terminal.expect("good day\n");
    terminal.expect("refmcp> ");
    terminal.enter("sum a=40 b=2");
    terminal.expect(&total(42));
    terminal.expect("refmcp> ");
    terminal.enter("sum a=40");
    terminal.expect("b, a number");
    terminal.enter("3");
    terminal.expect(&total(43));
}

#[test]
fn the_server_completes_the_arguments_of_its_prompts_and_templates() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    terminal.press("/code_r\t");
    terminal.expect("/code_review ");
    terminal.press("code=x lang\t");
    terminal.expect("language=");
    terminal.press("rus\t");
    terminal.expect("language=rust ");
    terminal.enter("");
    terminal.expect("Please review this rust code");
    terminal.expect("refmcp> ");
    terminal.press("read memos shelf=tr\t");
    terminal.expect("shelf=travel ");
    terminal.press("name=qu\t");
    terminal.expect("name=quito ");
    terminal.enter("");
    terminal.expect("The memo \"quito\" from the shelf \"travel\"");
}

#[test]
fn ctrl_c_ends_the_call_and_not_the_session() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    terminal.enter("long_task steps=1000 step_ms=50 tag=mine");
    terminal.expect("step 2 of 1000");
    terminal.press("\x03");
    terminal.expect("cancelled");
    terminal.expect("refmcp> ");
    terminal.enter("cancellations tag=mine");
    terminal.expect("cancelledAt");
    terminal.expect("refmcp> ");
    // At the prompt it clears the line.
    terminal.press("sum a=1 b=\x03");
    terminal.expect("refmcp> ");
    terminal.enter("sum a=2 b=5");
    terminal.expect(&total(7));
}

#[test]
fn changes_are_shown_as_they_come() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &["--yes"]);
    terminal.enter("add_tool name=newcomer");
    terminal.expect("[refmcp] the tools have changed");
    terminal.enter("newcomer");
    terminal.expect("This is newcomer");
    terminal.enter("level debug");
    terminal.enter("log_all");
    terminal.expect("[refmcp] ");
    terminal.expect("emergency");
}

#[test]
fn changes_are_shown_above_the_line_that_is_being_typed() {
    for version in ["modern", "legacy"] {
        let folder = tempdir().unwrap();
        let server = Server::start(&[]);
        let url = format!("http://{}/mcp", server.address);
        let mut terminal = shell(folder.path(), &["--protocol-version", version, &url]);
        let prompt = format!("{}> ", server.address);
        terminal.expect(&prompt);
        terminal.enter("subscribe file:///resources/notes.txt");
        terminal.expect(&prompt);
        terminal.press("sum a=1 b=");
        terminal.expect("sum a=1 b=");
        let changed = format!("[{}] changed: file:///resources/notes.txt", server.address);
        terminal.expect_while(&changed, || touch(folder.path(), &url));
        terminal.expect("sum a=1 b=");
        terminal.enter("4");
        terminal.expect(&total(5));
    }
}

/// Lets another client change a resource.
fn touch(folder: &Path, url: &str) {
    let mut command = Command::new(REFMCP);
    command.args(["call", "--yes", url, "touch_resource", "uri=file:///resources/notes.txt"]);
    let output = in_folder(command, folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_was_typed_is_there_the_next_time() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    terminal.enter("sum a=20 b=1");
    terminal.expect(&total(21));
    terminal.expect("refmcp> ");
    terminal.enter(" sum a=20 b=2");
    terminal.expect(&total(22));
    terminal.expect("refmcp> ");
    terminal.enter("exit");
    assert!(terminal.ended().success());
    let file = folder.path().join("state/history");
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "sum a=20 b=1\nexit\n",
        "a space in front hides a line"
    );
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let mut terminal = shell_with_server(folder.path(), &[]);
    terminal.press("\x1b[A\x1b[A");
    terminal.expect("sum a=20 b=1");
    terminal.enter("0");
    terminal.expect(&total(30));
    terminal.expect("refmcp> ");
    terminal.enter("history");
    terminal.expect("sum a=20 b=1\nexit\nsum a=20 b=10\n");
}

#[test]
fn ctrl_d_ends_in_order() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    let children = children_of(terminal.id());
    assert_eq!(children.len(), 1);
    terminal.press("\x04");
    assert_eq!(terminal.ended().code(), Some(0));
    assert!(terminal.is_cooked());
    assert!(!children.into_iter().any(is_running), "nothing is left behind");
}

#[test]
fn sigterm_ends_the_server_too() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    let children = children_of(terminal.id());
    assert!(!terminal.is_cooked(), "keys are read one by one");
    signal("TERM", terminal.id());
    assert_eq!(terminal.ended().code(), Some(143));
    assert!(terminal.is_cooked());
    assert!(!children.into_iter().any(is_running), "nothing is left behind");
}

#[test]
fn a_server_that_dies_can_be_connected_again() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    for child in children_of(terminal.id()) {
        signal("KILL", child);
    }
    terminal.expect("[refmcp] is gone");
    terminal.enter("sum a=1 b=2");
    terminal.expect("error:");
    terminal.expect("refmcp> ");
    terminal.enter("connect refmcp");
    terminal.expect("refmcp> ");
    terminal.enter("sum a=1 b=2");
    terminal.expect(&total(3));
}

/// A server that sends a response without a request, once a line is written to a pipe.
const MUDDLED: &str = r#"
read -r hello
id=$(printf '%s' "$hello" | sed 's/.*"id":\([^,}]*\).*/\1/')
printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},' "$id"
printf '"serverInfo":{"name":"muddled","version":"1"}}}\n'
cat "$1" > /dev/null
printf '{"jsonrpc":"2.0","id":"not requested","result":{}}\n'
cat > /dev/null
"#;

#[test]
fn what_is_logged_is_shown_above_the_line_that_is_typed() {
    let folder = tempdir().unwrap();
    let (mut terminal, pipe) = shell_with_script(folder.path(), &["--log", "info"], MUDDLED);
    terminal.expect("server> ");
    terminal.press("servers");
    terminal.expect("servers");
    std::fs::write(&pipe, "go").unwrap();
    terminal.expect("INFO");
    terminal.expect("server: it sent an answer");
    // The line is drawn again below.
    terminal.expect("server> servers");
    terminal.enter("");
    terminal.expect("connected");
}
