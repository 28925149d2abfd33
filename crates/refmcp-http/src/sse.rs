//! A stream as server-sent events.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use refmcp_proto::frame::{SseEvent, encode_comment, encode_event};

use crate::stream::{EventStream, Message, Next, Reader};

/// How events are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Whether events have ids, by which a reader can come back.
    pub(crate) ids: bool,
    /// What a reader who is sent away is told to wait, which is also the sign that it may be sent away: the stream
    /// then begins with an event that has an id and nothing else.
    pub(crate) retry: Option<Duration>,
    pub(crate) keep_alive: Duration,
}

/// Something to be done when the stream is no longer read, whether it has ended or broken.
pub(crate) type OnDrop = Box<dyn Send>;

/// The response that sends what the reader reads.
pub(crate) fn response(reader: Reader, style: Style, prelude: Vec<u8>, held: Option<OnDrop>) -> Response {
    let mut first = prelude;
    prime(&mut first, reader.stream(), style);
    let state = (reader, Some(first), held, false);
    let events = unfold(state, move |(mut reader, first, held, ended)| async move {
        if ended {
            return None;
        }
        let mut chunk = first.unwrap_or_default();
        let mut ended = false;
        loop {
            // Whatever is there is sent together; only an empty chunk waits.
            let next = match reader.try_next() {
                Next::Wait if chunk.is_empty() => {
                    match tokio::time::timeout(style.keep_alive, reader.next()).await {
                        Ok(next) => next,
                        Err(_) => {
                            encode_comment(&mut chunk, "alive");
                            break;
                        }
                    }
                }
                other => other,
            };
            match next {
                Next::Message(number, message) => event(&mut chunk, &reader, number, &message, style),
                Next::Wait => break,
                Next::End | Next::Lost => {
                    ended = true;
                    break;
                }
            }
        }
        if chunk.is_empty() && ended {
            return None;
        }
        Some((Ok::<Bytes, std::convert::Infallible>(chunk.into()), (reader, None, held, ended)))
    });
    head(Body::from_stream(events))
}

/// A response that says only how to come back.
pub(crate) fn come_back(stream: &EventStream, style: Style) -> Response {
    let mut text = Vec::new();
    prime(&mut text, stream, style);
    head(Body::from(text))
}

fn prime(out: &mut Vec<u8>, stream: &EventStream, style: Style) {
    if let Some(retry) = style.retry {
        let id = event_id(stream, 0);
        let retry = u64::try_from(retry.as_millis()).ok();
        write(out, &SseEvent { id: Some(&id), retry, ..SseEvent::default() });
    }
}

/// A response that is one event and then ends.
pub(crate) fn single(json: &str) -> Response {
    let mut text = Vec::new();
    write(&mut text, &SseEvent { data: json, ..SseEvent::default() });
    head(Body::from(text))
}

fn head(body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn event(out: &mut Vec<u8>, reader: &Reader, number: u64, message: &Message, style: Style) {
    let id = style.ids.then(|| event_id(reader.stream(), number));
    let data = String::from_utf8_lossy(&message.json);
    write(out, &SseEvent { id: id.as_deref(), event: Some("message"), data: &data, retry: None });
}

/// The id of an event: its stream, and its place there.
fn event_id(stream: &EventStream, number: u64) -> String {
    format!("{}.{number}", stream.number)
}

/// Reads an event's id back.
pub(crate) fn parse_event_id(text: &str) -> Option<(u64, u64)> {
    let (stream, number) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(stream) && digits(number)).then_some((stream.parse().ok()?, number.parse().ok()?))
}

/// An event of the endpoint that older clients are told to post to.
pub(crate) fn endpoint_event(uri: &str) -> Vec<u8> {
    let mut text = Vec::new();
    write(&mut text, &SseEvent { event: Some("endpoint"), data: uri, ..SseEvent::default() });
    text
}

fn write(out: &mut Vec<u8>, event: &SseEvent<'_>) {
    // Ids are numbers and names are ours: neither has a line break, the only thing that can be wrong with them.
    let written = encode_event(out, event);
    debug_assert!(written.is_ok(), "{event:?}");
}

/// Keeps something alive for as long as a response is read.
pub(crate) fn held<T: Send + 'static>(value: T) -> Option<OnDrop> {
    Some(Box::new(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_ids_are_two_numbers() {
        assert_eq!(parse_event_id("3.14"), Some((3, 14)));
        for bad in ["", ".", "3.", ".1", "-1.2", "1.-2", "a.b", "1.2.3", "99999999999999999999.1", "+1.2"] {
            assert_eq!(parse_event_id(bad), None, "{bad}");
        }
    }
}
