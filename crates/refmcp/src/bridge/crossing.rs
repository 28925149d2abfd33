//! One conversation across the bridge: a transport to the server, and what is known of the messages on it. Both sides keep
//! their own ids; the bridge only remembers which of the client's requests wait for an answer, so that none waits for
//! ever.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use refmcp_client::transport::Transport;
use refmcp_proto::engine::client::{ClientMessage, ExchangeId, TransportError};
use refmcp_proto::jsonrpc::encode::ResponseId;
use refmcp_proto::jsonrpc::{RequestId, RpcError};
use refmcp_proto::revision::Lifecycle;

use super::Upstream;
use super::asked::{Asked, Waiting};
use super::first_words::FirstWords;
use super::glance::{Message, in_one_line, read};
use super::learned::Learned;
use super::server_sink::ServerSink;
use super::words;

/// Requests of one client that may wait for answers.
const MOST_WAITING: usize = 16_384;

/// The side of the client.
pub(super) trait Near: Send + Sync + 'static {
    /// Something for the client.
    fn hear(&self, heard: Heard<'_>);

    /// The client has called a request off; nothing more is going to come for it.
    fn called_off(&self, _request: ExchangeId) {}

    /// One request fewer waits for its answer.
    fn settled(&self) {}

    /// Nothing more is going to come at all; whatever waited was answered.
    fn over(&self, over: Over);
}

/// Something for the client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard<'a> {
    /// The message, as it came.
    pub(super) json: &'a str,
    /// The request of the client that it belongs to, where that is known.
    pub(super) belongs_to: Option<ExchangeId>,
    /// Whether it is the answer to that.
    pub(super) is_answer: bool,
}

/// Why there is nothing more to come.
#[derive(Debug, Clone)]
pub(super) struct Over {
    pub(super) why: Why,
    /// Whether the server had ever said anything.
    pub(super) reached: bool,
}

/// Who ended it, and how.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum Why {
    /// The server has gone, or cannot be reached.
    #[error(transparent)]
    Server(TransportError),
    /// The client leaves more unread than is kept for it.
    #[error("the client leaves more than {most} bytes unread")]
    Unread {
        /// As much as is kept.
        most: usize,
    },
}

/// One conversation across the bridge.
pub(super) struct Crossing {
    pub(super) to: Upstream,
    pub(super) near: Arc<dyn Near>,
    /// Whether every request goes its own way to the server, and not all over one pipe.
    separate: bool,
    next: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Nothing before it is connected, and once it is over.
    transport: Option<Arc<dyn Transport>>,
    /// How often it was connected; what older transports say counts no more.
    pub(super) connected: u64,
    pub(super) waiting: Waiting,
    pub(super) learned: Learned,
    /// What the server has asked and the client has not answered.
    pub(super) questions: BTreeSet<RequestId>,
    pub(super) first_words: FirstWords,
    pub(super) reached: bool,
    pub(super) over: bool,
}

