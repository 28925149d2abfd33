//! What comes over a pipe and is no message.

use super::*;

impl Rig {
    fn print(&mut self, line: &str) -> Vec<Seen> {
        self.engine.ignored_input(self.now, line);
        self.seen()
    }

    fn receive(&mut self, line: &str) -> Vec<Seen> {
        self.engine.receive(self.now, None, line.as_bytes());
        self.seen()
    }
}

fn ignored(seen: &[Seen]) -> &str {
    let found = seen.iter().find_map(|seen| match seen {
        Seen::Ignored(what) => Some(what.as_str()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("nothing ignored: {seen:?}"))
}

fn closed(seen: &[Seen]) -> &str {
    let found = seen.iter().find_map(|seen| match seen {
        Seen::Closed(why) => Some(why.as_str()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("not closed: {seen:?}"))
}

#[test]
fn log_lines_before_the_response_are_ignored() {
    let mut rig = Rig::new(|_| {});
    rig.seen();
    for _ in 0..2 {
        assert_eq!(ignored(&rig.print("Listening...")), "not a message: Listening...", "each is told of");
    }
    assert_eq!(rig.pass(999), [], "it may go on printing");
    assert_eq!(ignored(&rig.print("ready\x1b[2J")), "not a message: ready\\u{1b}[2J");
    let seen = rig.pass(1_000);
    assert_eq!(sent(&seen)["method"], "initialize", "{seen:?}");
    // It says more, now and then, and pings are answered by nothing while it starts.
    for _ in 0..10 {
        rig.pass(700);
        rig.print("still starting");
        rig.pass(1_000);
        rig.pass(500);
    }
    let seen = rig.hear(json!({ "id": 2, "result": initialized("2025-06-18") }));
    assert!(seen.contains(&Seen::Opened(Revision::V2025_06_18)), "{seen:?}");
}

#[test]
fn a_server_that_responds_without_messages_is_given_up() {
    for version_policy in [VersionPolicy::Auto, VersionPolicy::Legacy] {
        let mut rig = Rig::new(|config| config.version_policy = version_policy);
        rig.seen();
        let mut waited = 0;
        let why = loop {
            let seen = rig.print("what?");
            if seen.iter().any(|seen| matches!(seen, Seen::Closed(_))) {
                break closed(&seen).to_owned();
            }
            assert!(matches!(sent(&rig.pass(1_000))["method"].as_str(), Some("initialize" | "ping")));
            waited += 1;
            assert!(waited < 3, "{version_policy:?}");
        };
        assert_eq!(why, "the server broke the protocol: it answers with what is no message: what?");
    }
}

#[test]
fn a_server_that_prints_without_end_is_given_up() {
    let mut rig = Rig::new(|_| {});
    rig.seen();
    let lines = (0..5_000).take_while(|_| !rig.print("y").iter().any(|seen| matches!(seen, Seen::Closed(_))));
    assert!(lines.count() < 2_000);
}

#[test]
fn open_errors_quote_what_the_server_printed() {
    let mut rig = Rig::new(|config| config.version_policy = VersionPolicy::Legacy);
    rig.seen();
    rig.print("Welcome");
    rig.pass(1_000);
    let why = closed(&rig.pass(60_000)).to_owned();
    assert!(why.contains("within 1 min") || why.contains("within 61 s") && why.contains("Welcome"), "{why}");
    let mut rig = Rig::new(|_| {});
    rig.seen();
    rig.print("usage: server DIR");
    rig.engine.closed(TransportError::Broken("it ended".to_owned()));
    let seen = rig.seen();
    assert!(closed(&seen).ends_with("it ended; it wrote what is no message: usage: server DIR"), "{seen:?}");
}

#[test]
fn a_malformed_response_ends_its_request() {
    for (line, said) in [
        (r#"{"jsonrpc":"2.0","id":2,"result":{"#, "cannot be read"),
        (r#"{"id":2,"result":{}}"#, "cannot be read"),
        (r#"{"jsonrpc":"2.0","id":"2","result":{}}"#, "never made, with the id \"2\""),
        (r#"{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"m"}}"#, "never made, with the id 77"),
    ] {
        let mut rig = Rig::session();
        let call = rig.call("tools/list", "{}", CallOptions::default());
        rig.seen();
        assert!(ignored(&rig.receive(line)).contains(said), "{line}");
        assert_eq!(rig.pass(999), []);
        let seen = rig.pass(1);
        let Some(Seen::Done(done, Err(why))) = seen.iter().find(|seen| matches!(seen, Seen::Done(..))) else {
            panic!("{line}: {seen:?}")
        };
        assert!(*done == call && why.contains(said), "{line}: {why}");
        // The answer that follows is taken.
        let call = rig.call("tools/list", "{}", CallOptions::default());
        rig.seen();
        rig.receive(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#);
        assert_eq!(rig.hear(json!({ "id": call, "result": {} })), [Seen::Done(call, Ok(json!({})))]);
        assert_eq!(rig.pass(5_000), []);
    }
}

#[test]
fn which_request_it_was_for_is_not_guessed() {
    let mut rig = Rig::session();
    let first = rig.call("tools/list", "{}", CallOptions::default());
    let second = rig.call("prompts/list", "{}", CallOptions::default());
    rig.seen();
    rig.receive(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    assert_eq!(rig.pass(5_000), [], "two wait, and it is for neither");
    rig.receive(&format!(r#"{{"jsonrpc":"1.0","id":{second},"result":{{}}}}"#));
    let seen = rig.pass(1_000);
    assert!(seen.iter().any(|seen| matches!(seen, Seen::Done(done, Err(_)) if *done == second)), "{seen:?}");
    assert_eq!(rig.hear(json!({ "id": first, "result": {} })), [Seen::Done(first, Ok(json!({})))]);
}

#[test]
fn an_error_without_an_id_ends_the_only_request() {
    let mut rig = Rig::session();
    let call = rig.call("tools/list", "{}", CallOptions::default());
    rig.seen();
    let seen = rig.hear(json!({ "id": null, "error": { "code": -32700, "message": "parse error" } }));
    assert_eq!(seen, [Seen::Done(call, Err("parse error (-32700)".to_owned()))]);
}

#[test]
fn json_log_lines_are_no_responses() {
    let mut rig = Rig::session();
    let call = rig.call("tools/list", "{}", CallOptions::default());
    rig.seen();
    for line in [r#"{"level":"error","error":"x"}"#, r#"{"jsonrpc":"2.0","method":7}"#, "{", "[]"] {
        rig.receive(line);
        assert_eq!(rig.pass(5_000), [], "{line}");
    }
    assert_eq!(rig.hear(json!({ "id": call, "result": {} })), [Seen::Done(call, Ok(json!({})))]);
}

#[test]
fn a_short_open_timeout_leaves_time_for_initialize() {
    let mut rig = Rig::new(|config| config.open_timeout = Duration::from_secs(4));
    rig.seen();
    assert_eq!(sent(&rig.pass(2_000))["method"], "initialize");
}

#[test]
fn a_malformed_response_to_the_opening_is_not_waited_for_long() {
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"result":"#,
        r#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
    ] {
        let mut rig = Rig::new(|_| {});
        rig.seen();
        rig.receive(line);
        assert_eq!(sent(&rig.pass(200))["method"], "initialize", "{line}");
        rig.receive(line);
        assert!(
            closed(&rig.pass(200)).starts_with("the server broke the protocol: it sent an answer"),
            "{line}"
        );
    }
}

#[test]
fn a_message_that_is_too_long_ends_the_opening() {
    let mut rig = Rig::new(|_| {});
    rig.seen();
    rig.engine.unreadable(rig.now, None, "longer than 10 bytes");
    let seen = rig.seen();
    let why = "the server broke the protocol: it sent a message that is longer than 10 bytes";
    assert_eq!(closed(&seen), why);
}

#[test]
fn a_server_that_sends_our_messages_back_is_given_up() {
    for version_policy in [VersionPolicy::Auto, VersionPolicy::Legacy] {
        let mut rig = Rig::new(|config| config.version_policy = version_policy);
        let first = sent(&rig.seen()).clone();
        let seen = rig.receive(&first.to_string());
        assert!(closed(&seen).contains("it sends our own messages back"), "{seen:?}");
    }
    // A request that only has the same id is none of ours.
    let mut rig = Rig::new(|config| config.version_policy = VersionPolicy::Legacy);
    rig.seen();
    let seen = rig.hear(json!({ "id": 1, "method": "ping" }));
    assert_eq!(sent(&seen)["result"], json!({}), "{seen:?}");
}
