//! A message sink that records, for the tests of all transports.

#![allow(dead_code, reason = "not every transport needs all of it")]

use std::sync::Arc;
use std::time::Duration;

use refmcp_client::observer::{Observed, Side};
use refmcp_client::transport::MessageSink;
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId, TransportError};
use refmcp_testkit::recording_observer::RecordingObserver;
use refmcp_transport::clock::Clock;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// Longer than a step of a test may take, even on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A call of a message sink.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SinkEvent {
    Message(Option<u64>, String),
    TooLong(Option<u64>, usize),
    Ended(u64, TransportError),
    Closed(TransportError),
    IgnoredInput(String),
    StreamLost(TransportError),
    StreamRestored,
}

struct Recorder(UnboundedSender<SinkEvent>, Observed);

impl Recorder {
    fn record(&self, event: SinkEvent) {
        // The test may have ended.
        let _ = self.0.send(event);
    }
}

impl MessageSink for Recorder {
    fn message(&self, exchange: Option<ExchangeId>, json: &[u8]) {
        let text = String::from_utf8_lossy(json).into_owned();
        self.record(SinkEvent::Message(exchange.map(|exchange| exchange.0), text));
    }

    fn too_long(&self, exchange: Option<ExchangeId>, limit: usize) {
        self.record(SinkEvent::TooLong(exchange.map(|exchange| exchange.0), limit));
    }

    fn ended(&self, exchange: ExchangeId, why: TransportError) {
        self.record(SinkEvent::Ended(exchange.0, why));
    }

    fn closed(&self, why: TransportError) {
        self.1.closed(&why);
        self.record(SinkEvent::Closed(why));
    }

    fn ignored_input(&self, what: &str) {
        self.record(SinkEvent::IgnoredInput(what.to_owned()));
    }

    fn stream_lost(&self, why: TransportError) {
        self.record(SinkEvent::StreamLost(why));
    }

    fn stream_restored(&self) {
        self.record(SinkEvent::StreamRestored);
    }

    fn observed(&self) -> Observed {
        self.1.clone()
    }
}

/// The calls of a message sink, in order.
#[derive(Debug)]
pub(crate) struct RecordingSink(UnboundedReceiver<SinkEvent>);

impl RecordingSink {
    pub(crate) fn new() -> (Arc<dyn MessageSink>, Self) {
        Self::with(Observed::default())
    }

    /// A sink whose transport is observed.
    pub(crate) fn observed() -> (Arc<dyn MessageSink>, Self, Arc<RecordingObserver>) {
        let observer = Arc::new(RecordingObserver::default());
        let observed = Observed::open(observer.clone(), Side::Client, "test", "server", Clock::new());
        let (sink, recorded) = Self::with(observed);
        (sink, recorded, observer)
    }

    fn with(observed: Observed) -> (Arc<dyn MessageSink>, Self) {
        let (sender, receiver) = unbounded_channel();
        (Arc::new(Recorder(sender, observed)), Self(receiver))
    }

    pub(crate) async fn next(&mut self) -> SinkEvent {
        timeout(LONG, self.0.recv()).await.expect("an event in time").expect("the sink is in use")
    }

    /// The next event, which is a message.
    pub(crate) async fn message(&mut self) -> (Option<u64>, String) {
        match self.next().await {
            SinkEvent::Message(exchange, text) => (exchange, text),
            other => panic!("no message: {other:?}"),
        }
    }

    /// The next event, which is the end of an exchange.
    pub(crate) async fn ended(&mut self) -> (u64, TransportError) {
        match self.next().await {
            SinkEvent::Ended(exchange, why) => (exchange, why),
            other => panic!("no end: {other:?}"),
        }
    }

    /// The next event, which is the broken end of everything.
    pub(crate) async fn why_broken(&mut self) -> String {
        match self.next().await {
            SinkEvent::Closed(TransportError::Broken(why)) => why,
            other => panic!("not broken: {other:?}"),
        }
    }

    /// The events that were not looked at.
    pub(crate) fn rest(&mut self) -> Vec<SinkEvent> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }

    pub(crate) fn is_empty(&mut self) -> bool {
        self.0.try_recv().is_err()
    }

    /// Waits until the sink is dropped.
    pub(crate) async fn dropped(&mut self) {
        let dropped = async { while self.0.recv().await.is_some() {} };
        timeout(LONG, dropped).await.expect("the sink is dropped in time");
    }
}

/// A message for a pipe.
pub(crate) fn outgoing(json: impl Into<Vec<u8>>) -> ClientMessage {
    let kind = ClientMessageKind::Notification { method: "test".into() };
    ClientMessage { exchange: ExchangeId(1), kind, json: json.into(), rules: None }
}
