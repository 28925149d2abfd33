//! A session, as replicas share it.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// The id of a session. Whoever knows it may use the session, so it is never shown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// The id as the client sends it. What makes it unguessable is up to the caller.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id itself, to be sent to its client or hashed.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SessionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId(..)")
    }
}

/// What a session begins with.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// Who has opened it, if somebody was authenticated. Nobody else may use it; callers compare.
    pub principal: Option<Arc<str>>,
    /// The revision that was agreed on.
    pub revision: Arc<str>,
    /// What was said when it was opened, in a form that only replicas read.
    pub facts: Bytes,
}

/// What is known of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Who has opened it.
    pub principal: Option<Arc<str>>,
    /// The revision that was agreed on.
    pub revision: Arc<str>,
    /// What was said when it was opened or has been added since.
    pub facts: Bytes,
    /// Counts the changes of the facts, from 1.
    pub version: u64,
}

/// What became of a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateOutcome {
    /// It is open.
    Created,
    /// The id is in use.
    Taken,
    /// There are as many as there may be, or no room is left.
    Full,
    /// The facts are longer than they may be.
    TooLarge,
}

/// What became of a change of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateOutcome {
    /// It was made; this is the new version.
    Updated(u64),
    /// Somebody else was faster; this is what the session is now.
    Conflict(SessionRecord),
    /// There is no such session.
    Unknown,
    /// The facts are longer than they may be.
    TooLarge,
    /// No room is left for them.
    Full,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_not_shown() {
        let id = SessionId::new("a-secret-id");
        assert_eq!(format!("{id:?}"), "SessionId(..)");
        assert_eq!(id.reveal(), "a-secret-id");
    }
}
