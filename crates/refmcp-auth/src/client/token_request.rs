//! Requests to a token endpoint, and its responses.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::discovery::{AuthTarget, request};
use super::flow::FlowIo;
use super::flow_step::{FlowStep, excerpt};
use super::identity::{AuthMethod, Form, OAuthClient};
use super::{
    Blame, BoundKey, ClientIdentity, EnterpriseIdp, FlowError, FlowErrorKind, JWT_BEARER, PreRegistered,
    TokenSet, TokenType,
};
use crate::claims::Audience;
use crate::jose::{PrivateKey, decode};
use crate::metadata::{OAuthError, ServerMetadata, TokenResponse};
use crate::scope::Scopes;
use crate::secret::Secret;
use crate::{Seconds, dpop};

/// Longest accepted token.
const MAX_TOKEN_BYTES: usize = 64 << 10;

/// Longest accepted DPoP nonce.
const MAX_NONCE: usize = 1024;

/// Secret form fields, removed from error texts that quote them.
const SECRETS: [&str; 7] = [
    "code",
    "code_verifier",
    "refresh_token",
    "client_secret",
    "assertion",
    "subject_token",
    "client_assertion",
];

/// A token request, which is repeated once when the server demands a DPoP nonce.
pub(crate) struct TokenRequest {
    /// What is requested, for the log; a request without it is not logged.
    pub(crate) what: Option<&'static str>,
    pub(crate) issuer: String,
    pub(crate) endpoint: Url,
    pub(crate) client: OAuthClient,
    pub(crate) form: Form,
    /// The DPoP key.
    pub(crate) key: Option<Arc<PrivateKey>>,
    /// The DPoP nonce that the server provided.
    pub(crate) nonce: Option<String>,
}

impl TokenRequest {
    /// Builds the HTTP request, with fresh client authentication and DPoP proof.
    pub(crate) fn request(&self, now: Seconds) -> Result<Request<Bytes>, FlowError> {
        let mut headers = HeaderMap::new();
        let mut form = self.form.clone();
        self.client.prove(&self.issuer, &mut form, &mut headers, now)?;
        if let Some(key) = &self.key {
            let proof = dpop::prove(key, "POST", &self.endpoint, None, self.nonce.as_deref(), now);
            let proof = HeaderValue::try_from(proof.map_err(FlowError::crypto)?);
            headers.insert("dpop", proof.map_err(FlowError::crypto)?);
        }
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(&form).finish();
        let mut request = request(Method::POST, &self.endpoint, Blame::AuthorizationServer, body.into())?;
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(CONTENT_TYPE, kind);
        request.headers_mut().extend(headers);
        Ok(request)
    }

    /// Sends the request, again where the server demands a DPoP nonce: the tokens, or the error of the token endpoint.
    pub(crate) async fn send(&mut self, io: &FlowIo) -> Result<Result<TokenResponse, OAuthError>, FlowError> {
        loop {
            let request = self.request(io.now())?;
            let response = io.fetch(request, &self.endpoint, Blame::AuthorizationServer).await;
            let answer = response.and_then(|response| self.read(&response));
            if let Some(what) = self.what {
                let came = match &answer {
                    Ok(Some(Ok(tokens))) => describe(tokens),
                    Ok(Some(Err(refusal))) => format!("it refused: {refusal}"),
                    Ok(None) => "it wants a nonce in the proof, so it gets a fresh one".to_owned(),
                    Err(_) => "nothing that can be used".to_owned(),
                };
                io.step(FlowStep::new(format!("asked for {what} at"), came).at(&self.endpoint));
            }
            if let Some(answer) = answer? {
                return Ok(answer);
            }
        }
    }

