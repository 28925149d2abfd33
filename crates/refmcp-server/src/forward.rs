//! `Forward`: serves the calls of a server in place of its catalog, for gateways to another server.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use refmcp_proto::engine::{CallId, HandlerOutcome};
use refmcp_proto::model::SubscriptionFilter;

use crate::call::Call;
use crate::error::CallError;
use crate::session::Session;

/// A call that is being forwarded.
pub type ForwardedCall = Pin<Box<dyn Future<Output = Result<HandlerOutcome, CallError>> + Send>>;

/// Serves every call of a server; [`ServerBuilder::forward`](crate::ServerBuilder::forward) takes it.
///
/// `initialize`, `server/discover`, `ping` and `subscriptions/listen` are the engine's, and so is everything that is wrong
/// with a message.
pub trait Forward: Send + Sync + 'static {
    /// Serves a call. As any handler it ends when it needs input ([`Call::request`]), and runs again with the answers.
    fn call(&self, call: Call) -> ForwardedCall;

    /// A call that waits for input has ended: it was cancelled, or the client cannot give the input.
    fn waiting_call_ended(&self, _session: &Arc<Session>, _call: CallId) {}

    /// The client's roots have changed.
    fn roots_changed(&self, _session: &Arc<Session>) {}

    /// These are the changes that streams of `subscriptions/listen` on this connection want now, all together.
    fn listening(&self, _session: &Arc<Session>, _filter: &SubscriptionFilter) {}
}
