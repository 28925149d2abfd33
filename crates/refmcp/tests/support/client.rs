//! A client that speaks one revision.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::Process;

/// How a client introduces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// By a handshake of this revision.
    Session(&'static str),
    /// With every request.
    Stateless,
}

/// The revision without sessions.
pub(crate) const STATELESS: &str = "2026-07-28";

impl Version {
    /// The JSON text of a request.
    pub(crate) fn request(self, id: impl Into<Value>, method: &str, params: &Value) -> String {
        let mut params = params.clone();
        if self == Self::Stateless {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(STATELESS);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities();
        }
        json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params }).to_string()
    }

    /// The JSON text of a tool call.
    pub(crate) fn call(self, id: impl Into<Value>, tool: &str, arguments: &Value) -> String {
        self.request(id, "tools/call", &json!({ "name": tool, "arguments": arguments }))
    }
}

fn capabilities() -> Value {
    json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} })
}

/// A client and the server it has started.
pub(crate) struct Client {
    pub(crate) process: Process,
    pub(crate) version: Version,
    requests: u64,
    early: VecDeque<Value>,
}

impl Client {
    /// Starts `refmcp stdio` with these arguments and introduces itself.
    pub(crate) fn start(version: Version, args: &[&str]) -> Self {
        Self::with(version, Process::stdio(args))
    }

    /// Introduces itself to a server without a session.
    pub(crate) fn with(version: Version, process: Process) -> Self {
        let mut client = Self { process, version, requests: 0, early: VecDeque::new() };
        if let Version::Session(revision) = version {
            client.process.send_line(Self::initialize(revision));
            let answer = client.answer_to(&json!("init"));
            assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
            client.process.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
        client
    }

    /// The request that opens a session.
    pub(crate) fn initialize(revision: &str) -> String {
        let params = refmcp_testkit::messages::initialize_params("tests", revision, capabilities());
        Version::Session("").request("init", "initialize", &params)
    }

    /// The next message of any kind.
    pub(crate) fn next(&mut self) -> Value {
        self.early.pop_front().unwrap_or_else(|| self.read())
    }

    fn read(&self) -> Value {
        let Some(line) = self.process.next_line() else {
            panic!("the server is gone; stderr: {}", self.process.errors());
        };
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("not JSON ({error}): {line}"))
    }

    /// The answer to a request; what comes before it is kept.
    pub(crate) fn answer_to(&mut self, id: &Value) -> Value {
        let is_answer = |message: &Value| message["id"] == *id && message.get("method").is_none();
        if let Some(place) = self.early.iter().position(is_answer) {
            return self.early.remove(place).expect("it was found there");
        }
        loop {
            let message = self.read();
            if is_answer(&message) {
                return message;
            }
            self.early.push_back(message);
        }
    }

    /// The first message that is a notification of this method.
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        if let Some(place) = self.early.iter().position(|message| message["method"] == method) {
            return self.early.remove(place).expect("it was found there");
        }
        loop {
            let message = self.read();
            if message["method"] == method {
                return message;
            }
            self.early.push_back(message);
        }
    }

    /// Sends a request with an id of its own and waits for the answer.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        let id = json!(format!("ask-{}", self.requests));
        self.process.send_line(self.version.request(id.clone(), method, params));
        self.answer_to(&id)
    }

    /// Calls a tool and waits for the answer.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Sends a notification.
    pub(crate) fn notify(&self, method: &str, params: &Value) {
        self.process.send_line(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Shows that the server still serves this client.
    pub(crate) fn is_served(&mut self) {
        let word = format!("still here {}", self.requests);
        let answer = self.call("echo", &json!({ "message": word }));
        assert_eq!(text_of(&answer), word, "{answer}");
    }

    /// Whether a notification of this method has come.
    pub(crate) fn has_heard(&self, method: &str) -> bool {
        self.early.iter().any(|message| message["method"] == method)
    }

    /// Shows that nothing was said since, and nothing is on its way: an echo comes back first.
    pub(crate) fn hears_nothing(&mut self, why: &str) {
        self.is_served();
        assert!(self.early.is_empty(), "{why}: {:?}", self.early);
    }
}

/// The text of a tool's result.
pub(crate) fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}
