//! Secret texts.

use std::fmt;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

/// A token, a code or a password. `Debug` does not print it, and comparison takes constant time. Serialising reveals it:
/// that is how it is sent and stored.
///
/// ```
/// # use refmcp_auth::Secret;
/// assert!(Secret::new("hush").is("hush"));
/// ```
///
/// It cannot be compared with a text by `==`, which would not take constant time:
///
/// ```compile_fail
/// # use refmcp_auth::Secret;
/// assert!(Secret::new("hush") == "hush");
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself, to be sent or stored.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares with a text in constant time.
    pub fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_compared_and_not_shown() {
        let secret = Secret::new("hush");
        assert!(secret.is("hush") && !secret.is("hus") && !secret.is("hush!") && secret != Secret::new(""));
        assert!(!format!("{secret:?}").contains("hush"));
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"hush\"");
    }
}
