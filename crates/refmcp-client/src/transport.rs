//! Transports: they carry messages to a server and back, and know no rule of the protocol. Those are the engine's.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId, TransportError};
pub use refmcp_proto::model::JsonObject;
pub use refmcp_proto::revision::Rules;
use refmcp_transport::Observed;

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A connection that is being made.
pub type Connecting<'a> = BoxFuture<'a, Result<Arc<dyn Transport>, TransportError>>;

/// A connected server.
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Sends a message, in the order of the calls where all messages share a stream. Errors go to the [`MessageSink`].
    fn send(self: Arc<Self>, message: ClientMessage);

    /// The result of this exchange is no longer wanted. Ends its connection if it has one of its own.
    fn abandon(&self, _exchange: ExchangeId) {}

    /// The session is open, with these rules.
    fn opened(self: Arc<Self>, _rules: &'static Rules) {}

    /// Backpressure: `Some` while the queue is full, and ready once there is room.
    fn ready(&self) -> Option<BoxFuture<'_, ()>> {
        None
    }

    /// Closes the connection in order and releases all it used, within a bounded time.
    fn close(self: Arc<Self>) -> BoxFuture<'static, ()>;
}

/// Receives what a transport reads.
pub trait MessageSink: Send + Sync + 'static {
    /// A message has come: for an exchange, or on a stream for all.
    fn message(&self, exchange: Option<ExchangeId>, json: &[u8]);

    /// A message was over the limit and was dropped.
    fn too_long(&self, exchange: Option<ExchangeId>, limit: usize);

    /// Nothing more comes for an exchange. It is an error only if the answer has not come.
    fn ended(&self, exchange: ExchangeId, why: TransportError);

    /// Nothing more comes at all.
    fn closed(&self, why: TransportError);

    /// The server sent something that is no message and does no harm: a line of text on stdout, an unknown SSE event.
    fn ignored_input(&self, what: &str);

    /// A line that was told of as ignored still has no end, and nothing more came of it for a while.
    fn line_abandoned(&self, _begun: &str) {}

    /// The stream for messages that belong to no request cannot be opened, or opened again, for now or for good. Told
    /// once until it is open.
    fn stream_lost(&self, _why: TransportError) {}

    /// That stream is open again.
    fn stream_restored(&self) {}

    /// Where the transport reports each message, HTTP head and other input as it passes.
    fn observed(&self) -> Observed {
        Observed::default()
    }
}

/// A server to connect to.
pub trait Connector: Send + Sync + fmt::Debug + 'static {
    /// Connects, and sends nothing yet. What the server sends from then on goes to the sink.
    fn connect(&self, sink: Arc<dyn MessageSink>) -> Connecting<'_>;

    /// The name of the server for logs and errors: a URL or a command line.
    fn name(&self) -> String;

    /// The kind of transport, for observers.
    fn transport(&self) -> &'static str {
        "other"
    }

    /// The same server over an older transport; tried if the first message was refused with status 400, 404 or 405.
    fn fallback(&self) -> Option<Arc<dyn Connector>> {
        None
    }

    /// True if only revisions with sessions work over this transport.
    fn sessions_only(&self) -> bool {
        false
    }

    /// A login that is under way, which the time for opening does not include. An error says that the login failed.
    fn pending_login(&self) -> Option<BoxFuture<'_, Result<(), TransportError>>> {
        None
    }

    /// True if connecting may wait for a person to log in, which the time for opening does not include.
    fn logs_in_first(&self) -> bool {
        false
    }

    /// Extensions of the protocol that the transport uses, by identifier, with their settings. They are sent beside the
    /// capabilities of the [`Host`](crate::Host).
    fn extensions(&self) -> JsonObject {
        JsonObject::new()
    }

    /// True if a server of an older revision may leave the first request unanswered.
    fn probe_may_be_ignored(&self) -> bool {
        true
    }
}
