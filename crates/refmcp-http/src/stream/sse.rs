//! A stream as server-sent events.

use std::borrow::Cow;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use refmcp_proto::frame::{SseEvent, encode_comment, encode_event};
use refmcp_server::backplane::{EventKind, ReadOutcome, StreamNumber, StreamReader, Unavailable};
use tokio::time::Instant;

use crate::deadline::Deadline;
use crate::endpoint::Inner;
use crate::stream::response_stream::{self, Next};

/// Bytes that are sent in one piece, about.
const CHUNK: usize = 64 << 10;

/// So long that it makes no difference.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How events are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SseFormat {
    /// Whether events have ids, by which a reader can come back.
    pub(crate) ids: bool,
    /// What a reader who is sent away is told to wait, which is also the sign that it may be sent away: the stream
    /// then begins with an event that has an id and nothing else.
    pub(crate) retry: Option<Duration>,
    pub(crate) keep_alive: Duration,
}

/// Something to be done when the stream is no longer read, whether it has ended or broken.
pub(crate) type OnDrop = Box<dyn Send>;

/// Where events come from.
#[derive(Debug)]
pub(crate) enum EventSource {
    /// Straight from an exchange; what is read is gone.
    ResponseStream(response_stream::Reader),
    /// From the shared log.
    Log(StreamReader),
}

/// The first event, which says how to come back for this stream.
pub(crate) fn prime(out: &mut Vec<u8>, stream: StreamNumber, style: SseFormat) {
    if let Some(retry) = style.retry {
        let id = event_id(stream, 0);
        let retry = u64::try_from(retry.as_millis()).ok();
        write(out, &SseEvent { id: Some(&id), retry, ..SseEvent::default() });
    }
}

/// The response that sends what there is to read, after a beginning of its own.
pub(crate) fn response(
    endpoint: &Arc<Inner>,
    source: EventSource,
    style: SseFormat,
    beginning: Vec<u8>,
    held: OnDrop,
) -> Response {
    let (endpoint, spoke, alarm) = (endpoint.clone(), Instant::now(), Deadline::default());
    let state = Events { endpoint, source, style, beginning, ended: false, spoke, alarm, _held: held };
    let chunks = unfold(state, |mut events| async move {
        let chunk = events.next().await?;
        events.spoke = Instant::now();
        events.endpoint.metrics.sent.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        Some((Ok::<Bytes, std::convert::Infallible>(chunk), events))
    });
    head(Body::from_stream(chunks))
}

/// A response that is being read.
struct Events {
    endpoint: Arc<Inner>,
    source: EventSource,
    style: SseFormat,
    beginning: Vec<u8>,
    ended: bool,
    /// When something was sent last.
    spoke: Instant,
    /// Rings when it is time for a sign of life.
    alarm: Deadline,
    _held: OnDrop,
}

impl Events {
    /// What is sent next, in one piece; whatever is there by then, up to a limit.
    async fn next(&mut self) -> Option<Bytes> {
        let mut chunk = std::mem::take(&mut self.beginning);
        if self.ended {
            return None;
        }
        // What is known already is sent before anything is waited for.
        let more = if chunk.is_empty() {
            // Whoever wants no sign of life sets a time that never comes.
            let due = self.spoke + self.style.keep_alive.min(YEAR);
            tokio::select! {
                biased;
                more = self.source.next(&mut chunk, self.style) => more,
                () = poll_fn(|context| self.alarm.poll(due, context)) => {
                    encode_comment(&mut chunk, "alive");
                    true
                }
            }
        } else {
            self.source.try_next(&mut chunk, self.style).await
        };
        self.ended = !more;
        (more || !chunk.is_empty()).then(|| chunk.into())
    }
}

