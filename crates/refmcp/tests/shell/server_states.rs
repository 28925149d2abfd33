//! Servers that come from configuration files, that die and come back, and what `servers` says of them.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use refmcp_testkit::ports::free_port;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{children_of, signal};
use crate::{REFMCP, in_folder, total};
use crate::{shell, shell_with_server};

/// Writes one of the usual files of this person.
fn configured(folder: &Path, servers: &Value) {
    std::fs::create_dir_all(folder.join(".cursor")).unwrap();
    std::fs::write(folder.join(".cursor/mcp.json"), json!({ "mcpServers": servers }).to_string()).unwrap();
}

fn script(folder: &Path, options: &[&str], lines: &str) -> Output {
    let mut command = Command::new(REFMCP);
    command.arg("shell").args(options);
    let mut command = in_folder(command, folder);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // One that ends at once reads nothing.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A server at this port, once it listens.
fn serve(port: u16) -> Child {
    let mut command = Command::new(REFMCP);
    command.args(["serve", "--output", "json", "--port", &port.to_string()]).env_remove("REFMCP_LOG");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("streamableHttp"), "{line}");
    child
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn without_targets_the_usual_files_name_the_servers() {
    let folder = tempdir().unwrap();
    let stdio = json!({ "command": REFMCP, "args": ["stdio"] });
    let off = json!({ "command": REFMCP, "args": ["stdio"], "disabled": true });
    let broken = json!({ "command": folder.path().join("no-such-program") });
    configured(folder.path(), &json!({ "one": stdio, "off": off, "broken": broken }));
    let mut terminal = shell(folder.path(), &[]);
    // Nothing of a file is started without consent.
    for _ in 0..2 {
        terminal.expect("is started by this command:");
        terminal.expect("Start it? [yes, always, No]");
        terminal.enter("y");
    }
    terminal.expect("refmcp> ");
    terminal.enter("servers");
    terminal.expect("failed: ");
    terminal.expect("refmcp> ");
    terminal.enter("sum a=1 b=2");
    terminal.expect(&total(3));
    terminal.expect("refmcp> ");
    terminal.enter("connect off");
    terminal.expect("off is disabled");
    terminal.expect("refmcp> ");
    terminal.enter("connect nowhere");
    terminal.expect("no server is called \"nowhere\"");
    terminal.expect("refmcp> ");
    // It dies, that is told at once, and it can be brought back by its name.
    let child = children_of(terminal.id())[0];
    signal("KILL", child);
    terminal.expect("[one] is gone: ");
    terminal.enter("servers");
    terminal.expect("failed: ");
    let rest = terminal.expect("refmcp> ");
    assert!(rest.contains("signal 9") && !rest.contains("nowhere"), "{rest}");
    terminal.enter("sum a=1 b=2");
    terminal.expect("no server is connected");
    terminal.expect("refmcp> ");
    terminal.enter("connect one");
    terminal.expect("Start it? [yes, always, No]");
    terminal.enter("y");
    terminal.expect("refmcp> ");
    terminal.enter("one.sum a=2 b=2");
    terminal.expect(&total(4));
    terminal.expect("refmcp> ");
    terminal.enter("disconnect one");
    terminal.expect("refmcp> ");
    terminal.enter("servers");
    terminal.expect("disconnected");
}

#[test]
fn a_person_who_agrees_to_nothing_can_still_connect() {
    let folder = tempdir().unwrap();
    configured(folder.path(), &json!({ "one": { "command": REFMCP, "args": ["stdio", "--name", "x"] } }));
    let mut terminal = shell(folder.path(), &[]);
    terminal.expect("Start it?");
    terminal.enter("n");
    terminal.expect("to connect: connect TARGET");
    terminal.expect("> ");
    terminal.enter(&format!("connect {REFMCP} stdio"));
    terminal.expect("> ");
    terminal.enter("refmcp.sum a=1 b=2");
    terminal.expect(&total(3));
}

#[test]
fn secrets_of_a_command_are_shown_on_request() {
    let folder = tempdir().unwrap();
    let args = ["-c", "exec \"$0\" stdio", REFMCP, "--token", "hush"];
    configured(folder.path(), &json!({ "one": { "command": "sh", "args": args } }));
    let mut terminal = shell(folder.path(), &[]);
    let shown = terminal.expect("Start it? [yes, always, show its secrets, No]");
    assert!(shown.contains("--token ***") && !shown.contains("hush"), "{shown}");
    terminal.enter("s");
    terminal.expect("--token hush");
    terminal.expect("Start it? [yes, always, No]");
    terminal.enter("y");
    terminal.expect("one> ");
}

#[test]
fn what_was_typed_is_kept_without_the_secrets_of_targets() {
    let folder = tempdir().unwrap();
    let mut terminal = shell_with_server(folder.path(), &[]);
    let closed = format!("127.0.0.1:{}", free_port());
    terminal.enter(&format!("connect http://{closed}/?key=hush"));
    terminal.expect("cannot reach the server");
    terminal.expect("refmcp> ");
    terminal.enter("history");
    let shown = terminal.expect("/?key=***");
    assert!(!shown.contains("hush"), "{shown}");
    terminal.expect("refmcp> ");
    let kept = std::fs::read_to_string(folder.path().join("state/history")).unwrap();
    assert!(
        kept.contains(&format!("connect 'http://{closed}/?key=***'")) && !kept.contains("hush"),
        "{kept}"
    );
}

#[test]
fn known_secrets_and_masked_arguments_are_not_kept() {
    let folder = tempdir().unwrap();
    let server = ["--", "API_KEY=hush-hush-1", REFMCP, "stdio"];
    let mut terminal = shell(folder.path(), &server);
    terminal.expect("refmcp> ");
    terminal.enter("echo message=hush-hush-1");
    terminal.expect("hush-hush-1\n");
    terminal.expect("refmcp> ");
    terminal.enter("exit");
    assert!(terminal.ended().success());
    let mut terminal = shell(folder.path(), &[&["--mask-arguments"][..], &server].concat());
    terminal.expect("refmcp> ");
    terminal.enter("sum a=1 b=2");
    terminal.expect(&total(3));
    terminal.expect("refmcp> ");
    // What was typed can still be had back in this session.
    terminal.press("\x1b[A");
    terminal.expect("sum a=1 b=2");
    terminal.enter("");
    terminal.expect(&total(3));
    terminal.expect("refmcp> ");
    terminal.enter("history");
    terminal.expect("call sum a=*** b=***");
    terminal.expect("refmcp> ");
    let kept = std::fs::read_to_string(folder.path().join("state/history")).unwrap();
    assert_eq!(kept, "echo message=***\nexit\ncall sum a=*** b=***\nhistory\n");
}

#[test]
fn an_address_that_is_connected_is_not_connected_twice() {
    let folder = tempdir().unwrap();
    let port = free_port();
    let server = serve(port);
    let target = format!("http://127.0.0.1:{port}/mcp");
    let output = script(folder.path(), &[&target], &format!("connect {target}\nservers\n"));
    let (said, complaints) = (text(&output.stdout), text(&output.stderr));
    end(server);
    assert_eq!(output.status.code(), Some(0), "{complaints}");
    assert!(complaints.contains("is connected already; to connect again: connect 127.0.0.1"), "{complaints}");
    assert_eq!(said.lines().count(), 2, "{said}");
}

#[test]
fn a_script_uses_the_files_as_well() {
    let folder = tempdir().unwrap();
    let output = script(folder.path(), &[], "sum a=1 b=2\n");
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("missing: a target") && complaint.contains(".cursor/mcp.json"), "{complaint}");
    configured(folder.path(), &json!({ "one": { "command": REFMCP, "args": ["stdio"] } }));
    let output = script(folder.path(), &[], "sum a=1 b=2\n");
    assert!(text(&output.stderr).contains("the user cannot be asked"), "{output:?}");
    let output = script(folder.path(), &["--yes"], "sum a=1 b=2\ndisconnect one\nconnect one\nsum a=2 b=2\n");
    assert_eq!(text(&output.stdout), format!("{}\n{}\n", total(3), total(4)), "{output:?}");
    // A name of the files can be connected beside a server that was named.
    let output = script(folder.path(), &["--yes", "--", REFMCP, "stdio"], "connect one\none.sum a=1 b=1\n");
    assert_eq!(text(&output.stdout), format!("{}\n", total(2)), "{output:?}");
}

