//! Sessions as replicas share them, and the limits of what is kept.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

/// The id of a session. It is a secret, and never shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// The authenticated principal that has opened it. No other may use it; callers compare.
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

/// How much is kept, and for how long. Bytes are counted with something on top for each thing that is kept, so that
/// many small ones have a limit as well.
#[derive(Debug, Clone)]
pub struct BackplaneSettings {
    /// Open sessions. Another one is refused.
    pub sessions: usize,
    /// The length of a session's facts. Longer ones are refused.
    pub facts_bytes: usize,
    /// Streams of a session, the standing one not counted. Finished ones that were read to the end make room; after
    /// that, another one is refused.
    pub streams: usize,
    /// The events of one stream. The oldest go; a reader who needs them is told.
    pub stream_bytes: usize,
    /// All that is kept for one session. Finished streams that were read to the end make room, then responses and parked
    /// calls that were given, then the oldest events of the longest stream; the end of a stream that was not read to the
    /// end never does.
    pub session_bytes: usize,
    /// All that is kept for all sessions. The session that keeps most makes room, in the same order.
    pub total_bytes: usize,
    /// For how long a stream is kept after its end.
    pub retention: Duration,
    /// After that, for how many streams of a session it is known what they answered.
    pub tombstones: usize,
    /// Server requests of a session that are pending or were not long ago. Another one is refused.
    pub pending_requests: usize,
    /// For how long after its time a server request is remembered, so that its response is late and not unknown.
    pub late: Duration,
    /// Detached calls of a session that are parked. Another one is refused.
    pub parked_calls: usize,
    /// Tasks of all owners. Another one is refused.
    pub tasks: usize,
    /// Tasks of one owner. Another one is refused.
    pub owner_tasks: usize,
    /// All that is kept for the tasks of one owner. What does not fit is refused.
    pub owner_task_bytes: usize,
    /// All that is kept for all tasks. What does not fit is refused.
    pub total_task_bytes: usize,
    /// Topics whose generations are told apart. The one that has not changed for longest is forgotten, which looks as
    /// if it had changed.
    pub topics: usize,
    /// One-time keys that are remembered. Another one is refused.
    pub keys: usize,
}

impl Default for BackplaneSettings {
    fn default() -> Self {
        Self {
            sessions: 10_000,
            facts_bytes: 64 << 10,
            streams: 256,
            stream_bytes: 4 << 20,
            session_bytes: 16 << 20,
            total_bytes: 256 << 20,
            retention: Duration::from_secs(300),
            tombstones: 1024,
            pending_requests: 256,
            late: Duration::from_secs(60),
            parked_calls: 256,
            tasks: 200_000,
            owner_tasks: 10_000,
            owner_task_bytes: 64 << 20,
            total_task_bytes: 256 << 20,
            topics: 10_000,
            keys: 100_000,
        }
    }
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
