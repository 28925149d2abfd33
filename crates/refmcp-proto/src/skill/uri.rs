//! URIs of skills and of the files in them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The file that makes a directory a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// The most characters of a skill's name.
const MAX_NAME: usize = 64;

/// What is encoded in the URI of a path: everything but unreserved characters and slashes.
const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Whether a text is the name of a skill: 1 to 64 lower-case letters, digits and single hyphens between them.
pub fn is_skill_name(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.len() <= MAX_NAME && name.split('-').all(is_word)
}

/// Whether a text can stand before the name of a skill: segments of a path, the first of them a registered name. An empty
/// text can.
pub fn is_prefix(prefix: &str) -> bool {
    let is_character = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(is_character);
    prefix.is_empty() || prefix.split('/').all(is_segment)
}

/// The URI of a path in the directory at this URI.
pub fn uri_of(root: &str, path: &str) -> String {
    format!("{root}/{}", utf8_percent_encode(path, RESERVED))
}

/// The path of a URI in the directory at another, decoded; none if it does not lead to something in there. No part of the path
/// is empty, `.` or `..`, or has a character that is none of a file name on some system.
pub fn relative_path(root: &str, uri: &str) -> Option<String> {
    let path = uri.strip_prefix(root)?.strip_prefix('/')?;
    let mut parts = Vec::new();
    for part in path.split('/') {
        let part = percent_decode_str(part).decode_utf8().ok()?;
        let is_reserved = |character: char| character.is_control() || "/\\:*?\"<>|".contains(character);
        if matches!(&*part, "" | "." | "..") || part.contains(is_reserved) {
            return None;
        }
        parts.push(part);
    }
    let has_query = path.contains(['?', '#']);
    (!has_query).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_with_single_hyphens() {
        for name in ["a", "pdf-processing", "2fa", &"x".repeat(64)] {
            assert!(is_skill_name(name), "{name}");
        }
        for name in ["", "-a", "a-", "a--b", "A", "a_b", "ä", "a b", "a/b", &"x".repeat(65)] {
            assert!(!is_skill_name(name), "{name}");
        }
    }

    #[test]
    fn prefixes_are_segments() {
        for prefix in ["", "acme", "acme/billing", "a.example/x_y~z"] {
            assert!(is_prefix(prefix), "{prefix}");
        }
        for prefix in ["/", "/a", "a/", "a//b", "..", "a/../b", "a b", "a%2F", "ü"] {
            assert!(!is_prefix(prefix), "{prefix}");
        }
    }

    #[test]
    fn only_paths_below_are_relative() {
        let root = "skill://acme/refunds";
        for (uri, path) in [
            ("skill://acme/refunds/SKILL.md", "SKILL.md"),
            ("skill://acme/refunds/a/b%20c.md", "a/b c.md"),
            ("skill://acme/refunds/%C3%BC", "ü"),
        ] {
            assert_eq!(relative_path(root, uri).as_deref(), Some(path));
        }
        assert_eq!(uri_of(root, "a/b c.md"), "skill://acme/refunds/a/b%20c.md");
        for uri in [
            "skill://acme/refunds",
            "skill://acme/refunds/",
            "skill://acme/refunds2/x",
            "skill://acme/refunds/../x",
            "skill://acme/refunds/%2e%2E/x",
            "skill://acme/refunds/a%2Fb",
            "skill://acme/refunds/a%5Cb",
            "skill://acme/refunds/a%00",
            "skill://acme/refunds/a//b",
            "skill://acme/refunds/a?b",
            "skill://acme/refunds/a#b",
            "skill://acme/refunds/%FF",
            "skill://acme/refunds/C:x",
            "file:///etc/passwd",
        ] {
            assert_eq!(relative_path(root, uri), None, "{uri}");
        }
    }
}
