//! Times as text.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds of a day.
const DAY: u64 = 86_400_000;

/// Milliseconds since 1970; times before that are as old as that.
pub(super) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A time in UTC as RFC 3339 writes it, to the millisecond.
pub(super) fn text(time: SystemTime) -> String {
    let millis = millis(time);
    let (year, month, day) = date(millis / DAY);
    let rest = millis % DAY;
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1000)
}

/// The date of a day since 1970, by taking away whole years and then whole months.
fn date(mut days: u64) -> (u64, usize, u64) {
    // The calendar repeats itself after 400 years, so a day in the far future costs no more than a near one.
    const FOUR_CENTURIES: u64 = 146_097;
    let mut year = 1970 + days / FOUR_CENTURIES * 400;
    days %= FOUR_CENTURIES;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn known_times() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_767_225_599_999, "2025-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (13_574_563_200_000, "2400-02-29T00:00:00.000Z"),
        ] {
            assert_eq!(text(UNIX_EPOCH + Duration::from_millis(millis)), expected);
        }
        assert_eq!(text(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
    }
}
