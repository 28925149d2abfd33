//! Plain checks of the notations a form can ask for: they catch mistakes, they do not prove existence.

use crate::model::StringFormat;

/// Whether the text looks like the notation; a notation this model does not know is not checked.
pub(super) fn matches(format: &StringFormat, text: &str) -> bool {
    match format {
        StringFormat::Email => is_email(text),
        StringFormat::Uri => is_uri(text),
        StringFormat::Date => is_date(text),
        StringFormat::DateTime => is_date_time(text),
        StringFormat::Other(_) => true,
    }
}

/// Something, one `@`, and dot-separated labels.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let clean =
        |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control());
    clean(local) && clean(domain) && !local.contains('@') && domain.split('.').all(|label| !label.is_empty())
}

/// A scheme, a colon, and something without the characters RFC 3986 rules out.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let starts_well = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let scheme_chars = scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let bad =
        |c: char| !c.is_ascii_graphic() || matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}');
    starts_well && scheme_chars && !rest.is_empty() && !rest.contains(bad)
}

/// Year, month and day as `YYYY-MM-DD`, of a day that exists.
fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = numbers(text, '-', [4, 2, 2]) else { return false };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// A date, `T`, a time and an offset, as RFC 3339 has it.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let Some(offset_at) = time.find(['Z', 'z', '+', '-']) else { return false };
    let (time, offset) = time.split_at(offset_at);
    is_date(date) && is_time(time) && is_offset(offset)
}

/// `hh:mm:ss` with an optional fraction; 60 is a leap second.
fn is_time(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let fraction_is_digits =
        fraction.is_none_or(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
    fraction_is_digits && matches!(numbers(whole, ':', [2, 2, 2]), Some([0..=23, 0..=59, 0..=60]))
}

/// `Z` or a signed `hh:mm`.
fn is_offset(text: &str) -> bool {
    let hours_and_minutes = text.strip_prefix(['+', '-']).and_then(|rest| numbers(rest, ':', [2, 2]));
    text.eq_ignore_ascii_case("z") || matches!(hours_and_minutes, Some([0..=23, 0..=59]))
}

/// The numbers of a text, each of exactly so many digits.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[u32; N]> {
    let mut parts = text.split(between);
    let mut numbers = [0; N];
    for (number, count) in numbers.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == count)?;
        *number = part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten()?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_formats_are_checked() {
        let cases = [
            ("email", "a.b+c@example.org", true),
            ("email", "a@localhost", true),
            ("email", "a@b@c", false),
            ("email", "@b", false),
            ("email", "a b@c", false),
            ("email", "a@b..c", false),
            ("uri", "https://example.org/a?b#c", true),
            ("uri", "urn:x", true),
            ("uri", "example.org", false),
            ("uri", "1a:b", false),
            ("uri", "a:", false),
            ("uri", "a:b c", false),
            ("date", "2024-02-29", true),
            ("date", "2023-02-29", false),
            ("date", "1900-02-29", false),
            ("date", "2024-13-01", false),
            ("date", "2024-1-01", false),
            ("date", "2024-01-01-", false),
            ("date-time", "2024-01-01T10:00:00Z", true),
            ("date-time", "2024-01-01t10:00:60.5+01:30", true),
            ("date-time", "2024-01-01T10:00:00", false),
            ("date-time", "2024-01-01T24:00:00Z", false),
            ("date-time", "2024-01-01T10:00:00.Z", false),
            ("date-time", "2024-01-01T10:00:00+1:00", false),
            ("date-time", "2024-01-01 10:00:00Z", false),
            ("hostname", "anything at all", true),
        ];
        for (format, text, good) in cases {
            assert_eq!(matches(&StringFormat::from(format), text), good, "{format} {text}");
        }
    }
}
