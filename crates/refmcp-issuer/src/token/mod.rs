//! Where tokens are had.

mod assertion;
mod code;
mod credentials;
mod issue;
mod proof;
mod refresh;

pub(crate) use issue::fewer;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, Response, StatusCode};
use refmcp_auth::Seconds;
use refmcp_auth::dpop::VerifiedProof;
use refmcp_auth::metadata::TokenResponse;

use crate::clients::{Client, authenticate};
use crate::faults::Fault;
use crate::form::{self, Form};
use crate::respond::{self, Refusal};
use crate::serve::Server;

/// The grant of an authorization code.
pub(crate) const CODE: &str = "authorization_code";
/// The grant of a refresh token.
pub(crate) const REFRESH: &str = "refresh_token";
/// The grant to a client itself.
pub(crate) const CLIENT_CREDENTIALS: &str = "client_credentials";
/// The grant of somebody else's assertion (RFC 7523).
pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Answers a request for tokens.
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

/// A request for tokens, as far as all kinds are alike.
pub(crate) struct Ask<'a> {
    pub(crate) form: &'a Form,
    /// The proof that comes with it, checked and not used yet.
    proof: Option<VerifiedProof>,
    pub(crate) now: Seconds,
}

impl Ask<'_> {
    /// The fingerprint of the key whose possession is proven.
    fn jkt(&self) -> Option<String> {
        self.proof.as_ref().map(|proof| proof.jkt.clone())
    }
}

fn grant(server: &Server, head: &Parts, body: &Bytes, now: Seconds) -> Result<TokenResponse, Refusal> {
    let form = form::read(head, body)?;
    let kind = form.need("grant_type")?;
    if ![CODE, REFRESH, CLIENT_CREDENTIALS, JWT_BEARER].contains(&kind) {
        return Err(Refusal::new("unsupported_grant_type", "the grant_type is not known here"));
    }
    // Before the client, whose assertion is good for one time: it may have to come again with a nonce.
    let proof = proof::check(server, &head.headers, now)?;
    let ask = Ask { form: &form, proof, now };
    if kind == JWT_BEARER {
        return assertion::grant(server, &head.headers, &ask);
    }
    let client = authenticate(server, &head.headers, &form, now)?;
    check_client(&client, kind, &ask)?;
    match kind {
        CODE => code::grant(server, &client, &ask),
        REFRESH => refresh::grant(server, &client, &ask),
        _ => credentials::grant(server, &client, &ask),
    }
}

/// Whether a client may ask in this way.
fn check_client(client: &Client, kind: &str, ask: &Ask<'_>) -> Result<(), Refusal> {
    if !client.may_use(kind) {
        return Err(Refusal::new("unauthorized_client", "the client has not registered this grant_type"));
    }
    if client.bound_tokens && ask.proof.is_none() {
        let what = "the client has registered that it proves possession";
        return Err(Refusal::new("invalid_dpop_proof", what));
    }
    Ok(())
}
