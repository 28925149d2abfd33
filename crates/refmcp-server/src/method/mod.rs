//! From a method to its handler. Each file takes one family of methods from their parameters to their result.

mod completion;
mod custom;
mod page;
mod prompts;
mod record;
mod resources;
mod tools;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use refmcp_proto::engine::{Dispatch, HandlerOutcome};
use refmcp_proto::jsonrpc::{RpcError, read_member};
use refmcp_proto::model::ServerResult;
use refmcp_proto::revision::Method;
use refmcp_transport::{EngineHandle, RunningCall};
use serde::Deserialize;
use tracing::Instrument;

use crate::call::Call;
use crate::error::CallError;
use crate::panics::CatchPanic;
use crate::server::Server;
use crate::session::Session;
use crate::statistics::MethodStatistics;

pub(crate) use custom::CustomMethod;
use record::Recording;
pub use record::{CallOutcome, CallRecord};

/// What is going to be done for a call.
struct Plan {
    /// What the call is about, for logs: the name of a tool or prompt, a URI.
    subject: Option<String>,
    /// The numbers of the tool that is called, if it has its own.
    tool: Option<Arc<MethodStatistics>>,
    inline: bool,
    work: Pin<Box<dyn Future<Output = Result<ServerResult, CallError>> + Send>>,
}

impl Plan {
    /// Work that is done at once.
    fn now(work: impl Future<Output = Result<ServerResult, CallError>> + Send + 'static) -> Self {
        Self { subject: None, tool: None, inline: true, work: Box::pin(work) }
    }

    /// Work that may take its time.
    fn later(work: impl Future<Output = Result<ServerResult, CallError>> + Send + 'static) -> Self {
        Self { subject: None, tool: None, inline: false, work: Box::pin(work) }
    }

    /// No work at all.
    fn refuse(error: impl Into<CallError>) -> Self {
        let error = error.into();
        Self::now(async { Err(error) })
    }

    /// Notes which tool is called.
    fn of(mut self, tool: Option<Arc<MethodStatistics>>) -> Self {
        self.tool = tool;
        self
    }

    /// Notes what the call is about, if anybody is going to read it.
    fn about(mut self, call: &Call, subject: &str) -> Self {
        self.subject = record::is_wanted(call).then(|| subject.to_owned());
        self
    }
}

/// Makes the work for a call.
pub(crate) fn start(
    server: &Server,
    session: &Arc<Session>,
    dispatch: Box<Dispatch>,
    handle: &EngineHandle,
) -> RunningCall {
    let call = Call::new(dispatch, server.clone(), session.clone(), handle.clone());
    let Plan { subject, tool, inline, work } = match &call.dispatch().method {
        Method::CallTool => tools::call(&call),
        Method::ListTools => tools::list(&call),
        Method::ListResources => resources::list(&call),
        Method::ListResourceTemplates => resources::list_templates(&call),
        Method::ReadResource => resources::read(&call),
        Method::Subscribe => resources::subscribe(&call),
        Method::Unsubscribe => resources::unsubscribe(&call),
        Method::ListPrompts => prompts::list(&call),
        Method::GetPrompt => prompts::get(&call),
        Method::Complete => completion::complete(&call),
        Method::Custom(name) => custom::run(&call, name),
        other => Plan::refuse(RpcError::method_not_found(other.name())),
    };
    let cancel = call.cancel().clone();
    let span = record::span(&call);
    let work = async move {
        let recording = Recording::start(&call, subject, tool);
        let _permit = call.server().permit().await;
        let outcome = match CatchPanic(work).await {
            Some(result) => call.conclude(result.map(|result| HandlerOutcome::Done(Box::new(result)))),
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
