//! Authorization server metadata as a resource server reads it (RFC 8414).

use bytes::Bytes;
use http::Response;
use url::Url;

use crate::metadata::ServerMetadata;
use crate::uri::is_secure;

/// Reads the metadata of an issuer. It must name this issuer and only confidential URLs.
///
/// # Errors
/// It does not; the text tells what is wrong.
pub fn read_issuer_metadata(issuer: &str, response: &Response<Bytes>) -> Result<ServerMetadata, String> {
    if !response.status().is_success() {
        return Err(format!("no metadata there: status {}", response.status().as_u16()));
    }
    let metadata: ServerMetadata =
        serde_json::from_slice(response.body()).map_err(|_| "the metadata makes no sense")?;
    if metadata.issuer != issuer {
        return Err("the metadata is of another issuer".to_owned());
    }
    for (name, place) in
        [("jwks_uri", &metadata.jwks_uri), ("introspection_endpoint", &metadata.introspection_endpoint)]
    {
        let fine = |place: &String| Url::parse(place).is_ok_and(|url| is_secure(&url));
        if !place.as_ref().is_none_or(fine) {
            return Err(format!("{name} is not a URL with https"));
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
        assert_eq!(read(404, good.to_string()), Err("no metadata there: status 404".to_owned()));
        assert_eq!(read(302, good.to_string()), Err("no metadata there: status 302".to_owned()));
        for bad in ["", "[]", "{}", "<html>", r#"{"issuer":1}"#] {
            assert_eq!(read(200, bad.to_owned()), Err("the metadata makes no sense".to_owned()), "{bad}");
        }
        for other in ["https://as/", "https://AS", "https://evil", ""] {
            assert_eq!(
                read(200, json!({ "issuer": other }).to_string()),
                Err("the metadata is of another issuer".to_owned()),
                "{other}"
            );
        }
        for place in ["http://keys/jwks", "file:///etc/passwd", "jwks", "javascript:1", ""] {
            let body = json!({ "issuer": "https://as", "jwks_uri": place }).to_string();
            assert_eq!(read(200, body), Err("jwks_uri is not a URL with https".to_owned()), "{place}");
        }
        let near = json!({ "issuer": "https://as", "introspection_endpoint": "http://127.0.0.1:1/i" });
        assert!(read(200, near.to_string()).is_ok());
    }
}
