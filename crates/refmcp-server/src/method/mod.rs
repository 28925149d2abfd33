//! Dispatch of methods to handlers. Each file has the methods of one feature, from parameters to result.

mod completion;
mod custom;
mod pagination;
mod prompts;
mod record;
mod resources;
mod skills;
mod tasks;
mod tools;

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use refmcp_proto::engine::{Dispatch, HandlerOutcome};
use refmcp_proto::jsonrpc::{RpcError, read_member};
use refmcp_proto::model::ServerResult;
use refmcp_proto::revision::Method;
use refmcp_transport::{Cancellation, EngineHandle, RunningCall};
use serde::Deserialize;
use tracing::Span;

use crate::call::Call;
use crate::error::CallError;
use crate::forward::Forward;
use crate::server::Server;
use crate::session::Session;
use crate::statistics::MethodStatistics;
use crate::tasks::RunningTask;

pub(crate) use custom::CustomMethod;
use record::CallLogGuard;
pub(crate) use record::responded as record_responded;
pub use record::{CallOutcome, CallRecord};
pub(crate) use tools::run as run_tool;

/// A call with its parameters read, ready to run.
struct PreparedCall {
    /// What the call is about, for logs: the name of a tool or prompt, a URI.
    subject: Option<String>,
    /// The numbers of the tool that is called, if it has its own.
    tool: Option<Arc<MethodStatistics>>,
    inline: bool,
    /// Whether it mostly waits for another call, and so takes no turn of its own.
    waits: bool,
    work: Work,
}

/// The work of a method.
pub(crate) type Work = Pin<Box<dyn Future<Output = Result<HandlerOutcome, CallError>> + Send>>;

impl PreparedCall {
    /// A call that hardly ever waits: it is polled before a task is spawned for it.
    fn inline(work: impl Future<Output = Result<ServerResult, CallError>> + Send + 'static) -> Self {
        Self::new(true, Box::pin(done(work)))
    }

    /// A call that may take its time: a task is spawned for it.
    fn spawned(work: impl Future<Output = Result<ServerResult, CallError>> + Send + 'static) -> Self {
        Self::new(false, Box::pin(done(work)))
    }

    /// A call that waits for what another one comes to.
    fn waiting(work: impl Future<Output = Result<HandlerOutcome, CallError>> + Send + 'static) -> Self {
        Self { waits: true, ..Self::new(false, Box::pin(work)) }
    }

    fn new(inline: bool, work: Work) -> Self {
        Self { subject: None, tool: None, inline, waits: false, work }
    }

    /// A call that another server answers. It is polled at once, so that calls are forwarded in their order.
    fn forwarded(forward: &dyn Forward, call: &Call) -> Self {
        Self::new(true, forward.call(call.clone()))
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
    #[inline]
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
    session: &Arc<Session>,
    dispatch: Dispatch,
    handle: &EngineHandle,
) -> RunningCall<CallWork> {
    start_call(Call::new(dispatch, session.clone(), handle.clone(), None))
}

/// Makes the work for a run of a task.
pub(crate) fn start_task(
    session: &Arc<Session>,
    dispatch: Dispatch,
    handle: &EngineHandle,
    task: Arc<RunningTask>,
) -> RunningCall<CallWork> {
    start_call(Call::new(dispatch, session.clone(), handle.clone(), Some(task)))
}

fn start_call(call: Call) -> RunningCall<CallWork> {
    let prepared = match &call.dispatch().method {
        _ if let Some(forward) = call.server().forward() => Ok(PreparedCall::forwarded(forward, &call)),
        Method::CallTool => tools::call(&call),
        Method::ListTools => tools::list(&call),
        Method::ListResources => resources::list(&call),
        Method::ListResourceTemplates => resources::list_templates(&call),
        Method::ReadResource => resources::read(&call),
        Method::Subscribe | Method::Unsubscribe => resources::subscribe(&call),
        Method::ListPrompts => prompts::list(&call),
        Method::GetPrompt => prompts::get(&call),
        Method::Complete => completion::complete(&call),
        Method::GetTask => tasks::get(&call),
        Method::CancelTask => tasks::cancel(&call),
        Method::UpdateTask => tasks::update(&call),
        Method::GetTaskResult => tasks::result(&call),
        Method::ListTasks => tasks::list(&call),
        Method::ListSkills => skills::list(&call),
        Method::GetSkill => skills::get(&call),
        Method::ReadDirectory => skills::read_directory(&call),
        Method::Custom(name) => custom::run(&call, name),
        other => Err(RpcError::method_not_found(other.name()).into()),
    };
    let PreparedCall { subject, tool, inline, waits, work } = prepared.unwrap_or_else(PreparedCall::refuse);
    let span = record::span(&call);
    let recording = CallLogGuard::new(call, subject, tool);
    RunningCall {
        inline,
        work: CallWork {
            recording,
            work: Some(work),
            turn: if waits { Turn::Free } else { Turn::New },
            span,
        },
    }
}

/// The work on a call: waits for its turn, runs the method, and records how that ended.
pub struct CallWork {
    recording: CallLogGuard,
    work: Option<Work>,
    turn: Turn,
    span: Span,
}

impl CallWork {
    pub(crate) fn cancellation(&self) -> &Cancellation {
        self.recording.call().cancellation()
    }
}

/// The turn of a call, where only so many run at a time.
enum Turn {
    New,
    Waiting(Pin<Box<dyn Future<Output = ()> + Send>>),
    Taken,
    /// It needs none.
    Free,
}

impl Future for CallWork {
    type Output = HandlerOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<HandlerOutcome> {
        let polled = self.poll_work(context);
        if matches!(polled, Poll::Pending | Poll::Ready(HandlerOutcome::InputRequired { .. })) {
            self.recording.call().connection().headers.detach();
        }
        polled
    }
}

impl CallWork {
    fn poll_work(&mut self, context: &mut Context<'_>) -> Poll<HandlerOutcome> {
        let Self { recording, work, turn, span } = self;
        let _entered = span.enter();
        recording.begin();
        ready!(turn.poll(recording.call().server(), context));
        // A panic in a handler ends its call and nothing else; the future is not polled again, and locks are not poisoned.
        let result = match work {
            Some(work) => catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))),
            None => return Poll::Pending,
        };
        let outcome = match result {
            Ok(result) => recording.call().conclude(ready!(result)),
            Err(_) => HandlerOutcome::Failed(RpcError::internal("the handler failed").into()),
        };
        *work = None;
        recording.end(&outcome);
        Poll::Ready(outcome)
    }
}

impl Turn {
    fn poll(&mut self, server: &Server, context: &mut Context<'_>) -> Poll<()> {
        if matches!(self, Self::New) {
            *self = match server.try_take_turn() {
                true => Self::Taken,
                false => Self::Waiting(Box::pin(server.clone().take_turn())),
            };
        }
        if let Self::Waiting(waiting) = self {
            ready!(waiting.as_mut().poll(context));
            *self = Self::Taken;
        }
        Poll::Ready(())
    }
}

impl Drop for CallWork {
    fn drop(&mut self) {
        let _entered = self.span.enter();
        self.work = None;
        if let Turn::Taken = self.turn {
            self.recording.call().server().end_turn();
        }
    }
}

impl fmt::Debug for CallWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallWork").finish_non_exhaustive()
    }
}

/// Reads the parameters of a call.
fn params<'a, T: Deserialize<'a>>(call: &'a Call) -> Result<T, RpcError> {
    read_member("params", &call.dispatch().params).map_err(RpcError::invalid_params)
}
