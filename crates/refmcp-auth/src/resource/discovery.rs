//! Finding out where an issuer has its keys (RFC 8414).

use bytes::Bytes;
use http::Response;
use url::Url;

use crate::metadata::ServerMetadata;
use crate::uri::is_confidential;

/// Why a document tells nothing of an issuer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Undiscovered {
    /// There is none.
    #[error("no metadata there: status {0}")]
    Status(u16),
    /// It is none.
    #[error("the metadata makes no sense")]
    Malformed,
    /// It is about somebody else.
    #[error("the metadata is of another issuer")]
    Issuer,
    /// It leads to where nobody should go.
    #[error("{0} is not a URL with https")]
    Address(&'static str),
}

/// Reads the metadata of an issuer. What is at one of its well-known addresses has to be about this very issuer, and has
/// to lead to places that can be trusted.
///
/// # Errors
/// It is not, or does not.
pub fn discovered(issuer: &str, response: &Response<Bytes>) -> Result<ServerMetadata, Undiscovered> {
    if !response.status().is_success() {
        return Err(Undiscovered::Status(response.status().as_u16()));
    }
    let metadata: ServerMetadata =
        serde_json::from_slice(response.body()).map_err(|_| Undiscovered::Malformed)?;
    if metadata.issuer != issuer {
        return Err(Undiscovered::Issuer);
    }
    for (name, place) in
        [("jwks_uri", &metadata.jwks_uri), ("introspection_endpoint", &metadata.introspection_endpoint)]
    {
        let fine = |place: &String| Url::parse(place).is_ok_and(|url| is_confidential(&url));
        if !place.as_ref().is_none_or(fine) {
            return Err(Undiscovered::Address(name));
        }
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_of_its_issuer_and_leads_to_safe_places() {
        let read = |status: u16, body: String| {
            let response = Response::builder().status(status).body(Bytes::from(body)).unwrap();
            discovered("https://as", &response)
        };
        let good = json!({ "issuer": "https://as", "jwks_uri": "https://keys/jwks" });
        assert_eq!(read(200, good.to_string()).unwrap().jwks_uri.as_deref(), Some("https://keys/jwks"));
        assert_eq!(read(404, good.to_string()), Err(Undiscovered::Status(404)));
        assert_eq!(read(302, good.to_string()), Err(Undiscovered::Status(302)));
        for bad in ["", "[]", "{}", "<html>", r#"{"issuer":1}"#] {
            assert_eq!(read(200, bad.to_owned()), Err(Undiscovered::Malformed), "{bad}");
        }
        for other in ["https://as/", "https://AS", "https://evil", ""] {
            assert_eq!(
                read(200, json!({ "issuer": other }).to_string()),
                Err(Undiscovered::Issuer),
                "{other}"
            );
        }
        for place in ["http://keys/jwks", "file:///etc/passwd", "jwks", "javascript:1", ""] {
            let body = json!({ "issuer": "https://as", "jwks_uri": place }).to_string();
            assert_eq!(read(200, body), Err(Undiscovered::Address("jwks_uri")), "{place}");
        }
        let near = json!({ "issuer": "https://as", "introspection_endpoint": "http://127.0.0.1:1/i" });
        assert!(read(200, near.to_string()).is_ok());
    }
}
