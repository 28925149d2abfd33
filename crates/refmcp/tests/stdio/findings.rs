//! What a client does wrong is told on stderr, with what to send instead, unless the log is told to be silent.

use serde_json::json;

use crate::support::{Client, Process, Version, program};

/// Wrong messages, the rule and a part of the line that each leads to.
const WRONG: [(&str, &str, &str); 4] = [
    (r#"{"jsonrpc":"2.0","method":"initialized"}"#, "LIFE-02", "send notifications/initialized"),
    (
        r#"{"jsonrpc":"2.0","method":"cancelled","params":{"requestId":1}}"#,
        "CANC-01",
        "send notifications/cancelled",
    ),
    (
        r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#,
        "CANC-01",
        "send notifications/cancelled with params.requestId",
    ),
    (
        r#"{"jsonrpc":"2.0","method":"x/y","params":{},"_meta":{"progressToken":1}}"#,
        "RPC-01",
        "as params._meta",
    ),
];

#[test]
fn the_log_says_once_what_to_send() {
    for version in [Version::Session("2025-06-18"), Version::Session("2024-11-05"), Version::Stateless] {
        let mut client = Client::start(version, &[]);
        for _ in 0..50 {
            WRONG.iter().for_each(|(message, ..)| client.process.send_line(message));
        }
        client.process.send_line(version.call(7, "echo", &json!({ "message": "x" })));
        client.answer_to(&json!(7));
        client.process.close_input();
        let log = client.process.exit().errors;
        assert_eq!(log.lines().count(), WRONG.len(), "{version:?}: {log}");
        for (message, rule, send) in WRONG {
            let told =
                log.lines().any(|line| line.contains("WARN") && line.contains(rule) && line.contains(send));
            assert!(told, "{version:?} {message}: {log}");
        }
    }
}

#[test]
fn a_client_that_does_nothing_wrong_leaves_the_log_empty() {
    for version in [Version::Session("2025-11-25"), Version::Stateless] {
        let mut client = Client::with(version, Process::spawn(program(&["stdio"])));
        client.process.send_line(version.call(7, "echo", &json!({ "message": "x" })));
        client.answer_to(&json!(7));
        client
            .process
            .send_line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
        client.process.close_input();
        assert_eq!(client.process.exit().errors, "", "{version:?}");
    }
}
