//! `DELETE`: the end of a session.

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::access::caller::Caller;
use crate::endpoint::Inner;
use crate::refusal::Refusal;
use crate::request::headers::names_stateless;
use crate::session::find_and_note;

pub(crate) fn delete(endpoint: &Inner, caller: &Caller, headers: &HeaderMap) -> Result<Response, Refusal> {
    if names_stateless(headers) {
        return Err(Refusal::method(&["POST"], "this revision has no DELETE"));
    }
    let session = find_and_note(endpoint, caller, headers)?;
    endpoint.sessions.close(&session.id);
    Ok(StatusCode::NO_CONTENT.into_response())
}
