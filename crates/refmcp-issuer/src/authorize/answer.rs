//! What the client is told, by way of the browser.

use bytes::Bytes;
use http::{Method, Response};
use refmcp_auth::Seconds;
use refmcp_auth::dpop::token_digest;
use refmcp_auth::random::random_token;
use url::Url;

use super::request::{Asked, Place};
use crate::faults::Fault;
use crate::metadata::STRANGER;
use crate::respond::{self, Refusal};
use crate::serve::Server;
use crate::state::{Code, Granted};
use crate::token::{self, REFRESH};

/// Seconds for which a code is good.
pub(crate) const CODE_LIFETIME: Seconds = 60;

/// Grants what was asked for: the client gets a code.
pub(crate) fn allow(
    server: &Server,
    method: &Method,
    asked: Asked,
    subject: String,
    now: Seconds,
) -> Response<Bytes> {
    let place = asked.place.clone();
    match new_code(server, asked, subject, now) {
        Ok(code) => send(server, method, &place, &[("code", &code)]),
        Err(refusal) => refuse(server, method, &place, &refusal),
    }
}

fn new_code(server: &Server, asked: Asked, subject: String, now: Seconds) -> Result<String, Refusal> {
    let no_random = |fault: refmcp_auth::random::RandomError| Refusal::own_fault(fault.to_string());
    let code = random_token().map_err(no_random)?;
    let granted = Granted {
        client_id: asked.client.id.clone(),
        subject,
        resource: asked.resource,
        scopes: token::fewer(server, asked.scopes),
        jkt: asked.jkt,
        refreshable: asked.client.may_use(REFRESH),
        family: random_token().map_err(no_random)?,
    };
    let short = granted.client_id.get(..100).unwrap_or(&granted.client_id);
    tracing::debug!(client = short, "a client was allowed in");
    let lifetime = if server.breaks(Fault::ExpiredCode) { 0 } else { CODE_LIFETIME };
    let kept = now.saturating_add(server.settings.refresh_lifetime.as_secs());
    let code_entry = Code {
        granted,
        redirect_uri: asked.place.redirect_uri,
        challenge: asked.challenge,
        ends: now.saturating_add(lifetime),
        spent: false,
    };
    let mut state = server.state();
    state.clients.allow(&asked.client, now);
    state.codes.insert(&token_digest(&code), code_entry, kept, now);
    Ok(code)
}

/// Tells the client why it gets nothing.
pub(crate) fn refuse(server: &Server, method: &Method, place: &Place, refusal: &Refusal) -> Response<Bytes> {
    let mut pairs = vec![("error", refusal.error.error.as_str())];
    if let Some(description) = &refusal.error.error_description {
        pairs.push(("error_description", description));
    }
    send(server, method, place, &pairs)
}

/// Sends the browser to the client, with these words, the state of the request and our name (RFC 9207).
fn send(server: &Server, method: &Method, place: &Place, words: &[(&str, &str)]) -> Response<Bytes> {
    let Ok(mut url) = Url::parse(&place.redirect_uri) else {
        // It was parsed when it was proven.
        return Refusal::own_fault("the redirect URI is none").answer();
    };
    {
        let mut query = url.query_pairs_mut();
        query.extend_pairs(words);
        if let Some(state) = &place.state {
            let state = if server.breaks(Fault::WrongState) { "another-state" } else { state };
            query.append_pair("state", state);
        }
        if server.breaks(Fault::ForeignIss) {
            query.append_pair("iss", STRANGER);
        } else if !server.breaks(Fault::MissingIss) {
            query.append_pair("iss", &server.name);
        }
    }
    respond::redirect(method, url.as_str())
}