    /// Reads the response; none means that the request has to be sent again with the nonce.
    fn read(
        &mut self,
        response: &Response<Bytes>,
    ) -> Result<Option<Result<TokenResponse, OAuthError>>, FlowError> {
        let status = response.status();
        if status == StatusCode::OK {
            return tokens(response.body()).map(|tokens| Some(Ok(tokens))).map_err(|why| self.bad(why));
        }
        let said = serde_json::from_slice::<OAuthError>(response.body()).ok();
        let Some(said) = said.filter(|_| is_permanent(status)) else {
            return Err(self.bad(format!("status {}", status.as_u16())));
        };
        if said.error == "use_dpop_nonce" && self.key.is_some() && self.nonce.is_none() {
            let nonce = response.headers().get("dpop-nonce").and_then(|value| value.to_str().ok());
            if let Some(nonce) = nonce.filter(|nonce| (1..=MAX_NONCE).contains(&nonce.len())) {
                self.nonce = Some(nonce.to_owned());
                return Ok(None);
            }
        }
        Ok(Some(Err(self.redacted(said))))
    }

    /// Removes secrets of the request from an error response.
    fn redacted(&self, said: OAuthError) -> OAuthError {
        let fields =
            self.form.iter().filter(|(name, _)| SECRETS.contains(name)).map(|(_, value)| value.as_str());
        let secrets: Vec<&str> = fields.chain(self.client.secret.as_ref().map(Secret::reveal)).collect();
        let hide = |text: String| {
            let hidden = secrets.iter().filter(|secret| !secret.is_empty());
            excerpt(&hidden.fold(text, |text, secret| text.replace(secret, "…")))
        };
        OAuthError { error: hide(said.error), error_description: said.error_description.map(hide) }
    }

    /// The error of an invalid token response.
    pub(crate) fn bad(&self, why: impl fmt::Display) -> FlowError {
        let message = format!("{} sent an invalid token response: {why}", excerpt(&self.issuer));
        FlowError::new(FlowErrorKind::InvalidTokenResponse, message)
    }

    /// Converts a token response.
    pub(crate) fn grant(
        &self,
        tokens: TokenResponse,
        resource: &str,
        asked: &Scopes,
        revocation: Option<Url>,
        now: Seconds,
    ) -> Result<TokenSet, FlowError> {
        let expected = if self.key.is_some() { TokenType::Dpop } else { TokenType::Bearer };
        if !tokens.token_type.eq_ignore_ascii_case(expected.name()) {
            let (got, name) = (excerpt(&tokens.token_type), expected.name());
            return Err(self.bad(format!("a token of the type {got:?}, where {name} was asked for")));
        }
        let keeps = self.client.dynamic && matches!(self.client.method, AuthMethod::Basic | AuthMethod::Post);
        Ok(TokenSet {
            issuer: self.issuer.clone(),
            resource: resource.to_owned(),
            client_id: self.client.id.clone(),
            client_secret: self.client.secret.clone().filter(|_| keeps),
            method: self.client.method,
            token: tokens.access_token,
            token_type: expected,
            scope: tokens.scope.unwrap_or_else(|| asked.clone()),
            requested_scope: asked.clone(),
            expires_at: tokens.expires_in.map(|seconds| now.saturating_add(seconds)),
            refresh_token: tokens.refresh_token,
            token_endpoint: self.endpoint.clone(),
            revocation_endpoint: revocation,
            key: self.key.as_deref().map(BoundKey::from_key),
        })
    }

    /// Converts the token response of a refresh.
    pub(crate) fn renewed(
        &self,
        tokens: TokenResponse,
        old: TokenSet,
        now: Seconds,
    ) -> Result<TokenSet, FlowError> {
        let new = self.grant(tokens, &old.resource, &old.scope, old.revocation_endpoint, now)?;
        // Without a new refresh token, the old one stays valid.
        let refresh_token = new.refresh_token.or(old.refresh_token);
        Ok(TokenSet { requested_scope: old.requested_scope, refresh_token, ..new })
    }
}

/// True if a retry would not help.
fn is_permanent(status: StatusCode) -> bool {
    let later = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT];
    status.is_client_error() && !later.contains(&status)
}