impl EventSource {
    /// Writes what there is, without waiting; whether there may be more.
    async fn try_next(&mut self, out: &mut Vec<u8>, style: SseFormat) -> bool {
        match self {
            Self::ResponseStream(reader) => loop {
                match reader.try_next() {
                    Next::Message(message) => event(out, None, &message.json),
                    Next::Wait => return true,
                    Next::End | Next::Lost => return false,
                }
                if out.len() >= CHUNK {
                    return true;
                }
            },
            Self::Log(reading) => {
                let read = reading.try_next().await;
                written(out, reading.stream().number, style, read)
            }
        }
    }

    /// Waits until there is something and writes it; whether there may be more. Nothing is lost when this is dropped:
    /// it writes only once it has waited.
    async fn next(&mut self, out: &mut Vec<u8>, style: SseFormat) -> bool {
        match self {
            Self::ResponseStream(reader) => match reader.next().await {
                Next::Message(message) => event(out, None, &message.json),
                Next::Wait => return true,
                Next::End | Next::Lost => return false,
            },
            Self::Log(reading) => {
                let read = reading.next().await;
                return written(out, reading.stream().number, style, read);
            }
        }
        self.try_next(out, style).await
    }
}

/// Writes what was read from the log; whether there may be more.
fn written(
    out: &mut Vec<u8>,
    stream: StreamNumber,
    style: SseFormat,
    read: Result<ReadOutcome, Unavailable>,
) -> bool {
    match read {
        Ok(ReadOutcome::Events(events)) => {
            let mut more = true;
            for found in events {
                let id = style.ids.then(|| event_id(stream, found.seq));
                event(out, id.as_deref(), &found.bytes);
                more = found.kind == EventKind::Event;
            }
            more
        }
        Ok(ReadOutcome::Nothing) => true,
        Ok(
            ReadOutcome::End
            | ReadOutcome::Replaced
            | ReadOutcome::Detached
            | ReadOutcome::Gone { .. }
            | ReadOutcome::Unknown,
        ) => false,
        Err(fault) => {
            // The reader comes back and goes on where it was.
            tracing::warn!(%fault, "a stream breaks off");
            false
        }
    }
}

/// A response that says only how to come back.
pub(crate) fn come_back(stream: StreamNumber, style: SseFormat) -> Response {
    let mut text = Vec::new();
    prime(&mut text, stream, style);
    head(Body::from(text))
}

/// A response that is one event and then ends.
pub(crate) fn single(json: &str) -> Response {
    let mut text = Vec::new();
    write(&mut text, &SseEvent { data: json, ..SseEvent::default() });
    head(Body::from(text))
}

/// A stream that has ended before it began: its request was cancelled, and nobody wants to know more.
pub(crate) fn nothing() -> Response {
    head(Body::empty())
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

fn event(out: &mut Vec<u8>, id: Option<&str>, json: &[u8]) {
    // It is text, which is quickly seen; should it not be, what can be read of it is sent.
    let data = std::str::from_utf8(json).map_or_else(|_| String::from_utf8_lossy(json), Cow::Borrowed);
    write(out, &SseEvent { id, event: Some("message"), data: &data, retry: None });
}

/// The id of an event: its stream, and its place there.
fn event_id(stream: StreamNumber, seq: u64) -> String {
    // Quicker than formatting both into one text.
    [stream.0.to_string(), seq.to_string()].join(".")
}

/// Reads an event's id back.
pub(crate) fn parse_event_id(text: &str) -> Option<(StreamNumber, u64)> {
    let (stream, number) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(stream) && digits(number)).then_some((StreamNumber(stream.parse().ok()?), number.parse().ok()?))
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
pub(crate) fn held<T: Send + 'static>(value: T) -> OnDrop {
    Box::new(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_ids_are_two_numbers() {
        assert_eq!(parse_event_id("3.14"), Some((StreamNumber(3), 14)));
        for bad in ["", ".", "3.", ".1", "-1.2", "1.-2", "a.b", "1.2.3", "99999999999999999999.1", "+1.2"] {
            assert_eq!(parse_event_id(bad), None, "{bad}");
        }
    }
}
