//! The stream of events that belongs to no request.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use refmcp_proto::engine::client::TransportError;
use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::revision::Rules;

use super::cursor::StreamCursor;
use super::events::{EventStream, StreamEnd};
use super::headers::Content;
use super::refusal::check_encoding;
use super::requester::HttpRequester;

/// Keeps a stream open for everything that the server says on its own account, as long as it has one to offer.
pub(super) async fn listen(requester: Arc<HttpRequester>, rules: &'static Rules) {
    let session = requester.session().id;
    let mut cursor = StreamCursor::new();
    loop {
        let headers = || requester.headers.get(Some(rules), session.clone(), cursor.id().cloned());
        match requester.request(Method::GET, &requester.target, Bytes::new(), headers).await {
            Ok(answer)
                if answer.status == StatusCode::OK
                    && Content::of(&answer.headers) == Content::EventStream =>
            {
                if let Err(fault) = check_encoding(&answer.headers) {
                    return requester.sink.ignored_input(&fault.to_string());
                }
                cursor.opened();
                read(&requester, &mut cursor, EventStream::new(answer.body, requester.max_message)).await;
                cursor.ended();
            }
            Ok(answer) if answer.status.is_success() => {
                let status = answer.status;
                return requester
                    .sink
                    .ignored_input(&format!("status {status} without events, where a stream was asked for"));
            }
            // Not every server has such a stream; this is how they say so.
            Ok(answer)
                if answer.status.is_client_error() && answer.status != StatusCode::TOO_MANY_REQUESTS =>
            {
                return answer.body.drain().await;
            }
            Ok(answer) => answer.body.drain().await,
            Err(TransportError::Broken(_) | TransportError::Unreachable(_)) => {}
            // Whoever makes a request hears of it; the server has done nothing that is not allowed.
            Err(fault) if fault.needs_authorization() => {
                return tracing::debug!(%fault, "there is no stream for what the server says by itself");
            }
            Err(fault) => return requester.sink.ignored_input(&fault.to_string()),
        }
        tokio::time::sleep(cursor.pause()).await;
        cursor.attempt();
    }
}

async fn read(requester: &HttpRequester, cursor: &mut StreamCursor, mut events: EventStream) {
    loop {
        match events.next().await {
            Ok(item) => match cursor.note(item) {
                Some(event) if event.event != "message" => {
                    requester.sink.ignored_input(&format!("an event named {:?}", excerpt(&event.event)));
                }
                Some(event) => requester.sink.message(None, event.data.as_bytes()),
                None => {}
            },
            Err(StreamEnd::TooLong) => return requester.sink.too_long(None, requester.max_message),
            Err(StreamEnd::Broken(_)) => return events.release(),
        }
    }
}
