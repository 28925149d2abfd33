//! Requests, responses and notifications of scripts, in few words.

use refmcp_audit::verdict::Role;
use refmcp_proto::revision::Revision;
use refmcp_proto::rule::Rule;
use serde_json::{Value, json};

use crate::script::{Example, Script, stateless_meta};

impl Script {
    /// The client sends a request.
    pub(crate) fn asks(self, id: u64, method: &str, params: Value) -> Self {
        self.client(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    /// The server answers with a result.
    pub(crate) fn answers(self, id: u64, result: Value) -> Self {
        self.server(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// The server answers with an error.
    pub(crate) fn refuses(self, id: u64, code: i64) -> Self {
        self.refuses_with(id, code, Value::Null)
    }

    /// The server answers with an error that has data.
    pub(crate) fn refuses_with(self, id: u64, code: i64, data: Value) -> Self {
        let mut error = json!({"code": code, "message": "refused"});
        if !data.is_null() {
            error["data"] = data;
        }
        self.server(json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    /// The server sends a notification.
    pub(crate) fn notifies(self, method: &str, params: Value) -> Self {
        self.server(json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// The server sends a request.
    pub(crate) fn server_asks(self, id: u64, method: &str, params: Value) -> Self {
        self.server(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    /// The client answers with a result.
    pub(crate) fn client_answers(self, id: u64, result: Value) -> Self {
        self.client(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// The client sends a notification.
    pub(crate) fn client_notifies(self, method: &str, params: Value) -> Self {
        self.client(json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// The client sends a request without a session, with these capabilities.
    pub(crate) fn asks_alone(self, id: u64, method: &str, mut params: Value, capabilities: Value) -> Self {
        let mut meta = stateless_meta();
        meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        match &mut params["_meta"] {
            Value::Object(more) => more.extend(meta.as_object().unwrap().clone()),
            none => *none = meta,
        }
        self.asks(id, method, params)
    }

    /// The server answers a request without a session with a result of this type.
    pub(crate) fn answers_as(self, id: u64, kind: &str, mut result: Value) -> Self {
        result["resultType"] = json!(kind);
        result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}});
        self.answers(id, result)
    }

    /// The server answers a request without a session with a complete result.
    pub(crate) fn completes(self, id: u64, result: Value) -> Self {
        self.answers_as(id, "complete", result)
    }

    /// The server is asked what it is, and has these capabilities.
    pub(crate) fn discovered(self, capabilities: Value) -> Self {
        let result = json!({
            "supportedVersions": [Revision::LATEST.as_str()], "capabilities": capabilities,
            "ttlMs": 0, "cacheScope": "private",
        });
        self.asks_alone(900, "server/discover", json!({}), json!({})).completes(900, result)
    }
}

/// An example of what a client does.
pub(crate) fn client(rule: &'static Rule, kept: Script, broken: Vec<Script>) -> Example {
    Example { rule, role: Role::Client, kept, broken }
}

/// An example of what a server does.
pub(crate) fn server(rule: &'static Rule, kept: Script, broken: Vec<Script>) -> Example {
    Example { rule, role: Role::Server, kept, broken }
}
