//! What a recorded client sent, sent again.

use serde_json::Value;

use crate::support::{REFMCP, Server, User, wait_for};
use crate::{ASK, STDIO, record};

/// Replays against the reference server over stdio; nothing may differ.
fn is_same(user: &User, file: &str, requests: usize) {
    let ended = user.with(&["replay", file], &STDIO);
    let conclusion = format!("No difference: {requests} requests are the same.\n");
    assert!(ended.code == 0 && ended.out.ends_with(&conclusion), "{file}: {ended:?}");
}

#[test]
fn every_transport_is_replayed_over_every_other() {
    let server = Server::start(&[]);
    let targets = [("http", "/mcp"), ("sse+http", "/sse"), ("ws", "/mcp/ws")]
        .map(|(scheme, path)| format!("{scheme}://{}{path}", server.address));
    for version in ["2025-06-18", "2026-07-28"] {
        let user = User::new();
        record(&user, version, "stdio.jsonl");
        let mut files = vec!["stdio.jsonl"];
        let of_url = ["http.jsonl", "sse.jsonl", "ws.jsonl"];
        for (target, file) in targets.iter().zip(of_url) {
            // HTTP+SSE is of revisions with sessions.
            if version == "2025-06-18" || file != "sse.jsonl" {
                let words = [&["call", target][..], &ASK, &["--protocol-version", version, "--record", file]];
                assert_eq!(user.run(&words.concat()).code, 0, "{file}");
                files.push(file);
            }
        }
        for file in files {
            is_same(&user, file, if version == "2025-06-18" { 3 } else { 4 });
            for target in &targets {
                let ended = user.run(&["replay", file, target]);
                assert!(
                    ended.code == 0 && ended.out.contains("No difference: "),
                    "{file} {target}: {ended:?}"
                );
            }
        }
    }
}

#[test]
fn what_another_server_answers_is_told_by_pointers() {
    let user = User::new();
    record(&user, "2025-06-18", "a.jsonl");
    let other = [REFMCP, "stdio", "--name", "Other"];
    let ended = user.with(&["replay", "a.jsonl", "--record", "b.jsonl"], &other);
    assert_eq!(ended.code, 6, "{ended:?}");
    let change = "  ~ /result/serverInfo/name: \"RefMCP-TestServer\" -> \"Other\"\n";
    assert!(
        ended.out.starts_with("initialize: response changed from the server") && ended.out.contains(change)
    );
    let ended = user.with(&["replay", "a.jsonl", "--ignore", "/result/serverInfo/*"], &other);
    assert_eq!(ended.code, 0, "{ended:?}");
    let ended = user.run(&["replay", "a.jsonl", "--diff", "b.jsonl", "-o", "json"]);
    let found: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((ended.code, &found["conclusion"]), (6, &"different".into()), "{found}");
    let difference = &found["differences"][0];
    assert_eq!((&difference["request"], &difference["message"]), (&"initialize".into(), &"response".into()));
    assert_eq!(difference["changes"][0]["pointer"], "/result/serverInfo/name");
    let line = user.run(&["replay", "b.jsonl", "--diff", "b.jsonl", "-o", "jsonl"]);
    assert!(line.code == 0 && line.out.lines().count() == 1 && line.out.contains(r#""conclusion":"same""#));
}

#[test]
fn what_servers_relays_and_checks_record_is_replayed_too() {
    let user = User::new();
    let server = Server::start(&["--record", &user.word("server.jsonl")]);
    let target = format!("http://{}/mcp", server.address);
    for version in ["legacy", "modern"] {
        let words = [&["call", &target][..], &ASK, &["--protocol-version", version]].concat();
        assert_eq!(user.run(&words).code, 0);
    }
    wait_for("the end of the sessions", || {
        let text = user.read("server.jsonl");
        let count = |event: &str| text.matches(&format!("\"event\":\"{event}\"")).count();
        (count("opened") == count("closed")).then_some(())
    });
    let ended = user.run(&["replay", "server.jsonl", &target]);
    assert!(ended.code == 0 && ended.out.contains("No difference: "), "{ended:?}");
    let relay = [REFMCP, "relay", "--record", &user.word("relay.jsonl"), "--", REFMCP, "stdio"];
    assert_eq!(user.with(&[&["call"][..], &ASK].concat(), &relay).code, 0);
    is_same(&user, "relay.jsonl", 4);
    let checked = user.with(&["check", "--only", "TOOL-06", "--record", "check.jsonl"], &STDIO);
    assert_eq!(checked.code, 0, "{checked:?}");
    let text = user.read("check.jsonl");
    assert!(text.contains("\"tools/list\"") && text.matches("\"opened\"").count() > 1, "{text}");
    assert_eq!(text.matches("\"opened\"").count(), text.matches("\"closed\"").count());
}

#[test]
fn a_bridge_records_both_sides_and_either_is_replayed() {
    let user = User::new();
    let bridge =
        [REFMCP, "bridge", "--record", &user.word("b.jsonl"), "--from", "stdio", "--", REFMCP, "stdio"];
    let words = [&["call"][..], &ASK, &["--protocol-version", "2025-06-18"]].concat();
    assert_eq!(user.with(&words, &bridge).code, 0);
    let text = user.read("b.jsonl");
    for side in ["client", "server"] {
        assert!(text.contains(&format!("\"side\":\"{side}\"")), "{text}");
        let ended = user.with(&["replay", "b.jsonl", "--side", side], &STDIO);
        assert!(matches!(ended.code, 0 | 6) && ended.out.contains("are the same"), "{side}: {ended:?}");
        assert!(!ended.out.contains("missing"), "{side}: {}", ended.out);
    }
}

#[test]
fn a_server_that_says_nothing_or_ends_is_not_waited_for_without_end() {
    let user = User::new();
    record(&user, "2025-06-18", "a.jsonl");
    let ended = user.with_script(&["replay", "a.jsonl", "--timeout", "1"], "cat > /dev/null");
    assert!(
        ended.code == 6 && ended.out.contains("initialize: response missing from the server"),
        "{ended:?}"
    );
    let ended = user.with_script(&["replay", "a.jsonl"], "exit 3");
    assert!(ended.code == 4 && ended.took.as_secs() < 20, "{ended:?}");
    let ended = user.run(&["replay", "a.jsonl", "http://127.0.0.1:9/mcp"]);
    assert!(ended.code == 4 && ended.took.as_secs() < 20, "{ended:?}");
}
