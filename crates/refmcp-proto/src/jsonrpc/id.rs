//! Request ids: strings and integers, kept exactly as they came.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The id of a request: a string or an integer, never anything else.
///
/// Integers that fit no `i64` keep their digits, so that whatever a peer counts with comes back unchanged;
/// `1` and `"1"` are different ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestId {
    /// An integer.
    Integer(i64),
    /// An integer outside the range of `i64` (or written as `-0`), by its digits.
    Digits(Box<str>),
    /// A string.
    Text(Box<str>),
}

/// What a progress notification refers to; like an id, a string or an integer chosen by the requestor.
pub type ProgressToken = RequestId;

impl RequestId {
    /// Reads the JSON text of an id; unlike deserializing, this keeps integers of any length.
    pub fn from_json(text: &str) -> Option<Self> {
        if text.starts_with('"') {
            return serde_json::from_str::<String>(text).ok().map(Self::from);
        }
        Self::from_digits(text)
    }

    /// Reads an integer literal; `None` when the text is a fraction, an exponent or no number at all.
    pub fn from_digits(text: &str) -> Option<Self> {
        match text.parse::<i64>() {
            // Rust also reads a plus sign, and `-0` would lose its own.
            Ok(number) if !text.starts_with('+') && text != "-0" => return Some(Self::Integer(number)),
            _ => {}
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_integer.then(|| Self::Digits(text.into()))
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl fmt::Display for RequestId {
    /// Writes the id as JSON, so that `1` and `"1"` look different in logs too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Digits(digits) => f.write_str(digits),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Digits(digits) => {
                let raw = serde_json::value::RawValue::from_string(digits.to_string());
                raw.map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = RequestId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an integer")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<RequestId, E> {
        Ok(RequestId::Integer(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<RequestId, E> {
        Ok(i64::try_from(number)
            .map_or_else(|_| RequestId::Digits(number.to_string().into()), RequestId::Integer))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RequestId, E> {
        Ok(RequestId::Text(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_digits() {
        assert_eq!(RequestId::from_digits("42"), Some(RequestId::Integer(42)));
        assert_eq!(RequestId::from_digits("-0"), Some(RequestId::Digits("-0".into())));
        let huge = "18446744073709551616";
        let id = RequestId::from_digits(huge).unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), huge);
    }

    #[test]
    fn fractions_and_exponents_are_no_ids() {
        for text in ["1.0", "1.5", "1e3", "+1", "", "-", "NaN"] {
            assert_eq!(RequestId::from_digits(text), None, "{text}");
        }
    }

    #[test]
    fn json_is_read_without_loss() {
        for text in ["18446744073709551616", "-0", "7", "\"7\""] {
            assert_eq!(RequestId::from_json(text).map(|id| id.to_string()).as_deref(), Some(text));
        }
        for text in ["null", "1.0", "{}", "\"", ""] {
            assert_eq!(RequestId::from_json(text), None, "{text}");
        }
    }

    #[test]
    fn text_and_number_differ() {
        assert_ne!(RequestId::from("1"), RequestId::from(1));
        assert_eq!(serde_json::to_string(&RequestId::from("1")).unwrap(), "\"1\"");
    }
}
