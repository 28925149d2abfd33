//! Messages over a pipe, both ways.

mod schedules;

use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use refmcp_proto::engine::client::{ClientMessageKind, ExchangeId};
use refmcp_transport::memory::{MemoryPipe, pair};
use refmcp_transport::pipe::LineReader;
use refmcp_transport::{ConnectionEnd, Observed};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::*;

/// A sink that records.
#[derive(Default)]
struct RecordingSink {
    events: Mutex<Vec<String>>,
    more: Notify,
}

impl RecordingSink {
    fn note(&self, text: String) {
        self.events.lock().unwrap().push(text);
        self.more.notify_one();
    }

    async fn next(&self) -> String {
        loop {
            let first = {
                let mut events = self.events.lock().unwrap();
                (!events.is_empty()).then(|| events.remove(0))
            };
            match first {
                Some(text) => return text,
                None => self.more.notified().await,
            }
        }
    }
}

impl MessageSink for RecordingSink {
    fn message(&self, _: Option<ExchangeId>, json: &[u8]) {
        self.note(String::from_utf8(json.to_vec()).unwrap());
    }

    fn too_long(&self, _: Option<ExchangeId>, limit: usize) {
        self.note(format!("longer than {limit}"));
    }

    fn ended(&self, _: ExchangeId, why: TransportError) {
        self.note(format!("ended: {why}"));
    }

    fn closed(&self, why: TransportError) {
        self.note(format!("closed: {why}"));
    }

    fn ignored_input(&self, what: &str) {
        self.note(format!("ignored: {what}"));
    }

    fn line_abandoned(&self, begun: &str) {
        self.note(format!("abandoned: {begun}"));
    }
}

fn outgoing(json: &[u8]) -> ClientMessage {
    let kind = ClientMessageKind::Notification { method: "test".into() };
    ClientMessage { exchange: ExchangeId(1), kind, json: json.to_vec(), rules: None }
}

fn start(near: MemoryPipe) -> (Arc<dyn Transport>, Arc<RecordingSink>) {
    let sink = Arc::new(RecordingSink::default());
    (PipeTransport::start(near, sink.clone(), 100), sink)
}

/// What is there without another task having run.
fn now(far: &mut MemoryPipe) -> Vec<String> {
    let mut found = Vec::new();
    while fill_now(far) {
        while let Some(Frame::Message(bytes)) = far.0.next_frame() {
            found.push(String::from_utf8(bytes.to_vec()).unwrap());
        }
    }
    found
}

fn fill_now(far: &mut MemoryPipe) -> bool {
    let filled = pin!(far.0.fill()).poll(&mut Context::from_waker(Waker::noop()));
    matches!(filled, Poll::Ready(Ok(true)))
}

async fn answer(far: &mut MemoryPipe, json: &[u8]) {
    far.1.push(json);
    while far.1.pending() > 0 {
        far.1.flush().await.unwrap();
    }
}

#[tokio::test]
async fn a_single_message_goes_at_once() {
    let (near, mut far) = pair(100);
    let (transport, sink) = start(near);
    for n in 0..3 {
        transport.clone().send(outgoing(b"{}"));
        assert_eq!(now(&mut far), ["{}"], "turn {n}");
        answer(&mut far, b"{\"ok\":1}").await;
        assert_eq!(sink.next().await, "{\"ok\":1}");
    }
}

#[tokio::test]
async fn messages_without_answers_between_them_are_gathered() {
    let (near, mut far) = pair(100);
    let (transport, _sink) = start(near);
    for n in 0..4 {
        transport.clone().send(outgoing(n.to_string().as_bytes()));
    }
    assert_eq!(now(&mut far), ["0"]);
    assert!(far.0.fill().await.unwrap());
    let together: Vec<_> = std::iter::from_fn(|| match far.0.next_frame()? {
        Frame::Message(bytes) => Some(bytes.to_vec()),
        Frame::TooLong => None,
    })
    .collect();
    assert_eq!(together, [b"1", b"2", b"3"]);
}

