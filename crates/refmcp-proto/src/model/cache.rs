//! Who may keep a result.

use serde::{Deserialize, Serialize};

/// Who may share a cached result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Everyone: the result is the same for all users.
    Public,
    /// Only the one who asked.
    Private,
}
