//! For those who operate the server: whether it lives, whether it takes work, what it has done.

use std::sync::atomic::Ordering;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::endpoint::Inner;
use crate::refusal::{Reason, Refusal};

/// The process answers, so it lives.
pub(crate) fn health() -> Response {
    plain("alive\n".to_owned())
}

/// Whether new work is welcome.
pub(crate) fn ready(endpoint: &Inner) -> Result<Response, Refusal> {
    if endpoint.draining.load(Ordering::Relaxed) || endpoint.stop.is_cancelled() {
        return Err(Refusal::full(Reason::Stopping, "the server stops", 10));
    }
    Ok(plain("ready\n".to_owned()))
}

/// The metrics.
pub(crate) fn metrics(endpoint: &Inner) -> Response {
    let sessions = endpoint.sessions.count();
    let mut response =
        plain(endpoint.metrics.text(&endpoint.options.path, &sessions, endpoint.server.statistics()));
    let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, format);
    response
}

fn plain(text: String) -> Response {
    (StatusCode::OK, [(header::CACHE_CONTROL, "no-store")], text).into_response()
}
