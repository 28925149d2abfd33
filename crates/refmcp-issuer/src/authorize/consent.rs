//! The consent page and its form.
//!
//! A page is valid for one decision in the browser that it was shown in: the form carries a token and the browser a cookie,
//! and both have to match. An attacker who opens the page and lets another user submit the form gains nothing.

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::{Response, StatusCode};
use refmcp_auth::dpop::token_digest;
use refmcp_auth::random::random_token;
use refmcp_auth::{Seconds, pkce};

use super::request::AuthorizationRequest;
use super::{DEFAULT_USER, allow, page, refuse};
use crate::form;
use crate::respond::{self, ErrorResponse};
use crate::serve::{Exchange, Server};
use crate::state::Consent;
use crate::subject;

/// Lifetime of a consent page in seconds.
pub(crate) const PAGE_LIFETIME: Seconds = 600;

/// Shows the consent page.
pub(crate) fn ask(exchange: Exchange<'_>, asked: AuthorizationRequest) -> Response<Bytes> {
    let Exchange { server, head, now, .. } = exchange;
    let cookie = cookie(server, &head.headers);
    let made = cookie.map_or_else(random_token, Ok).and_then(|browser| Ok((browser, random_token()?)));
    let Ok((browser, token)) = made else {
        return ErrorResponse::server_error("the system gives no random bytes").answer();
    };
    let mut response = page::consent(&asked, &server.name, &token);
    let secure = server.settings.origin.scheme() == "https";
    // The `__Host-` prefix makes browsers enforce TLS, this host and the path `/`.
    let rest = if secure { "Path=/; Secure" } else { "Path=/authorize" };
    let set = format!("{}={browser}; {rest}; HttpOnly; SameSite=Lax; Max-Age={PAGE_LIFETIME}", name(server));
    respond::set(response.headers_mut(), header::SET_COOKIE, &set);
    let mut state = server.state();
    let consent = Consent { browser: token_digest(&browser), asked };
    state.consents.insert(token_digest(&token), consent, now.saturating_add(PAGE_LIFETIME), now);
    response
}

/// Takes the decision of the form.
pub(crate) fn decide(exchange: Exchange<'_>) -> Response<Bytes> {
    let Exchange { server, head, now, .. } = exchange;
    let form = match form::read(exchange) {
        Ok(form) => form,
        Err(refusal) => return page::error_with(refusal.status, &refusal.error.to_string()),
    };
    // `Origin` and `Sec-Fetch-Site` are checked where a browser sends them; otherwise the cookie decides.
    let site = head.headers.get("sec-fetch-site").map(http::HeaderValue::as_bytes);
    let origin = head.headers.get(header::ORIGIN).map(http::HeaderValue::as_bytes);
    let ours = server.settings.origin.origin().ascii_serialization();
    let foreign = origin.is_some_and(|origin| origin != ours.as_bytes() && origin != b"null");
    if foreign || site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return page::error_with(StatusCode::FORBIDDEN, "the form was sent from another site");
    }
    let (Some(token), Some(browser)) = (form.get("form_token"), cookie(server, &head.headers)) else {
        return page::error_with(StatusCode::FORBIDDEN, "the form does not come from this browser");
    };
    let digest = token_digest(token);
    let Some(decision) = form.get("decision").filter(|decision| matches!(*decision, "allow" | "deny")) else {
        return page::error("the decision must be allow or deny");
    };
    let taken = take(server, &digest, &token_digest(&browser), now);
    let asked = match taken {
        Ok(asked) => asked,
        Err(what) => return page::error_with(StatusCode::FORBIDDEN, what),
    };
    if decision == "deny" {
        let denied = ErrorResponse::new("access_denied", "the person said no");
        return refuse(exchange, &asked.place, &denied);
    }
    let Some(user) = subject::person(form.get("user").unwrap_or(DEFAULT_USER)) else {
        return page::error("the user name is too long, or not one that a person has");
    };
    allow(exchange, asked, user)
}

/// The request of an open consent page, if this browser opened it.
fn take(
    server: &Server,
    token: &str,
    browser: &str,
    now: Seconds,
) -> Result<AuthorizationRequest, &'static str> {
    let mut state = server.state();
    let consent = state.consents.get(token, now);
    let consent = consent.ok_or("the form was sent before, or too late: start again from the client")?;
    // Both are digests, so the duration of the comparison tells nothing about the cookie.
    if consent.browser != browser {
        return Err("the form was shown in another browser");
    }
    state.consents.remove(token).map(|consent| consent.asked).ok_or("the form was sent before")
}

fn name(server: &Server) -> &'static str {
    if server.settings.origin.scheme() == "https" { "__Host-refmcp-consent" } else { "refmcp-consent" }
}

/// The value of the cookie, if it has the expected form.
fn cookie(server: &Server, headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(known, _)| *known == name(server))?;
    // The form of a digest: 43 characters that need no quotes.
    pkce::is_challenge(value).then(|| value.to_owned())
}
