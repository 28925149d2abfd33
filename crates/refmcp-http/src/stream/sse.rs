//! Server-sent events: a stream as the body of a response, and the ids of its events.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{Stream, unfold};
use refmcp_proto::frame::{SseEvent, encode_comment, encode_event};
use refmcp_proto::revision::Resumption;
use refmcp_server::backplane::{ReadOutcome, StreamEventKind, StreamNumber, StreamReader, Unavailable};
use refmcp_server::transport::observer::{Direction, Observed};
use tokio::time::Instant;

use crate::deadline::Deadline;
use crate::endpoint::EndpointState;
use crate::options::Options;
use crate::stream::response_stream::{Next, Reader};

/// Tells nginx not to hold events back.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Bytes that are sent in one chunk, about.
const CHUNK: usize = 64 << 10;

/// The longest interval of keep-alive comments; a timer cannot be set to `Duration::MAX`.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How the events of a stream are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SseFormat {
    /// Whether events have ids, by which the stream can be resumed.
    ids: bool,
    /// The retry delay of a stream that the server may close before its end. Such a stream begins with an event that has
    /// an id and no data.
    retry: Option<Duration>,
}

impl SseFormat {
    pub(crate) fn new(resumption: Resumption, options: &Options) -> Self {
        Self {
            ids: resumption != Resumption::Never,
            retry: (resumption == Resumption::Polling).then_some(options.retry),
        }
    }
}

#[derive(Debug)]
pub(crate) enum EventSource {
    /// A response stream; events that were read are gone.
    Stream(Reader),
    /// The backplane's log.
    Log(StreamReader),
}

/// The first event, from which a client can resume the stream; nothing where the format has none.
pub(crate) fn priming_event(stream: StreamNumber, format: SseFormat) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(retry) = format.retry {
        let id = event_id(stream, 0);
        let retry = u64::try_from(retry.as_millis()).ok();
        write(&mut out, &SseEvent { id: Some(&id), retry, ..SseEvent::default() });
    }
    out
}

/// The response that sends these bytes and then all events of a source. `guards` is dropped when the stream ends or the
/// client disconnects.
pub(crate) fn response(
    endpoint: &Arc<EndpointState>,
    source: EventSource,
    format: SseFormat,
    beginning: Vec<u8>,
    guards: impl Send + 'static,
    observed: Observed,
) -> Response {
    let (endpoint, sent, deadline) = (endpoint.clone(), Instant::now(), Deadline::default());
    let _guards: Box<dyn Send> = Box::new(guards);
    let ids = format.ids;
    let state = Events { endpoint, source, ids, beginning, observed, ended: false, sent, deadline, _guards };
    with_headers(Body::from_stream(state.chunks()))
}

struct Events {
    endpoint: Arc<EndpointState>,
    source: EventSource,
    /// Whether events have ids.
    ids: bool,
    beginning: Vec<u8>,
    observed: Observed,
    ended: bool,
    /// When a chunk was last sent.
    sent: Instant,
    /// Of the next keep-alive comment.
    deadline: Deadline,
    _guards: Box<dyn Send>,
}

impl Events {
    fn chunks(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        unfold(self, |mut events| async move {
            let chunk = events.next().await?;
            events.sent = Instant::now();
            events.endpoint.metrics.sent.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            Some((Ok(chunk), events))
        })
    }

    /// The next chunk: all events that are there by then, up to a limit.
    async fn next(&mut self) -> Option<Bytes> {
        let mut chunk = std::mem::take(&mut self.beginning);
        self.observed.sse_events(Direction::Sent, &chunk);
        // The beginning is sent before any event is waited for.
        let waits = chunk.is_empty();
        while !self.ended {
            if waits {
                match self.readable().await {
                    Ok(true) => {}
                    Ok(false) => {
                        encode_comment(&mut chunk, "alive");
                        break;
                    }
                    Err(error) => {
                        breaks_off(&error);
                        self.ended = true;
                        break;
                    }
                }
            }
            self.ended = !self.source.read(&mut chunk, self.ids, &self.observed).await;
            if !waits || !chunk.is_empty() {
                break;
            }
        }
        (!chunk.is_empty()).then(|| chunk.into())
    }

    /// Waits until the source may have events; `false` if a keep-alive comment is due before.
    async fn readable(&mut self) -> Result<bool, Unavailable> {
        let due = self.sent + self.endpoint.options.keep_alive.min(YEAR);
        tokio::select! {
            biased;
            readable = self.source.readable() => readable.map(|()| true),
            () = poll_fn(|context| self.deadline.poll(due, context)) => Ok(false),
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // Before the end, the client has left.
        self.observed.stream_ended(if self.ended { Direction::Sent } else { Direction::Received });
    }
}

impl EventSource {
    /// Waits until there may be events, or the end.
    async fn readable(&self) -> Result<(), Unavailable> {
        match self {
            Self::Stream(reader) => {
                reader.readable().await;
                Ok(())
            }
            Self::Log(reader) => reader.readable().await,
        }
    }

