//! What a token is good for.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// So many scopes are looked at; a list of more is nobody's need.
const MOST: usize = 1000;

/// The longest scope.
const LONGEST: usize = 1024;

/// Scopes, each once, in the order in which they were named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(Vec<Box<str>>);

/// A text that no scope can be, or more scopes than anybody needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadScope(String);

impl Scopes {
    /// No scope.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// The scopes of a text, with spaces between them, as requests and tokens name them.
    ///
    /// # Errors
    /// One of them is too long or has characters that no scope can have, or there are too many.
    pub fn parse(text: &str) -> Result<Self, BadScope> {
        let mut scopes = Self::none();
        for (count, scope) in text.split(' ').filter(|scope| !scope.is_empty()).enumerate() {
            if count == MOST {
                return Err(BadScope(format!("there are more than {MOST} scopes")));
            }
            if !is_scope(scope) {
                let shown: String = scope.chars().take(40).collect();
                return Err(BadScope(format!("{shown:?} is no scope")));
            }
            scopes.add(scope);
        }
        Ok(scopes)
    }

    /// The same, of somebody who may err: what can be no scope is left out, and so is what comes after too many.
    pub fn parse_leniently(text: &str) -> Self {
        text.split(' ').collect()
    }

    fn add(&mut self, scope: &str) {
        if self.0.len() < MOST && !self.contains(scope) {
            self.0.push(scope.into());
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of the text that names them all.
    pub fn written(&self) -> usize {
        let spaces = self.0.len().saturating_sub(1);
        self.iter().map(str::len).sum::<usize>() + spaces
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|scope| &**scope)
    }

    /// Whether this is one of them.
    pub fn contains(&self, scope: &str) -> bool {
        self.iter().any(|known| known == scope)
    }

    /// Whether all of the others are among them.
    pub fn cover(&self, others: &Self) -> bool {
        others.iter().all(|scope| self.contains(scope))
    }

    /// Those of either.
    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        let mut all = self.clone();
        others.iter().for_each(|scope| all.add(scope));
        all
    }

    /// Those of both.
    #[must_use]
    pub fn intersection(&self, others: &Self) -> Self {
        self.iter().filter(|scope| others.contains(scope)).collect()
    }
}

fn is_scope(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5B | 0x5D..=0x7E))
}

impl<'a> FromIterator<&'a str> for Scopes {
    /// What can be no scope is left out, and so is what comes after too many: each is compared with those before it.
    fn from_iter<I: IntoIterator<Item = &'a str>>(scopes: I) -> Self {
        let mut all = Self::none();
        for scope in scopes.into_iter().filter(|scope| is_scope(scope)).take(MOST) {
            all.add(scope);
        }
        all
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse_leniently(&String::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &str) -> Scopes {
        Scopes::parse(text).unwrap()
    }

    #[test]
    fn scopes_are_a_set_in_order() {
        assert_eq!(scopes("b a  b").to_string(), "b a");
        assert_eq!(scopes("a b").union(&scopes("c a")).to_string(), "a b c");
        assert_eq!(scopes("a b").intersection(&scopes("b c")).to_string(), "b");
        assert!(scopes("a b").cover(&scopes("b")) && !scopes("a").cover(&scopes("a b")));
        assert!(scopes("a").cover(&Scopes::none()) && scopes("").is_empty());
    }

    #[test]
    fn strange_scopes_are_refused_or_left_out() {
        assert!(Scopes::parse("a \"b\"").is_err() && Scopes::parse("ä").is_err());
        assert_eq!(Scopes::parse_leniently("a b\\ c\u{7}").to_string(), "a");
    }

    #[test]
    fn a_list_without_end_is_read_to_a_point() {
        let names: Vec<String> = (0..200_000).map(|number| format!("s{number}")).collect();
        let scopes: Scopes = names.iter().map(String::as_str).collect();
        assert_eq!((scopes.iter().count(), scopes.iter().last()), (MOST, Some("s999")));
        let text = names.join(" ");
        assert_eq!(Scopes::parse_leniently(&text), scopes);
        assert_eq!(serde_json::from_value::<Scopes>(text.clone().into()).unwrap(), scopes);
        assert_eq!(Scopes::parse(&text).unwrap_err().to_string(), "there are more than 1000 scopes");
        assert_eq!(Scopes::parse(&names[..MOST].join(" ")).unwrap(), scopes);
        // One that is named again and again is compared only so often.
        let again: Scopes =
            names.iter().take(999).map(String::as_str).chain(["s998"; 10_000]).chain(["x"]).collect();
        assert!(!again.contains("x"));
        let others: Scopes = names[MOST..].iter().map(String::as_str).collect();
        assert_eq!(scopes.union(&others), scopes);
    }

    #[test]
    fn a_scope_without_end_is_none() {
        let (longest, longer) = ("a".repeat(LONGEST), "a".repeat(LONGEST + 1));
        assert!(Scopes::parse(&longest).is_ok() && Scopes::parse(&longer).is_err());
        assert!(Scopes::parse_leniently(&longer).is_empty());
    }

    #[test]
    fn the_length_of_what_is_written_is_known_before() {
        for text in ["", "a", "a bc", "a bc d"] {
            assert_eq!(scopes(text).written(), text.len());
        }
    }
}
