//! What a token is good for.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Scopes, each once, in the order in which they were named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(Vec<Box<str>>);

/// A text that no scope can be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no scope")]
pub struct BadScope(String);

impl Scopes {
    /// No scope.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// The scopes of a text, with spaces between them, as requests and tokens name them.
    ///
    /// # Errors
    /// One of them has characters that no scope can have.
    pub fn parse(text: &str) -> Result<Self, BadScope> {
        let mut scopes = Self::none();
        for scope in text.split(' ').filter(|scope| !scope.is_empty()) {
            if !is_scope(scope) {
                return Err(BadScope(scope.chars().take(40).collect()));
            }
            scopes.add(scope);
        }
        Ok(scopes)
    }

    /// The same, of somebody who may err: what can be no scope is left out.
    pub fn parse_leniently(text: &str) -> Self {
        text.split(' ').collect()
    }

    fn add(&mut self, scope: &str) {
        if !self.contains(scope) {
            self.0.push(scope.into());
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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
        self.iter().chain(others.iter()).collect()
    }

    /// Those of both.
    #[must_use]
    pub fn intersection(&self, others: &Self) -> Self {
        self.iter().filter(|scope| others.contains(scope)).collect()
    }
}

fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5B | 0x5D..=0x7E))
}

impl<'a> FromIterator<&'a str> for Scopes {
    /// What can be no scope is left out.
    fn from_iter<I: IntoIterator<Item = &'a str>>(scopes: I) -> Self {
        let mut all = Self::none();
        for scope in scopes.into_iter().filter(|scope| is_scope(scope)) {
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
}
