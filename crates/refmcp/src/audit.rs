//! Audits of what passes, while it passes: in full with `--audit`, and of the beginning of each conversation where `refmcp serve`
//! and `stdio` are given no option.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use parking_lot::Mutex;
use refmcp_audit::ClientVerdict;
use refmcp_audit::auditor::Judgement;
use refmcp_audit::bounded::{BoundedAuditor, EndReason, EndedConversation};
use refmcp_audit::recording::{Event, EventSink, Recorder};
use refmcp_audit::report::Reporter;
use refmcp_audit::verdict::{Role, RuleOutcome, Violation};
use refmcp_proto::rule::{Level, Rule};
use refmcp_proto::time::Timestamp;
use refmcp_reference::VerdictSource;
use refmcp_server::Call;
use refmcp_server::model::JsonObject;
use refmcp_transport::observer::{ConnectionId, Observer};

use crate::args::{RecordOptions, ReportFormat, ServerOptions};
use crate::command::report::{Judged, save};
use crate::record::masks;
use crate::ui::output::print_aside;
use crate::ui::style::Paint;

/// The full audit of this process. Clones are the same audit.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveAudit(Arc<Mutex<Reporter>>);

impl LiveAudit {
    /// Judges an event, and logs each rule that is found broken: once for each way of breaking it.
    pub(crate) fn observe(&self, event: &Event) {
        let new = {
            let mut reporter = self.0.lock();
            reporter.observe(event);
            reporter.take_new()
        };
        log_violations(new);
    }

    /// Whether the log has a line that says that the peer broke this rule.
    pub(crate) fn has_told(&self, connection: ConnectionId, rule: &Rule) -> bool {
        self.0.lock().has_told(connection.0, rule)
    }
}

/// Reports what the audit has found: to the files that were named, or to stderr.
pub(crate) fn report(options: &RecordOptions) -> Result<()> {
    let reporter = std::mem::take(&mut *options.live_audit.0.lock());
    let (report, excerpt) = reporter.finish(None);
    let judged = Judged { report, excerpt };
    for file in &options.report {
        save(file, |format, paint| judged.rendered(format, paint))?;
    }
    if options.report.is_empty() {
        print_aside(&judged.rendered(ReportFormat::Text, Paint::for_stream(&io::stderr(), false))?);
    }
    Ok(())
}

/// The audit of a server.
#[derive(Debug, Clone)]
pub(crate) enum ServerAudit {
    /// None.
    Off,
    /// All is judged.
    Full(LiveAudit),
    /// The beginning of each conversation is judged.
    Bounded(BoundedAudit),
}

impl ServerAudit {
    /// The audit that the options ask for.
    pub(crate) fn new(options: &ServerOptions) -> Self {
        match options {
            ServerOptions { record, .. } if record.audit => Self::Full(record.live_audit.clone()),
            // What goes wrong on purpose is nothing to warn of.
            ServerOptions { no_audit: false, faults: None, .. } => Self::Bounded(BoundedAudit::default()),
            _ => Self::Off,
        }
    }

    /// The observer of the beginnings of conversations; a full audit sees what is recorded.
    pub(crate) fn observer(&self) -> Option<Arc<dyn Observer>> {
        match self {
            Self::Bounded(audit) => Some(Arc::new(Recorder::with_sink(masks(), audit.clone()))),
            Self::Off | Self::Full(_) => None,
        }
    }

    /// What tells clients their own verdict.
    pub(crate) fn verdicts(&self) -> Option<VerdictSource> {
        let audit = match self {
            Self::Off => return None,
            audit => audit.clone(),
        };
        Some(VerdictSource::new(move |call| audit.client_verdict(call)))
    }

    fn client_verdict(&self, call: &Call) -> Option<JsonObject> {
        let connection = call.connection();
        let id = connection.observed.id().map(|id| id.0);
        let peer = connection.headers.client_address().map(|address| address.to_string()).unwrap_or_default();
        let verdict = match self {
            Self::Off => None,
            Self::Full(audit) => audit.0.lock().client_verdict(id?),
            Self::Bounded(audit) => audit.0.auditor.lock().client_verdict(id, &peer),
        };
        as_object(&verdict?)
    }

    /// Ends with the server: tells of the conversations that go on.
    pub(crate) fn finish(&self) {
        if let Self::Bounded(audit) = self {
            let ended = audit.0.auditor.lock().finish();
            ended.iter().for_each(log_summary);
        }
    }
}

fn as_object(verdict: &ClientVerdict) -> Option<JsonObject> {
    serde_json::to_value(verdict).ok()?.as_object().cloned()
}

/// The audit of the beginning of each conversation. Clones are the same audit.
#[derive(Debug, Clone, Default)]
pub(crate) struct BoundedAudit(Arc<BoundedState>);

#[derive(Debug, Default)]
struct BoundedState {
    auditor: Mutex<BoundedAuditor>,
    /// Until when no new connection is judged: most requests of a busy server ask for no more than this.
    declines_until: AtomicU64,
}

impl EventSink for BoundedAudit {
    fn event(&self, event: Event) {
        let (new, ended) = {
            let mut auditor = self.0.auditor.lock();
            auditor.observe(&event);
            self.0.declines_until.store(auditor.declines_until(), Ordering::Relaxed);
            (auditor.take_new(), auditor.take_ended())
        };
        log_violations(new);
        ended.iter().for_each(log_summary);
    }

    fn wants_connection(&self, now: Timestamp) -> bool {
        now.as_millis() >= self.0.declines_until.load(Ordering::Relaxed)
    }

    fn wants_more(&self, connection: ConnectionId) -> bool {
        self.0.auditor.lock().is_judged(connection.0)
    }

    fn has_told(&self, connection: ConnectionId, rule: &'static Rule) -> bool {
        self.0.auditor.lock().has_told(connection.0, rule)
    }
}

/// Logs how rules were broken: as a warning what the specification demands, as information the rest.
fn log_violations(new: Vec<(&'static Rule, Role, Violation)>) {
    for (rule, role, Violation { what, expected, .. }) in new {
        match rule.level {
            Level::Must | Level::May => {
                tracing::warn!(rule = rule.id, "the {role} broke a rule: {what}; {expected}");
            }
            Level::Should | Level::Note => {
                tracing::info!(rule = rule.id, "the {role} did not follow a rule: {what}; {expected}");
            }
        }
    }
}

/// Logs what was found out about a conversation.
fn log_summary(ended: &EndedConversation) {
    let EndedConversation { judgement, messages, reason } = ended;
    let of_client = |judgement: &Judgement, outcome: RuleOutcome| {
        let verdicts = judgement.verdicts.iter();
        let ids =
            verdicts.filter(|it| it.role == Role::Client && it.outcome() == outcome).map(|it| it.rule.id);
        ids.collect::<Vec<_>>()
    };
    let (kept, broken) = (of_client(judgement, RuleOutcome::Kept), of_client(judgement, RuleOutcome::Broken));
    let client = if judgement.client.is_empty() { "a client without a name" } else { &judgement.client };
    let broken = if broken.is_empty() { "none".to_owned() } else { broken.join(", ") };
    let rest = match reason {
        EndReason::Ended => "",
        EndReason::Limit => "; that was the beginning of the conversation, and --audit judges all of it",
        EndReason::Room => "; the rest was not judged, since much passed at a time; --audit judges all of it",
    };
    let s = if *messages == 1 { "" } else { "s" };
    tracing::info!(
        "{client} kept {} rules and broke {broken} in {messages} message{s} over {}{rest}",
        kept.len(),
        judgement.transport
    );
}
