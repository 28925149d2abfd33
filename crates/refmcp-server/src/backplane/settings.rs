//! The limits of a backplane.

use std::time::Duration;

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
    /// All that is kept for one session. Finished streams that were read to the end make room, then the oldest events
    /// of the longest stream; the end of a stream that was not read to the end never does.
    pub session_bytes: usize,
    /// All that is kept for all sessions. The session that keeps most makes room, in the same order.
    pub total_bytes: usize,
    /// For how long a stream is kept after its end.
    pub retention: Duration,
    /// After that, for how many streams of a session it is known what they answered.
    pub tombstones: usize,
    /// Questions of a session that are open or were not long ago. Another one is refused.
    pub questions: usize,
    /// For how long after its time a question is remembered, so that the answer is late and not unknown.
    pub late: Duration,
    /// Calls of a session that wait. Another one is refused.
    pub waiting: usize,
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
            questions: 256,
            late: Duration::from_secs(60),
            waiting: 256,
            topics: 10_000,
            keys: 100_000,
        }
    }
}
