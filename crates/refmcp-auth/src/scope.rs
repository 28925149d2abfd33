//! Scopes of tokens.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Limit of scopes in a list.
const MAX_SCOPES: usize = 1000;

/// Limit of bytes in a scope.
const MAX_SCOPE_BYTES: usize = 1024;

/// A set of scopes in the order of their first appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(Vec<Box<str>>);

/// A text that is not a scope, or too many scopes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidScope(String);

impl Scopes {
    /// The empty set.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Parses a list of scopes separated by spaces.
    ///
    /// # Errors
    /// A scope is too long or has invalid characters, or there are too many scopes.
    pub fn parse(text: &str) -> Result<Self, InvalidScope> {
        let mut scopes = Self::none();
        for (count, scope) in text.split(' ').filter(|scope| !scope.is_empty()).enumerate() {
            if count == MAX_SCOPES {
                return Err(InvalidScope(format!("there are more than {MAX_SCOPES} scopes")));
            }
            if !is_scope(scope) {
                let shown: String = scope.chars().take(40).collect();
                return Err(InvalidScope(format!("{shown:?} is no scope")));
            }
            scopes.add(scope);
        }
        Ok(scopes)
    }

    /// Parses a list of scopes of a peer that may err: invalid scopes, and scopes beyond the limit, are left out.
    pub fn parse_leniently(text: &str) -> Self {
        text.split(' ').collect()
    }

    fn add(&mut self, scope: &str) {
        if self.0.len() < MAX_SCOPES && !self.contains(scope) {
            self.0.push(scope.into());
        }
    }

    /// True if there is no scope.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The length of the text that lists all scopes.
    pub fn written(&self) -> usize {
        let spaces = self.0.len().saturating_sub(1);
        self.iter().map(str::len).sum::<usize>() + spaces
    }

    /// Iterates over the scopes.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|scope| &**scope)
    }

    /// True if the scope is in the set.
    pub fn contains(&self, scope: &str) -> bool {
        self.iter().any(|known| known == scope)
    }

    /// True if all of the others are in the set.
    pub fn cover(&self, others: &Self) -> bool {
        others.iter().all(|scope| self.contains(scope))
    }

    /// The union of both sets.
    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        let mut all = self.clone();
        others.iter().for_each(|scope| all.add(scope));
        all
    }

    /// The intersection of both sets.
    #[must_use]
    pub fn intersection(&self, others: &Self) -> Self {
        self.iter().filter(|scope| others.contains(scope)).collect()
    }
}

fn is_scope(text: &str) -> bool {
    (1..=MAX_SCOPE_BYTES).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5B | 0x5D..=0x7E))
}

impl<'a> FromIterator<&'a str> for Scopes {
    /// Leaves out invalid scopes and those beyond the limit, since each is compared with all before it.
    fn from_iter<I: IntoIterator<Item = &'a str>>(scopes: I) -> Self {
        let mut all = Self::none();
        for scope in scopes.into_iter().filter(|scope| is_scope(scope)).take(MAX_SCOPES) {
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
    fn invalid_scopes_are_refused_or_left_out() {
        assert!(Scopes::parse("a \"b\"").is_err() && Scopes::parse("ä").is_err());
        assert_eq!(Scopes::parse_leniently("a b\\ c\u{7}").to_string(), "a");
    }

    #[test]
    fn scope_lists_are_bounded() {
        let names: Vec<String> = (0..200_000).map(|number| format!("s{number}")).collect();
        let scopes: Scopes = names.iter().map(String::as_str).collect();
        assert_eq!((scopes.iter().count(), scopes.iter().last()), (MAX_SCOPES, Some("s999")));
        let text = names.join(" ");
        assert_eq!(Scopes::parse_leniently(&text), scopes);
        assert_eq!(serde_json::from_value::<Scopes>(text.clone().into()).unwrap(), scopes);
        assert_eq!(Scopes::parse(&text).unwrap_err().to_string(), "there are more than 1000 scopes");
        assert_eq!(Scopes::parse(&names[..MAX_SCOPES].join(" ")).unwrap(), scopes);
        // Repetitions count towards the limit.
        let again: Scopes =
            names.iter().take(999).map(String::as_str).chain(["s998"; 10_000]).chain(["x"]).collect();
        assert!(!again.contains("x"));
        let others: Scopes = names[MAX_SCOPES..].iter().map(String::as_str).collect();
        assert_eq!(scopes.union(&others), scopes);
    }

    #[test]
    fn overlong_scopes_are_invalid() {
        let (longest, longer) = ("a".repeat(MAX_SCOPE_BYTES), "a".repeat(MAX_SCOPE_BYTES + 1));
        assert!(Scopes::parse(&longest).is_ok() && Scopes::parse(&longer).is_err());
        assert!(Scopes::parse_leniently(&longer).is_empty());
    }

    #[test]
    fn written_is_the_length_of_the_text() {
        for text in ["", "a", "a bc", "a bc d"] {
            assert_eq!(scopes(text).written(), text.len());
        }
    }
}
