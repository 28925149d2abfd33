//! Malformed bytes that no text file can hold; each is followed by a good request.

use refmcp_testkit::engine::{TestEngine, full_config};
use serde_json::{Value, json};

fn request(id: &str, method: &str, params: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#).into_bytes()
}

fn responses(rig: &mut TestEngine, bytes: &[u8]) -> Vec<Value> {
    rig.send(bytes);
    rig.take_sent().iter().map(|sending| serde_json::from_slice(&sending.json).unwrap()).collect()
}

/// Sends bytes to a fresh engine and to one with an open session, and gives the code of the one answer.
#[track_caller]
fn code_of(name: &str, bytes: &[u8]) -> Value {
    let mut codes = Vec::new();
    for version in [None, Some("2024-11-05"), Some("2025-03-26"), Some("2025-06-18"), Some("2025-11-25")] {
        let mut rig = TestEngine::new(full_config());
        if let Some(version) = version {
            let info = r#""capabilities":{},"clientInfo":{"name":"c","version":"1"}"#;
            let params = format!(r#"{{"protocolVersion":"{version}",{info}}}"#);
            responses(&mut rig, &request("0", "\"initialize\"", &params));
            responses(&mut rig, br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
        let given = responses(&mut rig, bytes);
        assert_eq!(given.len(), 1, "{name} in {version:?}");
        assert!(given[0].to_string().len() < 600, "{name} in {version:?}: the answer repeats the input");
        codes.push(given[0]["error"]["code"].clone());
        assert_eq!(
            responses(&mut rig, &request("9", "\"ping\"", "{}"))[0]["id"],
            json!(9),
            "{name} in {version:?}"
        );
    }
    codes.dedup();
    assert_eq!(codes.len(), 1, "{name}: {codes:?}");
    codes.remove(0)
}

#[test]
fn bytes_that_are_no_json_text_are_parse_errors() {
    let ping = request("1", "\"ping\"", "{}");
    let utf16: Vec<u8> = String::from_utf8_lossy(&ping).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf32: Vec<u8> = ping.iter().flat_map(|byte| u32::from(*byte).to_be_bytes()).collect();
    for (name, bytes) in [
        ("nothing", Vec::new()),
        (
            "invalid UTF-8",
            request("1", "\"ping\"", "{\"a\":\"\u{0}\"}")
                .iter()
                .map(|b| if *b == 0 { 0xff } else { *b })
                .collect(),
        ),
        ("an overlong slash", [b"{\"a\":\"", &[0xc0, 0xaf][..], b"\"}"].concat()),
        ("an encoded surrogate", [b"{\"a\":\"", &[0xed, 0xa0, 0x80][..], b"\"}"].concat()),
        ("UTF-16", utf16),
        ("UTF-32", utf32),
        ("a NUL in a string", request("1", "\"pi\0ng\"", "{}")),
        ("a NUL in front", [b"\0", &ping[..]].concat()),
        ("a NUL behind", [&ping[..], b"\0"].concat()),
        ("a number that is none", request("1", "\"ping\"", "{\"a\":1.}")),
        ("NaN", request("1", "\"ping\"", "{\"a\":NaN}")),
    ] {
        assert_eq!(code_of(name, &bytes), json!(-32700), "{name}");
    }
}

#[test]
fn messages_over_the_limits_are_refused() {
    let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    for depth in [128, 10_000, 1_000_000] {
        assert_eq!(code_of("depth", &request("1", "\"ping\"", &nested(depth))), json!(-32600), "{depth}");
    }
    let long = format!("\"{}\"", "x".repeat(1 << 20));
    assert_eq!(code_of("a long id", &request(&long, "\"ping\"", "{}")), json!(-32600));
    assert_eq!(code_of("a long method", &request("1", &long, "{}")), json!(-32600));
    assert_eq!(
        code_of("an id of many digits", &request(&"9".repeat(30_000), "\"ping\"", "{}")),
        json!(-32600)
    );
    let many = format!("{{\"a\":{}}}", "9".repeat(30_000));
    assert_eq!(code_of("a number of many digits", &request("1", "\"ping\"", &many)), json!(-32600));
    assert_eq!(code_of("a huge message", &vec![b' '; (4 << 20) + 1]), json!(-32600));
    let batch = format!("[{}1]", "1,".repeat(10_000));
    assert_eq!(code_of("a huge batch", batch.as_bytes()), json!(-32600));
}

#[test]
fn unusual_but_valid_messages_are_served() {
    let mut rig = TestEngine::new(full_config());
    for params in
        ["{\"a\":-0}".to_owned(), "{\"a\":1e400}".to_owned(), format!("{{\"a\":{}}}", "9".repeat(1000))]
    {
        assert_eq!(
            responses(&mut rig, &request("0", "\"ping\"", &params)),
            [json!({"jsonrpc": "2.0", "id": 0, "result": {}})]
        );
    }
    // Such ids are too long for numbers of serde_json, so the text is looked at.
    for id in ["18446744073709551616", "-0", "-9223372036854775809"] {
        rig.send(&request(id, "\"ping\"", "{}"));
        let sent = rig.take_sent();
        let text = String::from_utf8_lossy(&sent[0].json);
        assert_eq!(text, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[test]
fn ten_thousand_bad_messages_leave_nothing_behind() {
    let mut rig = TestEngine::new(full_config());
    for number in 0..10_000 {
        rig.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},").as_bytes());
        assert_eq!(rig.take_sent().len(), 1);
    }
    let findings: Vec<_> = rig.engine.findings().iter().map(|found| (found.rule.id, found.count)).collect();
    assert_eq!(findings, [("RPC-01", 10_000)]);
    assert!(rig.take_events().len() <= 16, "a rule that is broken again and again is counted, not told");
}
