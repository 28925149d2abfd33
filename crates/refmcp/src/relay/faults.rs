//! Fault injection, `--faults`: what the server sends goes wrong on its way to the client, as the plan says.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use hyper::body::{Body, Frame};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, StatusCode, Uri};
use parking_lot::Mutex;
use refmcp_client::observer::{Direction, Observed};
use refmcp_faults::{Fault, FaultPlan, Faults, Output};
use refmcp_proto::frame::{Line, LineDecoder};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::taps::Tap;
use crate::args::UsageError;

/// Bytes of a message or a body that can go wrong; longer ones are not passed on.
pub(super) const MAX_MESSAGE: usize = 64 << 20;

/// The faults of a relay, and the sessions that have expired by them. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct SharedFaults(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    faults: Faults,
    expired: HashSet<String>,
    /// The streams on which what is posted to these paths is answered, over HTTP+SSE.
    endpoints: HashMap<String, u64>,
}

/// Answers of one stream that are held until their delay has passed.
const MAX_LATER: usize = 256;

/// Sessions that are remembered as expired, and endpoints of HTTP+SSE.
const MAX_EXPIRED: usize = 10_000;

impl SharedFaults {
    /// Reads a plan: the text of a file, or the plan itself.
    pub(crate) fn read(plan: &str) -> Result<Self> {
        let is_plan = plan.contains(": ");
        let text = match is_plan {
            true => plan.to_owned(),
            false => {
                std::fs::read_to_string(plan).with_context(|| format!("cannot read the fault plan {plan}"))?
            }
        };
        let plan: FaultPlan = text.parse().map_err(|error| UsageError::new(format!("{error}")))?;
        Ok(Self(Arc::new(Mutex::new(State {
            faults: Faults::new(plan),
            expired: HashSet::new(),
            endpoints: HashMap::new(),
        }))))
    }

    /// A client sends a message; what is wrong with the HTTP response to it.
    pub(super) fn client_message(&self, channel: u64, message: &[u8]) -> Vec<Fault> {
        self.0.lock().faults.client_message(channel, message)
    }

    /// A client opens a stream; what is wrong with it.
    pub(super) fn stream_opened(&self) -> Vec<Fault> {
        self.0.lock().faults.stream_opened()
    }

    /// The stream of this channel names where its client posts to: a path with its query, or a URL.
    pub(super) fn endpoint_named(&self, channel: u64, uri: &[u8]) {
        let uri: Option<Uri> = std::str::from_utf8(uri).ok().and_then(|uri| uri.parse().ok());
        let Some(path) = uri.as_ref().and_then(Uri::path_and_query) else { return };
        let endpoints = &mut self.0.lock().endpoints;
        if endpoints.len() < MAX_EXPIRED {
            endpoints.insert(path.to_string(), channel);
        }
    }

    /// The stream of this channel has ended.
    pub(super) fn stream_ended(&self, channel: u64) {
        self.0.lock().endpoints.retain(|_, named| *named != channel);
    }

    /// The stream on which a message to this URI is answered, where it is another.
    pub(super) fn answered_on(&self, uri: &Uri) -> Option<u64> {
        self.0.lock().endpoints.get(uri.path_and_query()?.as_str()).copied()
    }

    /// What is sent in the place of a message of the server.
    pub(super) fn server_message(&self, channel: u64, message: &[u8]) -> Vec<Output> {
        self.0.lock().faults.server_message(channel, message)
    }

    /// The session of a request has expired, or expires with this one.
    pub(super) fn is_expired(&self, headers: &HeaderMap, expires_now: bool) -> bool {
        let Some(session) = headers.get("mcp-session-id").and_then(|id| id.to_str().ok()) else {
            return false;
        };
        let expired = &mut self.0.lock().expired;
        if expires_now && expired.len() < MAX_EXPIRED {
            expired.insert(session.to_owned());
        }
        expired.contains(session)
    }
}

/// The status that is answered instead of passing the request on, with its seconds for `Retry-After`.
pub(super) fn status(faults: &[Fault]) -> Option<(StatusCode, Option<u32>)> {
    faults.iter().find_map(|fault| match fault {
        Fault::Status { code, retry_after } => Some((StatusCode::from_u16(*code).ok()?, *retry_after)),
        _ => None,
    })
}

/// Changes the head of a response.
pub(super) fn change_head(faults: &[Fault], headers: &mut HeaderMap) {
    for fault in faults {
        let (name, value) = match fault {
            Fault::ContentType(value) => (CONTENT_TYPE.as_str(), value),
            Fault::Header(name, value) => (name.as_str(), value),
            Fault::NoHeader(name) => {
                headers.remove(name);
                continue;
            }
            _ => continue,
        };
        match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => drop(headers.insert(name, value)),
            _ => tracing::warn!("a header of the fault plan cannot be sent"),
        }
    }
}

