//! Connections and conversations: which clients are judged together.

use refmcp_audit::Auditor;
use refmcp_audit::auditor::Judgement;
use refmcp_audit::recording::{Direction, Event, EventKind, Side};
use refmcp_audit::verdict::Role;
use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::script::{
    Script, error, initialize, initialized, request, result, stateless_request, stateless_result,
};

/// What a server over HTTP records: numbers of connections, and what passes on them.
#[derive(Default)]
struct Server {
    auditor: Auditor,
    at: u64,
}

impl Server {
    fn event(&mut self, connection: u64, kind: EventKind) {
        self.at += 1;
        let event = Event { at: self.at, connection, revision: None, stream: Some(connection), kind };
        self.auditor.observe(&event);
    }

    fn opened(&mut self, connection: u64) {
        let (transport, peer) = ("http".to_owned(), "127.0.0.1".to_owned());
        self.event(connection, EventKind::Opened { side: Side::Server, transport, peer });
        let headers = vec![("accept".to_owned(), "application/json, text/event-stream".to_owned())];
        let (method, target) = ("POST".to_owned(), "/mcp".to_owned());
        self.event(
            connection,
            EventKind::Request { direction: Direction::Received, method, target, headers },
        );
    }

    fn passes(&mut self, connection: u64, direction: Direction, message: Value) {
        let text = message.to_string();
        self.event(connection, EventKind::Message { direction, text, event_id: None });
    }

    fn closed(&mut self, connection: u64) {
        self.event(connection, EventKind::Closed { why: "finished".to_owned() });
    }

    fn finish(self) -> Vec<Judgement> {
        self.auditor.finish()
    }
}

fn opening(name: &str) -> Value {
    let mut params = initialize("2025-03-26", json!({}));
    params["clientInfo"]["name"] = json!(name);
    request(0, "initialize", params)
}

#[test]
fn sessions_that_open_at_the_same_time_are_judged_apart() {
    let mut server = Server::default();
    for connection in [1, 2] {
        server.opened(connection);
    }
    for (connection, name) in [(1, "one"), (2, "two")] {
        server.passes(connection, Direction::Received, opening(name));
    }
    for connection in [1, 2] {
        server.passes(connection, Direction::Sent, result(0, initialized("2025-03-26", json!({}))));
        server.closed(connection);
    }
    let judgements = server.finish();
    let names: Vec<_> = judgements.iter().map(|it| &*it.client).collect();
    assert_eq!(names, ["one 1", "two 1"]);
    assert!(judgements.iter().all(|it| it.kept().any(|verdict| verdict.rule.id == "LIFE-01")));
}

#[test]
fn requests_without_a_session_from_one_address_are_judged_together_and_apart_from_sessions() {
    let mut server = Server::default();
    for connection in [1, 2] {
        server.opened(connection);
        server.passes(
            connection,
            Direction::Received,
            stateless_request(1, "tools/call", json!({"name": "t"})),
        );
        server.passes(connection, Direction::Sent, stateless_result(1, json!({"content": []})));
        server.closed(connection);
    }
    server.opened(3);
    server.passes(3, Direction::Received, opening("session"));
    server.passes(3, Direction::Sent, result(0, initialized("2025-03-26", json!({}))));
    server.closed(3);
    let judgements = server.finish();
    let stateless: Vec<_> = judgements.iter().filter(|it| it.client == "c 1").collect();
    let [stateless] = &*stateless else { panic!("{judgements:#?}") };
    assert_eq!(stateless.verdicts.iter().find(|it| it.rule.id == "STATE-04").map(|it| it.kept), Some(2));
    assert!(judgements.iter().any(|it| it.client == "session 1"));
    assert_eq!(judgements.len(), 2);
}

/// A session over streamable HTTP, with ping in a batch that was refused.
fn refused_batch(revision: &str, status: u16) -> Script {
    let batch = json!([request(5, "ping", json!({}))]);
    Script::session("http", revision, json!({}), json!({"tools": {}}))
        .on_stream(3)
        .http(3, "POST", "/mcp", &[("accept", "application/json, text/event-stream")])
        .client(batch)
        .status(status, &[("content-type", "application/json")])
        .server(error(Value::Null, -32600, json!(null)))
        .ended()
}

#[test]
fn a_response_on_a_resumed_stream_is_not_that_to_a_request_that_was_refused() {
    let judgement = refused_batch("2025-06-18", 400)
        .on_stream(4)
        .http(4, "GET", "/mcp", &[("accept", "text/event-stream"), ("last-event-id", "1")])
        .status(200, &[("content-type", "text/event-stream")])
        .server_event("2", result(5, json!({"content": []})))
        .judge();
    let of_ping = judgement.verdicts.get(&rule::PING_01, Role::Server);
    assert!(of_ping.is_none_or(|verdict| verdict.broken == 0), "{of_ping:?}");
}

#[test]
fn a_batch_may_be_refused_for_its_token_as_a_whole() {
    for (status, broken) in [(401, 0), (403, 0), (400, 1)] {
        let judgement = refused_batch("2025-03-26", status).judge();
        let verdict = judgement.verdicts.get(&rule::RPC_08, Role::Server);
        assert_eq!(verdict.map_or(0, |verdict| verdict.broken), broken, "{status}");
    }
}

#[test]
fn clients_beyond_the_limit_are_judged_together_and_under_no_name() {
    let mut server = Server::default();
    for connection in 0..260 {
        server.opened(connection);
        server.passes(connection, Direction::Received, opening(&format!("c{connection}")));
        server.passes(connection, Direction::Sent, result(0, initialized("2025-03-26", json!({}))));
        server.closed(connection);
    }
    let judgements = server.finish();
    assert_eq!(judgements.len(), 256);
    let (last, others) = judgements.split_last().unwrap();
    assert_eq!((&*last.client, &*last.server), ("further clients", "s 1"));
    assert!(others.iter().enumerate().all(|(number, it)| it.client == format!("c{number} 1")));
}
