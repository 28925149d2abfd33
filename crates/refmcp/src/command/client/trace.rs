//! Everything that passes, with its time: messages, to a file or to standard output as it happens; and to the file
//! every byte of connections over HTTP and WebSocket, heads and all.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use refmcp_client::TransportError;
use refmcp_client::http::{ByteObserver, TransferredBytes};
use refmcp_client::transport::{
    BoxFuture, ClientMessage, Connector, ExchangeId, JsonObject, MessageSink, Rules, Transport,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::output;
use crate::store::append_private;

/// Where messages are written.
#[derive(Clone, Default)]
pub(crate) struct Tracer {
    file: Option<Arc<Mutex<File>>>,
    stdout: bool,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("file", &self.file.is_some()).field("stdout", &self.stdout).finish()
    }
}

#[derive(Serialize)]
struct Line<'a> {
    /// Milliseconds since the Unix epoch.
    at: u128,
    server: &'a str,
    direction: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

/// Bytes that passed a connection.
#[derive(Serialize)]
struct Bytes<'a> {
    at: u128,
    direction: &'a str,
    connection: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    /// What is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl Tracer {
    /// Writes to a file, to standard output, to both or to neither.
    pub(crate) fn new(file: Option<&Path>, stdout: bool) -> Result<Self> {
        let file = match file {
            Some(path) => {
                let file = append_private(path);
                let file = file.with_context(|| format!("cannot write the trace to {}", path.display()))?;
                Some(Arc::new(Mutex::new(file)))
            }
            None => None,
        };
        Ok(Self { file, stdout })
    }

    /// The same server, with everything that passes written down.
    pub(crate) fn around(&self, server: Arc<dyn Connector>) -> Arc<dyn Connector> {
        if self.file.is_none() && !self.stdout {
            return server;
        }
        Arc::new(Traced { server, tracer: self.clone() })
    }

    /// Who hears every byte of connections over HTTP and WebSocket, if that is wanted.
    pub(crate) fn observer(&self) -> Option<ByteObserver> {
        let file = Self { file: Some(self.file.clone()?), stdout: false };
        Some(Arc::new(move |connection, passed| {
            let (direction, bytes) = match passed {
                TransferredBytes::Sent(bytes) => ("bytes sent", bytes),
                TransferredBytes::Received(bytes) => ("bytes received", bytes),
            };
            let text = std::str::from_utf8(bytes).ok();
            let base64 = text.is_none().then(|| STANDARD.encode(bytes));
            file.write(&Bytes { at: now(), direction, connection, text, base64 });
        }))
    }

    fn message(&self, server: &str, direction: &str, exchange: Option<ExchangeId>, json: &[u8]) {
        let exchange = exchange.map(|exchange| exchange.0);
        match serde_json::from_slice::<&RawValue>(json) {
            Ok(message) => self.write(&Line {
                at: now(),
                server,
                direction,
                exchange,
                message: Some(message),
                text: None,
            }),
            Err(_) => {
                let text = String::from_utf8_lossy(json);
                self.write(&Line {
                    at: now(),
                    server,
                    direction,
                    exchange,
                    message: None,
                    text: Some(&text),
                });
            }
        }
    }

    fn event(&self, server: &str, direction: &str, exchange: Option<ExchangeId>, text: &str) {
        let exchange = exchange.map(|exchange| exchange.0);
        self.write(&Line { at: now(), server, direction, exchange, message: None, text: Some(text) });
    }

    fn write(&self, line: &impl Serialize) {
        // Strings and numbers do not fail to be written.
        let Ok(mut text) = serde_json::to_vec(line) else { return };
        text.push(b'\n');
        if let Some(file) = &self.file
            && let Err(fault) = file.lock().write_all(&text)
        {
            tracing::warn!("the trace is incomplete: {fault}");
        }
        if self.stdout
            && let Err(fault) = output::write(&text)
        {
            tracing::warn!("the output is incomplete: {fault}");
        }
    }
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis()
}

#[derive(Debug)]
struct Traced {
    server: Arc<dyn Connector>,
    tracer: Tracer,
}

impl Connector for Traced {
    fn connect(
        &self,
        sink: Arc<dyn MessageSink>,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
        Box::pin(async move {
            let name: Arc<str> = self.server.name().into();
            let sink = TracedSink { sink, tracer: self.tracer.clone(), name: name.clone() };
            let transport = self.server.connect(Arc::new(sink)).await?;
            Ok(Arc::new(TracedTransport { transport, tracer: self.tracer.clone(), name })
                as Arc<dyn Transport>)
        })
    }

    fn name(&self) -> String {
        self.server.name()
    }

    fn fallback(&self) -> Option<Arc<dyn Connector>> {
        self.server.fallback().map(|older| self.tracer.around(older))
    }

    fn sessions_only(&self) -> bool {
        self.server.sessions_only()
    }

    fn pending_login(&self) -> Option<BoxFuture<'_, Result<(), TransportError>>> {
        self.server.pending_login()
    }

    fn logs_in_first(&self) -> bool {
        self.server.logs_in_first()
    }

    fn extensions(&self) -> JsonObject {
        self.server.extensions()
    }

    fn probe_may_be_ignored(&self) -> bool {
        self.server.probe_may_be_ignored()
    }
}

struct TracedSink {
    sink: Arc<dyn MessageSink>,
    tracer: Tracer,
    name: Arc<str>,
}

impl MessageSink for TracedSink {
    fn message(&self, exchange: Option<ExchangeId>, json: &[u8]) {
        self.tracer.message(&self.name, "received", exchange, json);
        self.sink.message(exchange, json);
    }

    fn too_long(&self, exchange: Option<ExchangeId>, limit: usize) {
        self.tracer.event(&self.name, "dropped", exchange, &format!("longer than {limit} bytes"));
        self.sink.too_long(exchange, limit);
    }

    fn ended(&self, exchange: ExchangeId, why: TransportError) {
        self.tracer.event(&self.name, "ended", Some(exchange), &why.to_string());
        self.sink.ended(exchange, why);
    }

    fn closed(&self, why: TransportError) {
        self.tracer.event(&self.name, "closed", None, &why.to_string());
        self.sink.closed(why);
    }

    fn ignored_input(&self, what: &str) {
        self.tracer.event(&self.name, "noise", None, what);
        self.sink.ignored_input(what);
    }

    fn stream_lost(&self, why: TransportError) {
        self.tracer.event(&self.name, "stream lost", None, &why.to_string());
        self.sink.stream_lost(why);
    }

    fn stream_restored(&self) {
        self.tracer.event(&self.name, "stream restored", None, "");
        self.sink.stream_restored();
    }
}

#[derive(Debug)]
struct TracedTransport {
    transport: Arc<dyn Transport>,
    tracer: Tracer,
    name: Arc<str>,
}

impl Transport for TracedTransport {
    fn send(self: Arc<Self>, message: ClientMessage) {
        self.tracer.message(&self.name, "sent", Some(message.exchange), &message.json);
        self.transport.clone().send(message);
    }

    fn abandon(&self, exchange: ExchangeId) {
        self.transport.abandon(exchange);
    }

    fn opened(self: Arc<Self>, rules: &'static Rules) {
        self.transport.clone().opened(rules);
    }

    fn ready(&self) -> Option<BoxFuture<'_, ()>> {
        self.transport.ready()
    }

    fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
        self.transport.clone().close()
    }
}
