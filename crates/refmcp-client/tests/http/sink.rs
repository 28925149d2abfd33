//! Who listens in tests, and what is said in them.

use std::sync::Arc;

use refmcp_client::http::{HttpSettings, StreamableHttp};
use refmcp_client::transport::{Connector, MessageSink, Transport};
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId, TransportError};
use refmcp_proto::revision::Revision;
use tokio::sync::mpsc;

use crate::raw_server::{Server, in_time};

/// What was heard.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Heard {
    Message(Option<u64>, String),
    TooLong(Option<u64>, usize),
    Ended(u64, TransportError),
    Closed(TransportError),
    Noise(String),
    StreamLost(TransportError),
    StreamRestored,
}

#[derive(Debug)]
struct Recorder(mpsc::UnboundedSender<Heard>);

impl Recorder {
    fn record(&self, heard: Heard) {
        // A test that has seen enough stops listening.
        let _unheard = self.0.send(heard);
    }
}

impl MessageSink for Recorder {
    fn message(&self, exchange: Option<ExchangeId>, json: &[u8]) {
        let text = String::from_utf8_lossy(json).into_owned();
        self.record(Heard::Message(exchange.map(|exchange| exchange.0), text));
    }

    fn too_long(&self, exchange: Option<ExchangeId>, limit: usize) {
        self.record(Heard::TooLong(exchange.map(|exchange| exchange.0), limit));
    }

    fn ended(&self, exchange: ExchangeId, why: TransportError) {
        self.record(Heard::Ended(exchange.0, why));
    }

    fn closed(&self, why: TransportError) {
        self.record(Heard::Closed(why));
    }

    fn ignored_input(&self, what: &str) {
        self.record(Heard::Noise(what.to_owned()));
    }

    fn stream_lost(&self, why: TransportError) {
        self.record(Heard::StreamLost(why));
    }

    fn stream_restored(&self) {
        self.record(Heard::StreamRestored);
    }
}

/// Everything that was heard, in order.
#[derive(Debug)]
pub(crate) struct Ears(mpsc::UnboundedReceiver<Heard>);

impl Ears {
    pub(crate) fn new() -> (Arc<dyn MessageSink>, Self) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Arc::new(Recorder(sender)), Self(receiver))
    }

    pub(crate) async fn next(&mut self) -> Heard {
        in_time("something to hear", self.0.recv()).await.expect("somebody speaks")
    }

    /// The message that comes next.
    pub(crate) async fn message(&mut self) -> (Option<u64>, String) {
        match self.next().await {
            Heard::Message(exchange, text) => (exchange, text),
            other => panic!("no message: {other:?}"),
        }
    }

    /// The end of an exchange that comes next.
    pub(crate) async fn ended(&mut self) -> (u64, TransportError) {
        match self.next().await {
            Heard::Ended(exchange, why) => (exchange, why),
            other => panic!("no end: {other:?}"),
        }
    }

    /// Whether nothing was heard that was not asked for.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.0.try_recv().is_err()
    }

    /// Waits until nobody can speak to these ears any more.
    pub(crate) async fn deaf(&mut self) {
        in_time("everybody to leave", async { while self.0.recv().await.is_some() {} }).await;
    }
}

pub(crate) async fn connect(connector: &dyn Connector) -> (Arc<dyn Transport>, Ears) {
    let (sink, ears) = Ears::new();
    (connector.connect(sink).await.unwrap(), ears)
}

pub(crate) async fn connect_to(server: &Server) -> (Arc<dyn Transport>, Ears) {
    connect(&StreamableHttp::new(&server.url()).unwrap()).await
}

pub(crate) async fn connect_with(
    server: &Server,
    set: impl FnOnce(&mut HttpSettings),
) -> (Arc<dyn Transport>, Ears) {
    let mut settings = HttpSettings::default();
    set(&mut settings);
    connect(&StreamableHttp::new(&server.url()).unwrap().settings(settings)).await
}

/// The newest revision with sessions.
pub(crate) const SESSIONS: Option<Revision> = Some(Revision::LATEST_SESSION);
/// The newest revision, which has none.
pub(crate) const ALONE: Option<Revision> = Some(Revision::LATEST);

/// A request whose id is the number of its exchange.
pub(crate) fn request(number: u64, method: &str, revision: Option<Revision>) -> ClientMessage {
    ClientMessage {
        exchange: ExchangeId(number),
        kind: ClientMessageKind::Request { method: method.into(), name: None, param_headers: Vec::new() },
        json: format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{{}}}}"#).into(),
        rules: revision.map(Revision::rules),
    }
}

pub(crate) fn notification(number: u64, method: &str, revision: Option<Revision>) -> ClientMessage {
    ClientMessage {
        exchange: ExchangeId(number),
        kind: ClientMessageKind::Notification { method: method.into() },
        json: format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#).into(),
        rules: revision.map(Revision::rules),
    }
}

pub(crate) fn answer(number: u64, revision: Option<Revision>) -> ClientMessage {
    ClientMessage {
        exchange: ExchangeId(number),
        kind: ClientMessageKind::Response,
        json: format!(r#"{{"jsonrpc":"2.0","id":"s{number}","result":{{}}}}"#).into(),
        rules: revision.map(Revision::rules),
    }
}

/// The answer of a server to the request of that number.
pub(crate) fn result(number: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{"n":{number}}}}}"#)
}

/// A notification of a server.
pub(crate) fn progress(number: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progress":{number}}}}}"#)
}

/// An event with a message.
pub(crate) fn event(id: &str, data: &str) -> String {
    format!("event: message\nid: {id}\ndata: {data}\n\n")
}
