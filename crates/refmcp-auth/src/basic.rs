//! HTTP Basic client authentication: `client_secret_basic` (RFC 6749 §2.3.1).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use http::header::InvalidHeaderValue;
use url::form_urlencoded;

use crate::secret::Secret;

/// The `Authorization` value for a client id and its secret. Both are form-encoded before they are joined, so a colon in
/// either does not move the border between them. The value is marked sensitive: `Debug` does not print it.
///
/// # Errors
/// The result is not a valid header value.
pub fn credentials(id: &str, secret: &Secret) -> Result<HeaderValue, InvalidHeaderValue> {
    let plain = format!("{}:{}", encoded(id), encoded(secret.reveal()));
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(plain)))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Form-encodes a text.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Why credentials that a client has offered were refused, without anything of them: an extension of the response, so that
/// the program that serves it can log it with the address of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedClientCredentials(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_credentials_are_form_encoded() {
        let value = credentials("a:b c", &Secret::new("p%q:ü")).unwrap();
        let shown = value.to_str().unwrap().strip_prefix("Basic ").unwrap();
        assert_eq!(STANDARD.decode(shown).unwrap(), b"a%3Ab+c:p%25q%3A%C3%BC");
        assert!(!format!("{value:?}").contains(shown));
    }
}
