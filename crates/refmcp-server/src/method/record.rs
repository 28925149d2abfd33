//! The log of calls: who, what, how long, how it ended; never the arguments.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::HandlerOutcome;
use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::model::ServerResult;
use refmcp_proto::revision::Method;
use tokio::time::Instant;
use tracing::field::{Empty, display};
use tracing::{Level, Span};

use crate::call::Call;
use crate::statistics::MethodStatistics;

/// One call, when it has ended.
#[derive(Debug, Clone, Copy)]
pub struct CallRecord<'a> {
    /// The number of the session.
    pub session: u64,
    /// What the client calls itself.
    pub client: Option<&'a str>,
    /// Who was authenticated.
    pub principal: Option<&'a str>,
    /// The method.
    pub method: &'a str,
    /// The tool, prompt or URI it was about.
    pub subject: Option<&'a str>,
    /// How long it took.
    pub took: Duration,
    /// How it ended.
    pub outcome: CallOutcome,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// With a result.
    Done,
    /// With a result that tells of an error.
    ToolError,
    /// With a JSON-RPC error.
    Failed,
    /// With requests to the client; it goes on when they are answered.
    InputRequired,
    /// Cancelled, without an answer.
    Cancelled,
}

impl CallOutcome {
    /// As logs and metrics call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::ToolError => "tool_error",
            Self::Failed => "failed",
            Self::InputRequired => "asked",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Whether calls are logged, beside being counted.
pub(super) fn is_wanted(call: &Call) -> bool {
    tracing::enabled!(target: "refmcp::calls", Level::INFO) || call.server().settings().on_call.is_some()
}

/// The recording of a call; when it is dropped before its end, the call was cancelled.
pub(super) struct Recording {
    call: Call,
    subject: Option<String>,
    tool: Option<Arc<MethodStatistics>>,
    started: Instant,
    outcome: CallOutcome,
}

impl Recording {
    pub(super) fn start(call: &Call, subject: Option<String>, tool: Option<Arc<MethodStatistics>>) -> Self {
        Self { call: call.clone(), subject, tool, started: Instant::now(), outcome: CallOutcome::Cancelled }
    }

    /// The call has ended.
    pub(super) fn end(mut self, outcome: &HandlerOutcome) {
        self.outcome = match outcome {
            HandlerOutcome::Done(result) => match &**result {
                ServerResult::CallTool(result) if result.is_error == Some(true) => CallOutcome::ToolError,
                _ => CallOutcome::Done,
            },
            HandlerOutcome::Failed(_) => CallOutcome::Failed,
            HandlerOutcome::InputRequired { .. } => CallOutcome::InputRequired,
        };
    }

    fn tell(&self, took: Duration) {
        let record = CallRecord {
            session: self.call.own_session().number(),
            client: self.call.peer().info.as_ref().map(|info| info.name.as_str()),
            principal: self.call.principal(),
            method: self.call.dispatch().method.name(),
            subject: self.subject.as_deref(),
            took,
            outcome: self.outcome,
        };
        tracing::info!(
            target: "refmcp::calls",
            session = record.session,
            client = record.client.map(excerpt),
            principal = record.principal,
            method = record.method,
            subject = record.subject.map(excerpt),
            seconds = record.took.as_secs_f64(),
            ending = record.outcome.name(),
        );
        if let Some(on_call) = &self.call.server().settings().on_call {
            // A panic there must not lose the call's response.
            let _ = catch_unwind(AssertUnwindSafe(|| (on_call.0)(&record)));
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        let (statistics, method) = (self.call.server().statistics(), &self.call.dispatch().method);
        statistics.count(Some(method), self.outcome, took);
        if *method == Method::CallTool {
            statistics.count_tool(self.tool.as_deref(), self.outcome, took);
        }
        if is_wanted(&self.call) {
            self.tell(took);
        }
    }
}

/// The span of a call: whatever its handler logs can be found by the trace that the client told us of.
pub(super) fn span(call: &Call) -> Span {
    let span = tracing::info_span!(
        target: "refmcp::calls",
        "call",
        session = call.own_session().number(),
        method = call.dispatch().method.name(),
        trace_id = Empty,
        parent_id = Empty,
    );
    if !span.is_disabled()
        && let Some(context) = call.trace_context()
    {
        span.record("trace_id", display(context.trace_id()))
            .record("parent_id", display(context.parent_id()));
    }
    span
}
