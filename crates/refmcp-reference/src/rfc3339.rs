//! Times of files as text of RFC 3339.

use std::time::{SystemTime, UNIX_EPOCH};

use refmcp_server::Timestamp;

/// The time of a file as text; files from before 1970 are as old as that.
pub(crate) fn of_file(time: SystemTime) -> String {
    (Timestamp::default() + time.duration_since(UNIX_EPOCH).unwrap_or_default()).to_rfc3339()
}