/// Says when to come again.
pub(super) fn retry_after(headers: &mut HeaderMap, seconds: Option<u32>) {
    seconds.map(|seconds| headers.insert(RETRY_AFTER, seconds.into()));
}

/// How messages are written: a line each, an SSE event each, or one body.
pub(super) type Encode = fn(&[u8]) -> Vec<u8>;

/// A message on a line.
pub(super) fn line(message: &[u8]) -> Vec<u8> {
    [message, b"\n"].concat()
}

/// Passes the lines of a server on, with what goes wrong, until the input ends, the output has no reader, or `until` comes.
/// True where the connection is to be cut.
pub(super) async fn pass_lines<U: Future<Output = ()>>(
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    tap: Tap,
    faults: &SharedFaults,
    until: impl Fn() -> U,
) -> bool {
    let (mut decoder, mut buffer) = (LineDecoder::new(MAX_MESSAGE), vec![0; super::CHUNK]);
    let (sent, mut to_write) = mpsc::channel(1);
    let mut sender = Sender { sent, later: JoinSet::new(), tap, encode: line };
    let writing = async {
        let mut is_cut = false;
        while let Some(Ok(bytes)) = to_write.recv().await.inspect(|piece| is_cut = piece.is_err()) {
            if let Err(error) = output.write_all(&bytes).await.and(output.flush().await) {
                tracing::debug!(%error, "a side no longer reads");
                break;
            }
        }
        if let Err(error) = output.shutdown().await {
            tracing::debug!(%error, "a side was gone before the end");
        }
        is_cut
    };
    let reading = async move {
        loop {
            let read = tokio::select! {
                biased;
                read = input.read(&mut buffer) => read,
                () = until() => break,
            };
            let Ok(count @ 1..) = read else { break };
            decoder.feed(buffer.get(..count).unwrap_or_default());
            while let Some(read) = decoder.next_line() {
                if let Line::Text(text) = read {
                    let outputs = faults.server_message(0, text);
                    sender.send(outputs).await;
                }
            }
        }
        sender.finish().await;
    };
    tokio::pin!(writing);
    tokio::select! {
        is_cut = &mut writing => is_cut,
        () = reading => writing.await,
    }
}

/// Passes the lines of a client on, but for answers to requests that the server did not make, until its input ends or the server
/// no longer reads.
pub(super) async fn pass_client_lines(
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    mut tap: Tap,
    faults: &SharedFaults,
) {
    let (mut decoder, mut buffer) = (LineDecoder::new(MAX_MESSAGE), vec![0; super::CHUNK]);
    while let Ok(count @ 1..) = input.read(&mut buffer).await {
        let bytes = buffer.get(..count).unwrap_or_default();
        tap.feed(bytes);
        decoder.feed(bytes);
        while let Some(read) = decoder.next_line() {
            let Line::Text(text) = read else { continue };
            if Faults::is_answer_to_fault(text) {
                continue;
            }
            faults.client_message(0, text);
            if let Err(error) = output.write_all(&line(text)).await.and(output.flush().await) {
                return tracing::debug!(%error, "the server no longer reads");
            }
        }
    }
    if let Err(error) = output.shutdown().await {
        tracing::debug!(%error, "the server was gone before the end");
    }
}

/// Writes what goes wrong, and shows the tap what was written.
pub(super) struct Sender {
    sent: mpsc::Sender<Result<Bytes, Cut>>,
    later: JoinSet<()>,
    tap: Tap,
    encode: Encode,
}

/// A connection is cut on purpose.
#[derive(Debug, thiserror::Error)]
#[error("cut as the fault plan says")]
pub(super) struct Cut;

impl Sender {
    /// A body that is written by a sender.
    pub(super) fn body(tap: Tap, encode: Encode, stream: Observed) -> (Self, SentBody) {
        let (sent, received) = mpsc::channel(1);
        let body = SentBody { received, stream: Some(stream), has_ended: false };
        (Self { sent, later: JoinSet::new(), tap, encode }, body)
    }

