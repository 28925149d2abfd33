//! The token endpoint.

mod assertion;
mod grants;
mod issue;

pub(crate) use issue::{fewer, new_family};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Response, StatusCode};
use refmcp_auth::Seconds;
use refmcp_auth::dpop::{self, ProofContext, ProofError, VerifiedProof};
use refmcp_auth::metadata::TokenResponse;
use refmcp_auth::resource::ReplayCache;
use url::Url;

use crate::clients::{Client, authenticate};
use crate::faults::Fault;
use crate::form::{self, Form};
use crate::respond::{self, ErrorResponse};
use crate::serve::Server;

/// The authorization code grant type.
pub(crate) const CODE: &str = "authorization_code";
/// The refresh token grant type.
pub(crate) const REFRESH: &str = "refresh_token";
/// The client credentials grant type.
pub(crate) const CLIENT_CREDENTIALS: &str = "client_credentials";
/// The JWT bearer grant type (RFC 7523).
pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Answers a token request.
pub(crate) fn answer(server: &Server, head: &Parts, body: &Bytes, now: Seconds) -> Response<Bytes> {
    if server.breaks(Fault::HtmlTokenResponse) {
        let page = "<!doctype html><title>Welcome</title><p>This is not what you asked for.";
        return respond::typed(StatusCode::OK, "text/html; charset=utf-8", page);
    }
    if server.breaks(Fault::ServerErrorToken) {
        return respond::typed(
            StatusCode::INTERNAL_SERVER_ERROR,
            "text/plain; charset=utf-8",
            "broken on request",
        );
    }
    let mut response = match grant(server, head, body, now) {
        Ok(tokens) => respond::private_json(StatusCode::OK, &tokens),
        Err(refusal) => {
            tracing::debug!(error = refusal.error.error, "a client gets no token");
            refusal.answer()
        }
    };
    if server.settings.dpop_nonce {
        let nonce = server.state().nonces.current(now);
        respond::set(response.headers_mut(), HeaderName::from_static("dpop-nonce"), &nonce);
    }
    response
}

/// The common part of a token request.
pub(crate) struct TokenRequest<'a> {
    pub(crate) form: &'a Form,
    /// The verified DPoP proof, not marked as used yet.
    proof: Option<VerifiedProof>,
    pub(crate) now: Seconds,
}

impl TokenRequest<'_> {
    /// The thumbprint of the DPoP key.
    fn jkt(&self) -> Option<String> {
        self.proof.as_ref().map(|proof| proof.jkt.clone())
    }

    /// Marks the proof as used, right before tokens are issued. Proofs of failed requests may come again, so that a flood of
    /// them does not fill the cache.
    fn use_proof(&self, used: &mut ReplayCache) -> Result<(), ErrorResponse> {
        self.proof.as_ref().map_or(Ok(()), |proof| used.use_once(proof, self.now)).map_err(bad_proof)
    }
}

fn invalid(what: impl Into<String>) -> ErrorResponse {
    ErrorResponse::new("invalid_grant", what)
}

fn bad_proof(fault: ProofError) -> ErrorResponse {
    ErrorResponse::new("invalid_dpop_proof", fault.to_string())
}

/// Verifies the DPoP proof of a request, if there is one (RFC 9449).
fn check_proof(
    server: &Server,
    headers: &HeaderMap,
    now: Seconds,
) -> Result<Option<VerifiedProof>, ErrorResponse> {
    let mut given = headers.get_all("dpop").iter();
    let Some(proof) = given.next() else {
        return Ok(None);
    };
    if given.next().is_some() {
        return Err(bad_proof(ProofError::Several));
    }
    let proof = proof.to_str().map_err(|_| bad_proof(ProofError::Malformed))?;
    let endpoint = Url::parse(&server.settings.endpoint("/token"));
    let endpoint = endpoint.map_err(|_| ErrorResponse::server_error("the token endpoint has no URL"))?;
    let asked = ProofContext { method: "POST", urls: std::slice::from_ref(&endpoint), token: None };
    let proven = dpop::check(proof, &asked, now).map_err(bad_proof)?;
    if server.settings.dpop_nonce {
        let nonce = proven.nonce.as_deref().unwrap_or_default();
        if !server.state().nonces.is_good(nonce, now) {
            return Err(ErrorResponse::new("use_dpop_nonce", ProofError::Nonce.to_string()));
        }
    }
    Ok(Some(proven))
}

fn grant(server: &Server, head: &Parts, body: &Bytes, now: Seconds) -> Result<TokenResponse, ErrorResponse> {
    let form = form::read(head, body)?;
    let kind = form.need("grant_type")?;
    if ![CODE, REFRESH, CLIENT_CREDENTIALS, JWT_BEARER].contains(&kind) {
        return Err(ErrorResponse::new("unsupported_grant_type", "the grant_type is not known here"));
    }
    // Before client authentication, whose assertion is single-use: the client may have to repeat the request with a nonce.
    let proof = check_proof(server, &head.headers, now)?;
    let request = TokenRequest { form: &form, proof, now };
    if kind == JWT_BEARER {
        return assertion::grant(server, &head.headers, &request);
    }
    let client = authenticate(server, &head.headers, &form, now)?;
    check_client(&client, kind, &request)?;
    match kind {
        CODE => grants::code(server, &client, &request),
        REFRESH => grants::refresh(server, &client, &request),
        _ => grants::client_credentials(server, &client, &request),
    }
}

/// Checks that a client may use a grant type.
fn check_client(client: &Client, kind: &str, request: &TokenRequest<'_>) -> Result<(), ErrorResponse> {
    if !client.may_use(kind) {
        return Err(ErrorResponse::new(
            "unauthorized_client",
            "the client has not registered this grant_type",
        ));
    }
    if client.bound_tokens && request.proof.is_none() {
        let what = "the client has registered that it proves possession";
        return Err(ErrorResponse::new("invalid_dpop_proof", what));
    }
    Ok(())
}
