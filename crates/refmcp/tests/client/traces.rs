//! `--record` on both sides of each transport: what one side sent the other received, with exact bytes.

use std::fs;

use serde_json::Value;

use crate::support::{REFMCP, Server, User, wait_for};

/// The lines of a trace.
fn lines(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// The messages that went this way, as they were written.
fn messages(path: &str, direction: &str) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let wanted = format!("\"direction\":\"{direction}\",\"message\":");
    let found = text.lines().filter_map(|line| line.split_once(&wanted));
    found.map(|(_, message)| message.strip_suffix('}').unwrap().to_owned()).collect()
}

/// Waits until every connection of the server's trace is closed, and compares.
fn compare(ours: &str, theirs: &str, what: &str) {
    let count = |event: &str| lines(theirs).iter().filter(|line| line["event"] == event).count();
    wait_for("the end of all connections", || (count("opened") == count("closed")).then_some(()));
    let sorted = |path: &str, direction: &str| {
        let mut found = messages(path, direction);
        found.sort_unstable();
        found
    };
    let sent = sorted(ours, "sent");
    assert!(sent.iter().any(|message| message.contains("tools/call")), "{what}: {sent:?}");
    assert_eq!(sent, sorted(theirs, "received"), "{what}");
    assert_eq!(sorted(theirs, "sent"), sorted(ours, "received"), "{what}");
}

#[test]
fn both_sides_of_each_transport_over_http_agree() {
    for version in ["legacy", "modern"] {
        for (scheme, path, transport) in
            [("http", "/mcp", "http"), ("ws", "/mcp/ws", "websocket"), ("sse+http", "/sse", "http+sse")]
        {
            if transport == "http+sse" && version == "modern" {
                continue;
            }
            let user = User::new();
            let (ours, theirs) = (user.word("client.jsonl"), user.word("server.jsonl"));
            let server = Server::start(&["--record", &theirs]);
            let target = format!("{scheme}://{}{path}", server.address);
            let words = [
                "call",
                &target,
                "long_task",
                "steps=2",
                "step_ms=1",
                "--protocol-version",
                version,
                "--record",
                &ours,
            ];
            let came = user.run(&words);
            assert_eq!(came.code, 0, "{words:?}: {came:?}");
            compare(&ours, &theirs, &format!("{transport} {version}"));
            let opened = lines(&theirs).into_iter().find(|line| line["event"] == "opened").unwrap();
            assert_eq!((&opened["side"], &opened["transport"]), (&"server".into(), &transport.into()));
        }
    }
}

#[test]
fn both_sides_of_stdio_agree_in_order() {
    let user = User::new();
    let (ours, theirs) = (user.word("client.jsonl"), user.word("server.jsonl"));
    let words = ["call", "echo", "message=hé", "--record", &ours];
    let came = user.with(&words, &[REFMCP, "stdio", "--record", &theirs]);
    assert_eq!(came.code, 0, "{came:?}");
    compare(&ours, &theirs, "stdio");
    assert_eq!(messages(&ours, "sent"), messages(&theirs, "received"));
    assert_eq!(messages(&theirs, "sent"), messages(&ours, "received"));
    let ends: Vec<Value> = lines(&theirs).into_iter().filter(|line| line["event"] == "closed").collect();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0]["why"], "the peer closed it");
}

#[test]
fn a_server_writes_refusals_and_no_secrets() {
    let user = User::new();
    let theirs = user.word("server.jsonl");
    let server = Server::start(&["--record", &theirs]);
    let target = format!("http://{}/mcp?key=hush", server.address);
    let words =
        ["info", &target, "-H", "Authorization: Bearer hush-hush", "-H", "Origin: https://evil.example"];
    assert_eq!(user.run(&words).code, 4);
    let text = fs::read_to_string(&theirs).unwrap();
    assert!(!text.contains("hush"), "{text}");
    let refused = lines(&theirs).into_iter().find(|line| line["event"] == "refused").expect("a refusal");
    assert_eq!((&refused["status"], &refused["reason"]), (&403.into(), &"origin".into()));
}

#[test]
fn headers_of_any_name_are_secrets_to_traces_and_to_about_me() {
    let user = User::new();
    let (ours, theirs) = (user.word("client.jsonl"), user.word("server.jsonl"));
    let server = Server::start(&["--record", &theirs]);
    let configured = format!(
        r#"{{"mcpServers": {{"there": {{"url": "http://{}/mcp", "headers": {{
            "X-Session": "planted-1", "DD-Application": "planted-2"}}}}}}}}"#,
        server.address
    );
    user.write("mcp.json", &configured);
    let (url, socket) = (format!("http://{}/mcp", server.address), format!("ws://{}/mcp/ws", server.address));
    let typed = ["-H", "X-Custom: planted-4", "-H", "X-Foo: planted-5", "-H", "X-Api-Key: planted-6"];
    for target in ["there", &url, &socket] {
        let came = user.run(&[&["call", target, "about_me", "--record", &ours], &typed[..]].concat());
        assert!(came.code == 0 && came.out.contains("x-foo"), "{came:?}");
        assert!(!came.out.contains("planted"), "{}", came.out);
    }
    let came = user.run(&["info", &url, "--record", &ours, "-H", "Accept-Language: planted-3"]);
    assert_eq!(came.code, 0, "{came:?}");
    let ours = fs::read_to_string(&ours).unwrap();
    assert!(!ours.contains("planted"), "{ours}");
    let posts = lines(&theirs).into_iter().filter(|line| line["method"] == "POST");
    let headers: Vec<Value> = posts.map(|mut line| line["headers"].take()).collect();
    assert!(headers.iter().any(|headers| headers["x-custom"] == "***" && headers["x-foo"] == "***"));
    assert!(headers.iter().all(|headers| headers["content-type"] == "application/json"), "{headers:?}");
    let theirs = fs::read_to_string(&theirs).unwrap();
    for hidden in [1, 2, 4, 5, 6] {
        assert!(!theirs.contains(&format!("planted-{hidden}")), "{theirs}");
    }
}

#[test]
fn a_trace_in_a_file_that_others_could_read_becomes_private() {
    use std::os::unix::fs::PermissionsExt;

    let user = User::new();
    let path = user.write("trace", "");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let ended = user.with_stdio(&["list", "tools", "--record", &path]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!user.read("trace").is_empty());
}

#[test]
fn a_trace_is_not_written_through_a_link() {
    let user = User::new();
    let kept = user.write("kept", "as it was");
    for (link, to) in [("to-a-file", kept.as_str()), ("to-nothing", "nothing")] {
        std::os::unix::fs::symlink(to, user.path(link)).unwrap();
        let ended = user.with_stdio(&["list", "tools", "--record", link]);
        assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{ended:?}");
        assert!(ended.err.contains("it is a link; name the file itself"), "{ended:?}");
    }
    assert_eq!(user.read("kept"), "as it was");
    assert!(!user.path("nothing").exists());
}
