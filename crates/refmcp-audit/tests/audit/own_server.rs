//! The project's own server in the transcripts of its protocol: whatever its clients do there, it breaks no rule itself.

use std::path::Path;
use std::time::Duration;

use refmcp_audit::Auditor;
use refmcp_audit::recording::{Direction, Event, EventKind, Side};
use refmcp_audit::verdict::Role;
use refmcp_proto::jsonrpc::{Limits, decode};
use refmcp_proto::revision::Revision;
use refmcp_testkit::engine::{TestEngine, config_from, server_info};
use refmcp_testkit::transcript::{Endpoint, Settings, run_folder};

/// An endpoint whose messages are judged.
struct Audited<E> {
    endpoint: E,
    auditor: Auditor,
    at: u64,
}

impl<E: Endpoint> Audited<E> {
    fn new(endpoint: E) -> Self {
        let mut audited = Self { endpoint, auditor: Auditor::default(), at: 1 };
        let (transport, peer) = ("memory".to_owned(), String::new());
        audited.observe(EventKind::Opened { side: Side::Server, transport, peer });
        audited
    }

    fn observe(&mut self, kind: EventKind) {
        self.at += 1;
        let event = Event { at: self.at, connection: 1, revision: None, stream: None, kind };
        self.auditor.observe(&event);
    }

    fn passes(&mut self, direction: Direction, text: &str) {
        self.observe(match decode(text.as_bytes(), &Limits::default()) {
            Ok(_) => EventKind::Message { direction, text: text.to_owned(), event_id: None },
            Err(error) => {
                let (bytes, why) = (text.as_bytes().to_owned(), error.to_string());
                EventKind::Invalid { direction, bytes, why }
            }
        });
    }
}

impl<E: Endpoint> Endpoint for Audited<E> {
    fn send(&mut self, text: &str) {
        self.passes(Direction::Received, text);
        self.endpoint.send(text);
    }

    fn receive(&mut self) -> Vec<String> {
        let messages = self.endpoint.receive();
        for message in &messages {
            self.passes(Direction::Sent, message);
        }
        messages
    }

    fn advance(&mut self, by: Duration) {
        self.at += by.as_millis() as u64;
        self.endpoint.advance(by);
    }

    fn act(&mut self, order: &str) -> Result<(), String> {
        self.endpoint.act(order)
    }

    fn events(&mut self) -> Vec<String> {
        self.endpoint.events()
    }

    fn faults(&mut self) -> Vec<String> {
        let new = self.auditor.take_new().into_iter().filter(|(_, role, _)| *role == Role::Server);
        new.map(|(rule, _, violation)| format!("{rule}: {}: {}", violation.what, violation.evidence.text))
            .collect()
    }
}

#[test]
fn the_server_breaks_no_rule_in_any_transcript() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../refmcp-proto/tests/transcripts");
    let info = serde_json::to_value(server_info()).unwrap();
    let mut start = |settings: &Settings, _: Revision| {
        Ok(Box::new(Audited::new(TestEngine::new(config_from(settings)?))) as Box<dyn Endpoint>)
    };
    match run_folder(&folder, &info, &mut start) {
        Ok(held) => assert!(held > 100, "{held} conversations"),
        Err(problems) => panic!("{problems}"),
    }
}
