//! What the engine finds wrong with a client: each text says what to send instead.

use std::sync::Arc;

use refmcp_proto::engine::{ExchangeId, Output, ServerEngine};
use refmcp_proto::revision::{Lifecycle, Method, NotificationMethod, Revision, ServerMethod};
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
                found.push((finding.rule.id, finding.to_string()));
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
        (newer, &[INITIALIZE, READY, LIST, LIST], "RPC-03", "send each request with an id of its own"),
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
        (newer, &[r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#], "RPC-02", "send a JSON-RPC 2.0 message"),
        (
            newer,
            &[r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#],
            "RPC-06",
            "send a JSON-RPC 2.0 message",
        ),
        (newer, &[r#"{"jsonrpc":"2.0","result":{}}"#], "RPC-05", "send a JSON-RPC 2.0 message"),
        (
            newer,
            &[
                INITIALIZE,
                READY,
                r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}"#,
            ],
            "LOG-02",
            "send params.level",
        ),
        (
            newer,
            &[INITIALIZE, READY, r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}"#],
            "LIFE-08",
            "send what the revision has",
        ),
        (
            newer,
            &[INITIALIZE, READY, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#],
            "LIFE-08",
            "send the notifications that clients",
        ),
        (
            newer,
            &[
                INITIALIZE,
                READY,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":{}}}}"#,
            ],
            "PROG-01",
            "send a string or an integer",
        ),
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

/// A stateless request of this method, with members of `params` beside `_meta` and members of `_meta`.
fn stateless(id: &str, method: &str, params: &str, meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}{meta}}}}}}}"#
    )
}

