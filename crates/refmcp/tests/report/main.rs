//! `refmcp report`: verdicts on what the commands have recorded, in every format, and how the command ends.

#![cfg(unix)]

mod buggy_client;
mod by_default;
mod comparisons;
mod live;
mod recordings;
#[path = "../support/mod.rs"]
mod support;
mod tour;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;
use support::{Ended, User};

/// A session in which the client answers what was not asked.
const FAULTY: &str = concat!(
    r#"{"at":1,"event":"opened","connection":1,"side":"server","transport":"stdio","peer":""}"#,
    "\n",
    r#"{"at":2,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":7,"result":{"a":"\u001b[31m<b>"}}}"#,
    "\n",
);

/// Runs `report` on standard input.
fn piped(user: &User, words: &[&str], input: &str) -> Ended {
    let mut command = user.command(words);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_broken_rule_is_shown_and_is_an_exit_code_of_its_own() {
    let user = User::new();
    user.write("a.jsonl", FAULTY);
    let ended = user.run(&["report", "a.jsonl"]);
    assert_eq!((ended.code, ended.err.as_str()), (6, ""), "{ended:?}");
    assert!(ended.out.contains("\n  RPC-05  must, client\n"), "{}", ended.out);
    assert!(ended.out.contains("    at a.jsonl:2, connection 1\n"), "{}", ended.out);
    assert!(!ended.out.contains('\x1b'), "{}", ended.out);
    let ended = user.run(&["report", "a.jsonl", "--party", "server"]);
    assert_eq!(ended.code, 7, "the server did nothing: {ended:?}");
    let ended = piped(&user, &["report", "-"], FAULTY);
    assert!(ended.code == 6 && ended.out.contains("    at -:2, connection 1\n"), "{ended:?}");
}

#[test]
fn nothing_to_judge_is_never_success() {
    let user = User::new();
    user.write("empty.jsonl", "");
    for format in ["text", "json", "junit", "sarif", "html", "markdown"] {
        let ended = user.run(&["report", "empty.jsonl", "-o", format]);
        assert_eq!((ended.code, ended.err.as_str()), (7, ""), "{ended:?}");
        assert!(ended.out.contains("Nothing was judged") || ended.out.contains("nothingJudged"), "{ended:?}");
    }
}

#[test]
fn formats_are_printed_and_saved() {
    let user = User::new();
    user.write("a.jsonl", FAULTY);
    let formats = [
        ("text", "r.txt", "a.jsonl: 2 events"),
        ("json", "r.json", "{\n  \"refmcpReport\": 1,"),
        ("junit", "r.xml", "<?xml version=\"1.0\""),
        ("sarif", "r.sarif", "{\n  \"$schema\": "),
        ("html", "r.html", "<!doctype html>"),
        ("markdown", "r.md", "# Audit report"),
    ];
    let mut words = vec!["report", "a.jsonl"];
    formats.iter().for_each(|(_, file, _)| words.extend(["--save", file]));
    assert_eq!(user.run(&words).code, 6);
    let line = user.run(&["report", "a.jsonl", "-o", "jsonl"]).out;
    assert!(line.starts_with("{\"refmcpReport\":1,") && line.lines().count() == 1, "{line}");
    for (format, file, start) in formats {
        let printed = user.run(&["report", "a.jsonl", "-o", format]);
        assert_eq!(printed.code, 6, "{printed:?}");
        assert!(printed.out.starts_with(start), "{}", printed.out);
        assert_eq!(printed.out, user.read(file), "{format}");
        let mode = std::fs::metadata(user.path(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file}");
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let user = User::new();
    user.write("a.jsonl", FAULTY);
    user.write("no.jsonl", "{\"at\":1,\"event\":\"closed\",\"connection\":1}\nhello\n");
    for (words, why) in [
        (&["report", "there-is-none.jsonl"][..], "cannot read there-is-none.jsonl: "),
        (&["report", "no.jsonl"], "no.jsonl: line 2 of the recording is no event: "),
        (
            &["report", "a.jsonl", "--save", "report"],
            "the name of a report ends with .txt, .json, .xml, .sarif, .html or .md",
        ),
        (
            &["report", "a.jsonl", "--diff", "a.jsonl", "-o", "junit"],
            "--diff is written as text, json, jsonl or markdown",
        ),
        (&["report", "-", "--diff", "-"], "standard input can be read once"),
    ] {
        let ended = user.run(words);
        assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{words:?}: {ended:?}");
        assert!(ended.err.contains(why), "{words:?}: {}", ended.err);
    }
    let ended = user.run(&["report", "no.jsonl", "-o", "json"]);
    let error: Value = serde_json::from_str(&ended.err).unwrap();
    assert_eq!((&error["error"]["reason"], &error["error"]["exitCode"]), (&"failed".into(), &1.into()));
}

#[test]
fn a_recording_that_is_cut_off_is_judged_up_to_there() {
    let user = User::new();
    user.write("a.jsonl", &format!("{FAULTY}{{\"at\":3,\"ev"));
    let ended = user.run(&["report", "a.jsonl"]);
    assert_eq!(ended.code, 6, "{ended:?}");
    assert!(
        ended.out.starts_with("a.jsonl: 2 events; its last line is cut off and left out\n"),
        "{}",
        ended.out
    );
}