impl Crossing {
    /// Connects to the server.
    pub(super) async fn open(to: Upstream, near: Arc<dyn Near>) -> Result<Arc<Self>, TransportError> {
        let separate = !to.probe_may_be_ignored();
        let state = State { first_words: FirstWords::of(&**to), ..State::default() };
        let (next, state) = (AtomicU64::new(1), Mutex::new(state));
        let crossing = Arc::new(Self { to, near, separate, next, state });
        let transport = crossing.to.connect(Arc::new(ServerSink::new(&crossing, 0, &crossing.to))).await?;
        crossing.state().transport = Some(transport);
        Ok(crossing)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// A number for a message that is about to pass.
    pub(super) fn number(&self) -> ExchangeId {
        ExchangeId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Passes a message of the client on to the server.
    pub(super) fn pass(&self, exchange: ExchangeId, message: &Message<'_>) {
        if message.is("notifications/cancelled") && self.call_off_alone(message) {
            return;
        }
        let mut state = self.state();
        if let Some(id) = message.asks() {
            if state.over || state.waiting.count() >= MOST_WAITING {
                let why =
                    if state.over { "the server has gone" } else { "too many requests wait for answers" };
                drop(state);
                return self.answer_for(exchange, id, &blame(why));
            }
            state.waiting.insert(exchange, Asked::new(id.clone(), message));
        }
        if let Some(answered) = message.id.as_ref().filter(|_| message.is_answer()) {
            state.questions.remove(&answered.id);
        }
        let outgoing = ClientMessage {
            exchange,
            kind: state.learned.kind(message),
            json: in_one_line(message.text).into_owned().into_bytes(),
            rules: state.learned.rules(message),
        };
        let session = state.learned.session.filter(|_| message.is("notifications/initialized"));
        let Some(outgoing) = state.first_words.keep(outgoing) else { return };
        let Some(transport) = state.transport.clone() else { return };
        drop(state);
        transport.clone().send(outgoing);
        if let Some(rules) = session {
            transport.clone().opened(rules);
        }
        if message.is("notifications/cancelled")
            && let Some(request) = self.named(message)
        {
            self.forget(request);
            transport.abandon(request);
            self.near.called_off(request);
        }
    }

    /// Calls off a request whose way to the server is its own: that way ends, which says everything.
    fn call_off_alone(&self, message: &Message<'_>) -> bool {
        let Some(request) = self.named(message).filter(|_| self.separate) else { return false };
        let alone =
            self.state().waiting.get(request).is_some_and(|asked| asked.lifecycle == Lifecycle::PerRequest);
        if alone {
            self.call_off(request, "");
            self.near.called_off(request);
        }
        alone
    }

    /// The request that a cancellation names.
    fn named(&self, cancelled: &Message<'_>) -> Option<ExchangeId> {
        let named = cancelled.params.request()?;
        let state = self.state();
        let found = state.waiting.find(&named.id)?;
        // The opening of a session cannot be called off.
        state.waiting.get(found).filter(|asked| &*asked.method != "initialize").map(|_| found)
    }

    /// Cancels a request; the server is told in the way that fits its transport.
    pub(super) fn call_off(&self, request: ExchangeId, reason: &str) {
        let (asked, transport) = {
            let mut state = self.state();
            (state.waiting.remove(request), state.transport.clone())
        };
        let (Some(asked), Some(transport)) = (asked, transport) else { return };
        if !self.separate {
            let told = words::cancelled(&asked.id, reason);
            if let Some(message) = read(told.as_bytes()).ok().and_then(|mut read| read.pop()) {
                self.pass(self.number(), &message);
            }
        }
        transport.abandon(request);
    }

    /// The client has gone: what the server still asks is answered in its place, so that it does not wait.
    pub(super) fn refuse_questions(&self) {
        let questions = std::mem::take(&mut self.state().questions);
        for id in questions {
            let refusal = words::error(ResponseId::Id(&id), &blame("the client has gone"));
            for message in read(refusal.as_bytes()).unwrap_or_default() {
                self.pass(self.number(), &message);
            }
        }
    }

    /// How many requests are still going to be answered.
    pub(super) fn waiting(&self) -> usize {
        self.state().waiting.ending()
    }

    /// Whether so much is on its way to the server that more had better wait.
    pub(super) fn is_full(&self) -> bool {
        self.transport().is_some_and(|transport| transport.ready().is_some())
    }

    /// Waits until there is room on the way to the server.
    pub(super) async fn ready(&self) {
        if let Some(transport) = self.transport()
            && let Some(room) = transport.ready()
        {
            room.await;
        }
    }

    fn transport(&self) -> Option<Arc<dyn Transport>> {
        self.state().transport.clone()
    }

    /// Ends the connection to the server in order.
    pub(super) async fn close(&self) {
        let transport = {
            let mut state = self.state();
            state.over = true;
            state.transport.take()
        };
        if let Some(transport) = transport {
            transport.close().await;
        }
    }

    pub(super) fn forget(&self, request: ExchangeId) {
        let forgotten = self.state().waiting.remove(request).is_some();
        if forgotten {
            self.near.settled();
        }
    }

    /// Answers a request of the client in the server's place.
    pub(super) fn answer_for(&self, exchange: ExchangeId, id: &RequestId, error: &RpcError) {
        let json = words::error(ResponseId::Id(id), error);
        self.near.hear(Heard { json: &json, belongs_to: Some(exchange), is_answer: true });
    }
}

/// An error of the bridge itself, not of the server.
pub(super) fn blame(why: impl std::fmt::Display) -> RpcError {
    RpcError::internal(format!("refmcp bridge: {why}"))
}

impl std::fmt::Debug for Crossing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crossing").field("to", &*self.to).finish_non_exhaustive()
    }
}

/// Puts another transport in place of the one there was.
pub(super) fn reconnected(
    crossing: &Crossing,
    transport: &Arc<dyn Transport>,
) -> (Vec<ClientMessage>, Option<Arc<dyn Transport>>) {
    let mut state = crossing.state();
    state.connected += 1;
    let before = state.transport.replace(transport.clone());
    (state.first_words.settled(), before)
}
