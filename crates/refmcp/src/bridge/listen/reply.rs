//! Responses.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use refmcp_proto::frame::{SseEvent, encode_comment, encode_event};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::jsonrpc::encode::ResponseId;
use tokio::time::timeout;

use super::feed::{Feed, Next};
use crate::bridge::words;

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A response that turns a request away.
pub(super) type Refusal = Box<Response<Body>>;

/// How often a silent stream shows that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

fn whole(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Turns a request away.
pub(super) fn refuse(status: StatusCode, why: impl std::fmt::Display) -> Refusal {
    Box::new(whole(status, "text/plain; charset=utf-8", format!("{why}\n")))
}

/// Turns a request away with an error of the protocol.
pub(super) fn refuse_with(status: StatusCode, to: ResponseId<'_>, error: &RpcError) -> Refusal {
    Box::new(json(status, words::error(to, error)))
}

/// A message as the whole response.
pub(super) fn json(status: StatusCode, json: impl Into<Bytes>) -> Response<Body> {
    whole(status, "application/json", json)
}

/// A response without content.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::default().boxed_unsync());
    *response.status_mut() = status;
    response
}

/// An event of a message.
pub(super) fn message(json: &str) -> Vec<u8> {
    event("message", json)
}

/// An event.
pub(super) fn event(name: &str, data: &str) -> Vec<u8> {
    let mut out = Vec::new();
    // Names are ours and have no line break, the only thing that can be wrong with them.
    let written = encode_event(&mut out, &SseEvent { event: Some(name), data, ..SseEvent::default() });
    debug_assert!(written.is_ok());
    out
}

/// A stream of events: a beginning, then whatever the feed has. What is held is dropped with the response.
pub(super) fn events(beginning: Vec<u8>, feed: Arc<Feed>, held: impl Send + 'static) -> Response<Body> {
    let state = Some((beginning, feed, held));
    let chunks = unfold(state, |state| async move {
        let (beginning, feed, held) = state?;
        if !beginning.is_empty() {
            return Some((frame(beginning), Some((Vec::new(), feed, held))));
        }
        match timeout(KEEP_ALIVE, feed.next()).await {
            Ok(Next::Message(json)) => Some((frame(message(&json)), Some((Vec::new(), feed, held)))),
            Ok(Next::Last(json)) => Some((frame(message(&json)), None)),
            Ok(Next::End) => None,
            Err(_) => {
                let mut alive = Vec::new();
                encode_comment(&mut alive, "alive");
                Some((frame(alive), Some((Vec::new(), feed, held))))
            }
        }
    });
    let mut response = Response::new(StreamBody::new(chunks).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn frame(bytes: Vec<u8>) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(bytes.into()))
}
