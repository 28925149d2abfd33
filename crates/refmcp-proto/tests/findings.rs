//! What the engine finds wrong with a client: each text says what to send instead.

use std::sync::Arc;

use refmcp_proto::engine::{ExchangeId, Output, ServerEngine};
use refmcp_proto::time::Timestamp;
use refmcp_testkit::engine::full_config;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"VERSION","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// What a new engine finds wrong with these messages.
fn found(version: &str, messages: &[&str]) -> Vec<(&'static str, String)> {
    let mut engine = ServerEngine::new(Arc::new(full_config()), None);
    let mut found = Vec::new();
    for message in messages {
        let message = message.replace("VERSION", version);
        engine.receive(Timestamp::from_millis(1), ExchangeId::default(), message.as_bytes());
        while let Some(output) = engine.poll() {
            if let Output::Finding(finding) = output {
                found.push((finding.rule, finding.what.into_owned()));
            }
        }
    }
    found
}

#[test]
fn every_finding_says_what_to_send() {
    let (older, newer) = ("2025-03-26", "2025-11-25");
    for (version, messages, rule, send) in [
        (newer, &["{oops"][..], "RPC-01", r#"send a JSON-RPC 2.0 message such as {"jsonrpc":"2.0""#),
        (newer, &[LIST], "LIFE-01", "send initialize first"),
        (
            newer,
            &[r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#],
            "LIFE-01",
            "send protocolVersion, capabilities and clientInfo",
        ),
        (newer, &[INITIALIZE, INITIALIZE], "LIFE-01", "send it once"),
        (newer, &[READY], "LIFE-02", "send initialize first"),
        (newer, &[INITIALIZE, READY, READY], "LIFE-02", "send it once"),
        (newer, &[INITIALIZE, LIST], "LIFE-02", "send notifications/initialized first"),
        (newer, &[INITIALIZE, READY, LIST, LIST], "RPC-04", "send each request with an id of its own"),
        (
            newer,
            &[
                INITIALIZE,
                READY,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":null}}"#,
            ],
            "PAGE-01",
            "leave cursor out",
        ),
        (
            newer,
            &[INITIALIZE, READY, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#],
            "CANC-01",
            "send params.requestId",
        ),
        (
            newer,
            &[INITIALIZE, READY, r#"{"jsonrpc":"2.0","id":"x","result":{}}"#],
            "RPC-05",
            "send the id of the server's request",
        ),
        (
            newer,
            &[INITIALIZE, READY, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#],
            "RPC-05",
            "send the id of the server's request",
        ),
        (
            newer,
            &[INITIALIZE, READY, r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#],
            "RPC-05",
            "send the id of the request",
        ),
        (
            newer,
            &[INITIALIZE, READY, r#"{"jsonrpc":"2.0","id":5,"method":"notifications/cancelled"}"#],
            "RPC-07",
            "send it without",
        ),
        (newer, &[INITIALIZE, READY, "[LIST]"], "RPC-10", "send each message on its own"),
        (older, &[INITIALIZE, READY, "[INITIALIZE]"], "RPC-09", "send it as a message of its own"),
    ] {
        let messages: Vec<String> = messages
            .iter()
            .map(|message| message.replace("INITIALIZE", INITIALIZE).replace("LIST", LIST))
            .collect();
        let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
        let found = found(version, &messages);
        assert_eq!(found.len(), 1, "{messages:?}: {found:?}");
        assert!(found[0].0 == rule && found[0].1.contains(send), "{messages:?}: {found:?}");
    }
}
