//! The size of regular expressions in schemas.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// States of a class of characters, and of one that Unicode defines.
const CLASS: u64 = 16;
const UNICODE_CLASS: u64 = 64;

/// About how many states a pattern has once its repetitions are written out.
pub(super) fn states(pattern: &str) -> u64 {
    // The states of each open group, and those of what a repetition would repeat.
    let mut groups: Vec<u64> = vec![0];
    let mut last = 0;
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        last = match character {
            '(' => {
                groups.push(0);
                continue;
            }
            ')' if groups.len() > 1 => groups.pop().unwrap_or_default(),
            '{' => {
                let repeated: String = rest.by_ref().take_while(|character| *character != '}').collect();
                let numbers = repeated.split(',').filter_map(|number| number.trim().parse::<u64>().ok());
                last.saturating_mul(numbers.max().unwrap_or(1).saturating_sub(1))
            }
            '[' => {
                skip_class(&mut rest);
                CLASS
            }
            '\\' => match rest.next() {
                Some('w' | 'W' | 'd' | 'D' | 's' | 'S' | 'p' | 'P') => UNICODE_CLASS,
                _ => 1,
            },
            '.' => CLASS,
            _ => 1,
        };
        if let Some(group) = groups.last_mut() {
            *group = group.saturating_add(last);
        }
    }
    groups.into_iter().fold(0, u64::saturating_add)
}

/// Skips what is left of a class.
fn skip_class(rest: &mut std::str::Chars<'_>) {
    while let Some(character) = rest.next() {
        match character {
            '\\' => drop(rest.next()),
            ']' => return,
            _ => {}
        }
    }
}

/// A fragment of a URI without its percent-encoding; as it is where that is no UTF-8.
pub(super) fn percent_decoded(fragment: &str) -> Cow<'_, str> {
    percent_decode_str(fragment).decode_utf8().unwrap_or(fragment.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_written_out() {
        for (pattern, expected) in [
            ("", 0),
            ("abc", 3),
            ("a{3}", 3),
            ("(ab){10}", 20),
            ("(a{10}){10}", 100),
            ("((a{100}){100}){100}", 1_000_000),
            ("[a-z]{8}-[a-z]{4}", 16 * 12 + 1),
            (r"\d{4}", 256),
            (r"[\]]x", 17),
            ("a{2,5}", 5),
            ("a{2,}", 2),
        ] {
            assert_eq!(states(pattern), expected, "{pattern}");
        }
        assert_eq!(states(&"(".repeat(1000)), 0);
        assert_eq!(states(&format!("{}a{}", "(".repeat(30), "{999}){999}".repeat(30))), u64::MAX);
        states("a{99999999999999999999}){}[\\");
    }

    #[test]
    fn fragments_are_decoded() {
        for (fragment, expected) in
            [("/a%20b", "/a b"), ("%", "%"), ("%2", "%2"), ("%zz", "%zz"), ("%ff", "%ff")]
        {
            assert_eq!(percent_decoded(fragment), expected);
        }
    }
}
