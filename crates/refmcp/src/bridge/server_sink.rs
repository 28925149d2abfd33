//! Who listens to the server for a crossing.

use std::sync::{Arc, Weak};

use refmcp_client::observer::{Observed, Side};
use refmcp_client::transport::{Connector, MessageSink};
use refmcp_proto::engine::client::{ExchangeId, TransportError};
use refmcp_transport::clock::Clock;

use super::crossing::Crossing;

/// Hears one transport; once another has taken its place, nothing.
pub(super) struct ServerSink {
    /// The transport must not keep the crossing alive, which has the transport.
    crossing: Weak<Crossing>,
    connected: u64,
    observed: Observed,
}

impl ServerSink {
    pub(super) fn new(crossing: &Arc<Crossing>, connected: u64, to: &Arc<dyn Connector>) -> Self {
        let observer = crossing.to.observer.clone();
        let open = |observer| Observed::open(observer, Side::Client, to.transport(), to.name(), Clock::new());
        Self {
            crossing: Arc::downgrade(crossing),
            connected,
            observed: observer.map(open).unwrap_or_default(),
        }
    }

    fn crossing(&self) -> Option<Arc<Crossing>> {
        let crossing = self.crossing.upgrade()?;
        let current = crossing.state().connected == self.connected;
        current.then_some(crossing)
    }
}

impl MessageSink for ServerSink {
    fn message(&self, exchange: Option<ExchangeId>, json: &[u8]) {
        if let Some(crossing) = self.crossing() {
            crossing.heard(exchange, json);
        }
    }

    fn too_long(&self, _: Option<ExchangeId>, limit: usize) {
        tracing::warn!(limit, "the server sent a message that is too long to be passed on");
    }

    fn ended(&self, exchange: ExchangeId, why: TransportError) {
        if let Some(crossing) = self.crossing() {
            crossing.ended(exchange, &why);
        }
    }

    fn observed(&self) -> Observed {
        self.observed.clone()
    }

    fn closed(&self, why: TransportError) {
        self.observed.closed(&why);
        if let Some(crossing) = self.crossing() {
            crossing.end(why);
        }
    }

    fn ignored_input(&self, what: &str) {
        tracing::warn!(what, "the server sent something that is no message");
    }
}
