//! `--diff`: a report against an earlier one.

use serde_json::Value;

use super::{FAULTY, User};

/// The same session without its fault.
fn good() -> String {
    let asked = r#"{"at":2,"event":"message","connection":1,"direction":"sent","message":{"jsonrpc":"2.0","id":7,"method":"acme/ask"}}"#;
    let mut lines = FAULTY.lines();
    format!("{}\n{asked}\n{}\n", lines.next().unwrap(), lines.next().unwrap())
}

#[test]
fn only_what_is_newly_broken_fails() {
    let user = User::new();
    user.write("good.jsonl", &good());
    user.write("bad.jsonl", FAULTY);
    for (file, report, code) in [("good.jsonl", "good.json", 0), ("bad.jsonl", "bad.json", 6)] {
        let ended = user.run(&["report", file, "--save", report]);
        assert_eq!(ended.code, code, "{ended:?}");
    }
    // Recordings and reports can stand on either side.
    for (now, before, code, said) in [
        ("bad.jsonl", "good.json", 6, "Newly broken: 1 rule\n  RPC-05 (must, client)\n"),
        ("bad.json", "good.jsonl", 6, "Newly broken: 1 rule\n  RPC-05 (must, client)\n"),
        ("good.jsonl", "bad.json", 0, "No longer broken: 1 rule\n  RPC-05 (must, client)\n"),
        ("bad.jsonl", "bad.json", 0, "Still broken: 1 rule\n  RPC-05 (must, client)\n"),
    ] {
        let ended = user.run(&["report", now, "--diff", before]);
        assert_eq!((ended.code, ended.err.as_str()), (code, ""), "{ended:?}");
        assert!(ended.out.contains(said), "{}", ended.out);
    }
    let out = user.run(&["report", "bad.jsonl", "--diff", "good.json", "-o", "json"]).out;
    let difference: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(difference["newlyBroken"][0]["id"], "RPC-05");
}

#[test]
fn a_report_stands_for_its_recordings() {
    let user = User::new();
    user.write("bad.jsonl", FAULTY);
    user.run(&["report", "bad.jsonl", "--save", "bad.json", "--save", "bad.md"]);
    let ended = user.run(&["report", "bad.json", "-o", "markdown"]);
    assert_eq!((ended.code, ended.out), (6, user.read("bad.md")));
    let ended = user.run(&["report", "bad.json", "bad.jsonl"]);
    assert!(ended.code == 1 && ended.err.contains("reports are not"), "{ended:?}");
    let newer = user.read("bad.json").replace("\"refmcpReport\": 1", "\"refmcpReport\": 9");
    user.write("newer.json", &newer);
    let ended = user.run(&["report", "newer.json"]);
    assert!(ended.code == 1 && ended.err.contains("newer.json: it is a report of version 9"), "{ended:?}");
}
