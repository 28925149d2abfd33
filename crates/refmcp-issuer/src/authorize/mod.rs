//! The authorization endpoint.

mod answer;
mod consent;
mod page;
mod request;

pub(crate) use page::about;
pub(crate) use request::AuthorizationRequest;

use bytes::Bytes;
use http::{Method, Response};

use crate::serve::Exchange;
use crate::settings::Login;
use request::RequestError;

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
            answer::allow(exchange, asked, subject)
        }
        Ok(asked) => consent::ask(exchange, asked),
        Err(RequestError::Untrusted(what)) => page::error(&what),
        Err(RequestError::Refused(place, refusal)) => answer::refuse(exchange, &place, &refusal),
    }
}
