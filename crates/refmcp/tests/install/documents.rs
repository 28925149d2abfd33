//! `--output json` of `install` and `servers`, and of commands about logins.

use serde_json::{Value, json};

use super::{REFMCP, User};

fn document(user: &User, words: &[&str]) -> Value {
    let out = user.done(words);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words:?}: {error}: {out}"))
}

#[test]
fn a_change_is_one_document() {
    let user = User::at_work();
    let file = user.path("work").canonicalize().unwrap().join(".vscode/mcp.json");
    let entry = json!({"type": "stdio", "command": REFMCP, "args": ["stdio"]});
    let tried = document(&user, &["install", "vscode", "--dry-run", "-o", "json"]);
    assert_eq!((&tried["action"], &tried["written"]), (&json!("added"), &json!(false)), "{tried}");
    assert!(tried.get("undo").is_none() && !file.exists(), "{tried}");

    let added = document(&user, &["install", "vscode", "--yes", "-o", "json"]);
    let diff = added["diff"].as_str().unwrap();
    assert!(diff.starts_with("--- /dev/null\n+++ .vscode/mcp.json\n") && !diff.contains('\x1b'), "{diff}");
    let expected = json!({
        "host": "vscode", "file": file, "server": "refmcp", "action": "added", "written": true,
        "entry": entry, "diff": diff, "undo": "refmcp install vscode --undo",
    });
    assert_eq!(added, expected);

    let same = document(&user, &["install", "vscode", "--yes", "-o", "json"]);
    let expected = json!({
        "host": "vscode", "file": file, "server": "refmcp", "action": "unchanged", "written": false, "entry": entry,
    });
    assert_eq!(same, expected);

    let words = ["install", "vscode", "--yes", "--replace", "--name", "refmcp", "-ojson", "http://h/"];
    let replaced = document(&user, &words);
    assert_eq!(replaced["action"], "replaced", "{replaced}");
    assert_eq!(replaced["entry"], json!({"type": "http", "url": "http://h/"}), "{replaced}");

    let undone = document(&user, &["install", "vscode", "--undo", "--yes", "-o", "json"]);
    assert_eq!((&undone["action"], &undone["written"]), (&json!("restored"), &json!(true)), "{undone}");
    assert_eq!((&undone["server"], undone.get("entry")), (&json!("refmcp"), None), "{undone}");
    let line = user.done(&["install", "vscode", "--undo", "--yes", "-o", "jsonl"]);
    let removed: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((removed["action"].as_str(), line.lines().count()), (Some("removed"), 1), "{line}");
    assert!(!file.exists());
}

#[test]
fn a_refusal_is_one_document_on_stderr() {
    let user = User::at_work();
    for (words, reason) in [
        (&["install", "vscode", "--undo", "-o", "json"][..], "usage"),
        (&["install", "vscode", "-o", "json"], "usage"),
        (&["install", "emacs", "-o", "json"], "usage"),
    ] {
        let came = user.run(words);
        let error: Value = serde_json::from_str(&came.err).unwrap_or_else(|_| panic!("{came:?}"));
        assert_eq!((came.code, error["error"]["reason"].as_str()), (1, Some(reason)), "{came:?}");
        assert_eq!(came.out, "");
    }
}

#[test]
fn commands_without_messages_have_their_document_on_one_line_too() {
    let user = User::at_work();
    user.done(&["install", "cursor", "--yes"]);
    for (words, has) in [
        (&["servers", "-o", "jsonl"][..], "\"servers\""),
        (&["auth", "keyring", "-o", "jsonl"], "\"sealed\""),
        (&["auth", "logout", "http://127.0.0.1:1/mcp", "-o", "jsonl"], "\"forgotten\""),
        (&["trust", "allow", "-o", "jsonl", "--", "run"], "\"allowed\""),
    ] {
        let line = user.done(words);
        let value: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{words:?}: {line:?}"));
        assert!(value.is_object() && line.lines().count() == 1 && line.contains(has), "{words:?}: {line}");
    }
}
