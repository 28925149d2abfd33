//! Times as text of RFC 3339: in UTC, to the millisecond.

use std::time::{SystemTime, UNIX_EPOCH};

use refmcp_server::Timestamp;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{Duration, OffsetDateTime};

const RFC_3339: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

/// A time as text.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    let since = Duration::milliseconds(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
    // Every part of the format is there.
    OffsetDateTime::UNIX_EPOCH.saturating_add(since).format(RFC_3339).unwrap_or_default()
}

/// The time of a file as text; files from before 1970 are as old as that.
pub(crate) fn of_file(time: SystemTime) -> String {
    rfc3339(Timestamp::default() + time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_772_353_800_000, "2026-03-01T08:30:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Timestamp::from_millis(millis)), text);
        }
    }
}
