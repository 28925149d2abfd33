//! The audit that servers have by default: what it leaves out, what it costs at most, and that it says nothing wrong for it.

use std::collections::BTreeSet;

use refmcp_audit::bounded::{BoundedAuditor, EndReason, Limits};
use refmcp_audit::recording::{Direction, Event, EventKind, Side};
use refmcp_audit::verdict::Role;
use serde_json::{Value, json};

use crate::script::{Script, initialize, initialized, request, result, stateless_request, stateless_result};

const START: u64 = 1_700_000_000_000;

/// What a server over HTTP sees.
struct Server {
    auditor: BoundedAuditor,
    at: u64,
    judged: u64,
}

impl Server {
    fn new(change: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = Limits::default();
        change(&mut limits);
        Self { auditor: BoundedAuditor::new(limits), at: START, judged: 0 }
    }

    fn event(&mut self, connection: u64, kind: EventKind) {
        let event = Event { at: self.at, connection, revision: None, stream: Some(connection), kind };
        self.auditor.observe(&event);
    }

    fn open(&mut self, connection: u64, peer: &str) {
        let (transport, peer) = ("http".to_owned(), peer.to_owned());
        self.event(connection, EventKind::Opened { side: Side::Server, transport, peer });
    }

    fn passes(&mut self, connection: u64, direction: Direction, message: &Value) {
        let text = message.to_string();
        self.event(connection, EventKind::Message { direction, text, event_id: None });
        self.judged += u64::from(self.auditor.is_judged(connection));
    }

    fn session(&mut self, connection: u64) {
        self.open(connection, "127.0.0.1");
        let opening = request(0, "initialize", initialize("2025-06-18", json!({})));
        self.passes(connection, Direction::Received, &opening);
        self.passes(connection, Direction::Sent, &result(0, initialized("2025-06-18", json!({}))));
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.passes(connection, Direction::Received, &ready);
    }

    /// A request without a session, and its result.
    fn stateless(&mut self, connection: u64, peer: &str) {
        self.open(connection, peer);
        let id = format!("d{connection}");
        self.passes(
            connection,
            Direction::Received,
            &stateless_request(id.as_str(), "tools/list", json!({})),
        );
        let list = json!({"tools": [], "ttlMs": 0, "cacheScope": "private"});
        self.passes(connection, Direction::Sent, &stateless_result(id.as_str(), list));
        self.event(connection, EventKind::Closed { why: "finished".to_owned() });
    }

    /// A response to no request.
    fn breaks(&mut self, connection: u64) {
        self.passes(connection, Direction::Received, &result(99, json!({})));
    }

    fn broken(&mut self) -> Vec<&'static str> {
        self.auditor.take_new().iter().map(|(rule, ..)| rule.id).collect()
    }

    fn verdict(&self, connection: Option<u64>, peer: &str) -> Value {
        serde_json::to_value(self.auditor.client_verdict(connection, peer)).unwrap()
    }
}

/// The rules that are broken in a conversation of which so many messages are judged.
fn broken(script: &Script, messages: u64) -> BTreeSet<(&'static str, Role)> {
    let mut limits = Limits::default();
    limits.messages = messages;
    (limits.at_once, limits.bytes, limits.total_bytes) = (1 << 20, 1 << 30, 1 << 30);
    let mut auditor = BoundedAuditor::new(limits);
    for event in script.events() {
        auditor.observe(event);
    }
    auditor.take_new().into_iter().map(|(rule, role, _)| (rule.id, role)).collect()
}

#[test]
fn a_conversation_that_is_left_in_the_middle_breaks_no_rule_that_it_keeps() {
    for example in crate::examples() {
        for script in example.broken.iter().chain([&example.kept]) {
            if !script.is_recorded_by_server() {
                continue;
            }
            let whole = broken(script, u64::MAX);
            for messages in 0..script.events().len() as u64 {
                let part = broken(script, messages);
                assert!(part.is_subset(&whole), "{} of {messages} messages: {part:?}", example.rule);
            }
        }
    }
}

