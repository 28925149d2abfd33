//! Form bodies of token requests, one for each grant, and of revocations.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use serde::Deserialize;
use url::Url;

use super::discovery::{AuthTarget, Server};
use super::flow_step::excerpt;
use super::identity::{Form, OAuthClient};
use super::token_request::TokenRequest;
use super::{ClientIdentity, EnterpriseIdp, FlowError, FlowErrorKind, JWT_BEARER, PreRegistered, TokenSet};
use crate::Seconds;
use crate::claims::Audience;
use crate::jose::{PrivateKey, decode};
use crate::metadata::TokenResponse;
use crate::scope::Scopes;
use crate::secret::Secret;

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// A token request to an authorization server.
pub(crate) fn token_request(
    what: Option<&'static str>,
    server: &Server,
    client: OAuthClient,
    form: Form,
    key: Option<Arc<PrivateKey>>,
) -> Result<TokenRequest, FlowError> {
    let (issuer, endpoint) = (server.issuer().to_owned(), server.token_endpoint()?);
    Ok(TokenRequest { what, issuer, endpoint, client, form, key, nonce: None })
}

/// The authorization code grant.
pub(crate) fn with_code(code: &Secret, verifier: &Secret, redirect_uri: &Url, resource: &str) -> Form {
    vec![
        ("grant_type", "authorization_code".to_owned()),
        ("code", code.reveal().to_owned()),
        ("code_verifier", verifier.reveal().to_owned()),
        ("redirect_uri", redirect_uri.to_string()),
        ("resource", resource.to_owned()),
    ]
}

/// The client credentials grant.
pub(crate) fn with_credentials(resource: &str, scopes: &Scopes) -> Form {
    named(vec![("grant_type", "client_credentials".to_owned())], resource, scopes)
}

/// The JWT bearer grant.
pub(crate) fn with_assertion(assertion: &Secret, resource: &str, scopes: &Scopes) -> Form {
    let form = vec![("grant_type", JWT_BEARER.to_owned()), ("assertion", assertion.reveal().to_owned())];
    named(form, resource, scopes)
}

/// Checks that a JWT bearer assertion is meant for an authorization server, since the MCP server alone must not decide which
/// one receives it: the assertion's `aud` names it byte for byte, or the
/// client's configuration does.
pub(crate) fn check_audience(
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
    let message = format!(
        "what vouches for this client is not sent to {}, the authorization server that the server names: {why}",
        excerpt(server.issuer())
    );
    Err(FlowError::new(FlowErrorKind::AssertionAudience, message))
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

fn named(mut form: Form, resource: &str, scopes: &Scopes) -> Form {
    form.push(("resource", resource.to_owned()));
    if !scopes.is_empty() {
        form.push(("scope", scopes.to_string()));
    }
    form
}

/// The token exchange at an enterprise's identity provider, for an ID-JAG (RFC 8693).
pub(crate) fn with_identity(
    enterprise: &EnterpriseIdp,
    endpoint: Url,
    target: &AuthTarget,
    server: &Server,
    scopes: &Scopes,
) -> TokenRequest {
    let form = vec![
        ("grant_type", TOKEN_EXCHANGE.to_owned()),
        ("requested_token_type", ID_JAG.to_owned()),
        ("audience", server.issuer().to_owned()),
        ("subject_token", enterprise.id_token.reveal().to_owned()),
        ("subject_token_type", ID_TOKEN.to_owned()),
    ];
    let form = named(form, &target.resource, scopes);
    let client = OAuthClient::plain(&enterprise.client_id, enterprise.client_secret.clone());
    let (what, issuer) = (Some("an identity assertion"), enterprise.issuer.clone());
    TokenRequest { what, issuer, endpoint, client, form, key: None, nonce: None }
}

/// Reads the ID-JAG of a token exchange response.
pub(crate) fn read_identity_assertion(
    token_request: &TokenRequest,
    tokens: TokenResponse,
) -> Result<Secret, FlowError> {
    if tokens.issued_token_type.as_deref() != Some(ID_JAG) {
        return Err(token_request.bad("a token of another type than the one that was asked for"));
    }
    // An ID-JAG is not an access token, and its `token_type` says so.
    if !tokens.token_type.eq_ignore_ascii_case("N_A") {
        return Err(token_request.bad("a token that says it is for access"));
    }
    Ok(tokens.access_token)
}

fn client_of(grant: &TokenSet, identity: &ClientIdentity) -> Result<OAuthClient, FlowError> {
    OAuthClient::of_tokens(grant, identity)
        .ok_or_else(|| FlowError::client_authentication(&grant.issuer, "its secret or key is not at hand"))
}

/// The refresh token grant.
pub(crate) fn refresh_request(
    grant: &TokenSet,
    identity: &ClientIdentity,
) -> Result<TokenRequest, FlowError> {
    let Some(refresh) = &grant.refresh_token else {
        let message = format!("there is no refresh token for {}", grant.issuer);
        return Err(FlowError::new(FlowErrorKind::NoRefreshToken, message));
    };
    let client = client_of(grant, identity)?;
    let key = grant.key.as_ref().map(super::BoundKey::open).transpose();
    let key = key.map_err(FlowError::crypto)?.map(Arc::new);
    let form = vec![
        ("grant_type", "refresh_token".to_owned()),
        ("refresh_token", refresh.reveal().to_owned()),
        ("resource", grant.resource.clone()),
    ];
    let what = Some("a new token for the old login");
    let (issuer, endpoint) = (grant.issuer.clone(), grant.token_endpoint.clone());
    Ok(TokenRequest { what, issuer, endpoint, client, form, key, nonce: None })
}

/// The revocation requests of tokens (RFC 7009): the refresh token first, then the access token. The client authenticates
/// as it does at the token endpoint. There are none where the authorization server has no revocation endpoint.
///
/// # Errors
/// The client cannot authenticate: its secret or key is not in `identity`.
pub fn revocations(
    grant: &TokenSet,
    identity: &ClientIdentity,
    now: Seconds,
) -> Result<Vec<Request<Bytes>>, FlowError> {
    let Some(endpoint) = &grant.revocation_endpoint else { return Ok(Vec::new()) };
    let client = client_of(grant, identity)?;
    let tokens = [("refresh_token", grant.refresh_token.as_ref()), ("access_token", Some(&grant.token))];
    let tokens = tokens.into_iter().filter_map(|(hint, token)| Some((hint, token?)));
    let requests = tokens.map(|(hint, token)| {
        let form = vec![("token", token.reveal().to_owned()), ("token_type_hint", hint.to_owned())];
        let (issuer, endpoint, client) = (grant.issuer.clone(), endpoint.clone(), client.clone());
        TokenRequest { what: None, issuer, endpoint, client, form, key: None, nonce: None }.request(now)
    });
    requests.collect()
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