#[test]
fn what_is_wrong_with_a_file_is_said_once_and_where_it_matters() {
    let folder = tempdir().unwrap();
    let stdio = json!({ "command": REFMCP, "args": ["stdio"] });
    configured(folder.path(), &json!({ "one": stdio, "two": stdio, "bad": { "command": "x", "args": "y" } }));
    let output = script(folder.path(), &["--yes"], "one.sum a=1 b=2\nconnect two\n");
    assert_eq!(text(&output.stderr).matches("must be a list of strings").count(), 1, "{output:?}");
    let output = script(folder.path(), &["--", REFMCP, "stdio"], "sum a=1 b=2\n");
    assert_eq!(text(&output.stderr), "", "{output:?}");
}

#[test]
fn what_servers_write_to_stderr_is_hidden_until_they_fail() {
    let folder = tempdir().unwrap();
    let hide = |program: &'static str| ["--server-stderr", "hide", "--", "sh", "-c", program, REFMCP];
    let chatter = hide("echo chatter >&2; exec \"$0\" stdio");
    let output = script(folder.path(), &chatter, "sum a=1 b=2\n");
    assert_eq!((text(&output.stdout), text(&output.stderr)), (format!("{}\n", total(3)).as_str(), ""));
    let output = script(folder.path(), &hide("echo no database >&2; exit 1"), "");
    assert!(text(&output.stderr).contains("it last wrote: no database"), "{output:?}");
}

