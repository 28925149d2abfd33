//! Responses of a mock over HTTP: one JSON object, a stream of events, or a refusal.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use refmcp_audit::replay::MockMessage;
use refmcp_client::observer::{Direction, Observed, StartLine};
use refmcp_proto::frame::{SseEvent, encode_event};
use serde_json::json;
use tokio::time::timeout;

use super::session::Reader;

/// How long a stream stays open while nothing is sent on it.
const IDLE: Duration = Duration::from_secs(600);

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Where the messages of a stream come from.
pub(super) enum Source {
    /// The answers to a POST request, of which so many end it.
    Calls { reader: Reader, first: Option<MockMessage>, left: usize },
    /// The stream of a session; it begins with an event that says where to post.
    General { messages: tokio::sync::mpsc::Receiver<MockMessage>, endpoint: Option<String> },
}

/// A response with a body, as the recording of the mock has it too.
pub(super) fn whole(observed: &Observed, status: u16, text: &str) -> Response<Body> {
    let mut response = Response::new(Full::from(text.to_owned()).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    if !text.is_empty() {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    tell_head(observed, &response);
    if !text.is_empty() {
        observed.sent(text.as_bytes());
    }
    observed.stream_ended(Direction::Sent);
    response
}

/// An HTTP request that the mock cannot serve.
pub(super) fn refusal(status: StatusCode, why: &str) -> Response<Body> {
    let error = json!({ "code": -32600, "message": why });
    let text = json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
    whole(&Observed::default(), status.as_u16(), &text)
}

/// A stream of events.
pub(super) fn events(observed: Observed, status: u16, source: Source) -> Response<Body> {
    let told = observed.clone();
    let events = unfold((source, observed), |(mut source, observed)| async move {
        let event = next_event(&mut source, &observed).await;
        if event.is_none() {
            observed.stream_ended(Direction::Sent);
        }
        event.map(|event| (Ok::<_, Infallible>(Frame::data(Bytes::from(event))), (source, observed)))
    });
    let mut response = Response::new(StreamBody::new(events).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    tell_head(&told, &response);
    response
}

/// Adds a header field, before anything is sent.
pub(super) fn with_header(mut response: Response<Body>, name: &'static str, value: &str) -> Response<Body> {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

async fn next_event(source: &mut Source, observed: &Observed) -> Option<Vec<u8>> {
    let message = match source {
        Source::Calls { left: 0, .. } => None,
        Source::Calls { reader, first, left } => {
            let message = match first.take() {
                Some(first) => first,
                None => timeout(IDLE, reader.messages.recv()).await.ok()??,
            };
            *left -= usize::from(message.is_response);
            Some(message)
        }
        Source::General { endpoint, .. } if endpoint.is_some() => {
            let endpoint = endpoint.take().unwrap_or_default();
            let mut out = Vec::new();
            let event = SseEvent { id: None, event: Some("endpoint"), retry: None, data: &endpoint };
            encode_event(&mut out, &event).ok()?;
            observed.sse_events(Direction::Sent, &out);
            return Some(out);
        }
        Source::General { messages, .. } => timeout(IDLE, messages.recv()).await.ok()?,
    }?;
    observed.sent_in_event(message.event_id.as_deref(), message.text.as_bytes());
    let mut out = Vec::new();
    let id = message.event_id.as_deref();
    let event = SseEvent { id, event: Some("message"), retry: None, data: &message.text };
    if encode_event(&mut out, &event).is_err() {
        // An id that no event can have is left out.
        encode_event(&mut out, &SseEvent { id: None, ..event }).ok()?;
    }
    Some(out)
}

fn tell_head(observed: &Observed, response: &Response<Body>) {
    let start = StartLine::Response { status: response.status().as_u16() };
    let fields = response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    observed.head(Direction::Sent, start, fields);
}
