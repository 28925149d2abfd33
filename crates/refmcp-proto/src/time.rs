//! Time as an argument.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment, in milliseconds since the Unix epoch. A driver never passes an earlier one than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// A moment by its milliseconds since the Unix epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// The milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The moment as text of RFC 3339: in UTC, to the millisecond. Years have four digits, the last one is 9999.
    pub fn to_rfc3339(self) -> String {
        let (days, millis) = (self.0 / DAY, self.0 % DAY);
        let (year, month, day) = date(days);
        let year = year.min(9999);
        let ([y1, y2], [y3, y4]) = (two_digits(year / 100), two_digits(year % 100));
        let ([mo1, mo2], [d1, d2]) = (two_digits(month), two_digits(day));
        let ([h1, h2], [mi1, mi2]) = (two_digits(millis / 3_600_000), two_digits(millis / 60_000 % 60));
        let ([s1, s2], [ms1, ms2]) = (two_digits(millis / 1000 % 60), two_digits(millis % 1000 / 10));
        let [_, ms3] = two_digits(millis % 10);
        let date = [y1, y2, y3, y4, b'-', mo1, mo2, b'-', d1, d2, b'T'];
        let time = [h1, h2, b':', mi1, mi2, b':', s1, s2, b'.', ms1, ms2, ms3, b'Z'];
        // Digits and ASCII marks are UTF-8.
        String::from_utf8([date.as_slice(), &time].concat()).unwrap_or_default()
    }
}

/// A number below 100 as decimal digits. Formatting takes twenty times as long.
fn two_digits(value: u64) -> [u8; 2] {
    let value = u8::try_from(value).unwrap_or_default();
    [b'0' + value / 10, b'0' + value % 10]
}

/// Milliseconds of a day.
const DAY: u64 = 24 * 3600 * 1000;

/// Days of 400 years of the Gregorian calendar, after which it repeats.
const ERA: u64 = 146_097;

/// Year, month and day, so many days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Years that begin in March end with the leap day.
    let days = days + 719_468;
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Timestamp {
    type Output = Duration;

    /// How long after `earlier`; zero when it is not.
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_rfc_3339() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_164_799_999, "2024-02-28T23:59:59.999Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (1_735_603_200_001, "2024-12-31T00:00:00.001Z"),
            (1_772_353_800_000, "2026-03-01T08:30:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_987, "9999-12-31T23:59:59.987Z"),
            (253_402_300_800_000, "9999-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).to_rfc3339(), text);
        }
    }
}
