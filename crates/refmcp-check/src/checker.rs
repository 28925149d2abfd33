//! Runs the probes, several at a time, each within its time.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use refmcp_audit::auditor::audited_rules;
use refmcp_audit::verdict::Role;
use refmcp_client::transport::BoxFuture;
use refmcp_proto::revision::{Lifecycle, Revision};
use refmcp_proto::rule::{self, Rule};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::connection::Audited;
use crate::offer::{Offer, name, read_only};
use crate::probe::{self, Conduct, Context, Probe, Runs, Shared, Stop};
use crate::report::{CheckReport, CheckResult, CheckViolation, Exchange, Outcome};
use crate::session::{NotOpen, OpenError, Session};
use crate::target::Target;

/// What is checked, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The revisions; all that the transport has if empty.
    pub revisions: Vec<Revision>,
    /// Calls tools too that do not say that they only read.
    pub allow_destructive: bool,
    /// The time for a response.
    pub timeout: Duration,
    /// The time for a new connection and its first response: programs may take long to start.
    pub start_timeout: Duration,
    /// Probes that run at the same time.
    pub jobs: usize,
    /// The rules that are judged; all if empty.
    pub only: Vec<&'static Rule>,
    /// Rules that are not judged.
    pub skip: Vec<&'static Rule>,
    /// The names of the probes that are made; all if empty. Then the auditor judges nothing.
    pub probes: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            revisions: Vec::new(),
            allow_destructive: false,
            timeout: Duration::from_secs(5),
            start_timeout: Duration::from_secs(30),
            jobs: 4,
            only: Vec::new(),
            skip: Vec::new(),
            probes: Vec::new(),
        }
    }
}

