//! Scripts: commands from a file, without a terminal.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use tempfile::tempdir;

use crate::{REFMCP, in_folder};

pub(crate) fn run(script: impl AsRef<[u8]>, options: &[&str]) -> Output {
    let folder = tempdir().unwrap();
    let mut command = Command::new(REFMCP);
    command.arg("shell").args(options).args(["--", REFMCP, "stdio"]);
    let mut command = in_folder(command, folder.path());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_ref()).unwrap();
    child.wait_with_output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_script_is_carried_out_and_nothing_of_it_repeated() {
    let script = "# sums\nsum a=40 b=2\n\nread memo://office/budget\nread memos shelf=travel name=oslo\n\
                  /code_review code=x language=go\nread memos shelf=travel name=quito";
    let output = run(script, &[]);
    let (said, complaints) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{complaints}");
    let expected = ["42", "\"budget\" from", "\"oslo\" from", "Please review this go code", "\"quito\" from"];
    let mut at = 0;
    for part in expected {
        let found = said[at..].find(part).unwrap_or_else(|| panic!("{part} in {said}"));
        at += found;
    }
    for absent in ["refmcp>", "read memos", "# sums"] {
        assert!(!said.contains(absent) && !complaints.contains(absent), "{said}{complaints}");
    }
}

#[test]
fn a_mistyped_command_is_corrected() {
    let output = run("hlep\nsrvers\necko\n", &[]);
    let said = text(&output.stderr);
    assert!(said.contains("no command and no tool \"hlep\"; did you mean help?"), "{said}");
    assert!(said.contains("did you mean servers?") && said.contains("did you mean \"echo\"?"), "{said}");
}

#[test]
fn json_needs_no_quotes() {
    let script = "json_schema_2020_12_tool email=a@b.c address:={\"street\": \"a b\", \"city\": \"c\"}\n\
                  json_schema_2020_12_tool email=a@b.c address={\"city\": \"d\"}\nsum --json {\"a\": 1, \"b\": 6}\n\
                  json_schema_2020_12_tool email=a@b.c address:={\"street\": a b}\necho message:=hi\n";
    let output = run(script, &[]);
    let (said, complaints) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{complaints}");
    for part in ["a b", "\"d\"", "{\"total\":7}"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert_eq!(complaints.matches("error:").count(), 2, "{complaints}");
    assert!(complaints.contains("address: is no JSON: expected value"), "{complaints}");
    assert!(complaints.contains("a text follows `=` instead of `:=`"), "{complaints}");
}

#[test]
fn what_stands_at_the_wrong_place_is_told_how_to_be_written() {
    for (line, hint) in [
        ("code_review code=x", "no tool \"code_review\"; it is a prompt: write /code_review"),
        ("/echo message=x", "no prompt \"echo\"; it is a tool: write echo"),
        ("file:///notes/todo.txt", "it is a resource: write read file:///notes/todo.txt"),
        (
            "help nosuch",
            "no command, tool, prompt, resource or template \"nosuch\"; `list` and `help` list them",
        ),
        ("help conect", "did you mean connect?"),
        ("help /code_reviev", "did you mean \"code_review\"?"),
        ("unsubscribe file:///notes/todo.txt", "refmcp has no subscription to file:///notes/todo.txt"),
    ] {
        let output = run(format!("{line}\n"), &[]);
        let complaints = text(&output.stderr);
        assert!(complaints.contains(hint), "{line}: {complaints}");
        assert_eq!(output.status.code(), Some(1), "{line}");
    }
}

#[test]
fn help_shows_what_servers_offer_as_well() {
    let output =
        run("help sum\nhelp /code_review\nhelp file:///notes/todo.txt\nhelp memos\nhelp call\n", &[]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for part in [
        "Adds two numbers",
        "The code to look over",
        "What is left to do",
        "memo://{shelf}/{name}",
        "Examples:",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn what_was_done_is_said_in_a_line() {
    let script = "subscribe file:///resources/notes.txt\nunsubscribe file:///resources/notes.txt\nlevel error\n\
                  model claude-v2\nroots / /usr\ndisconnect refmcp\nsum a=1 b=2\nconnect refmcp\n";
    let output = run(script, &[]);
    let said: Vec<&str> = text(&output.stderr).lines().collect();
    let expected = [
        "[refmcp] tells of changes of file:///resources/notes.txt",
        "[refmcp] no longer tells of changes of file:///resources/notes.txt",
        "[refmcp] sends log messages from error on",
        "[refmcp] claude-v2 is selected",
        "[refmcp] may ask for file:///, file:///usr",
        "[refmcp] disconnected",
        "error: no server is connected; to connect again: connect refmcp",
        concat!("[refmcp] connected to RefMCP-TestServer ", env!("CARGO_PKG_VERSION"), ", 2026-07-28"),
    ];
    assert_eq!(said, expected);
    assert_eq!(text(&output.stdout), "");
    let output = run("level error\n", &["-o", "json"]);
    assert_eq!(text(&output.stderr), "", "{output:?}");
}

#[test]
fn it_ends_as_the_last_command_that_failed() {
    for (script, code, complaint) in [
        ("sum a=1 b=2\n", 0, ""),
        ("fail\nsum a=1 b=2\n", 5, ""),
        ("fail\nnothing_like_it\n", 1, "nothing_like_it"),
        ("nothing_like_it\nfail\nexit\nsum a=1 b=2\n", 5, "nothing_like_it"),
        ("sum a=1\n", 1, "b"),
        ("read memos shelf=travel\n", 1, "name= is missing"),
        ("read memos planet=mars\n", 1, "it has shelf, name"),
        ("read memos shelf=.. name=x\n", 1, "memo://../x leads to another place"),
        ("read memos shelf=travel name=../x\n", 1, "memo://travel/..%2Fx"),
        ("echo message='open\n", 1, "is not closed"),
        ("disconnect refmcp\nsum a=1 b=1\n", 1, "no server is connected"),
        ("use other\n", 1, "no server is called \"other\""),
        ("\u{fffd}\n", 1, "\u{fffd}"),
    ] {
        let output = run(script, &[]);
        let complaints = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{script}: {complaints}");
        assert!(complaints.contains(complaint), "{script}: {complaints}");
    }
}

#[test]
fn a_line_that_is_no_text_does_not_end_it() {
    let output = run(b"sum a=1 b=\xff\nsum a=1 b=2\n", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("the line is no text"), "{output:?}");
    assert_eq!(text(&output.stdout), "{\"total\":3}\n");
}

#[test]
fn results_can_be_documents() {
    let output = run("sum a=40 b=2\nservers\nping\n", &["--output", "json"]);
    let documents = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<serde_json::Value>();
    let documents: Vec<serde_json::Value> = documents.collect::<Result<_, _>>().unwrap();
    assert_eq!(documents.len(), 3, "{documents:?}");
    assert_eq!(documents[1][0]["state"], "connected");
    assert_eq!(documents[2]["server"], "refmcp");
}

#[test]
fn options_can_be_changed_in_the_shell() {
    let script = "list_roots\nroots /\nroots\nlist_roots\nraw tools/call {\"name\": \"sum\", \"arguments\": {\"a\": 1, \"b\": 8}}\n\
                  tools\nresources\ntemplates\nprompts\ninfo\nhelp\nlevel debug\nlog_all\n";
    let output = run(script, &[]);
    let (said, complaints) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}{complaints}");
    for part in [
        "The client has no roots",
        "file://",
        "The client has one root",
        "\"total\": 9",
        "code_review",
        "memo://{shelf}",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(complaints.contains("[refmcp] ") && complaints.contains("emergency"), "{complaints}");
}
