//! Conversations of a client, without a server and with time as an argument.

mod calls;
mod ignored_input;
mod negotiation;
mod server_requests;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::model::{ClientCapabilities, Implementation, JsonObject};
use crate::revision::Revision;

const START: Timestamp = Timestamp::from_millis(1_000_000);

struct Rig {
    engine: ClientEngine,
    now: Timestamp,
}

/// What a test looks at.
#[derive(Debug, PartialEq)]
enum Seen {
    Sent(Value),
    Abandoned(u64),
    Opened(Revision),
    Closed(String),
    Done(u64, Result<Value, String>),
    Asked(u64, String),
    Withdrawn(u64),
    Heard(Option<u64>, String),
    Task(u64, String),
    Noted(&'static str),
    Ignored(String),
}

impl Rig {
    fn new(change: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut config = ClientConfig::new(Implementation::new("c", "1"));
        config.capabilities = serde_json::from_value::<ClientCapabilities>(
            json!({ "roots": {}, "sampling": {}, "elicitation": { "form": {} } }),
        )
        .unwrap();
        change(&mut config);
        let mut rig = Self { engine: ClientEngine::new(Arc::new(config)), now: START };
        rig.engine.open(rig.now);
        rig
    }

    fn seen(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        while let Some(output) = self.engine.poll() {
            seen.push(match output {
                ClientOutput::Send(message) => Seen::Sent(serde_json::from_slice(&message.json).unwrap()),
                ClientOutput::Abandon(exchange) => Seen::Abandoned(exchange.0),
                ClientOutput::Opened(server) => Seen::Opened(server.revision),
                ClientOutput::Closed(why) => Seen::Closed(why.to_string()),
                ClientOutput::Done(call, outcome) => Seen::Done(
                    call.0,
                    match outcome {
                        Ok(CallResult::Complete(text)) => Ok(serde_json::from_str(&text).unwrap()),
                        Ok(CallResult::InputRequired(result)) => Ok(serde_json::to_value(result).unwrap()),
                        Ok(CallResult::Task(task, _)) => Ok(serde_json::to_value(task).unwrap()),
                        Err(error) => Err(error.to_string()),
                    },
                ),
                ClientOutput::Request(ask) => Seen::Asked(ask.id.0, ask.request.method().to_owned()),
                ClientOutput::RequestCancelled(question) => Seen::Withdrawn(question.0),
                ClientOutput::Notification(call, heard) => {
                    Seen::Heard(call.map(|call| call.0), heard.method().to_owned())
                }
                ClientOutput::Task(call, task) => Seen::Task(call.0, task.status.as_str().to_owned()),
                ClientOutput::Finding(finding) => Seen::Noted(finding.rule.id),
                ClientOutput::Ignored(what) => Seen::Ignored(what),
            });
        }
        seen
    }

    fn hear(&mut self, mut message: Value) -> Vec<Seen> {
        message["jsonrpc"] = json!("2.0");
        self.engine.receive(self.now, None, message.to_string().as_bytes());
        self.seen()
    }

    fn pass(&mut self, millis: u64) -> Vec<Seen> {
        self.now = self.now + Duration::from_millis(millis);
        if self.engine.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.engine.tick(self.now);
        }
        self.seen()
    }

    fn call(&mut self, method: &str, params: &str, options: CallOptions) -> u64 {
        self.engine.call(self.now, method.into(), None, params.into(), options).0
    }

    /// A connection with a session.
    fn session() -> Self {
        let mut rig = Self::new(|config| config.version_policy = VersionPolicy::Legacy);
        rig.seen();
        let seen = rig.hear(json!({ "id": 1, "result": initialized("2025-11-25") }));
        assert!(seen.contains(&Seen::Opened(Revision::V2025_11_25)), "{seen:?}");
        rig
    }

    /// A connection without a session.
    fn stateless(way: TransportKind) -> Self {
        let mut rig = Self::new(|config| config.transport = way);
        rig.seen();
        let seen = rig
            .hear(json!({ "id": 1, "result": { "supportedVersions": ["2026-07-28"], "capabilities": {} } }));
        assert_eq!(seen, [Seen::Opened(Revision::V2026_07_28)]);
        rig
    }
}

fn initialized(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } })
}

fn sent(seen: &[Seen]) -> &Value {
    let found = seen.iter().find_map(|seen| match seen {
        Seen::Sent(message) => Some(message),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("nothing sent: {seen:?}"))
}
