//! A transcript's endpoint whose messages are checked on their way.

use std::collections::HashMap;
use std::time::Duration;

use refmcp_proto::model::keys;
use refmcp_proto::revision::Revision;
use serde_json::Value;

use super::{Direction, Schemas};
use crate::transcript::Endpoint;

/// An endpoint, and what is wrong with the messages it sends.
#[derive(Debug)]
pub struct Checked<E> {
    endpoint: E,
    /// The revision of the session, or of whatever belongs to no request.
    revision: Revision,
    schemas: Schemas,
    /// The requests of the client, by their ids: in which revision, and which method.
    asked: HashMap<String, (Revision, String)>,
    faults: Vec<String>,
}

impl<E: Endpoint> Checked<E> {
    /// Checks what an endpoint sends in a conversation of this revision.
    pub fn new(endpoint: E, revision: Revision, schemas: Schemas) -> Self {
        Self { endpoint, revision, schemas, asked: HashMap::new(), faults: Vec::new() }
    }

    fn note_request(&mut self, message: &Value) {
        if let Value::Array(items) = message {
            return items.iter().for_each(|item| self.note_request(item));
        }
        let (Some(id), Some(method)) = (message.get("id"), message.get("method").and_then(Value::as_str))
        else {
            return;
        };
        let version = message.pointer("/params/_meta").and_then(|meta| meta.get(keys::PROTOCOL_VERSION));
        let named = version.and_then(Value::as_str).and_then(|version| version.parse().ok());
        // An id that is used twice belongs to the request that is served, and that is the first.
        let request = (named.unwrap_or(self.revision), method.to_owned());
        self.asked.entry(id.to_string()).or_insert(request);
    }

    fn check(&mut self, message: &Value) {
        if let Value::Array(items) = message {
            return items.iter().for_each(|item| self.check(item));
        }
        let agreed = message.pointer("/result/protocolVersion").and_then(Value::as_str);
        if let Some(agreed) = agreed.and_then(|version| version.parse().ok()) {
            self.revision = agreed;
        }
        let is_answer = message.get("method").is_none();
        let asked = message.get("id").filter(|_| is_answer).and_then(|id| self.asked.get(&id.to_string()));
        let revision = match asked {
            Some((_, method)) if method == "initialize" => self.revision,
            Some((revision, _)) => *revision,
            None => self.revision,
        };
        let Some(schema) = self.schemas.get(&revision) else {
            self.faults.push(format!("there is no schema of {revision} to check {message} against"));
            return;
        };
        if let Err(error) =
            schema.check(Direction::FromServer, message, asked.map(|(_, method)| method.as_str()))
        {
            self.faults.push(error);
        }
        if is_answer && let Some(id) = message.get("id") {
            // Refusals of a second use leave the first one open.
            if message.get("result").is_some() {
                self.asked.remove(&id.to_string());
            }
        }
    }
}

impl<E: Endpoint> Endpoint for Checked<E> {
    fn send(&mut self, text: &str) {
        if let Ok(message) = serde_json::from_str(text) {
            self.note_request(&message);
        }
        self.endpoint.send(text);
    }

    fn receive(&mut self) -> Vec<String> {
        let texts = self.endpoint.receive();
        for text in &texts {
            match serde_json::from_str(text) {
                Ok(message) => self.check(&message),
                Err(error) => self.faults.push(format!("{error} in {text}")),
            }
        }
        texts
    }

    fn advance(&mut self, by: Duration) {
        self.endpoint.advance(by);
    }

    fn act(&mut self, order: &str) -> Result<(), String> {
        self.endpoint.act(order)
    }

    fn events(&mut self) -> Vec<String> {
        self.endpoint.events()
    }

    fn faults(&mut self) -> Vec<String> {
        std::mem::take(&mut self.faults)
    }
}
