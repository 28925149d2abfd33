//! The authorization endpoint.

mod answer;
mod consent;
mod page;
mod request;

pub(crate) use page::about;
pub(crate) use request::AuthorizationRequest;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response};
use refmcp_auth::Seconds;

use crate::serve::Server;
use crate::settings::Login;
use crate::subject;
use request::RequestError;

/// The user of a login without a name.
pub(crate) const DEFAULT_USER: &str = "user";

/// Answers a browser.
pub(crate) async fn answer(server: &Server, head: &Parts, body: &Bytes, now: Seconds) -> Response<Bytes> {
    if head.method == Method::POST {
        return consent::decide(server, head, body, now);
    }
    match request::read(server, head.uri.query().unwrap_or_default(), now).await {
        Ok(asked) if server.settings.login == Login::Auto => {
            let subject = asked.login_hint.as_deref().and_then(subject::person);
            let subject = subject.unwrap_or_else(|| DEFAULT_USER.to_owned());
            answer::allow(server, &head.method, asked, subject, now)
        }
        Ok(asked) => consent::ask(server, head, asked, now),
        Err(RequestError::Untrusted(what)) => page::error(&what),
        Err(RequestError::Refused(place, refusal)) => answer::refuse(server, &head.method, &place, &refusal),
    }
}
