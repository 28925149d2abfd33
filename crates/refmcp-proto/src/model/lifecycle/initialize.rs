//! `initialize` opens a session, `server/discover` does without one.

use crate::model::{ClientCapabilities, Implementation, RequestMeta, ServerCapabilities};

json_object! {
    /// Parameters of `initialize` (older revisions only).
    pub struct InitializeParams {
        /// The revision the client would like to speak.
        protocol_version: String,
        /// What the client can do.
        capabilities: ClientCapabilities,
        /// Who the client is.
        client_info: Implementation,
        _meta: RequestMeta,
    }
}

impl InitializeParams {
    /// A client that can do nothing special.
    pub fn new(protocol_version: impl Into<String>, client_info: Implementation) -> Self {
        Self { protocol_version: protocol_version.into(), client_info, ..Self::default() }
    }
}

json_object! {
    /// The answer to `initialize` (older revisions only).
    pub struct InitializeResult {
        /// The revision the session speaks.
        protocol_version: String,
        /// What the server offers.
        capabilities: ServerCapabilities,
        /// Who the server is.
        server_info: Implementation,
        /// How to use the server, for the model.
        instructions?: String,
        ..result,
        /// An answer without instructions.
        fn new,
    }

    /// The answer to `server/discover`.
    pub struct DiscoverResult {
        /// The revisions the server speaks without a session.
        supported_versions: Vec<String>,
        /// What the server offers.
        capabilities: ServerCapabilities,
        /// How to use the server, for the model.
        instructions?: String,
        ..cacheable_result,
        /// An answer without instructions.
        fn new,
    }
}