/// A request that does not say what the client can do.
fn without_capabilities(number: u64) -> Value {
    let call = json!({ "name": format!("tool{number}"), "arguments": {} });
    let mut request = stateless_request(number, "tools/call", call);
    request["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    request
}

#[test]
fn so_many_messages_are_judged_and_the_verdict_on_them_stays() {
    let mut server = Server::new(|limits| limits.messages = 10);
    server.session(1);
    server.breaks(1);
    for id in 1..20 {
        server.passes(1, Direction::Received, &request(id, "ping", json!({})));
        server.passes(1, Direction::Sent, &result(id, json!({})));
    }
    assert_eq!(server.broken(), ["RPC-05"]);
    assert!(!server.auditor.is_judged(1));
    // Beyond it, nothing is judged.
    server.breaks(1);
    assert!(server.broken().is_empty());
    let ended = server.auditor.take_ended();
    assert_eq!((ended.len(), ended[0].messages, ended[0].reason), (1, 10, EndReason::Limit));
    let verdict = server.verdict(Some(1), "127.0.0.1");
    assert_eq!((&verdict["complete"], &verdict["messages"]), (&json!(false), &json!(10)));
    assert_eq!(verdict["broken"][0]["rule"], "RPC-05");
    assert!(verdict["broken"][0]["message"].as_str().unwrap().contains("99"), "{verdict}");
    assert!(verdict["kept"].as_u64().unwrap() > 3, "{verdict}");
}

#[test]
fn a_long_message_ends_what_is_judged() {
    let mut server = Server::new(|_| {});
    server.session(1);
    let long = "x".repeat(Limits::default().bytes);
    server.passes(1, Direction::Received, &request(1, "ping", json!({ "_meta": { "x": long } })));
    assert!(!server.auditor.is_judged(1));
    assert_eq!(server.auditor.take_ended()[0].reason, EndReason::Limit);
}

#[test]
fn a_flood_of_requests_costs_little_and_is_judged_again_later() {
    let mut server = Server::new(|_| {});
    for connection in 0..5_000 {
        server.stateless(connection, &format!("10.0.{}.1", connection % 200));
    }
    let most = u64::from(Limits::default().at_once);
    assert!(server.judged >= 64 && server.judged <= most, "{}", server.judged);
    assert!(server.auditor.declines_until() > server.at);
    server.auditor.take_ended();
    server.at = server.auditor.declines_until();
    server.stateless(30_000, "127.0.0.1");
    assert_eq!(server.verdict(None, "127.0.0.1")["messages"], 2);
    assert_eq!(server.broken(), [""; 0]);
}

#[test]
fn conversations_that_are_silent_give_way_to_others() {
    let mut server = Server::new(|limits| limits.conversations = 4);
    for connection in 1..=4 {
        server.session(connection);
        server.at += 1;
    }
    server.session(5);
    assert!(!server.auditor.is_judged(5), "all others are busy");
    server.at += 2_000;
    server.breaks(1);
    server.session(6);
    let judged: Vec<_> = (1..=6).filter(|connection| server.auditor.is_judged(*connection)).collect();
    assert_eq!(judged, [1, 3, 4, 6], "2 was silent for longest");
    assert_eq!(server.verdict(Some(2), "")["complete"], false);
    server.event(6, EventKind::Closed { why: "finished".to_owned() });
    let reasons: Vec<_> = server.auditor.take_ended().iter().map(|it| it.reason).collect();
    assert_eq!(reasons, [EndReason::Room, EndReason::Ended]);
    assert_eq!(server.auditor.finish().len(), 3);
}

#[test]
fn a_violation_is_told_once_of_an_address_that_goes_on_and_again_after_a_silence() {
    let mut server = Server::new(|limits| limits.messages = 4);
    let mut told = Vec::new();
    for connection in 1..=9 {
        server.open(connection, "127.0.0.1");
        server.passes(connection, Direction::Received, &without_capabilities(connection));
        server.event(connection, EventKind::Closed { why: "finished".to_owned() });
        told.extend(server.broken());
    }
    let once: BTreeSet<_> = told.iter().collect();
    assert!(!told.is_empty() && told.len() == once.len(), "{told:?}");
    assert_eq!(server.verdict(None, "127.0.0.1")["broken"].as_array().unwrap().len(), once.len());
}

#[test]
fn a_client_sees_no_messages_of_others_at_its_address() {
    let mut server = Server::new(|_| {});
    for connection in 1..=2 {
        server.open(connection, "127.0.0.1");
        server.passes(connection, Direction::Received, &without_capabilities(connection));
    }
    let verdict = server.verdict(Some(2), "127.0.0.1");
    assert!(!verdict["broken"].as_array().unwrap().is_empty(), "{verdict}");
    assert!(!verdict.to_string().contains("tool1"), "{verdict}");
    assert_eq!(server.verdict(None, "10.0.0.1"), Value::Null);
}

#[test]
fn a_rule_is_told_by_the_auditor_or_by_the_server_itself() {
    let mut server = Server::new(|_| {});
    let finding = || {
        let text = |text: &str| text.to_owned();
        EventKind::Finding { rule: text("RPC-05"), what: text("an answer"), expected: text("none") }
    };
    let rule = &refmcp_proto::rule::RPC_05;
    server.session(1);
    server.breaks(1);
    server.event(1, finding());
    assert!(server.auditor.has_told(1, rule));
    assert_eq!(server.broken(), ["RPC-05"]);
    server.session(2);
    server.event(2, finding());
    assert!(!server.auditor.has_told(2, rule), "the server told it first");
    server.breaks(2);
    assert_eq!(server.broken(), [""; 0]);
    assert!(!server.auditor.has_told(2, rule), "each further finding is told, too");
    assert_eq!(server.verdict(Some(2), "")["broken"][0]["rule"], "RPC-05");
}