impl Options {
    fn wants(&self, rule: &Rule) -> bool {
        let among = |rules: &[&'static Rule]| rules.iter().any(|known| known.id == rule.id);
        (self.only.is_empty() || among(&self.only)) && !among(&self.skip)
    }

    fn wants_probe(&self, probe: &Probe) -> bool {
        let by_auditor = |rule: &&'static Rule| audited_rules().any(|audited| audited.id == rule.id);
        // What brings a rule about that the auditor judges is not known; it sees what gentle probes do.
        let brings_about = probe.conduct == Conduct::Gentle && self.only.iter().any(by_auditor);
        let judges =
            probe.rules.is_empty() || probe.rules.iter().any(|rule| self.wants(rule)) || brings_about;
        judges && (self.probes.is_empty() || self.probes.iter().any(|name| name == probe.name))
    }

    fn wants_audit(&self, rule: &Rule) -> bool {
        self.probes.is_empty() && self.wants(rule)
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Probes that have ended.
    pub done: usize,
    /// All probes.
    pub total: usize,
    /// The probe that ended last.
    pub last: &'a str,
}

/// Checks a server.
#[derive(Debug)]
pub struct Checker {
    target: Target,
    options: Options,
}

/// Times for a response that a probe may take in all, beside the start of a connection.
const PATIENCE: u32 = 6;

impl Checker {
    /// A checker of a server.
    pub fn new(target: Target, options: Options) -> Self {
        Self { target, options }
    }

    /// Checks the server. It takes a bounded time, whatever the server does, and leaves nothing behind.
    pub async fn run(self, progress: impl Fn(Progress<'_>)) -> CheckReport {
        let Self { target, options } = self;
        let mut report =
            CheckReport { target: target.name(), transport: target.transport(), ..CheckReport::default() };
        let Discovered { offers, sessions, start_within, refused } =
            discover(&target, &options, &mut report).await;
        let mut callable = read_only(&offers);
        if options.allow_destructive {
            let names = offers.values().flat_map(|offer| &offer.tools.items).filter_map(|tool| name(tool));
            callable.extend(names.map(str::to_owned));
        }
        let shared = Arc::new(Shared {
            target,
            options,
            start_within,
            idle: std::collections::HashMap::new().into(),
            callable,
            audited: Vec::new().into(),
        });
        for session in sessions {
            shared.release(session).await;
        }
        let newest_refused = refused.iter().map(|(revision, _)| *revision).max_by_key(|it| it.as_str());
        let plan = plan(&shared, &offers, newest_refused);
        let results = run_probes(&shared, plan, progress).await;
        results.into_iter().filter(|it| shared.options.wants(it.rule)).for_each(|it| report.add(it));
        close_idle(&shared).await;
        shared.target.end_sessions().await;
        report.rules = rule::all().filter(|rule| shared.options.wants_audit(rule)).collect();
        for (revision, audited) in shared.audited.lock().drain(..) {
            audited.judgements.iter().for_each(|judgement| report.features.merge(&judgement.features));
            let found = audit_results(&shared.target, revision, &audited);
            found.filter(|it| shared.options.wants_audit(it.rule)).for_each(|it| report.add(it));
        }
        for (revision, audited) in refused {
            let found = audit_results(&shared.target, revision, &audited);
            let found = found.filter(|it| it.rule.id == rule::AUTH_02.id || it.rule.id == rule::AUTH_04.id);
            found.filter(|it| shared.options.wants_audit(it.rule)).for_each(|it| report.add(it));
        }
        report.results.sort_by_key(|result| std::cmp::Reverse(result.revision));
        report
    }
}

/// What was found out about a server before it is probed.
struct Discovered {
    /// What it offers in each revision that it speaks.
    offers: BTreeMap<Revision, Arc<Offer>>,
    /// The open sessions.
    sessions: Vec<Session>,
    /// The time that a new connection may take.
    start_within: Duration,
    /// What an auditor says where the server wants authorization: how it asks for it is judged too.
    refused: Vec<(Revision, Audited)>,
}

/// Finds out which revisions the server speaks and what it offers in each.
async fn discover(target: &Target, options: &Options, report: &mut CheckReport) -> Discovered {
    let wanted = |revision: &Revision| options.revisions.is_empty() || options.revisions.contains(revision);
    // A server of an older revision may leave `server/discover` unanswered: how long to wait is known from the others.
    let order = Revision::with(Lifecycle::Handshake).chain(Revision::with(Lifecycle::PerRequest));
    let (mut offers, mut sessions, mut refused) = (BTreeMap::new(), Vec::new(), Vec::new());
    let (mut start_within, mut unreachable) = (options.start_timeout, false);
    for revision in order.filter(wanted) {
        // Another revision with sessions does not make it reachable; one without may.
        if unreachable && revision.lifecycle() == Lifecycle::Handshake {
            continue;
        }
        if !target.is_of(revision) {
            if !options.revisions.is_empty() {
                let why = format!("it does not have the transport {}", target.transport());
                report.unsupported.push((revision, why));
            }
            continue;
        }
        let begun = Instant::now();
        match Session::open(target, revision, start_within, options.timeout).await {
            Ok(mut session) => {
                start_within = options.start_timeout.min(options.timeout + begun.elapsed() * 4);
                let offer = Offer::discover(&mut session).await;
                report.revisions = report.revisions.with(revision);
                if report.server.is_empty() {
                    report.server.clone_from(&offer.server);
                }
                offers.insert(revision, Arc::new(offer));
                sessions.push(session);
            }
            Err(NotOpen { error, audited }) => {
                // A server that was silent for so long is not waited for as long again.
                if begun.elapsed() >= start_within {
                    start_within = options.timeout;
                }
                unreachable |= matches!(error, OpenError::Unreachable(_)) && offers.is_empty();
                if matches!(error, OpenError::Unauthorized(_)) {
                    report.wants_authorization = true;
                    refused.extend(audited.map(|audited| (revision, audited)));
                }
                report.unsupported.push((revision, probe::reason(error)));
            }
        }
    }
    Discovered { offers, sessions, start_within, refused }
}

/// Which probe runs in which revisions. Where the server lets the check in nowhere, some run in the newest that it refused.
fn plan(
    shared: &Shared,
    offers: &BTreeMap<Revision, Arc<Offer>>,
    refused: Option<Revision>,
) -> Vec<(&'static Probe, Revision, Arc<Offer>)> {
    let mut plan = Vec::new();
    for probe in probe::all().filter(|probe| probe.fits(&shared.target)) {
        let wanted = shared.options.wants_probe(probe);
        let spoken = offers.iter().rev().filter(|(revision, _)| wanted && probe.is_of(**revision));
        let count = if probe.runs == Runs::Newest { 1 } else { usize::MAX };
        plan.extend(spoken.take(count).map(|(revision, offer)| (probe, *revision, offer.clone())));
        let refused =
            refused.filter(|it| offers.is_empty() && wanted && probe.is_without_access && probe.is_of(*it));
        plan.extend(refused.map(|revision| (probe, revision, Arc::default())));
    }
    plan
}

async fn run_probes(
    shared: &Arc<Shared>,
    plan: Vec<(&'static Probe, Revision, Arc<Offer>)>,
    progress: impl Fn(Progress<'_>),
) -> Vec<CheckResult> {
    let (total, mut done) = (plan.len(), 0);
    let slots = Arc::new(Semaphore::new(shared.options.jobs.max(1)));
    let mut running = JoinSet::new();
    for (index, (probe, revision, offer)) in plan.into_iter().enumerate() {
        let context = Context::new(shared.clone(), revision, offer, probe);
        let slots = slots.clone();
        running.spawn(async move {
            // It is never closed.
            let _slot = slots.acquire_owned().await;
            (index, probe, run_probe(context, probe).await)
        });
    }
    let mut results = BTreeMap::new();
    while let Some(ended) = running.join_next().await {
        // What panics is caught with the probe.
        let Ok((index, probe, found)) = ended else { continue };
        done += 1;
        progress(Progress { done, total, last: probe.name });
        results.insert(index, found);
    }
    results.into_values().flatten().collect()
}

/// Runs a probe. Where a session that others have used ends, that may be for what they sent: it is run again in one of its own.
async fn run_probe(mut context: Context, probe: &'static Probe) -> Vec<CheckResult> {
    let mut alone = context.with_session_of_its_own();
    let ended = run_in_time(&mut context, probe).await;
    if !context.lost_shared_session() {
        return context.finish(ended).await;
    }
    context.release().await;
    let ended = run_in_time(&mut alone, probe).await;
    alone.finish(ended).await
}

/// Runs a probe within its time.
async fn run_in_time(context: &mut Context, probe: &'static Probe) -> Result<(), Stop> {
    let within = context.shared.start_within * 2 + context.within() * PATIENCE;
    let ended = timeout(within, without_panic((probe.run)(context))).await;
    let late = || Err(format!("it took longer than {} seconds", within.as_secs()));
    ended.unwrap_or_else(|_| late()).unwrap_or_else(|why| {
        context.spoil_session();
        Err(Stop::NotVerified(why))
    })
}

/// Runs a probe; its message where it panics, which is a bug of the probe and none of the server.
async fn without_panic(mut run: BoxFuture<'_, Result<(), Stop>>) -> Result<Result<(), Stop>, String> {
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(context)));
        polled.map_or_else(|panic| Poll::Ready(Err(panic_text(&*panic))), |polled| polled.map(Ok))
    })
    .await
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(|it| &**it));
    format!("the probe failed by itself, which is a bug of refmcp: {}", text.unwrap_or("it panicked"))
}

