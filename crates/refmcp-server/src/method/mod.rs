//! Dispatch of methods to handlers. Each file has the methods of one feature, from parameters to result.

mod completion;
mod custom;
mod pagination;
mod prompts;
mod record;
mod resources;
mod tools;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use refmcp_proto::engine::{Dispatch, HandlerOutcome};
use refmcp_proto::jsonrpc::{RpcError, read_member};
use refmcp_proto::model::ServerResult;
use refmcp_proto::revision::Method;
use refmcp_transport::{EngineHandle, RunningCall};
use serde::Deserialize;
use tracing::Instrument;

use crate::call::Call;
use crate::error::CallError;
use crate::forward::Forward;
use crate::server::Server;
use crate::session::Session;
use crate::statistics::MethodStatistics;

pub(crate) use custom::CustomMethod;
use record::Recording;
pub(crate) use record::responded as record_responded;
pub use record::{CallOutcome, CallRecord};

/// A call with its parameters read, ready to run.
struct PreparedCall {
    /// What the call is about, for logs: the name of a tool or prompt, a URI.
    subject: Option<String>,
    /// The numbers of the tool that is called, if it has its own.
    tool: Option<Arc<MethodStatistics>>,
    inline: bool,
    work: Pin<Box<dyn Future<Output = Result<HandlerOutcome, CallError>> + Send>>,
}

impl PreparedCall {
    /// A call that hardly ever waits: it is polled before a task is spawned for it.
    fn inline(work: impl Future<Output = Result<ServerResult, CallError>> + Send + 'static) -> Self {
        Self { subject: None, tool: None, inline: true, work: Box::pin(done(work)) }
    }

    /// A call that may take its time: a task is spawned for it.
    fn spawned(work: impl Future<Output = Result<ServerResult, CallError>> + Send + 'static) -> Self {
        Self { subject: None, tool: None, inline: false, work: Box::pin(done(work)) }
    }

    /// A call that another server answers. It is polled at once, so that calls are forwarded in their order.
    fn forwarded(forward: &dyn Forward, call: &Call) -> Self {
        Self { subject: None, tool: None, inline: true, work: forward.call(call.clone()) }
    }

    /// A call that fails.
    fn refuse(error: CallError) -> Self {
        Self::inline(async { Err(error) })
    }

    /// Sets which tool is called.
    fn of(mut self, tool: Option<Arc<MethodStatistics>>) -> Self {
        self.tool = tool;
        self
    }

    /// Sets what the call is about, if it is going to be logged.
    fn about(mut self, call: &Call, subject: &str) -> Self {
        self.subject = record::is_wanted(call.server()).then(|| subject.to_owned());
        self
    }
}

async fn done(
    work: impl Future<Output = Result<ServerResult, CallError>>,
) -> Result<HandlerOutcome, CallError> {
    work.await.map(|result| HandlerOutcome::Done(Box::new(result)))
}

/// Makes the work for a call.
pub(crate) fn start(
    server: &Server,
    session: &Arc<Session>,
    dispatch: Box<Dispatch>,
    handle: &EngineHandle,
) -> RunningCall {
    let call = Call::new(dispatch, server.clone(), session.clone(), handle.clone());
    let prepared = match &call.dispatch().method {
        _ if let Some(forward) = server.forward() => Ok(PreparedCall::forwarded(forward, &call)),
        Method::CallTool => tools::call(&call),
        Method::ListTools => tools::list(&call),
        Method::ListResources => resources::list(&call),
        Method::ListResourceTemplates => resources::list_templates(&call),
        Method::ReadResource => resources::read(&call),
        Method::Subscribe | Method::Unsubscribe => resources::subscribe(&call),
        Method::ListPrompts => prompts::list(&call),
        Method::GetPrompt => prompts::get(&call),
        Method::Complete => completion::complete(&call),
        Method::Custom(name) => custom::run(&call, name),
        other => Err(RpcError::method_not_found(other.name()).into()),
    };
    let PreparedCall { subject, tool, inline, work } = prepared.unwrap_or_else(PreparedCall::refuse);
    let cancel = call.cancel().clone();
    let span = record::span(&call);
    let work = async move {
        let recording = Recording::start(&call, subject, tool);
        let _permit = call.server().permit().await;
        let outcome = match CatchPanic(work).await {
            Some(result) => call.conclude(result),
            None => HandlerOutcome::Failed(RpcError::internal("the handler failed").into()),
        };
        recording.end(&outcome);
        outcome
    };
    RunningCall { inline, cancel, work: Box::pin(work.instrument(span)) }
}

/// Reads the parameters of a call.
fn params<'a, T: Deserialize<'a>>(call: &'a Call) -> Result<T, RpcError> {
    read_member("params", &call.dispatch().params).map_err(RpcError::invalid_params)
}

/// A future that ends with `None` when the one inside panics: a panic in a handler ends its call and nothing else.
struct CatchPanic<F>(F);

impl<F: Future + Unpin> Future for CatchPanic<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // The future is not polled again, and locks are not poisoned.
        match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut self.0).poll(context))) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panics_are_caught() {
        assert_eq!(CatchPanic(Box::pin(async { 1 })).await, Some(1));
        let panics = async {
            if std::hint::black_box(true) {
                panic!("on purpose");
            }
        };
        assert_eq!(CatchPanic(Box::pin(panics)).await, None);
    }
}
