//! Who somebody is, in the header that names an id and a secret (RFC 6749 §2.3.1).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use http::header::InvalidHeaderValue;
use url::form_urlencoded;

use crate::secret::Secret;

/// The value of `Authorization` for an id and its secret. Both are encoded as in a form before they are joined, so that a
/// colon in either does not move the border between them. What `Debug` writes of the value does not show it.
///
/// # Errors
/// There is no header that could hold it.
pub fn credentials(id: &str, secret: &Secret) -> Result<HeaderValue, InvalidHeaderValue> {
    let plain = format!("{}:{}", encoded(id), encoded(secret.reveal()));
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(plain)))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A text as it stands in a form.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_secrets_are_encoded_before_they_are_joined() {
        let value = credentials("a:b c", &Secret::new("p%q:ü")).unwrap();
        let shown = value.to_str().unwrap().strip_prefix("Basic ").unwrap();
        assert_eq!(STANDARD.decode(shown).unwrap(), b"a%3Ab+c:p%25q%3A%C3%BC");
        assert!(!format!("{value:?}").contains(shown));
    }
}