async fn close_idle(shared: &Arc<Shared>) {
    let idle = std::mem::take(&mut *shared.idle.lock());
    let mut closing = JoinSet::new();
    for session in idle.into_values().flatten() {
        let shared = shared.clone();
        closing.spawn(async move { shared.close(session).await });
    }
    closing.join_all().await;
}

/// What an auditor says of the server.
fn audit_results<'a>(
    target: &'a Target,
    revision: Revision,
    audited: &'a Audited,
) -> impl Iterator<Item = CheckResult> + 'a {
    let verdicts = audited.judgements.iter().flat_map(|judgement| judgement.verdicts.iter());
    verdicts.filter(|verdict| verdict.role == Role::Server).flat_map(move |verdict| {
        let result = move |outcome| CheckResult { rule: verdict.rule, probe: "audit", revision, outcome };
        let kept = (verdict.broken == 0 && verdict.kept > 0).then(|| result(Outcome::Kept));
        let violations = verdict.violations.iter().map(move |violation| {
            let repeat = target.check_command(&format!("--only {}", verdict.rule), revision);
            let mut exchange =
                Exchange { repeat, answer: violation.evidence.text.clone(), ..Exchange::default() };
            if let Some(request) = audited.request_of(violation.evidence.event) {
                exchange.set_request(request);
            }
            let (what, expected) = (violation.what.clone(), violation.expected.clone());
            result(Outcome::Broken(Box::new(CheckViolation { what, expected, exchange })))
        });
        kept.into_iter().chain(violations)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use refmcp_client::child::ChildProcess;

    use super::*;

    static PANICS: Probe =
        Probe::harsh("panics", &[&rule::RPC_05], |_| Box::pin(async { panic!("a bug of number {}", 7) }));

    static LASTS: Probe = Probe::harsh("lasts", &[&rule::RPC_05], |_| Box::pin(std::future::pending()));

    async fn outcome(probe: &'static Probe) -> String {
        let options = Options { timeout: Duration::from_millis(10), ..Options::default() };
        let shared = Shared {
            target: Target::child(ChildProcess::new("there-is-no-such-program")),
            options,
            start_within: Duration::from_millis(10),
            idle: std::collections::HashMap::new().into(),
            callable: BTreeSet::new(),
            audited: Vec::new().into(),
        };
        let context = Context::new(Arc::new(shared), Revision::LATEST, Arc::default(), probe);
        let results = run_probe(context, probe).await;
        let [result] = &results[..] else { panic!("{results:#?}") };
        assert_eq!((result.rule.id, result.probe), ("RPC-05", probe.name));
        result.outcome.to_string()
    }

    #[tokio::test]
    async fn a_probe_that_panics_verifies_nothing() {
        let told = "not verified: the probe failed by itself, which is a bug of refmcp: a bug of number 7";
        assert_eq!(outcome(&PANICS).await, told);
    }

    #[tokio::test]
    async fn a_probe_whose_time_is_over_verifies_nothing() {
        assert_eq!(outcome(&LASTS).await, "not verified: it took longer than 0 seconds");
    }
}