/// Parses a token response. Some servers write `expires_in` as a string or with a decimal point.
fn tokens(body: &[u8]) -> Result<TokenResponse, &'static str> {
    let mut value: Value = serde_json::from_slice(body).map_err(|_| "it is not JSON")?;
    let Some(members) = value.as_object_mut() else { return Err("it is not an object") };
    if let Some(seconds) = members.remove("expires_in") {
        let number = match &seconds {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            _ => None,
        };
        if let Some(number) = number {
            members.insert("expires_in".to_owned(), number.into());
        }
    }
    if members.get("scope").is_some_and(|scope| !scope.is_string()) {
        members.remove("scope");
    }
    let tokens: TokenResponse = serde_json::from_value(value).map_err(|_| "it lacks what makes a token")?;
    let fits = |text: &str| {
        (1..=MAX_TOKEN_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if !fits(tokens.access_token.reveal()) {
        return Err("its token fits into no header");
    }
    let refresh = tokens.refresh_token.as_ref();
    if refresh.is_some_and(|token| token.reveal().len() > MAX_TOKEN_BYTES) {
        return Err("its refresh token is too long");
    }
    Ok(TokenResponse {
        refresh_token: tokens.refresh_token.filter(|token| !token.reveal().is_empty()),
        ..tokens
    })
}

/// The integer part of a number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is checked to be in range")]
fn whole(number: f64) -> Option<u64> {
    (0.0..1e15).contains(&number).then_some(number as u64)
}

fn describe(tokens: &TokenResponse) -> String {
    let life = tokens.expires_in.map(|seconds| format!(", good for {seconds} s")).unwrap_or_default();
    let refresh = if tokens.refresh_token.is_some() { ", and a refresh token" } else { "" };
    format!("a token of the type {}{life}{refresh}", excerpt(&tokens.token_type))
}

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// A token request to an authorization server.
pub(crate) fn token_request(
    what: Option<&'static str>,
    server: &ServerMetadata,
    client: OAuthClient,
    form: Form,
    key: Option<Arc<PrivateKey>>,
) -> Result<TokenRequest, FlowError> {
    let (issuer, endpoint) = (server.issuer.clone(), server.token_url()?);
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
    server: &ServerMetadata,
) -> Result<(), FlowError> {
    if client.and_then(|client| client.issuer.as_deref()) == Some(&*server.issuer) {
        return Ok(());
    }
    let why = match audience(assertion.reveal()) {
        None => "it names no audience".to_owned(),
        Some(audience) => {
            let endpoint = server.token_endpoint.as_deref();
            if audience.iter().any(|name| name == server.issuer || Some(name) == endpoint) {
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
        excerpt(&server.issuer)
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
    server: &ServerMetadata,
    scopes: &Scopes,
) -> TokenRequest {
    let form = vec![
        ("grant_type", TOKEN_EXCHANGE.to_owned()),
        ("requested_token_type", ID_JAG.to_owned()),
        ("audience", server.issuer.clone()),
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
    fn lenient_expires_in_is_parsed() {
        let life = |text: &str| {
            let body = format!(r#"{{"access_token":"t","token_type":"Bearer","expires_in":{text}}}"#);
            tokens(body.as_bytes()).unwrap().expires_in
        };
        assert_eq!((life("60"), life("\"60\""), life("60.0")), (Some(60), Some(60), Some(60)));
        assert_eq!((life("-1"), life("null"), life("1e300"), life("\"soon\"")), (None, None, None, None));
        for bad in ["", "[]", "{}", "<html>", r#"{"access_token":"","token_type":"Bearer"}"#] {
            assert!(tokens(bad.as_bytes()).is_err(), "{bad}");
        }
        let strange = r#"{"access_token":"a\r\nb","token_type":"Bearer"}"#;
        assert!(tokens(strange.as_bytes()).is_err());
    }

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
