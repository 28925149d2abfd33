//! What the commands of both sides record over every transport is read and judged.

use serde_json::Value;

use crate::support::{Client, REFMCP, Server, User, Version, wait_for};

/// The report on a recording as JSON, once every connection in it is closed.
fn judged(user: &User, file: &str) -> Value {
    wait_for("the end of all connections", || {
        let text = user.read(file);
        let count = |event: &str| text.matches(&format!("\"event\":\"{event}\"")).count();
        (count("opened") > 0 && count("opened") == count("closed")).then_some(())
    });
    let ended = user.run(&["report", file, "-o", "json"]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{file}: {}", ended.out);
    serde_json::from_str(&ended.out).unwrap()
}

/// What a party was seen to do with a feature.
fn support<'a>(judgement: &'a Value, feature: &str, party: &str) -> &'a Value {
    let features = judgement["features"].as_array().unwrap();
    &features.iter().find(|it| it["feature"] == feature).unwrap()[party]
}

fn check(report: &Value, transport: &str, recorded_by: &str) {
    let judgement = &report["judgements"][0];
    assert_eq!((&judgement["transport"], &judgement["recordedBy"]), (&transport.into(), &recorded_by.into()));
    for (party, name) in [("client", "refmcp "), ("server", "RefMCP-TestServer ")] {
        let said = judgement[party].as_str().unwrap();
        assert!(said.starts_with(name), "{said} over {transport}");
        assert_eq!(support(judgement, "tools", party), "used", "{party} over {transport}");
        let is_kept = |rule: &&Value| rule["party"] == party && rule["outcome"] == "kept";
        assert!(judgement["rules"].as_array().unwrap().iter().any(|rule| is_kept(&rule)), "{party}");
    }
    assert_eq!(report["conclusion"], "kept");
}

#[test]
fn both_sides_of_stdio() {
    let user = User::new();
    let theirs = user.word("server.jsonl");
    let words = ["call", "long_task", "steps=2", "step_ms=1", "--record", "client.jsonl"];
    let came = user.with(&words, &[REFMCP, "stdio", "--record", &theirs]);
    assert_eq!(came.code, 0, "{came:?}");
    check(&judged(&user, "client.jsonl"), "stdio", "client");
    check(&judged(&user, "server.jsonl"), "stdio", "server");
}

#[test]
fn both_sides_of_each_transport_over_http() {
    for version in ["legacy", "modern"] {
        for (scheme, path, transport) in
            [("http", "/mcp", "http"), ("ws", "/mcp/ws", "websocket"), ("sse+http", "/sse", "http+sse")]
        {
            if transport == "http+sse" && version == "modern" {
                continue;
            }
            let user = User::new();
            let theirs = user.word("server.jsonl");
            let server = Server::start(&["--record", &theirs]);
            let target = format!("{scheme}://{}{path}", server.address);
            let words = ["call", &target, "long_task", "steps=2", "step_ms=1", "--protocol-version", version];
            let came = user.run(&[&words[..], &["--record", "client.jsonl"]].concat());
            assert_eq!(came.code, 0, "{came:?}");
            check(&judged(&user, "client.jsonl"), transport, "client");
            check(&judged(&user, "server.jsonl"), transport, "server");
        }
    }
}

#[test]
fn input_that_is_no_message_and_refusals_are_read_too() {
    let user = User::new();
    let theirs = user.word("server.jsonl");
    let server = Server::start(&["--record", &theirs]);
    let target = format!("http://{}/mcp", server.address);
    assert_eq!(user.run(&["info", &target, "-H", "Origin: https://evil.example"]).code, 4);
    wait_for("the refusal", || user.read("server.jsonl").contains("\"event\":\"refused\"").then_some(()));
    let ended = user.run(&["report", "server.jsonl", "-o", "html"]);
    assert!(ended.out.contains("the server refuses with 403 (origin)"), "{ended:?}");

    let script = "printf 'no \\033[31mmessage \\377\\n'; echo oops >&2; read line";
    let came = user.with_script(&["info", "--record", "noisy.jsonl", "--timeout", "20"], script);
    assert_eq!(came.code, 4, "{came:?}");
    let ended = user.run(&["report", "noisy.jsonl", "--party", "server"]);
    assert_eq!(ended.code, 6, "{ended:?}");
    assert!(ended.out.contains("\n  RPC-01  must, server\n"), "{}", ended.out);
    assert!(!ended.out.contains('\x1b'), "{}", ended.out);
}

#[test]
fn several_recordings_are_judged_together() {
    let user = User::new();
    for file in ["one.jsonl", "two.jsonl"] {
        assert_eq!(user.with_stdio(&["list", "tools", "--record", file]).code, 0);
    }
    let out = user.done(&["report", "one.jsonl", "two.jsonl", "-o", "json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    let files: Vec<&Value> = report["recordings"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(files, ["one.jsonl", "two.jsonl"]);
    assert_eq!(report["judgements"].as_array().unwrap().len(), 1);
}

#[test]
#[cfg(unix)]
fn processes_that_record_into_one_file_are_told_apart() {
    let user = User::new();
    let file = user.word("shared.jsonl");
    let start = || Client::start(Version::Session("2025-06-18"), &["--record", &file]);
    let mut clients = [start(), start()];
    for _ in 0..3 {
        clients.iter_mut().for_each(Client::is_served);
    }
    for mut client in clients {
        client.process.close_input();
        client.process.exit();
    }
    let report = judged(&user, "shared.jsonl");
    assert_eq!(report["conclusion"], "kept");
    let lines: Vec<Value> =
        user.read("shared.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: std::collections::BTreeSet<u64> =
        lines.iter().map(|line| line["connection"].as_u64().unwrap()).collect();
    assert_eq!((numbers.len(), numbers.first()), (2, Some(&1)), "{numbers:?}");
}
