//! The audience check of JWT bearer assertions. An assertion is a bearer credential, so the MCP server alone must not decide
//! which authorization server receives it.

use serde::Deserialize;

use super::discovery::Server;
use super::flow_step::excerpt;
use super::{FlowError, PreRegistered};
use crate::claims::Audience;
use crate::jose::decode;
use crate::secret::Secret;

/// Checks that an assertion is meant for an authorization server: the assertion's `aud` names it byte for byte, or the
/// client's configuration does.
pub(crate) fn check(
    assertion: &Secret,
    client: Option<&PreRegistered>,
    server: &Server,
) -> Result<(), FlowError> {
    if client.and_then(|client| client.issuer.as_deref()) == Some(server.issuer()) {
        return Ok(());
    }
    let why = match audience(assertion.reveal()) {
        None => "it names no audience".to_owned(),
        Some(audience) => {
            let endpoint = server.metadata().token_endpoint.as_deref();
            if audience.iter().any(|name| name == server.issuer() || Some(name) == endpoint) {
                return Ok(());
            }
            audience
                .iter()
                .next()
                .map_or("its audience is empty".to_owned(), |one| format!("it is for {}", excerpt(one)))
        }
    };
    Err(FlowError::AssertionAudience { issuer: excerpt(server.issuer()), why })
}

/// The audience of an assertion, unverified: the authorization server verifies the signature.
fn audience(assertion: &str) -> Option<Audience> {
    #[derive(Deserialize)]
    struct Said {
        aud: Audience,
    }
    let mut parts = assertion.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = decode(claims).filter(|_| parts.next().is_none())?;
    serde_json::from_slice::<Said>(&claims).ok().map(|said| said.aud)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::jose::encode;

    #[test]
    fn the_audience_of_an_assertion_is_read() {
        let of = |claims: &str| audience(&format!("{}.{}.sig", encode(r#"{"alg":"HS512"}"#), encode(claims)));
        let names = |claims| of(claims).map(|all| all.iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(names(r#"{"aud":"a"}"#).unwrap(), ["a"]);
        assert_eq!(names(r#"{"aud":["a","b"]}"#).unwrap(), ["a", "b"]);
        for claims in ["{}", "[]", r#"{"aud":7}"#, r#"{"aud":null}"#, "aud"] {
            assert_eq!(names(claims), None, "{claims}");
        }
        let claims = encode(json!({ "aud": "a" }).to_string());
        for text in ["", "opaque", "..", &format!("x.{claims}"), &format!("x.{claims}.y.z"), "a.💥.c"] {
            assert_eq!(audience(text), None, "{text}");
        }
    }
}
