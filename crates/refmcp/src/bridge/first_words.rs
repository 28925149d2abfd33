//! The first messages to a server of which it is not known yet whether it speaks the newer transport. When it refuses
//! them in the way of those that know only the older one, they are said again over that.

use std::collections::BTreeMap;
use std::sync::Arc;

use refmcp_client::transport::Connector;
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId, TransportError};

use super::crossing::{Crossing, reconnected};
use super::server_sink::ServerSink;

/// Bytes of first messages that are kept.
const MOST_BYTES: usize = 8 << 20;

/// What was said so far, as long as it may have to be said again.
#[derive(Debug, Default)]
pub(super) struct FirstWords {
    stage: Stage,
    kept: BTreeMap<ExchangeId, ClientMessage>,
    bytes: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Stage {
    /// It is known how to speak to the server, or there is only one way.
    #[default]
    Settled,
    /// The server has said nothing yet.
    Trying,
    /// Another way is being tried; whatever is said meanwhile waits.
    Changing,
}

/// What it means that a message came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// What it seems to.
    ForGood,
    /// There is another way to try.
    TryAnother,
    /// That way is being tried already.
    SaidAgain,
}

impl FirstWords {
    pub(super) fn of(to: &dyn Connector) -> Self {
        let stage = if to.fallback().is_some() { Stage::Trying } else { Stage::Settled };
        Self { stage, ..Self::default() }
    }

    /// Keeps a message if need be; gives it back if it is to be sent now.
    pub(super) fn keep(&mut self, message: ClientMessage) -> Option<ClientMessage> {
        if self.stage == Stage::Settled {
            return Some(message);
        }
        self.bytes += message.json.len();
        if self.stage == Stage::Trying && self.bytes > MOST_BYTES {
            self.heard();
            return Some(message);
        }
        let now = (self.stage == Stage::Trying).then(|| message.clone());
        self.kept.insert(message.exchange, message);
        now
    }

    /// The server has said something.
    pub(super) fn heard(&mut self) {
        if self.stage == Stage::Trying {
            self.settled();
        }
    }

    /// Takes note that a message came to nothing. Servers that know only the older transport refuse to open a session
    /// over the newer one; whatever else is refused says nothing of that, for they know nothing without a session.
    pub(super) fn refused(&mut self, exchange: ExchangeId, why: &TransportError) -> Refused {
        let Some(kept) = self.kept.get(&exchange) else { return Refused::ForGood };
        let opening =
            matches!(&kept.kind, ClientMessageKind::Request { method, .. } if &**method == "initialize");
        let older = matches!(why, TransportError::Refused { status: 400 | 404 | 405, error: None, .. });
        if self.stage == Stage::Changing {
            return Refused::SaidAgain;
        }
        if opening && older {
            self.stage = Stage::Changing;
            return Refused::TryAnother;
        }
        self.kept.remove(&exchange);
        Refused::ForGood
    }

    /// It is known how to speak to the server; what was kept is given back.
    pub(super) fn settled(&mut self) -> Vec<ClientMessage> {
        self.stage = Stage::Settled;
        self.bytes = 0;
        std::mem::take(&mut self.kept).into_values().collect()
    }
}

/// Says everything again, over the older transport.
pub(super) fn say_again(crossing: &Arc<Crossing>) {
    let crossing = crossing.clone();
    tokio::spawn(async move {
        let Some(older) = crossing.to.fallback() else { return };
        let connected = crossing.state().connected + 1;
        match older.connect(Arc::new(ServerSink::new(&crossing, connected, &older))).await {
            Ok(transport) => {
                tracing::info!(server = %older.name(), "the server speaks HTTP+SSE");
                let (messages, before) = reconnected(&crossing, &transport);
                for message in messages {
                    transport.clone().send(message);
                }
                if let Some(before) = before {
                    before.close().await;
                }
            }
            Err(fault) => {
                let name = older.name();
                let why =
                    format!("{name} takes no messages over streamable HTTP, nor over HTTP+SSE: {fault}");
                crossing.end(TransportError::Unreachable(why));
            }
        }
    });
}
