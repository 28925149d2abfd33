//! Whom an assertion may be shown to. Whoever has it can use it, so the word of the MCP server is not enough.

use serde::Deserialize;

use super::discovery::Server;
use super::step::brief;
use super::{FlowError, PreRegistered};
use crate::claims::Audience;
use crate::jose::decode;
use crate::secret::Secret;

/// Whether an assertion is for an authorization server: it says so itself, letter for letter, or the client's own settings
/// name that authorization server.
pub(crate) fn is_for(
    assertion: &Secret,
    client: Option<&PreRegistered>,
    server: &Server,
) -> Result<(), FlowError> {
    if client.and_then(|client| client.issuer.as_deref()) == Some(server.issuer()) {
        return Ok(());
    }
    let why = match audience(assertion.reveal()) {
        None => "it does not say whom it is for".to_owned(),
        Some(audience) => {
            let endpoint = server.metadata().token_endpoint.as_deref();
            if audience.iter().any(|name| name == server.issuer() || Some(name) == endpoint) {
                return Ok(());
            }
            audience
                .iter()
                .next()
                .map_or("it is for nobody".to_owned(), |one| format!("it is for {}", brief(one)))
        }
    };
    Err(FlowError::OtherAudience { issuer: brief(server.issuer()), why })
}

/// Whom an assertion says it is for. Who signed it, and how, is for its audience to check.
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
    fn only_what_says_whom_it_is_for_is_for_somebody() {
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
