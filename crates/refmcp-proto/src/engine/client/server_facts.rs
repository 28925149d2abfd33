//! What a server has said of itself.

use crate::model::{Implementation, ServerCapabilities};
use crate::revision::{Revision, Rules};

/// The server of an open connection.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerFacts {
    /// The revision that is spoken with it.
    pub revision: Revision,
    /// What it calls itself; never a reason to trust it.
    pub info: Option<Implementation>,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// What a model should know of it.
    pub instructions: Option<String>,
    /// The revisions it says it speaks; only the agreed one where a session was opened.
    pub versions: Vec<String>,
    /// Its answer to `server/discover` or `initialize`, as it was written.
    pub answer: Box<str>,
}

impl ServerFacts {
    /// What holds in the revision that is spoken.
    pub fn rules(&self) -> &'static Rules {
        self.revision.rules()
    }
}
