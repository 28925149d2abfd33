//! The token endpoint.

mod assertion;
mod grants;
mod issue;

pub(crate) use assertion::Assertion;
pub(crate) use issue::{fewer, new_family};

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, Response, StatusCode};
use refmcp_auth::dpop::{self, ProofContext, ProofError, VerifiedProof};
use refmcp_auth::metadata::TokenResponse;
use refmcp_auth::resource::ReplayCache;
use url::Url;

use crate::clients::{Client, authenticate};
use crate::faults::Fault;
use crate::form::{self, Form};
use crate::respond::{self, ErrorResponse};
use crate::serve::Exchange;

/// The authorization code grant type.
pub(crate) const CODE: &str = "authorization_code";
/// The refresh token grant type.
pub(crate) const REFRESH: &str = "refresh_token";
/// The client credentials grant type.
pub(crate) const CLIENT_CREDENTIALS: &str = "client_credentials";
/// The JWT bearer grant type (RFC 7523).
pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Answers a token request.
pub(crate) fn answer(exchange: Exchange<'_>) -> Response<Bytes> {
    let server = exchange.server;
    if server.breaks(Fault::HtmlTokenResponse) {
        let page = "<!doctype html><title>Welcome</title><p>This is not what you asked for.";
        return respond::typed(StatusCode::OK, "text/html; charset=utf-8", page);
    }
    if server.breaks(Fault::ServerErrorToken) {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        return respond::typed(status, "text/plain; charset=utf-8", "broken on request");
    }
    let mut response = match grant(exchange) {
        Ok(tokens) => respond::private_json(StatusCode::OK, &tokens),
        Err(refusal) => {
            tracing::debug!(error = refusal.error.error, "a client gets no token");
            refusal.answer()
        }
    };
    if server.settings.dpop_nonce {
        let nonce = server.state().nonces.current(exchange.now);
        respond::set(response.headers_mut(), HeaderName::from_static("dpop-nonce"), &nonce);
    }
    response
}

/// The common part of a token request.
pub(crate) struct TokenRequest<'a> {
    exchange: Exchange<'a>,
    form: &'a Form,
    /// The verified DPoP proof, not marked as used yet.
    proof: Option<VerifiedProof>,
}

impl TokenRequest<'_> {
    /// The thumbprint of the DPoP key.
    fn jkt(&self) -> Option<String> {
        self.proof.as_ref().map(|proof| proof.jkt.clone())
    }

    /// Authenticates the client, and checks that it may use a grant type.
    fn client(&self, kind: &str) -> Result<Arc<Client>, ErrorResponse> {
        let client = authenticate(self.exchange, self.form)?;
        if !client.may_use(kind) {
            let what = "the client has not registered this grant_type";
            return Err(ErrorResponse::new("unauthorized_client", what));
        }
        if client.bound_tokens && self.proof.is_none() {
            let what = "the client has registered that it proves possession";
            return Err(ErrorResponse::new("invalid_dpop_proof", what));
        }
        Ok(client)
    }

    /// Marks the proof as used, right before tokens are issued. Proofs of failed requests may come again, so that a flood of
    /// them does not fill the cache.
    fn use_proof(&self, used: &mut ReplayCache) -> Result<(), ErrorResponse> {
        self.proof.as_ref().map_or(Ok(()), |proof| used.use_once(proof, self.exchange.now)).map_err(bad_proof)
    }
}

fn invalid(what: impl Into<String>) -> ErrorResponse {
    ErrorResponse::new("invalid_grant", what)
}

fn bad_proof(error: ProofError) -> ErrorResponse {
    ErrorResponse::new("invalid_dpop_proof", error.to_string())
}

/// Verifies the DPoP proof of a request, if there is one (RFC 9449).
fn check_proof(exchange: Exchange<'_>) -> Result<Option<VerifiedProof>, ErrorResponse> {
    let Exchange { server, now, .. } = exchange;
    let mut given = exchange.head.headers.get_all("dpop").iter();
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

fn grant(exchange: Exchange<'_>) -> Result<TokenResponse, ErrorResponse> {
    let form = form::read(exchange)?;
    let kind = form.need("grant_type")?;
    if ![CODE, REFRESH, CLIENT_CREDENTIALS, JWT_BEARER].contains(&kind) {
        return Err(ErrorResponse::new("unsupported_grant_type", "the grant_type is not known here"));
    }
    // Before client authentication, whose assertion is single-use: the client may have to repeat the request with a nonce.
    let request = TokenRequest { exchange, form: &form, proof: check_proof(exchange)? };
    if kind == JWT_BEARER {
        return assertion::grant(&request);
    }
    let client = request.client(kind)?;
    match kind {
        CODE => grants::code(&client, &request),
        REFRESH => grants::refresh(&client, &request),
        _ => grants::client_credentials(&client, &request),
    }
}
