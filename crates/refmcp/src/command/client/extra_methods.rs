//! Methods beyond the protocol: a server declares them before they are used.

use anyhow::Result;
use refmcp_client::model::ServerCapabilities;

use super::session::Session;
use crate::args::{ExitError, ExitReason};

/// A family of methods beyond the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExtraMethods {
    /// `models/list` and `models/select`.
    Models,
    /// `metadata/get`.
    Metadata,
}

impl ExtraMethods {
    /// The capability in the answer to `initialize`.
    fn capability(self) -> &'static str {
        match self {
            Self::Models => "models",
            Self::Metadata => "metadata",
        }
    }

    /// The extension in the answer to `server/discover`.
    fn extension(self) -> &'static str {
        match self {
            Self::Models => "refmcp/models",
            Self::Metadata => "refmcp/metadata",
        }
    }

    /// Whether a server declares it, in one way or the other.
    pub(crate) fn is_in(self, capabilities: &ServerCapabilities) -> bool {
        let extensions = capabilities.extensions.as_ref();
        capabilities.extra.contains_key(self.capability())
            || extensions.is_some_and(|extensions| extensions.contains_key(self.extension()))
    }

    /// Refuses to ask a server that does not declare it.
    pub(crate) fn require(self, session: &Session) -> Result<()> {
        if self.is_in(&session.client.server().capabilities) {
            return Ok(());
        }
        let (capability, extension) = (self.capability(), self.extension());
        let what = format!(
            "the server declares no {capability}: neither the capability \"{capability}\" nor the extension \
             \"{extension}\" is among what it offers (see `info`); `raw` asks all the same"
        );
        Err(ExitError::new(ExitReason::Failed, what).into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn either_declaration_counts() {
        for (capabilities, models, metadata) in [
            (json!({}), false, false),
            (json!({ "models": {} }), true, false),
            (json!({ "extensions": { "refmcp/metadata": {} } }), false, true),
            (json!({ "extensions": { "models": {} }, "experimental": { "models": {} } }), false, false),
        ] {
            let read: ServerCapabilities = serde_json::from_value(capabilities.clone()).unwrap();
            let declared = (ExtraMethods::Models.is_in(&read), ExtraMethods::Metadata.is_in(&read));
            assert_eq!(declared, (models, metadata), "{capabilities}");
        }
    }
}
