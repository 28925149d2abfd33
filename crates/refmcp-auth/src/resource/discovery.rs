//! Authorization server metadata as a resource server reads it (RFC 8414).

use bytes::Bytes;
use http::Response;
use url::Url;

use crate::metadata::ServerMetadata;
use crate::uri::is_secure;

/// Why metadata is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// There is none.
    #[error("no metadata there: status {0}")]
    Status(u16),
    /// It is not metadata.
    #[error("the metadata makes no sense")]
    Malformed,
    /// It names another issuer.
    #[error("the metadata is of another issuer")]
    Issuer,
    /// It contains a URL that is not confidential.
    #[error("{0} is not a URL with https")]
    Address(&'static str),
}

/// Reads the metadata of an issuer. It must name this issuer and only confidential URLs.
///
/// # Errors
/// It does not.
pub fn read_issuer_metadata(
    issuer: &str,
    response: &Response<Bytes>,
) -> Result<ServerMetadata, DiscoveryError> {
    if !response.status().is_success() {
        return Err(DiscoveryError::Status(response.status().as_u16()));
    }
    let metadata: ServerMetadata =
        serde_json::from_slice(response.body()).map_err(|_| DiscoveryError::Malformed)?;
    if metadata.issuer != issuer {
        return Err(DiscoveryError::Issuer);
    }
    for (name, place) in
        [("jwks_uri", &metadata.jwks_uri), ("introspection_endpoint", &metadata.introspection_endpoint)]
    {
        let fine = |place: &String| Url::parse(place).is_ok_and(|url| is_secure(&url));
        if !place.as_ref().is_none_or(fine) {
            return Err(DiscoveryError::Address(name));
        }
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn issuer_metadata_names_its_issuer_and_secure_urls() {
        let read = |status: u16, body: String| {
            let response = Response::builder().status(status).body(Bytes::from(body)).unwrap();
            read_issuer_metadata("https://as", &response)
        };
        let good = json!({ "issuer": "https://as", "jwks_uri": "https://keys/jwks" });
        assert_eq!(read(200, good.to_string()).unwrap().jwks_uri.as_deref(), Some("https://keys/jwks"));
        assert_eq!(read(404, good.to_string()), Err(DiscoveryError::Status(404)));
        assert_eq!(read(302, good.to_string()), Err(DiscoveryError::Status(302)));
        for bad in ["", "[]", "{}", "<html>", r#"{"issuer":1}"#] {
            assert_eq!(read(200, bad.to_owned()), Err(DiscoveryError::Malformed), "{bad}");
        }
        for other in ["https://as/", "https://AS", "https://evil", ""] {
            assert_eq!(
                read(200, json!({ "issuer": other }).to_string()),
                Err(DiscoveryError::Issuer),
                "{other}"
            );
        }
        for place in ["http://keys/jwks", "file:///etc/passwd", "jwks", "javascript:1", ""] {
            let body = json!({ "issuer": "https://as", "jwks_uri": place }).to_string();
            assert_eq!(read(200, body), Err(DiscoveryError::Address("jwks_uri")), "{place}");
        }
        let near = json!({ "issuer": "https://as", "introspection_endpoint": "http://127.0.0.1:1/i" });
        assert!(read(200, near.to_string()).is_ok());
    }
}
