//! What carries messages to a server and back. It knows no rule of the conversation: those are the engine's.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId, TransportError};
pub use refmcp_proto::model::JsonObject;
pub use refmcp_proto::revision::Rules;

/// A future in a box.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The way to a server that is connected.
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Sends a message, at once or as soon as the way is free, in the order of the calls where there is one stream for
    /// all of them. What goes wrong is told to the [`MessageSink`].
    fn send(self: Arc<Self>, message: ClientMessage);

    /// Nobody wants what may still come for this exchange. Where it has a connection of its own that ends, else
    /// nothing happens.
    fn abandon(&self, _exchange: ExchangeId) {}

    /// The conversation is open, by these rules.
    fn opened(self: Arc<Self>, _rules: &'static Rules) {}

    /// Waits while so much is queued that more had better wait.
    fn ready(&self) -> Option<BoxFuture<'_, ()>> {
        None
    }

    /// Ends the connection in order, within a bounded time; whatever it needed is gone afterwards.
    fn close(self: Arc<Self>) -> BoxFuture<'static, ()>;
}

/// Who listens to a transport.
pub trait MessageSink: Send + Sync + 'static {
    /// A message has come: for an exchange, or on a stream for everything.
    fn message(&self, exchange: Option<ExchangeId>, json: &[u8]);

    /// A message was too long to be kept.
    fn too_long(&self, exchange: Option<ExchangeId>, limit: usize);

    /// Nothing more is going to come for an exchange. When it was answered, that is all right.
    fn ended(&self, exchange: ExchangeId, why: TransportError);

    /// Nothing more is going to come at all.
    fn closed(&self, why: TransportError);

    /// The peer did something that is not allowed but harms nobody: noise between messages, an unknown event.
    fn ignored_input(&self, what: &str);
}

/// Where a server is and how to reach it.
pub trait Connector: Send + Sync + fmt::Debug + 'static {
    /// Connects; from then on everything that comes goes to the sink. Does not speak by itself.
    fn connect(
        &self,
        sink: Arc<dyn MessageSink>,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>>;

    /// The name of the server, for logs and errors: an address, or a command line.
    fn name(&self) -> String;

    /// Another way to the same server, for those that know only an older transport; tried when the first message was
    /// refused by status 400, 404 or 405.
    fn fallback(&self) -> Option<Arc<dyn Connector>> {
        None
    }

    /// Whether only revisions with sessions travel this way.
    fn sessions_only(&self) -> bool {
        false
    }

    /// What keeps an opening waiting besides the server: somebody logs in. It ends when that is over, and says when it
    /// was in vain.
    fn pending_login(&self) -> Option<BoxFuture<'_, Result<(), TransportError>>> {
        None
    }

    /// Whether connecting may wait for a person to log in, whose time is not the server's.
    fn logs_in_first(&self) -> bool {
        false
    }

    /// Extensions of the protocol that the way to the server makes use of, by identifier, with their settings. Servers
    /// are told of them, beside what the application can do.
    fn extensions(&self) -> JsonObject {
        JsonObject::new()
    }

    /// Whether a server that is silent may just not know the question.
    fn probe_may_be_ignored(&self) -> bool {
        true
    }
}
