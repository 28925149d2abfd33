//! HTTP+SSE, the transport of the oldest revision: one endpoint that streams everything the server says, one that
//! takes what the client says.

use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::conversation::STANDING;
use crate::endpoint::{Endpoint, Inner};
use crate::post::{check_body, connection};
use crate::sessions::Kind;
use crate::sse::{self, Style};
use crate::{headers, status};

/// Opens a session: its first event says where to post.
pub(crate) async fn open(State(endpoint): State<Endpoint>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if !headers::accepts(&parts.headers, "text/event-stream") {
        return (StatusCode::NOT_ACCEPTABLE, "Accept must allow text/event-stream").into_response();
    }
    let endpoint = endpoint.inner;
    let mut connection = connection(&parts);
    connection.transport = "http+sse";
    let conversation = endpoint.converse(connection);
    let session = match endpoint.sessions.open(Kind::Legacy, conversation, endpoint.options.max_sessions) {
        Ok(session) => session,
        Err(why) => return status::unavailable(why.to_string()),
    };
    let reader = session.conversation.stream(STANDING).and_then(|stream| stream.attach(0));
    let Some(reader) = reader else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let where_to = sse::endpoint_event(&format!("/messages?sessionId={}", session.id));
    let style = Style { ids: false, retry: None, keep_alive: endpoint.options.keep_alive };
    let id = session.id.clone();
    sse::response(reader, style, where_to, sse::held(EndsSession { endpoint, id }))
}

#[derive(Deserialize)]
pub(crate) struct Address {
    #[serde(rename = "sessionId")]
    session_id: String,
}

/// Takes a message; whatever is to be said to it goes to the stream.
pub(crate) async fn message(
    State(endpoint): State<Endpoint>,
    Query(address): Query<Address>,
    request: Request,
) -> Response {
    if let Err(refusal) = check_body(request.headers()) {
        return refusal.into_response();
    }
    let Some(session) = endpoint.inner.sessions.find(Kind::Legacy, &address.session_id) else {
        return (StatusCode::NOT_FOUND, "there is no such session").into_response();
    };
    let most = endpoint.inner.options.body_bytes;
    let body = axum::body::to_bytes(request.into_body(), most);
    match tokio::time::timeout(endpoint.inner.options.body_timeout, body).await {
        Ok(Ok(body)) => {
            session.conversation.receive_bytes(STANDING, &body);
            status::accepted()
        }
        Ok(Err(_)) => (StatusCode::PAYLOAD_TOO_LARGE, format!("at most {most} bytes")).into_response(),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the body took too long").into_response(),
    }
}

/// The session lasts as long as its stream is read.
struct EndsSession {
    endpoint: Arc<Inner>,
    id: Box<str>,
}

impl Drop for EndsSession {
    fn drop(&mut self) {
        self.endpoint.sessions.close(&self.id);
    }
}
