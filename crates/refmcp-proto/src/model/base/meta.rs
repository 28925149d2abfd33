//! The `_meta` objects: open maps, of which a few keys belong to the protocol.

use std::sync::Arc;

use crate::jsonrpc::{ProgressToken, RequestId};
use crate::model::{ClientCapabilities, Implementation, JsonObject, LogLevel};

/// `_meta` of an item or a content block: nothing in it belongs to the protocol.
pub type Meta = JsonObject;

/// The names of the keys that belong to the protocol.
pub mod keys {
    /// Request: the revision the client speaks.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Request: what the client can do.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Request: who the client is.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// Request: the least severe log message the client wants while the request runs.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Request: the token under which the client wants progress.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// Result: who the server is.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Notification and listen result: the id of the listen request it belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Any message: the task it belongs to (2025-11-25).
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
}

json_object! {
    /// `_meta` of a request. All members are optional here: which ones must be present depends on the revision.
    pub struct RequestMeta {
        /// The revision the client speaks.
        #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
        protocol_version?: String,
        /// What the client can do.
        #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
        client_capabilities?: ClientCapabilities,
        /// Who the client is.
        #[serde(rename = "io.modelcontextprotocol/clientInfo")]
        client_info?: Implementation,
        /// The least severe log message the client wants while the request runs; absent means none.
        #[serde(rename = "io.modelcontextprotocol/logLevel")]
        log_level?: LogLevel,
        /// The token under which the client wants progress; absent means none.
        #[serde(rename = "progressToken")]
        progress_token?: ProgressToken,
    }

    /// `_meta` of a result.
    pub struct ResultMeta {
        /// Who the server is; shared, because every result of a server carries the same.
        #[serde(rename = "io.modelcontextprotocol/serverInfo")]
        server_info?: Arc<Implementation>,
        /// The listen request that ends with this result.
        #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
        subscription_id?: RequestId,
    }

    /// `_meta` of a notification.
    pub struct NotificationMeta {
        /// The listen request on whose stream the notification travels.
        #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
        subscription_id?: RequestId,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_keys_are_the_names_on_the_wire() {
        let all = json!({
            keys::PROTOCOL_VERSION: "x",
            keys::CLIENT_CAPABILITIES: {},
            keys::CLIENT_INFO: {"name": "c", "version": "1"},
            keys::LOG_LEVEL: "info",
            keys::PROGRESS_TOKEN: 7,
            "traceparent": "00-0-0-01",
        });
        let meta: RequestMeta = serde_json::from_value(all.clone()).unwrap();
        assert_eq!(meta.extra.keys().collect::<Vec<_>>(), ["traceparent"]);
        assert_eq!(serde_json::to_value(&meta).unwrap(), all);

        let all = json!({keys::SERVER_INFO: {"name": "s", "version": "1"}, keys::SUBSCRIPTION_ID: "l"});
        let meta: ResultMeta = serde_json::from_value(all.clone()).unwrap();
        assert!(meta.extra.is_empty());
        assert_eq!(serde_json::to_value(&meta).unwrap(), all);
    }

    #[test]
    fn null_reads_as_absent() {
        let meta: RequestMeta = serde_json::from_value(json!({keys::CLIENT_INFO: null, "x": null})).unwrap();
        assert_eq!(meta.client_info, None);
        assert_eq!(meta.extra.get("x"), Some(&Value::Null));
    }

    #[test]
    fn huge_ids_keep_their_digits() {
        let text = r#"{"progressToken":18446744073709551615}"#;
        let meta: RequestMeta = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&meta).unwrap(), text);
    }
}