    /// Writes the events that are there; returns whether more may follow.
    async fn read(&mut self, out: &mut Vec<u8>, ids: bool, observed: &Observed) -> bool {
        match self {
            Self::Stream(reader) => {
                while out.len() < CHUNK {
                    match reader.try_next() {
                        Next::Message(message) => {
                            observed.sent(&message.json);
                            write_message(out, None, &message.json);
                        }
                        Next::Wait => return true,
                        Next::End | Next::Lost => return false,
                    }
                }
                true
            }
            Self::Log(reader) => {
                let read = reader.try_next().await;
                write_logged(out, reader.stream().number, ids, read, observed)
            }
        }
    }
}

/// Writes the events read from the log; returns whether more may follow.
fn write_logged(
    out: &mut Vec<u8>,
    stream: StreamNumber,
    ids: bool,
    read: Result<ReadOutcome, Unavailable>,
    observed: &Observed,
) -> bool {
    match read {
        Ok(ReadOutcome::Events(events)) => {
            let mut more = true;
            for event in events {
                let id = ids.then(|| event_id(stream, event.seq));
                observed.sent_in_event(id.as_deref(), &event.bytes);
                write_message(out, id.as_deref(), &event.bytes);
                more = event.kind == StreamEventKind::Event;
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
        Err(error) => {
            breaks_off(&error);
            false
        }
    }
}

/// The client resumes where it was.
fn breaks_off(error: &Unavailable) {
    tracing::warn!(%error, "a stream breaks off");
}

/// A response of these events alone.
pub(crate) fn whole(events: Vec<u8>) -> Response {
    with_headers(Body::from(events))
}

/// A message as an event.
pub(crate) fn message_event(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, &SseEvent { data: &String::from_utf8_lossy(json), ..SseEvent::default() });
    out
}

fn with_headers(body: Body) -> Response {
    let mut response = Response::new(body);
    // No more room than they need: hyper keeps the table for the next response, as long as the stream lasts.
    let mut headers = HeaderMap::with_capacity(3);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    *response.headers_mut() = headers;
    response
}

fn write_message(out: &mut Vec<u8>, id: Option<&str>, json: &[u8]) {
    // Validating is faster than a lossy conversion, and messages are UTF-8.
    let data = std::str::from_utf8(json).map_or_else(|_| String::from_utf8_lossy(json), Cow::Borrowed);
    write(out, &SseEvent { id, event: Some("message"), data: &data, retry: None });
}

/// The id of an event: the number of its stream and its position there.
fn event_id(stream: StreamNumber, seq: u64) -> String {
    // Faster than `format!`.
    [stream.0.to_string(), seq.to_string()].join(".")
}

/// The stream and the position of an event id.
pub(crate) fn parse_event_id(text: &str) -> Option<(StreamNumber, u64)> {
    let (stream, number) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(stream) && digits(number)).then_some((StreamNumber(stream.parse().ok()?), number.parse().ok()?))
}

/// The `endpoint` event of HTTP+SSE: the URI that clients post to.
pub(crate) fn endpoint_event(uri: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, &SseEvent { event: Some("endpoint"), data: uri, ..SseEvent::default() });
    out
}

fn write(out: &mut Vec<u8>, event: &SseEvent<'_>) {
    // Encoding fails only for ids and names with a line break; ids are numbers, and names are constants.
    let written = encode_event(out, event);
    debug_assert!(written.is_ok(), "{event:?}");
}

#[cfg(test)]
mod tests {
    use refmcp_server::transport::MemoryBudget;

    use super::*;
    use crate::stream::response_stream::{GET_STREAM, ResponseStream};

    /// There are many streams that only wait.
    #[tokio::test]
    async fn a_stream_needs_little_memory() {
        let server = refmcp_server::Server::builder("small", "1.0").build().unwrap();
        let endpoint = crate::Endpoint::builder(server).build().inner;
        let stream = ResponseStream::new(GET_STREAM, 100, &MemoryBudget::new(0).account());
        let events = Events {
            endpoint,
            source: EventSource::Stream(stream.attach()),
            ids: false,
            beginning: Vec::new(),
            observed: Observed::default(),
            ended: false,
            sent: Instant::now(),
            deadline: Deadline::default(),
            _guards: Box::new(()),
        };
        let (state, chunks) = (size_of_val(&events), size_of_val(&events.chunks()));
        assert!(chunks <= 448, "{chunks}, the state {state}");
    }

    #[test]
    fn event_ids_are_two_numbers() {
        assert_eq!(parse_event_id("3.14"), Some((StreamNumber(3), 14)));
        for bad in ["", ".", "3.", ".1", "-1.2", "1.-2", "a.b", "1.2.3", "99999999999999999999.1", "+1.2"] {
            assert_eq!(parse_event_id(bad), None, "{bad}");
        }
    }
}