#[test]
fn requests_without_a_session_are_held_to_their_rules() {
    let call = r#""name":"echo","arguments":{},"#;
    let version_alone = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    for (messages, rule, send) in [
        (vec![version_alone.to_owned()], "STATE-04", "send protocolVersion and clientCapabilities"),
        (
            vec![r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#.to_owned()],
            "STATE-04",
            "send protocolVersion and clientCapabilities",
        ),
        (
            vec![r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":5}}"#.to_owned()],
            "STATE-04",
            "in params._meta of every request",
        ),
        (
            vec![stateless("1", "tools/list", "", r#","io.modelcontextprotocol/logLevel":"loud""#)],
            "STATE-04",
            "in params._meta",
        ),
        (
            vec![stateless("1", "tools/list", "", r#","progressToken":{}"#)],
            "PROG-01",
            "a string or an integer",
        ),
        (vec![stateless("1", "ping", "", "")], "PING-02", "send what the revision has"),
        (vec![stateless("1", "logging/setLevel", r#""level":"info","#, "")], "STATE-16", "send what"),
        (vec![stateless("1", "subscriptions/listen", r#""notifications":5,"#, "")], "SUB-01", "a filter"),
        (
            vec![stateless("1", "tools/call", &format!(r#"{call}"requestState":"forged","#), "")],
            "MRTR-06",
            "requestState as it came",
        ),
        (
            vec![stateless("1", "tools/call", &format!(r#"{call}"inputResponses":5,"#), "")],
            "MRTR-06",
            "repeat the request",
        ),
        (
            vec![stateless("1", "tools/list", "", ""), stateless("1", "tools/list", "", "")],
            "RPC-04",
            "of its own",
        ),
        (
            vec![r#"{"jsonrpc":"2.0","id":9,"result":{}}"#.to_owned()],
            "RPC-15",
            "the id of the server's request",
        ),
        (
            vec![r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#.to_owned()],
            "STDIO-07",
            "send params.requestId",
        ),
        (
            vec![format!("[{}]", stateless("1", "tools/list", "", ""))],
            "RPC-10",
            "send each message on its own",
        ),
    ] {
        let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
        let found = found("", &messages);
        assert_eq!(found.len(), 1, "{messages:?}: {found:?}");
        assert!(found[0].0 == rule && found[0].1.contains(send), "{messages:?}: {found:?}");
        let known = refmcp_proto::rule::find(rule).unwrap();
        assert!(known.revisions.contains(refmcp_proto::revision::Revision::LATEST), "{rule} is not of it");
    }
}

/// Mistakes in a session that is open, and in a request without a session on the same connection.
#[test]
fn findings_name_rules_of_the_peers_revision() {
    let mistakes = [
        "{oops".to_owned(),
        "[]".to_owned(),
        "7".to_owned(),
        INITIALIZE.to_owned(),
        READY.to_owned(),
        format!("[{INITIALIZE}]"),
        format!("[{LIST},7]"),
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":null}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":null}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":{}}}}"#
            .to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{},"_meta":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tasks/list"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":"x","result":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"message"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"initialized"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"$/progress"}"#.to_owned(),
    ];
    for revision in Revision::ALL.iter().filter(|revision| revision.lifecycle() == Lifecycle::Handshake) {
        for mistake in &mistakes {
            for (rule, text) in found(revision.as_str(), &[INITIALIZE, READY, mistake, mistake]) {
                let known = refmcp_proto::rule::find(rule).unwrap();
                assert!(known.revisions.contains(*revision), "{rule} in {revision}: {text}: {mistake}");
            }
        }
        let stateless = [
            stateless("1", "ping", "", ""),
            stateless("1", "tools/list", "", r#","progressToken":{}"#),
            stateless("1", "tools/list", r#""cursor":null,"#, ""),
            stateless("1", "tools/list", "", r#","io.modelcontextprotocol/logLevel":"loud""#),
            stateless("1", "subscriptions/listen", r#""notifications":5,"#, ""),
            stateless("1", "tools/call", r#""name":"echo","arguments":{},"requestState":"forged","#, ""),
            format!("[{}]", stateless("1", "tools/list", "", "")),
        ];
        for mistake in &stateless {
            let found = found(revision.as_str(), &[INITIALIZE, READY, mistake, mistake]);
            assert!(!found.is_empty(), "{mistake}");
            for (rule, text) in found {
                let known = refmcp_proto::rule::find(rule).unwrap();
                assert!(
                    known.revisions.contains(Revision::LATEST),
                    "{rule} in {revision}: {text}: {mistake}"
                );
            }
        }
    }
}

#[test]
fn a_meta_that_is_no_object_breaks_no_rule_of_requests_without_a_session() {
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":null}}"#;
    for (messages, rule, send) in [
        (&[INITIALIZE, READY, list][..], "RPC-01", "send params._meta as an object, or leave it out"),
        (&[list], "STATE-04", "send protocolVersion and clientCapabilities"),
    ] {
        let found = found("2025-11-25", messages);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0 == rule && found[0].1.contains(send), "{found:?}");
    }
    let initialize = INITIALIZE.replace(r#""capabilities""#, r#""_meta":null,"capabilities""#);
    assert_eq!(found("2025-11-25", &[&initialize])[0].0, "RPC-01");
}

#[test]
fn findings_repeat_no_values() {
    let level = r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"hunter2"}}"#;
    let error = r#"{"jsonrpc":"2.0","error":{"code":1,"message":"hunter2"}}"#;
    let filter = stateless("1", "subscriptions/listen", r#""notifications":"hunter2","#, "");
    let described = stateless("1", "tools/list", "", r#","io.modelcontextprotocol/logLevel":"hunter2""#);
    for mistake in [level, error, &filter, &described] {
        let found = found("2025-11-25", &[INITIALIZE, READY, mistake]);
        assert!(!found.is_empty() && found.iter().all(|(_, text)| !text.contains("hunter2")), "{found:?}");
    }
}

#[test]
fn a_revision_that_is_not_served_is_no_mistake() {
    let other = stateless("1", "tools/list", "", "").replace("2026-07-28", "2099-01-01");
    assert_eq!(found("", &[&other]), []);
}

#[test]
fn whatever_is_sent_findings_are_of_the_revision_and_without_values() {
    let others =
        ["$/cancelRequest", "$/progress", "cancelled", "Notification/progress", "message", "x/y", ""];
    let names = Method::NAMES.into_iter().chain(ServerMethod::NAMES).chain(NotificationMethod::NAMES);
    let params = [
        "",
        r#""name":"hunter2","arguments":"hunter2","#,
        r#""name":{"a":"hunter2"},"uri":["hunter2"],"arguments":{"a":"hunter2"},"#,
        r#""uri":"hunter2://hunter2","cursor":"hunter2","level":"hunter2","taskId":"hunter2","#,
        r#""cursor":null,"level":{"hunter2":1},"ref":"hunter2","argument":["hunter2"],"#,
        r#""requestId":{"hunter2":1},"progressToken":["hunter2"],"progress":"hunter2","#,
        r#""requestState":"hunter2","inputResponses":"hunter2","notifications":"hunter2","#,
        r#""requestState":{"hunter2":1},"inputResponses":{"a":"hunter2"},"notifications":{"a":"hunter2"},"#,
        r#""protocolVersion":"hunter2","capabilities":"hunter2","clientInfo":"hunter2","#,
        r#""protocolVersion":"2025-06-18","capabilities":{"roots":"hunter2"},"clientInfo":{"name":["hunter2"]},"#,
    ];
    let named = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let metas = [
        r#"{}"#.to_owned(),
        r#""hunter2""#.to_owned(),
        r#"{"progressToken":{"a":"hunter2"}}"#.to_owned(),
        r#"{"io.modelcontextprotocol/protocolVersion":"hunter2"}"#.to_owned(),
        r#"{"io.modelcontextprotocol/protocolVersion":["hunter2"]}"#.to_owned(),
        format!("{{{named}}}"),
        format!(r#"{{{named},"io.modelcontextprotocol/clientCapabilities":"hunter2"}}"#),
        format!(
            r#"{{{named},"io.modelcontextprotocol/clientCapabilities":{{}},"progressToken":["hunter2"]}}"#
        ),
        format!(
            r#"{{{named},"io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":"hunter2","io.modelcontextprotocol/logLevel":"hunter2"}}"#
        ),
        format!(r#"{{{named},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#),
    ];
    let mut messages = vec![
        r#"{"jsonrpc":"2.0","id":5,"result":{"a":"hunter2"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":"hunter2","message":"hunter2"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"hunter2","data":"hunter2"}}"#.to_owned(),
        r#"{"jsonrpc":"hunter2","id":5,"method":"ping","params":"hunter2"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":{"a":"hunter2"},"method":"ping"}"#.to_owned(),
    ];
    for method in names.chain(others) {
        // Any parameters of a session and of a request without one, and any `_meta`.
        let combined = [&metas[0], &metas[metas.len() - 1]].map(|meta| params.map(|params| (params, meta)));
        for (params, meta) in combined.into_iter().flatten().chain(metas.iter().map(|meta| ("", meta))) {
            for id in ["", r#""id":7,"#] {
                messages.push(format!(
                    r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{{{params}"_meta":{meta}}}}}"#
                ));
            }
        }
    }
    for revision in Revision::ALL.iter().filter(|revision| revision.lifecycle() == Lifecycle::Handshake) {
        for before in [&[][..], &[INITIALIZE], &[INITIALIZE, READY]] {
            for message in &messages {
                let batch = format!("[{message}]");
                for sent in [&[message.as_str(), message][..], &[&batch]] {
                    let found = found(revision.as_str(), &[before, sent].concat());
                    for (rule, text) in found {
                        assert!(!text.contains("hunter2"), "{rule} in {revision}: {text}: {message}");
                    }
                }
            }
        }
    }
}
