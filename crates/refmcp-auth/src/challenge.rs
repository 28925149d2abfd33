//! `WWW-Authenticate` challenges: parsed and written (RFC 9110 §11.6.1).

use std::fmt;

use crate::header_value::{split, token, token_or_quoted};

/// Parsed bytes of a header; the rest of a longer header is ignored.
const MAX_HEADER_BYTES: usize = 16 << 10;

/// Limit of challenges in one header, and of parameters in one challenge.
const MAX_CHALLENGES: usize = 32;

/// One challenge: a scheme and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// A challenge of this scheme without parameters.
    pub fn new(scheme: impl Into<String>) -> Self {
        Self { scheme: scheme.into(), parameters: Vec::new() }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.parameters.push((name.to_owned(), value.into()));
        self
    }

    /// The scheme as it was written.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Compares the scheme, ignoring case.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// The first value of a parameter; its name is compared ignoring case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Parses the challenges of a header value, separated by commas. Parsing stops at the first syntax error and keeps what
    /// came before it.
    pub fn parse_all(text: &str) -> Vec<Self> {
        let end = text.len().min(MAX_HEADER_BYTES);
        let end = (0..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let mut reader = Reader { rest: text.get(..end).unwrap_or_default() };
        let mut challenges = Vec::new();
        while challenges.len() < MAX_CHALLENGES {
            match reader.challenge() {
                Some(challenge) => challenges.push(challenge),
                None => break,
            }
        }
        challenges
    }
}

impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        for (place, (name, value)) in self.parameters.iter().enumerate() {
            let separator = if place == 0 { " " } else { ", " };
            write!(f, "{separator}{name}=\"")?;
            // A header value is one line of visible ASCII.
            for character in value.chars().filter(|character| matches!(character, ' '..='~')) {
                if matches!(character, '"' | '\\') {
                    f.write_str("\\")?;
                }
                write!(f, "{character}")?;
            }
            f.write_str("\"")?;
        }
        Ok(())
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn challenge(&mut self) -> Option<Challenge> {
        self.skip(|character| matches!(character, ' ' | '\t' | ','));
        let scheme = self.token()?;
        let mut challenge = Challenge::new(scheme);
        self.skip(is_blank);
        if self.token68() {
            return Some(challenge);
        }
        while let Some((name, value)) = self.parameter() {
            if challenge.parameters.len() < MAX_CHALLENGES {
                challenge.parameters.push((name, value));
            }
            self.skip(is_blank);
        }
        Some(challenge)
    }

    /// Reads a parameter, or nothing where the next challenge begins.
    fn parameter(&mut self) -> Option<(String, String)> {
        let before = self.rest;
        self.skip(|character| matches!(character, ' ' | '\t' | ','));
        let read = self.name_and_value();
        if read.is_none() {
            self.rest = before;
        }
        read
    }

    fn name_and_value(&mut self) -> Option<(String, String)> {
        let name = self.token()?.to_owned();
        self.skip(is_blank);
        self.rest = self.rest.strip_prefix('=')?;
        self.skip(is_blank);
        let (value, rest) = token_or_quoted(self.rest)?;
        self.rest = rest;
        Some((name, value.into_owned()))
    }

    /// Skips a token68, which stands in place of parameters and is not kept.
    fn token68(&mut self) -> bool {
        let is_part = |character: char| character.is_ascii_alphanumeric() || "-._~+/".contains(character);
        let (text, rest) = split(self.rest, is_part);
        let rest = rest.trim_start_matches('=').trim_start_matches(is_blank);
        let whole = !text.is_empty() && (rest.is_empty() || rest.starts_with(','));
        if whole {
            self.rest = rest;
        }
        whole
    }

    fn token(&mut self) -> Option<&'a str> {
        let (token, rest) = token(self.rest)?;
        self.rest = rest;
        Some(token)
    }

    fn skip(&mut self, unwanted: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(unwanted);
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_challenge_round_trips() {
        let challenge =
            Challenge::new("Bearer").with("scope", "a b").with("error_description", "say \"no\"\\");
        assert_eq!(Challenge::parse_all(&challenge.to_string()), [challenge]);
    }

    #[test]
    fn several_challenges_are_parsed() {
        let text = r#"Basic realm="x, y=\"z\"" , Negotiate abc==, DPoP algs="ES256", bearer Scope = a,error=b, Custom"#;
        let challenges = Challenge::parse_all(text);
        let schemes: Vec<&str> = challenges.iter().map(Challenge::scheme).collect();
        assert_eq!(schemes, ["Basic", "Negotiate", "DPoP", "bearer", "Custom"]);
        assert_eq!(challenges[0].get("realm"), Some("x, y=\"z\""));
        assert!(challenges[3].is("Bearer"));
        assert_eq!((challenges[3].get("scope"), challenges[3].get("ERROR")), (Some("a"), Some("b")));
    }

    #[test]
    fn parsing_stops_at_a_syntax_error() {
        assert_eq!(Challenge::parse_all(""), []);
        assert_eq!(Challenge::parse_all("  ,, "), []);
        let unclosed = Challenge::parse_all("Bearer a=\"b\", c=\"never closed");
        assert_eq!(unclosed[0].get("a"), Some("b"));
        assert_eq!(unclosed[0].get("c"), None);
        assert!(Challenge::parse_all(&"Bearer a=b, ".repeat(10_000)).len() <= MAX_CHALLENGES);
        assert!(Challenge::parse_all(&format!("Bearer a=\"{}", "ä".repeat(100_000)))[0].get("a").is_none());
    }

    proptest! {
        #[test]
        fn parsing_any_text_terminates(text in ".{0,300}") {
            let challenges = Challenge::parse_all(&text);
            prop_assert!(challenges.len() <= MAX_CHALLENGES);
        }
    }
}
