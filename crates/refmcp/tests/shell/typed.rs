//! One server, typed at.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::tempdir;

use crate::screen::{Screen, children_of, is_running};
use crate::serving::Server;
use crate::{REFMCP, in_folder, total};

#[test]
fn words_are_completed_and_tools_are_called() {
    let folder = tempdir().unwrap();
    let mut screen = Screen::with_server(folder.path(), &[]);
    screen.press("ech\t");
    screen.expect("echo ");
    screen.press("m\t");
    screen.expect("message=");
    screen.enter("'good day'");
    screen.expect("'good day'\n");
    screen.expect("good day\n");
    screen.expect("refmcp> ");
    screen.enter("sum a=40 b=2");
    screen.expect(&total(42));
    screen.expect("refmcp> ");
    screen.enter("sum a=40");
    screen.expect("b, a number");
    screen.enter("3");
    screen.expect(&total(43));
}

#[test]
fn the_server_completes_the_arguments_of_its_prompts_and_templates() {
    let folder = tempdir().unwrap();
    let mut screen = Screen::with_server(folder.path(), &[]);
    screen.press("/code_r\t");
    screen.expect("/code_review ");
    screen.press("code=x lang\t");
    screen.expect("language=");
    screen.press("rus\t");
    screen.expect("language=rust ");
    screen.enter("");
    screen.expect("Please review this rust code");
    screen.expect("refmcp> ");
    screen.press("read memos shelf=tr\t");
    screen.expect("shelf=travel ");
    screen.press("name=qu\t");
    screen.expect("name=quito ");
    screen.enter("");
    screen.expect("The memo \"quito\" from the shelf \"travel\"");
}

#[test]
fn ctrl_c_ends_the_call_and_not_the_session() {
    let folder = tempdir().unwrap();
    let mut screen = Screen::with_server(folder.path(), &[]);
    screen.enter("long_task steps=1000 step_ms=50 tag=mine");
    screen.expect("step 2 of 1000");
    screen.press("\x03");
    screen.expect("cancelled");
    screen.expect("refmcp> ");
    screen.enter("cancellations tag=mine");
    screen.expect("cancelledAt");
    screen.expect("refmcp> ");
    // At the prompt it clears the line.
    screen.press("sum a=1 b=\x03");
    screen.expect("refmcp> ");
    screen.enter("sum a=2 b=5");
    screen.expect(&total(7));
}

#[test]
fn changes_are_shown_as_they_come() {
    let folder = tempdir().unwrap();
    let mut screen = Screen::with_server(folder.path(), &["--yes"]);
    screen.enter("add_tool name=newcomer");
    screen.expect("[refmcp] the tools have changed");
    screen.enter("newcomer");
    screen.expect("This is newcomer");
    screen.enter("level debug");
    screen.enter("log_all");
    screen.expect("[refmcp] ");
    screen.expect("emergency");
}

#[test]
fn changes_are_shown_above_the_line_that_is_being_typed() {
    for era in ["modern", "legacy"] {
        let folder = tempdir().unwrap();
        let server = Server::start(&[]);
        let url = format!("http://{}/mcp", server.address);
        let mut screen = Screen::shell(folder.path(), &["--protocol-version", era, &url]);
        let prompt = format!("{}> ", server.address);
        screen.expect(&prompt);
        screen.enter("subscribe file:///resources/notes.txt");
        screen.expect(&prompt);
        screen.press("sum a=1 b=");
        screen.expect("sum a=1 b=");
        let changed = format!("[{}] changed: file:///resources/notes.txt", server.address);
        screen.expect_while(&changed, || touch(folder.path(), &url));
        screen.expect("sum a=1 b=");
        screen.enter("4");
        screen.expect(&total(5));
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
    let mut screen = Screen::with_server(folder.path(), &[]);
    screen.enter("sum a=20 b=1");
    screen.expect(&total(21));
    screen.expect("refmcp> ");
    screen.enter(" sum a=20 b=2");
    screen.expect(&total(22));
    screen.expect("refmcp> ");
    screen.enter("exit");
    assert!(screen.ended().success());
    let file = folder.path().join("state/history");
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "sum a=20 b=1\nexit\n",
        "a space in front hides a line"
    );
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let mut screen = Screen::with_server(folder.path(), &[]);
    screen.press("\x1b[A\x1b[A");
    screen.expect("sum a=20 b=1");
    screen.enter("0");
    screen.expect(&total(30));
    screen.expect("refmcp> ");
    screen.enter("history");
    screen.expect("sum a=20 b=1\nexit\nsum a=20 b=10\n");
}

#[test]
fn ctrl_d_ends_in_order() {
    let folder = tempdir().unwrap();
    let mut screen = Screen::with_server(folder.path(), &[]);
    let children = children_of(screen.id());
    assert_eq!(children.len(), 1);
    screen.press("\x04");
    assert_eq!(screen.ended().code(), Some(0));
    assert!(screen.is_as_before());
    assert!(!children.into_iter().any(is_running), "nothing is left behind");
}

#[test]
fn being_told_to_end_ends_the_server_too() {
    let folder = tempdir().unwrap();
    let mut screen = Screen::with_server(folder.path(), &[]);
    let children = children_of(screen.id());
    assert!(!screen.is_as_before(), "keys are read one by one");
    send("TERM", screen.id());
    assert_eq!(screen.ended().code(), Some(143));
    assert!(screen.is_as_before());
    assert!(!children.into_iter().any(is_running), "nothing is left behind");
}

#[test]
fn a_server_that_dies_can_be_connected_again() {
    let folder = tempdir().unwrap();
    let mut screen = Screen::with_server(folder.path(), &[]);
    for child in children_of(screen.id()) {
        send("KILL", child);
    }
    screen.expect("[refmcp] is gone");
    screen.enter("sum a=1 b=2");
    screen.expect("error:");
    screen.expect("refmcp> ");
    screen.enter("connect refmcp");
    screen.expect("refmcp> ");
    screen.enter("sum a=1 b=2");
    screen.expect(&total(3));
}

fn send(signal: &str, process: u32) {
    let sent = Command::new("kill").args(["-s", signal, &process.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// A server that answers what nobody asked, once somebody has written to a pipe.
const MUDDLED: &str = r#"
read -r hello
id=$(printf '%s' "$hello" | sed 's/.*"id":\([^,}]*\).*/\1/')
printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},' "$id"
printf '"serverInfo":{"name":"muddled","version":"1"}}}\n'
cat "$1" > /dev/null
printf '{"jsonrpc":"2.0","id":"nobody asked","result":{}}\n'
cat > /dev/null
"#;

#[test]
fn what_is_logged_is_shown_above_the_line_that_is_typed() {
    let folder = tempdir().unwrap();
    let (script, pipe) = (folder.path().join("muddled.sh"), folder.path().join("pipe"));
    std::fs::write(&script, MUDDLED).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let words = [script.to_str().unwrap(), pipe.to_str().unwrap()];
    let options = ["--log", "info", "--protocol-version", "legacy", "--", "sh", words[0], words[1]];
    let mut screen = Screen::shell(folder.path(), &options);
    screen.expect("muddled> ");
    screen.press("servers");
    screen.expect("servers");
    std::fs::write(&pipe, "go").unwrap();
    screen.expect("INFO");
    screen.expect("the server: ");
    // The line is drawn again below.
    screen.expect("muddled> servers");
    screen.enter("");
    screen.expect("connected");
}
