//! Conversations over streamable HTTP: heads as good clients and servers send them.

use refmcp_proto::revision::Revision;
use serde_json::{Value, json};

use crate::script::{Script, stateless_meta};

pub(crate) const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");
pub(crate) const SESSION: (&str, &str) = ("mcp-session-id", "***");
pub(crate) const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
pub(crate) const SSE: &[(&str, &str)] = &[("content-type", "text/event-stream"), ("x-accel-buffering", "no")];

pub(crate) fn ping(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

pub(crate) fn result(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {}})
}

pub(crate) fn changed() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
}

pub(crate) fn initialize(revision: &str) -> Value {
    let info = json!({"name": "c", "version": "1"});
    let capabilities = json!({"roots": {"listChanged": true}});
    let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": info});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// `initialize` is posted on stream 1.
pub(crate) fn opening(revision: &str) -> Script {
    Script::new("http").http(1, "POST", "/mcp", &[ACCEPT]).client(initialize(revision))
}

/// The session is open, and has an id.
pub(crate) fn session(revision: &str) -> Script {
    opening(revision).status(200, &[JSON[0], SESSION]).opened(revision).initialized(revision)
}

impl Script {
    /// The result of `initialize`.
    pub(crate) fn opened(self, revision: &str) -> Self {
        let info = json!({"name": "s", "version": "1"});
        let capabilities = json!({"tools": {"listChanged": true}});
        let opened = json!({"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info});
        self.server(json!({"jsonrpc": "2.0", "id": 0, "result": opened})).ended()
    }

    /// The client confirms the session on stream 2.
    pub(crate) fn initialized(self, revision: &str) -> Self {
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.post(2, revision, initialized).status(202, &[]).ended()
    }

    /// The client posts a message of the session.
    pub(crate) fn post(self, stream: u64, revision: &str, message: Value) -> Self {
        let headers = [ACCEPT, SESSION, ("mcp-protocol-version", revision)];
        self.http(stream, "POST", "/mcp", &headers).client(message)
    }

    /// The client asks for the GET stream.
    pub(crate) fn get(self, stream: u64, revision: &str, more: &[(&str, &str)]) -> Self {
        let headers = [("accept", "text/event-stream"), SESSION, ("mcp-protocol-version", revision)];
        self.http(stream, "GET", "/mcp", &[&headers, more].concat())
    }

    /// A ping that is answered with JSON.
    pub(crate) fn pinged(self, stream: u64, revision: &str) -> Self {
        self.post(stream, revision, ping(stream)).status(200, JSON).server(result(stream)).ended()
    }

    /// A request without a session, whose id is the number of its stream.
    pub(crate) fn stateless(self, stream: u64, method: &str, params: Value, more: &[(&str, &str)]) -> Self {
        let headers = [ACCEPT, ("mcp-protocol-version", Revision::LATEST.as_str()), ("mcp-method", method)];
        self.http(stream, "POST", "/mcp", &[&headers, more].concat())
            .client(stateless_request(stream, method, params))
    }

    /// The result of such a request, as JSON.
    pub(crate) fn stateless_result(self, id: u64, mut result: Value) -> Self {
        result["resultType"] = "complete".into();
        let info = json!({"name": "s", "version": "1"});
        result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": info});
        self.status(200, JSON).server(json!({"jsonrpc": "2.0", "id": id, "result": result})).ended()
    }
}

pub(crate) fn stateless_request(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = stateless_meta();
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}
