//! Token introspection (RFC 7662).

use bytes::Bytes;
use http::{Request, Response, header};
use serde_json::{Map, Value};
use url::Url;
use url::form_urlencoded::Serializer;

use super::access_error::AccessError;
use crate::Seconds;
use crate::basic;
use crate::claims::{Claims, TokenError, TokenValidation};
use crate::jose::JwsError;
use crate::secret::Secret;

/// Seconds for which a response without `exp` is valid.
const ENDLESS: Seconds = 300;

/// The credentials of a resource server at the introspection endpoint.
#[derive(Debug, Clone)]
pub struct Introspection {
    /// The client id.
    pub client_id: String,
    /// The client secret.
    pub client_secret: Secret,
}

impl Introspection {
    /// Builds the introspection request.
    ///
    /// # Errors
    /// The endpoint is not a valid URI.
    pub fn request(&self, endpoint: &Url, token: &str) -> Result<Request<Bytes>, http::Error> {
        let form = Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        Request::post(endpoint.as_str())
            .header(header::AUTHORIZATION, basic::credentials(&self.client_id, &self.client_secret)?)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .body(form.into())
    }

    /// Reads the introspection response and checks its claims.
    ///
    /// # Errors
    /// The token is not accepted, or the response is malformed.
    pub fn read(
        &self,
        response: &Response<Bytes>,
        expected: &TokenValidation,
        now: Seconds,
    ) -> Result<Claims, AccessError> {
        if !response.status().is_success() {
            return Err(AccessError::Undecided);
        }
        let mut said: Map<String, Value> =
            serde_json::from_slice(response.body()).map_err(|_| AccessError::Undecided)?;
        match said.get("active") {
            Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => return Err(AccessError::Inactive),
            _ => return Err(AccessError::Undecided),
        }
        // A response may leave out some claims, but never the audience.
        if said.get("aud").is_none_or(Value::is_null) {
            return Err(TokenError::Audience.into());
        }
        said.retain(|_, value| !value.is_null());
        said.entry("iss").or_insert_with(|| expected.issuer.clone().into());
        said.entry("exp").or_insert_with(|| (now + ENDLESS).into());
        if let Some(client) = said.get("client_id").cloned() {
            // A token without a user has its client as subject.
            said.entry("sub").or_insert(client);
        }
        let claims: Claims =
            serde_json::from_value(Value::Object(said)).map_err(|_| TokenError::Bad(JwsError::Malformed))?;
        expected.check_claims(&claims, now)?;
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    const NOW: Seconds = 1_000_000;

    fn asker() -> Introspection {
        Introspection { client_id: "rs:1".into(), client_secret: Secret::new("hush %") }
    }

    fn read(status: u16, body: &Value) -> Result<Claims, AccessError> {
        let response = Response::builder().status(status).body(Bytes::from(body.to_string())).unwrap();
        asker().read(&response, &TokenValidation::new("https://as", "https://rs/mcp"), NOW)
    }

    #[test]
    fn introspection_sends_the_token_in_the_body() {
        let endpoint = Url::parse("https://as/introspect").unwrap();
        let request = asker().request(&endpoint, "the+token").unwrap();
        assert_eq!(request.uri(), "https://as/introspect");
        let wanted = format!("Basic {}", STANDARD.encode("rs%3A1:hush+%25"));
        assert_eq!(request.headers()["authorization"], wanted);
        assert!(!format!("{:?}", request.headers()).contains(&wanted));
        assert_eq!(request.body(), "token=the%2Btoken&token_type_hint=access_token");
    }

    #[test]
    fn introspection_claims_are_validated() {
        let good =
            json!({ "active": true, "sub": "me", "aud": "https://rs/mcp", "scope": "a", "exp": NOW + 9 });
        assert_eq!(read(200, &good).unwrap().iss, "https://as");
        let with = |name: &str, value: Value| {
            let mut changed = good.clone();
            changed[name] = value;
            read(200, &changed)
        };
        assert_eq!(with("exp", Value::Null).unwrap().exp, NOW + ENDLESS);
        assert_eq!(with("iss", json!("https://evil")).unwrap_err(), TokenError::Issuer.into());
        assert_eq!(with("aud", Value::Null).unwrap_err(), TokenError::Audience.into());
        assert_eq!(with("aud", json!("https://other")).unwrap_err(), TokenError::Audience.into());
        assert_eq!(with("exp", json!(NOW - 60)).unwrap_err(), TokenError::Expired.into());
        assert_eq!(with("active", json!(false)).unwrap_err(), AccessError::Inactive);
        assert_eq!(with("active", json!("true")).unwrap_err(), AccessError::Undecided);
        assert_eq!(with("sub", Value::Null).unwrap_err(), TokenError::Bad(JwsError::Malformed).into());
        assert_eq!(read(401, &good).unwrap_err(), AccessError::Undecided);
        assert_eq!(read(200, &json!([])).unwrap_err(), AccessError::Undecided);
    }
}
