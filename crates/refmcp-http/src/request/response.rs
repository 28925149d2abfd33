//! The HTTP status of an answer.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use refmcp_proto::jsonrpc::encode::{self, ResponseId};
use refmcp_proto::jsonrpc::{RequestId, RpcError, code};
use refmcp_proto::revision::Lifecycle;

/// The status of an answer that the engine gave. In a session the request was understood, so all is well with HTTP;
/// without one, some errors have a status of their own, so that whoever only sees HTTP understands them too.
pub(crate) fn of_answer(lifecycle: Lifecycle, error: Option<i64>) -> StatusCode {
    match (lifecycle, error) {
        (Lifecycle::PerRequest, Some(code::METHOD_NOT_FOUND)) => StatusCode::NOT_FOUND,
        (
            Lifecycle::PerRequest,
            Some(code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION),
        )
        | (_, Some(code::PARSE_ERROR | code::INVALID_REQUEST)) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// A response with a JSON body.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An error that was found before any engine saw the message. Its id is null where none could be read, as JSON-RPC wants it.
pub(crate) fn written(id: Option<&RequestId>, error: &RpcError) -> Bytes {
    let mut body = Vec::new();
    let to = id.map_or(ResponseId::Null, ResponseId::Id);
    if encode::error(&mut body, to, error).is_err() {
        body.clear();
    }
    body.into()
}

/// Nothing to say but that it was taken.
pub(crate) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}
