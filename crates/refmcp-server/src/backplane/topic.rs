//! Changes that everybody hears of, and keys that are good for one time.

use std::sync::Arc;

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicChanges {
    /// The topics with their generations, the oldest change first.
    pub topics: Vec<(Arc<str>, u64)>,
    /// More has changed than is remembered: anything may have.
    pub missed: bool,
    /// Where to go on from.
    pub latest: u64,
}

/// Whether a key was good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnceOutcome {
    /// It was, and no longer is.
    First,
    /// It was used before.
    Again,
    /// Too many keys are remembered to take another. Forgetting one would make it good again, so this one is refused.
    Full,
}