#[tokio::test]
async fn all_messages_reach_the_sink() {
    let (near, mut far) = pair(1000);
    let (transport, sink) = start((LimitedReader(near.0), near.1));
    for (sent, events) in [("{}", "{}"), ("none", "none"), ("long", "longer than 100")] {
        answer(&mut far, sent.as_bytes()).await;
        assert_eq!(sink.next().await, events);
    }
    drop(far);
    assert_eq!(
        sink.next().await,
        "closed: the connection ended before the answer came: the server closed it"
    );
    transport.close().await;

    fn start<R: FrameReader + 'static, W: FrameWriter + 'static>(
        end: (R, W),
    ) -> (Arc<dyn Transport>, Arc<RecordingSink>) {
        let sink = Arc::new(RecordingSink::default());
        (PipeTransport::start(end, sink.clone(), 100), sink)
    }
}

/// Takes one message for too long.
struct LimitedReader<R>(R);

impl<R: FrameReader> FrameReader for LimitedReader<R> {
    async fn fill(&mut self) -> io::Result<bool> {
        self.0.fill().await
    }

    fn next_frame(&mut self) -> Option<Frame<'_>> {
        match self.0.next_frame()? {
            Frame::Message(b"long") => Some(Frame::TooLong),
            other => Some(other),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_nothing_delays_a_close_for_a_bounded_time() {
    let (near, _far) = pair(100);
    let (transport, sink) = start(near);
    assert!(transport.ready().is_none());
    transport.clone().send(outgoing(&vec![b'x'; 2 << 20]));
    let room = transport.ready().expect("it is full");
    assert!(timeout(Duration::from_secs(60), room).await.is_err(), "and stays so");
    let waiting = tokio::spawn({
        let transport = transport.clone();
        async move {
            if let Some(room) = transport.ready() {
                room.await;
            }
        }
    });
    let began = Instant::now();
    transport.close().await;
    assert!(began.elapsed() <= FLUSH_TIMEOUT + CLOSE_TIMEOUT, "{:?}", began.elapsed());
    assert_eq!(sink.next().await, "closed: the connection is closed");
    waiting.await.unwrap();
}

/// A response to a request of the server.
fn response(json: &[u8]) -> ClientMessage {
    ClientMessage { kind: ClientMessageKind::Response, ..outgoing(json) }
}

#[tokio::test(start_paused = true)]
async fn responses_that_are_not_read_end_the_pipe() {
    let (near, _far) = pair(100);
    let (transport, sink) = start(near);
    for _ in 0..=(outbox::MAX_RESPONSES >> 20) {
        transport.clone().send(response(&vec![b'x'; 1 << 20]));
        tokio::task::yield_now().await;
    }
    // A large one is taken while there is room, and then no more.
    transport.clone().send(response(b"{}"));
    let closed = sink.next().await;
    assert!(closed.contains("does not read the responses"), "{closed}");
}

#[tokio::test(start_paused = true)]
async fn a_pipe_that_never_ends_leaves_time_to_others() {
    /// Always has another message.
    struct Endless(u64);

    impl FrameReader for Endless {
        async fn fill(&mut self) -> io::Result<bool> {
            self.0 += 1_000_000;
            Ok(true)
        }

        fn next_frame(&mut self) -> Option<Frame<'_>> {
            self.0 = self.0.checked_sub(1)?;
            Some(Frame::Message(b"{}"))
        }
    }

    struct Forgetful(AtomicU64);

    impl MessageSink for Forgetful {
        fn message(&self, _: Option<ExchangeId>, _: &[u8]) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn too_long(&self, _: Option<ExchangeId>, _: usize) {}
        fn ended(&self, _: ExchangeId, _: TransportError) {}
        fn closed(&self, _: TransportError) {}
        fn ignored_input(&self, _: &str) {}
    }

    let sink = Arc::new(Forgetful(AtomicU64::new(0)));
    let (near, _far) = pair(100);
    let transport = PipeTransport::start((Endless(0), near.1), sink.clone(), 100);
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let received = sink.0.load(Ordering::Relaxed);
    assert!(received > 0 && received < 100_000, "{received}");
    drop(transport);
}

/// Takes nothing, and says so.
struct BrokenWriter(usize);

impl FrameWriter for BrokenWriter {
    fn push(&mut self, json: &[u8]) {
        self.0 += json.len();
    }

