//! The authorization endpoint.

use bytes::Bytes;
use http::{Method, Response};
use refmcp_auth::Seconds;
use refmcp_auth::dpop::token_digest;
use refmcp_auth::random::random_token;
use request::{RedirectTarget, RequestError};
use url::Url;

use crate::faults::Fault;
use crate::metadata::OTHER_ISSUER;
use crate::respond::{self, ErrorResponse};
use crate::serve::Exchange;
use crate::settings::Login;
use crate::state::{Authorization, Code};
use crate::token::{self, REFRESH};

mod consent;
mod page;
mod request;

pub(crate) use page::about;
pub(crate) use request::AuthorizationRequest;

/// The user of a login without a name.
pub(crate) const DEFAULT_USER: &str = "user";

/// Answers a browser.
pub(crate) async fn answer(exchange: Exchange<'_>) -> Response<Bytes> {
    if exchange.head.method == Method::POST {
        return consent::decide(exchange);
    }
    match request::read(exchange).await {
        Ok(asked) if exchange.server.settings.login == Login::Auto => {
            let subject = asked.expected_user();
            allow(exchange, asked, subject)
        }
        Ok(asked) => consent::ask(exchange, asked),
        Err(RequestError::Untrusted(what)) => page::error(&what),
        Err(RequestError::Refused(place, refusal)) => refuse(exchange, &place, &refusal),
    }
}

/// Lifetime of a code in seconds.
pub(crate) const CODE_LIFETIME: Seconds = 60;

/// Grants the request: redirects with a code.
fn allow(exchange: Exchange<'_>, asked: AuthorizationRequest, subject: String) -> Response<Bytes> {
    let place = asked.place.clone();
    match new_code(exchange, asked, subject) {
        Ok(code) => send(exchange, &place, &[("code", &code)]),
        Err(refusal) => refuse(exchange, &place, &refusal),
    }
}

fn new_code(
    exchange: Exchange<'_>,
    asked: AuthorizationRequest,
    subject: String,
) -> Result<String, ErrorResponse> {
    let Exchange { server, now, .. } = exchange;
    let code = random_token().map_err(|error| ErrorResponse::server_error(error.to_string()))?;
    let granted = Authorization {
        client_id: asked.client.id.clone(),
        subject,
        resource: asked.resource,
        scopes: token::fewer(server, asked.scopes),
        jkt: asked.jkt,
        refreshable: asked.client.may_use(REFRESH),
        family: token::new_family()?,
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
    state.codes.insert(token_digest(&code), code_entry, kept, now);
    Ok(code)
}

/// Denies the request: redirects with an error.
fn refuse(exchange: Exchange<'_>, place: &RedirectTarget, refusal: &ErrorResponse) -> Response<Bytes> {
    let mut pairs = vec![("error", refusal.error.error.as_str())];
    if let Some(description) = &refusal.error.error_description {
        pairs.push(("error_description", description));
    }
    send(exchange, place, &pairs)
}

/// Redirects with these parameters, the `state` of the request and `iss` (RFC 9207).
fn send(exchange: Exchange<'_>, place: &RedirectTarget, words: &[(&str, &str)]) -> Response<Bytes> {
    let server = exchange.server;
    let Ok(mut url) = Url::parse(&place.redirect_uri) else {
        // It was parsed when the request was checked.
        return ErrorResponse::server_error("the redirect URI is none").answer();
    };
    {
        let mut query = url.query_pairs_mut();
        query.extend_pairs(words);
        if let Some(state) = &place.state {
            let state = if server.breaks(Fault::WrongState) { "another-state" } else { state };
            query.append_pair("state", state);
        }
        if server.breaks(Fault::ForeignIss) {
            query.append_pair("iss", OTHER_ISSUER);
        } else if !server.breaks(Fault::MissingIss) {
            query.append_pair("iss", &server.name);
        }
    }
    respond::redirect(&exchange.head.method, url.as_str())
}
