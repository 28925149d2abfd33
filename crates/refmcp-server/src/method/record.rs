//! The log of calls: who, what, how long, how it ended; never the arguments.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::{HandlerOutcome, Responded};
use refmcp_proto::jsonrpc::{excerpt, log_excerpt};
use refmcp_proto::model::ServerResult;
use refmcp_proto::peer::Peer;
use refmcp_proto::revision::Method;
use tokio::time::Instant;
use tracing::field::{Empty, display};
use tracing::{Level, Span};

use crate::call::Call;
use crate::server::Server;
use crate::session::Session;
use crate::statistics::{MethodStatistics, OTHER_METHODS};

/// One call, when it has ended.
#[derive(Debug, Clone, Copy)]
pub struct CallRecord<'a> {
    /// The number of the session.
    pub session: u64,
    /// What the client calls itself.
    pub client: Option<&'a str>,
    /// Who was authenticated.
    pub principal: Option<&'a str>,
    /// The method; `other` for one that the server does not know.
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
pub(super) fn is_wanted(server: &Server) -> bool {
    tracing::enabled!(target: "refmcp::calls", Level::INFO) || server.settings().on_call.is_some()
}

/// Logs a record and passes it to the server's function for records.
fn tell(server: &Server, record: &CallRecord<'_>) {
    tracing::info!(
        target: "refmcp::calls",
        session = record.session,
        client = record.client.map(excerpt),
        principal = record.principal,
        method = record.method,
        subject = record.subject.map(log_excerpt),
        seconds = record.took.as_secs_f64(),
        ending = record.outcome.name(),
    );
    if let Some(on_call) = &server.settings().on_call {
        // A panic there must not lose the call's response.
        let _ = catch_unwind(AssertUnwindSafe(|| on_call(record)));
    }
}

/// Counts and records a request that the engine responded to without a handler.
pub(crate) fn responded(session: &Session, responded: &Responded, took: Duration) {
    let Responded { method, peer, failed } = responded;
    let server = session.server();
    let outcome = if *failed { CallOutcome::Failed } else { CallOutcome::Done };
    server.statistics().count(method.as_ref(), outcome, took.into());
    if is_wanted(server) {
        let record = CallRecord {
            session: session.number(),
            client: client_name(peer.as_deref()),
            principal: session.connection().principal.as_deref(),
            method: method.as_ref().map_or(OTHER_METHODS, Method::name),
            subject: None,
            took,
            outcome,
        };
        tell(server, &record);
    }
}

fn client_name(peer: Option<&Peer>) -> Option<&str> {
    peer?.info.as_ref().map(|info| info.name.as_str())
}

/// The recording of a call; when it is dropped before its end, the call was cancelled.
pub(super) struct CallLogGuard {
    call: Call,
    subject: Option<String>,
    tool: Option<Arc<MethodStatistics>>,
    /// When the call began; none before, and once its end is recorded.
    began: Option<Instant>,
}

impl CallLogGuard {
    pub(super) fn new(call: Call, subject: Option<String>, tool: Option<Arc<MethodStatistics>>) -> Self {
        Self { call, subject, tool, began: None }
    }

    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    /// The call begins; only the first time counts.
    pub(super) fn begin(&mut self) {
        self.began.get_or_insert_with(Instant::now);
    }

    /// The call has ended.
    pub(super) fn end(&mut self, outcome: &HandlerOutcome) {
        self.record(match outcome {
            HandlerOutcome::Done(result) => match &**result {
                ServerResult::CallTool(result) if result.is_error == Some(true) => CallOutcome::ToolError,
                _ => CallOutcome::Done,
            },
            HandlerOutcome::Raw(_) => CallOutcome::Done,
            HandlerOutcome::Failed(_) => CallOutcome::Failed,
            HandlerOutcome::InputRequired { .. } => CallOutcome::InputRequired,
        });
    }

    fn record(&mut self, outcome: CallOutcome) {
        let Some(began) = self.began.take() else { return };
        let took = began.elapsed();
        let (statistics, method) = (self.call.server().statistics(), &self.call.dispatch().method);
        let sample = took.into();
        statistics.count(Some(method), outcome, sample);
        if *method == Method::CallTool {
            statistics.count_tool(self.tool.as_deref(), outcome, sample);
        }
        if is_wanted(self.call.server()) {
            self.tell(outcome, took);
        }
    }

    fn tell(&self, outcome: CallOutcome, took: Duration) {
        let record = CallRecord {
            session: self.call.connection_session().number(),
            client: client_name(Some(self.call.peer())),
            principal: self.call.principal(),
            method: self.call.dispatch().method.name(),
            subject: self.subject.as_deref(),
            took,
            outcome,
        };
        tell(self.call.server(), &record);
    }
}

impl Drop for CallLogGuard {
    fn drop(&mut self) {
        self.record(CallOutcome::Cancelled);
    }
}

/// The span of a call: whatever its handler logs can be found by the trace that the client told us of.
pub(super) fn span(call: &Call) -> Span {
    let span = tracing::info_span!(
        target: "refmcp::calls",
        "call",
        session = call.connection_session().number(),
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
