//! Asking an issuer about a token (RFC 7662).

use bytes::Bytes;
use http::{Request, Response, header};
use serde_json::{Map, Value};
use url::Url;
use url::form_urlencoded::Serializer;

use super::denied::Denied;
use crate::Seconds;
use crate::basic;
use crate::claims::{Claims, Expected, TokenFault};
use crate::jose::BadToken;
use crate::secret::Secret;

/// Seconds for which an answer without an end of its own is good.
const ENDLESS: Seconds = 300;

/// How a resource server makes itself known to the issuer that it asks.
#[derive(Debug, Clone)]
pub struct Introspection {
    /// Its id there.
    pub client_id: String,
    /// Its secret there.
    pub client_secret: Secret,
}

impl Introspection {
    /// The question about a token.
    ///
    /// # Errors
    /// The address is none that a request can go to.
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

    /// What the issuer answers about a token, if that makes it good here and now.
    ///
    /// # Errors
    /// It is not good, or the answer is none.
    pub fn read(
        &self,
        response: &Response<Bytes>,
        expected: &Expected,
        now: Seconds,
    ) -> Result<Claims, Denied> {
        if !response.status().is_success() {
            return Err(Denied::Unknowable);
        }
        let mut said: Map<String, Value> =
            serde_json::from_slice(response.body()).map_err(|_| Denied::Unknowable)?;
        match said.get("active") {
            Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => return Err(Denied::Inactive),
            _ => return Err(Denied::Unknowable),
        }
        // Of what tokens have to say, an answer may leave out some; but never whom the token is for.
        if said.get("aud").is_none_or(Value::is_null) {
            return Err(TokenFault::Audience.into());
        }
        said.retain(|_, value| !value.is_null());
        said.entry("iss").or_insert_with(|| expected.issuer.clone().into());
        said.entry("exp").or_insert_with(|| (now + ENDLESS).into());
        if let Some(client) = said.get("client_id").cloned() {
            // A token without a person is its client's.
            said.entry("sub").or_insert(client);
        }
        let claims: Claims =
            serde_json::from_value(Value::Object(said)).map_err(|_| TokenFault::Bad(BadToken::Malformed))?;
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

    fn read(status: u16, body: &Value) -> Result<Claims, Denied> {
        let response = Response::builder().status(status).body(Bytes::from(body.to_string())).unwrap();
        asker().read(&response, &Expected::new("https://as", "https://rs/mcp"), NOW)
    }

    #[test]
    fn a_question_shows_no_token_where_it_could_be_seen() {
        let endpoint = Url::parse("https://as/introspect").unwrap();
        let request = asker().request(&endpoint, "the+token").unwrap();
        assert_eq!(request.uri(), "https://as/introspect");
        let wanted = format!("Basic {}", STANDARD.encode("rs%3A1:hush+%25"));
        assert_eq!(request.headers()["authorization"], wanted);
        assert!(!format!("{:?}", request.headers()).contains(&wanted));
        assert_eq!(request.body(), "token=the%2Btoken&token_type_hint=access_token");
    }

    #[test]
    fn an_answer_is_checked_as_a_token_is() {
        let good =
            json!({ "active": true, "sub": "me", "aud": "https://rs/mcp", "scope": "a", "exp": NOW + 9 });
        assert_eq!(read(200, &good).unwrap().iss, "https://as");
        let with = |name: &str, value: Value| {
            let mut changed = good.clone();
            changed[name] = value;
            read(200, &changed)
        };
        assert_eq!(with("exp", Value::Null).unwrap().exp, NOW + ENDLESS);
        assert_eq!(with("iss", json!("https://evil")).unwrap_err(), TokenFault::Issuer.into());
        assert_eq!(with("aud", Value::Null).unwrap_err(), TokenFault::Audience.into());
        assert_eq!(with("aud", json!("https://other")).unwrap_err(), TokenFault::Audience.into());
        assert_eq!(with("exp", json!(NOW - 60)).unwrap_err(), TokenFault::Expired.into());
        assert_eq!(with("active", json!(false)).unwrap_err(), Denied::Inactive);
        assert_eq!(with("active", json!("true")).unwrap_err(), Denied::Unknowable);
        assert_eq!(with("sub", Value::Null).unwrap_err(), TokenFault::Bad(BadToken::Malformed).into());
        assert_eq!(read(401, &good).unwrap_err(), Denied::Unknowable);
        assert_eq!(read(200, &json!([])).unwrap_err(), Denied::Unknowable);
    }
}
