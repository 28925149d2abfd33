//! `DELETE`: the end of a session.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::endpoint::Endpoint;
use crate::get::names_stateless;
use crate::post::find_session;

pub(crate) async fn delete(State(endpoint): State<Endpoint>, headers: HeaderMap) -> Response {
    if names_stateless(&headers) {
        return (StatusCode::METHOD_NOT_ALLOWED, "this revision has no DELETE").into_response();
    }
    match find_session(&endpoint.inner, &headers) {
        Ok(session) => {
            endpoint.inner.sessions.close(&session.id);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(refusal) => refusal.into_response(),
    }
}