    /// Writes what belongs to one message of the server; one that is too late for its reader is dropped.
    pub(super) async fn send(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Message(message) => self.write((self.encode)(&message)).await,
                Output::Part(bytes) => self.write(bytes).await,
                Output::Later(delay, message) => {
                    // The server waits where too many answers are late.
                    while self.later.len() >= MAX_LATER {
                        self.later.join_next().await;
                    }
                    let (sent, bytes) = (self.sent.clone(), (self.encode)(&message));
                    self.tap.feed(&bytes);
                    self.later.spawn(async move {
                        sleep(delay).await;
                        // The reader may have left.
                        let _ = sent.send(Ok(bytes.into())).await;
                    });
                }
                Output::Slowly(rate, message) => {
                    for byte in (self.encode)(&message) {
                        self.write(vec![byte]).await;
                        sleep(Duration::from_secs(1) / rate.max(1)).await;
                        if self.sent.is_closed() {
                            return;
                        }
                    }
                }
                Output::Close(_) => {}
                Output::Cut => {
                    // The reader may have left.
                    let _ = self.sent.send(Err(Cut)).await;
                }
            }
        }
    }

    /// Bytes as they are.
    pub(super) async fn write(&mut self, bytes: Vec<u8>) {
        self.tap.feed(&bytes);
        // The reader may have left.
        let _ = self.sent.send(Ok(bytes.into())).await;
    }

    /// Waits for what comes later.
    pub(super) async fn finish(mut self) {
        while self.later.join_next().await.is_some() {}
    }

    /// Holds the stream open until its reader leaves.
    pub(super) async fn hold(&self) {
        self.sent.closed().await;
    }
}

/// The body of a response that is written elsewhere, and whose end is told.
pub(super) struct SentBody {
    received: mpsc::Receiver<Result<Bytes, Cut>>,
    stream: Option<Observed>,
    has_ended: bool,
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let polled = self.received.poll_recv(cx);
        match &polled {
            Poll::Ready(None) => self.has_ended = true,
            // A body that is cut has neither ended nor been left.
            Poll::Ready(Some(Err(Cut))) => self.stream = None,
            _ => {}
        }
        polled.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

impl Drop for SentBody {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            stream.stream_ended(if self.has_ended { Direction::Received } else { Direction::Sent });
        }
    }
}

/// The events of an SSE stream, as blocks of text.
#[derive(Debug, Default)]
pub(super) struct EventBlocks {
    bytes: Vec<u8>,
    /// Bytes in which no block ends.
    searched: usize,
}

impl EventBlocks {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next event with the empty line behind it.
    pub(super) fn next_block(&mut self) -> Option<Vec<u8>> {
        let rest = self.bytes.get(self.searched..).unwrap_or_default();
        let ends =
            |end: &[u8]| rest.windows(end.len()).position(|window| window == end).map(|at| at + end.len());
        match [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"].into_iter().filter_map(ends).min() {
            Some(end) => {
                let end = self.searched + end;
                self.searched = 0;
                Some(self.bytes.drain(..end).collect())
            }
            None => {
                // The end may have begun: its first three bytes are looked at again.
                self.searched = self.bytes.len().saturating_sub(3);
                None
            }
        }
    }

    /// Bytes that are held.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The data of an event, and its other lines.
pub(super) fn event_parts(block: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut data, mut others): (Vec<&[u8]>, Vec<u8>) = (Vec::new(), Vec::new());
    for line in block.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty()) {
        match line.strip_prefix(b"data:") {
            Some(text) => data.push(text.strip_prefix(b" ").unwrap_or(text)),
            None => {
                others.extend_from_slice(line);
                others.push(b'\n');
            }
        }
    }
    (data.join(&b'\n'), others)
}

/// A message as an SSE event.
pub(super) fn event(message: &[u8]) -> Vec<u8> {
    let mut event = Vec::new();
    for line in message.split(|byte| matches!(byte, b'\n' | b'\r')) {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.push(b'\n');
    }
    event.push(b'\n');
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_split_at_empty_lines_and_kept_byte_by_byte() {
        let mut blocks = EventBlocks::default();
        blocks.feed(b"id: 1\ndata: {}\n");
        assert_eq!(blocks.next_block(), None);
        blocks.feed(b"\n: comment\r\n\r\ndata");
        assert_eq!(blocks.next_block().unwrap(), b"id: 1\ndata: {}\n\n");
        assert_eq!(blocks.next_block().unwrap(), b": comment\r\n\r\n");
        assert_eq!((blocks.next_block(), blocks.len()), (None, 4));
    }

    #[test]
    fn events_cut_anywhere_are_the_same_blocks() {
        let (bytes, expected) =
            (b"data: a\r\n\r\nid: 1\n\ndata: b\r\r", ["data: a\r\n\r\n", "id: 1\n\n", "data: b\r\r"]);
        for size in 1..bytes.len() {
            let (mut blocks, mut found) = (EventBlocks::default(), Vec::new());
            for chunk in bytes.chunks(size) {
                blocks.feed(chunk);
                while let Some(block) = blocks.next_block() {
                    found.push(String::from_utf8(block).unwrap());
                }
            }
            assert_eq!(found, expected, "{size}");
        }
    }

    #[test]
    fn the_data_of_an_event_and_its_other_lines_are_told_apart() {
        let (data, others) = event_parts(b"event: message\nid: 7\ndata: {\"a\":\ndata: 1}\n\n");
        assert_eq!(data, b"{\"a\":\n1}");
        assert_eq!(others, b"event: message\nid: 7\n");
        assert_eq!(event(b"{}"), b"data: {}\n\n");
    }
}
