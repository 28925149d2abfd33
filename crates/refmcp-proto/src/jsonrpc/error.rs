//! The error object of a JSON-RPC answer.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Error codes that the protocol gives a meaning to.
pub mod code {
    /// What arrived is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// It is JSON, but not a message the receiver may get now.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method does not exist here.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method exists, its parameters do not fit.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The receiver failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// A resource does not exist, in the revisions that have a code of its own for that.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// A header contradicts the body it mirrors.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a capability that the client did not declare.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The request names a revision that is not spoken here.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// The user has to visit a URL first.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
}

/// An error as it travels: code, message, optional data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub struct RpcError {
    /// What kind of error, see [`code`].
    pub code: i64,
    /// One sentence for a person.
    pub message: Cow<'static, str>,
    /// Details for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// An error with any code.
    #[cold]
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// What arrived is not JSON.
    #[cold]
    pub fn parse_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::PARSE_ERROR, message)
    }

    /// The message is not acceptable as it stands.
    #[cold]
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// No such method, named in the message.
    #[cold]
    pub fn method_not_found(method: &str) -> Self {
        Self::new(code::METHOD_NOT_FOUND, format!("method not found: {}", excerpt(method)))
    }

    /// The parameters do not fit the method.
    #[cold]
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// The receiver failed.
    #[cold]
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }

    /// The same error with data attached.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

/// What of a peer's text may be repeated in an error or a log: its first characters, control characters escaped.
pub fn excerpt(text: &str) -> String {
    const MAX_CHARACTERS: usize = 100;
    let mut short = String::new();
    for character in text.chars().take(MAX_CHARACTERS) {
        if character.is_control() {
            short.extend(character.escape_default());
        } else {
            short.push(character);
        }
    }
    if text.chars().nth(MAX_CHARACTERS).is_some() {
        short.push('…');
    }
    short
}

/// The same for a log: URIs in the text have no user information, no query and no fragment, which may be secrets.
pub fn log_excerpt(text: &str) -> String {
    let words: Vec<Cow<'_, str>> = text.split(' ').map(without_query).collect();
    excerpt(&words.join(" "))
}

fn without_query(word: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = word.split_once("://") else { return word.into() };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (shown, hidden) = rest.split_at(end);
    let authority = shown.find('/').unwrap_or(shown.len());
    let shown = shown[..authority].rfind('@').map_or(shown, |at| &shown[at + 1..]);
    format!("{scheme}://{shown}{}", if hidden.is_empty() { "" } else { "?…" }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_logged_without_secrets() {
        for (text, logged) in [
            ("echo", "echo"),
            ("what is it? a tool", "what is it? a tool"),
            ("docs://guide/a?token=t", "docs://guide/a?…"),
            ("no resource https://me:secret@host/p#secret here", "no resource https://host/p?… here"),
            ("file:///etc/a@b", "file:///etc/a@b"),
        ] {
            assert_eq!(log_excerpt(text), logged);
        }
    }

    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt("a\r\nb"), "a\\r\\nb");
        assert_eq!(excerpt(&"x".repeat(1000)).chars().count(), 101);
    }

    #[test]
    fn data_is_left_out_when_absent() {
        let json = serde_json::to_string(&RpcError::internal("broken")).unwrap();
        assert_eq!(json, r#"{"code":-32603,"message":"broken"}"#);
    }
}
