//! Parts of messages that tests of every crate send.

use refmcp_proto::model::keys;
use serde_json::{Value, json};

/// The notification that ends the opening of a session.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The parameters of `initialize`, of a client with this name.
pub fn initialize_params(client: &str, revision: &str, capabilities: impl Into<Value>) -> Value {
    json!({ "protocolVersion": revision, "capabilities": capabilities.into(), "clientInfo": client_info(client) })
}

/// The `_meta` that every request carries in revisions without sessions.
pub fn request_meta(client: &str, revision: &str, capabilities: impl Into<Value>) -> Value {
    json!({
        keys::PROTOCOL_VERSION: revision,
        keys::CLIENT_INFO: client_info(client),
        keys::CLIENT_CAPABILITIES: capabilities.into(),
    })
}

fn client_info(name: &str) -> Value {
    json!({ "name": name, "version": "1" })
}