#[test]
fn states_and_errors_are_documents() {
    let folder = tempdir().unwrap();
    let closed = format!("127.0.0.1:{}", free_port());
    let target = format!("http://{closed}/mcp");
    let options = ["-o", "json", &target, "--", REFMCP, "stdio"];
    let output = script(folder.path(), &options, "servers\nno_such_tool\n");
    let servers: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&servers[0]["state"], &servers[1]["state"]), (&json!("failed"), &json!("connected")));
    assert!(servers[0]["reason"].as_str().unwrap().contains("cannot reach"), "{servers}");
    assert_eq!(servers[1]["reason"], Value::Null);
    let errors: Vec<Value> =
        text(&output.stderr).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reasons: Vec<&Value> = errors.iter().map(|error| &error["error"]["reason"]).collect();
    assert_eq!(reasons, [&json!("unreachable"), &json!("usage")], "{errors:?}");
}

#[test]
fn a_server_at_an_address_is_missed_at_once_and_found_again() {
    let folder = tempdir().unwrap();
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let server = serve(port);
    let target = format!("http://{address}/mcp");
    let mut terminal = shell(folder.path(), &[&target]);
    let prompt = format!("{address}> ");
    terminal.expect(&prompt);
    terminal.enter("servers");
    terminal.expect("connected");
    terminal.expect(&prompt);
    end(server);
    terminal.expect(&format!("[{address}] does not answer: "));
    terminal.enter("servers");
    terminal.expect("unreachable: ");
    terminal.expect(&prompt);
    let server = serve(port);
    terminal.expect(&format!("[{address}] answers again"));
    terminal.enter("servers");
    terminal.expect("connected");
    terminal.expect(&prompt);
    // By the name that the session has for it, though it looks like half an address.
    terminal.enter(&format!("connect {address}"));
    terminal.expect(&prompt);
    terminal.enter("sum a=1 b=2");
    terminal.expect(&total(3));
    terminal.expect(&prompt);
    terminal.enter("servers");
    let shown = terminal.expect(&prompt);
    assert!(!shown.contains(&format!("{address}-2")), "{shown}");
    end(server);
}

/// It was connected, and is not any more: that it were connected already would be wrong.
#[test]
fn an_address_that_became_unreachable_is_connected_again() {
    let folder = tempdir().unwrap();
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let server = serve(port);
    let target = format!("http://{address}/mcp");
    let mut terminal = shell(folder.path(), &[&target]);
    terminal.expect(&format!("{address}> "));
    end(server);
    terminal.expect(&format!("[{address}] does not answer: "));
    // What the notice says may have the word "error:" in it, too.
    terminal.expect("it is tried again");
    terminal.enter(&format!("connect {target}"));
    terminal.expect("error: ");
    let server = serve(port);
    terminal.enter(&format!("connect {target}"));
    terminal.expect(&format!("[{address}] connected to "));
    end(server);
}

/// Over HTTP the end of the stream that belongs to no request tells of it; with the other transports the connection.
#[test]
fn the_end_of_a_server_with_sessions_is_noticed_at_the_prompt() {
    for (scheme, path, noticed, state) in [
        ("http", "/mcp", "does not answer: ", "unreachable: "),
        ("sse+http", "/sse", "is gone: ", "failed: "),
        ("ws", "/mcp/ws", "is gone: ", "failed: "),
    ] {
        let folder = tempdir().unwrap();
        let port = free_port();
        let address = format!("127.0.0.1:{port}");
        let server = serve(port);
        let target = format!("{scheme}://{address}{path}");
        let mut terminal = shell(folder.path(), &["--era", "legacy", &target]);
        let prompt = format!("{address}> ");
        terminal.expect(&prompt);
        // The session is open once a request was answered; one that is lost before is given up.
        terminal.enter("list resources");
        terminal.expect("todo.txt");
        terminal.expect(&prompt);
        end(server);
        let notice = format!("[{address}] {noticed}");
        terminal.expect(&notice);
        terminal.enter("servers");
        let shown = terminal.expect(state);
        assert!(!shown.contains(&notice), "it is said once: {shown}");
        terminal.expect(&prompt);
        let server = serve(port);
        if scheme == "http" {
            terminal.expect(&format!("[{address}] the session was lost and opened anew"));
            terminal.enter("servers");
            terminal.expect("connected");
            terminal.expect(&prompt);
        }
        terminal.enter(&format!("connect {address}"));
        terminal.expect(&prompt);
        terminal.enter("sum a=1 b=2");
        terminal.expect(&total(3));
        end(server);
    }
}
