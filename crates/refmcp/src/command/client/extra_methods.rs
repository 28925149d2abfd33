//! Methods beyond the protocol: a server declares them before they are used.

use anyhow::Result;
use refmcp_client::model::ServerCapabilities;

use super::session::Session;
use crate::args::{ExitError, ExitReason};

/// A family of methods beyond the protocol, by the capability in the answer to `initialize`.
#[derive(Clone, Copy)]
pub(crate) struct ExtraMethods(&'static str);

impl ExtraMethods {
    /// `models/list` and `models/select`.
    pub(crate) const MODELS: Self = Self("models");

    /// `metadata/get`.
    pub(crate) const METADATA: Self = Self("metadata");

    /// The extension in the answer to `server/discover`.
    fn extension(self) -> String {
        format!("refmcp/{}", self.0)
    }

    /// Whether a server declares it, in one way or the other.
    pub(crate) fn is_in(self, capabilities: &ServerCapabilities) -> bool {
        let extensions = capabilities.extensions.as_ref();
        capabilities.extra.contains_key(self.0)
            || extensions.is_some_and(|extensions| extensions.contains_key(&self.extension()))
    }

    /// Refuses to ask a server that does not declare it.
    pub(crate) fn require(self, session: &Session) -> Result<()> {
        if self.is_in(&session.client.server().capabilities) {
            return Ok(());
        }
        let (capability, extension) = (self.0, self.extension());
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
            let declared = (ExtraMethods::MODELS.is_in(&read), ExtraMethods::METADATA.is_in(&read));
            assert_eq!(declared, (models, metadata), "{capabilities}");
        }
    }
}