    fn pending(&self) -> usize {
        self.0
    }

    async fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    async fn close(&mut self, _: ConnectionEnd) {}
}

#[tokio::test(start_paused = true)]
async fn a_pipe_that_takes_nothing_is_closed_after_its_last_words() {
    let (near, mut far) = pair(100);
    let sink = Arc::new(RecordingSink::default());
    let transport = PipeTransport::start((near.0, BrokenWriter(0)), sink.clone(), 100);
    transport.clone().send(outgoing(b"{}"));
    tokio::task::yield_now().await;
    answer(&mut far, b"{\"late\":1}").await;
    assert_eq!(sink.next().await, "{\"late\":1}");
    assert_eq!(
        sink.next().await,
        "closed: the connection ended before the answer came: the server takes no more messages: broken pipe"
    );
    transport.clone().send(outgoing(b"{}"));
    assert!(transport.ready().is_none());
    transport.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_wire_that_is_dropped_closes_its_pipe() {
    let (near, mut far) = pair(100);
    let (transport, _sink) = start(near);
    transport.clone().send(outgoing(b"{}"));
    transport.clone().send(outgoing(b"[]"));
    drop(transport);
    let mut found = Vec::new();
    while far.0.fill().await.unwrap() {
        while let Some(Frame::Message(bytes)) = far.0.next_frame() {
            found.push(bytes.to_vec());
        }
    }
    assert_eq!(found, [b"{}", b"[]"], "what was sent still goes");
}

#[test]
fn messages_are_told_from_other_lines() {
    for message in ["{}", " {\"a\":1}", "[]", "[ {}]", "\t[{\"a\":1}]", "\u{feff}{}", "{ broken"] {
        assert!(looks_like_a_message(message.as_bytes()), "{message}");
    }
    for line in ["", "[INFO] x", "[1]", "1", "\"a\"", "listening on {}", "\u{1b}[0m{}", "null"] {
        assert!(!looks_like_a_message(line.as_bytes()), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_without_an_end_is_reported_once() {
    let (near, mut far) = tokio::io::duplex(100);
    let ((_, writer), _other) = pair(100);
    let sink = Arc::new(RecordingSink::default());
    let reader = LineReader::new(near, 100);
    let _reading = Task::spawn(read_messages(
        reader,
        Arc::new(Outbox::new(writer, Observed::default())),
        sink.clone(),
        100,
        PipeContent::Mixed,
    ));
    for (sent, reported_after) in
        [("> ", LINE_END_TIMEOUT), (r#"{"id":1"#, REST_TIMEOUT), (r#"{"id":1}"#, LINE_END_TIMEOUT)]
    {
        let started = Instant::now();
        far.write_all(sent.as_bytes()).await.unwrap();
        let reported = sink.next().await;
        assert_eq!(
            (reported, started.elapsed()),
            (format!("ignored: a line without an end: {sent}"), reported_after)
        );
        far.write_all(b" ").await.unwrap();
        let started = Instant::now();
        let abandoned = (sink.next().await, started.elapsed());
        assert_eq!(abandoned, (format!("abandoned: {sent} "), ABANDONED_AFTER));
        far.write_all(b" ").await.unwrap();
        assert!(timeout(Duration::from_secs(60), sink.next()).await.is_err(), "once is enough");
        far.write_all(b"\n{}\n").await.unwrap();
        assert_eq!(sink.next().await.trim_end(), if sent == "> " { "ignored: >" } else { sent });
        assert_eq!(sink.next().await, "{}");
    }
    // One that grows all the time.
    for _ in 0..3 {
        far.write_all(b"x").await.unwrap();
        assert!(timeout(LINE_END_TIMEOUT * 3 / 10, sink.next()).await.is_err(), "it may end yet");
    }
    far.write_all(b"x").await.unwrap();
    assert_eq!(sink.next().await, "ignored: a line without an end: xxxx");
}
