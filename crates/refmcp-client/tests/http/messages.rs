//! Connecting with a recording sink, and the messages of the tests.

use std::sync::Arc;

use refmcp_client::http::{HttpSettings, StreamableHttp};
use refmcp_client::transport::{Connector, Transport};
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId};
use refmcp_proto::revision::Revision;

use crate::raw_server::Server;
use crate::recording_sink::RecordingSink;

pub(crate) async fn connect(connector: &dyn Connector) -> (Arc<dyn Transport>, RecordingSink) {
    let (sink, recorded) = RecordingSink::new();
    (connector.connect(sink).await.unwrap(), recorded)
}

pub(crate) async fn connect_to(server: &Server) -> (Arc<dyn Transport>, RecordingSink) {
    connect(&StreamableHttp::new(&server.url()).unwrap()).await
}

pub(crate) async fn connect_with(
    server: &Server,
    set: impl FnOnce(&mut HttpSettings),
) -> (Arc<dyn Transport>, RecordingSink) {
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
