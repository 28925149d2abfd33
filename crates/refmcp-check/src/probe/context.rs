//! What a probe works with: its session, what the server offers, and where it says what it saw.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_proto::revision::Revision;
use refmcp_proto::rule::{self, Rule};

use super::{Conduct, Probe, Stop};
use crate::checker::Options;
use crate::connection::{Answer, Audited};
use crate::offer::Offer;
use crate::report::{CheckResult, CheckViolation, Outcome};
use crate::session::{OpenError, Session};
use crate::target::Target;

/// What all probes of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) target: Target,
    pub(crate) options: Options,
    /// How long a new connection may take.
    pub(crate) start_within: Duration,
    /// Open sessions that no probe uses at the moment.
    pub(crate) idle: Mutex<HashMap<Revision, Vec<Session>>>,
    /// Tools that may be called, by their names.
    pub(crate) callable: BTreeSet<String>,
    /// What auditors said of sessions that were closed.
    pub(crate) audited: Mutex<Vec<(Revision, Audited)>>,
}

impl Shared {
    /// Gives a session that can be used on to others, and closes any other.
    pub(crate) async fn release(&self, session: Session) {
        if session.is_healthy {
            self.idle.lock().entry(session.revision).or_default().push(session);
        } else {
            self.close(session).await;
        }
    }

    /// Closes a session, and keeps what an auditor says of it.
    pub(crate) async fn close(&self, session: Session) {
        let revision = session.revision;
        let audited = session.close().await;
        self.audited.lock().push((revision, audited));
    }
}

/// What one run of a probe works with.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) revision: Revision,
    pub(crate) offer: Arc<Offer>,
    probe: &'static Probe,
    results: Vec<CheckResult>,
    /// Findings because of a response that did not come, by their places in `results`.
    silences: Vec<usize>,
    session: Option<Session>,
    /// Whether the session is one that other probes have used.
    is_shared: bool,
    /// Whether it may be.
    may_share: bool,
}

impl Context {
    pub(crate) fn new(
        shared: Arc<Shared>,
        revision: Revision,
        offer: Arc<Offer>,
        probe: &'static Probe,
    ) -> Self {
        let may_share = probe.conduct == Conduct::Gentle;
        let (results, silences, session) = (Vec::new(), Vec::new(), None);
        Self { shared, revision, offer, probe, results, silences, session, is_shared: false, may_share }
    }

    /// The same before anything was done, with a session that no other probe has used.
    pub(crate) fn with_session_of_its_own(&self) -> Self {
        let (shared, offer) = (self.shared.clone(), self.offer.clone());
        Self { may_share: false, ..Self::new(shared, self.revision, offer, self.probe) }
    }

    /// Whether a session that other probes have used has ended.
    pub(crate) fn lost_shared_session(&self) -> bool {
        self.is_shared && self.session.as_ref().is_some_and(|session| session.connection.has_ended())
    }

    /// The time for a response.
    pub(crate) fn within(&self) -> Duration {
        self.shared.options.timeout
    }

    /// The session of the probe, opened when it is first wanted.
    pub(crate) async fn session(&mut self) -> Result<&mut Session, Stop> {
        let session = match self.session.take() {
            Some(session) => session,
            None => {
                let idle = self.idle();
                self.is_shared = idle.is_some();
                match idle {
                    Some(session) => session,
                    None => self.open().await?,
                }
            }
        };
        Ok(self.session.insert(session))
    }

    fn idle(&self) -> Option<Session> {
        self.may_share.then(|| self.shared.idle.lock().get_mut(&self.revision)?.pop()).flatten()
    }

    /// Another open session.
    pub(crate) async fn open(&self) -> Result<Session, Stop> {
        self.open_at(&self.shared.target).await
    }

    /// An open session with a target that is reached in another way.
    pub(crate) async fn open_at(&self, target: &Target) -> Result<Session, Stop> {
        let (start, within) = (self.shared.start_within, self.within());
        let opened = Session::open(target, self.revision, start, within).await;
        opened.map_err(|closed| Stop::NotVerified(reason(closed.error)))
    }

    /// A connection that has sent nothing yet, for messages of a revision.
    pub(crate) async fn unopened(&self, revision: Revision) -> Result<Session, Stop> {
        let opened = Session::unopened(&self.shared.target, revision, self.shared.start_within).await;
        opened.map_err(|error| Stop::NotVerified(reason(error)))
    }

    /// A command line that makes the probe again, for what a single request does not show.
    pub(crate) fn repeat(&self) -> String {
        self.shared.target.check_command(&format!("--probe {}", self.probe.name), self.revision)
    }

    /// The server kept the rule, or else did `what` where it is expected to do something else.
    pub(crate) fn check(
        &mut self,
        rule: &'static Rule,
        answer: &Answer,
        kept: bool,
        what: impl FnOnce() -> String,
        expected: &str,
    ) {
        if !rule.revisions.contains(self.revision) {
            return;
        }
        let outcome = if kept {
            Outcome::Kept
        } else {
            if answer.late || answer.ended.is_some() {
                self.silences.push(self.results.len());
            }
            let (what, expected, exchange) = (what(), expected.to_owned(), answer.exchange.clone());
            Outcome::Broken(Box::new(CheckViolation { what, expected, exchange }))
        };
        self.push(rule, outcome);
    }

    /// It should have been found out whether the server keeps the rule, and could not be.
    pub(crate) fn not_verified(&mut self, rule: &'static Rule, why: &str) {
        if rule.revisions.contains(self.revision) {
            self.push(rule, Outcome::NotVerified(why.to_owned()));
        }
    }

    fn push(&mut self, rule: &'static Rule, outcome: Outcome) {
        self.results.push(CheckResult { rule, probe: self.probe.name, revision: self.revision, outcome });
    }

    /// The session may have responses on their way that no other probe waits for.
    pub(crate) fn spoil_session(&mut self) {
        if let Some(session) = &mut self.session {
            session.is_healthy = false;
        }
    }

    /// Ends the run. Rules that were not judged, or not to the end, are skipped or not verified.
    pub(crate) async fn finish(mut self, ended: Result<(), Stop>) -> Vec<CheckResult> {
        self.release().await;
        self.confirm_silences().await;
        let outcome = match ended {
            Ok(()) => Outcome::Skipped("its situation did not arise".to_owned()),
            Err(Stop::Skipped(why)) => Outcome::Skipped(why),
            Err(Stop::NotVerified(why)) => Outcome::NotVerified(why),
        };
        let is_cut_short = matches!(outcome, Outcome::NotVerified(_));
        let audited = if is_cut_short { self.probe.audited } else { &[] };
        for rule in self.probe.rules.iter().chain(audited) {
            let mut judged = self.results.iter().filter(|result| result.rule.id == rule.id).peekable();
            let is_open = match is_cut_short {
                true => judged.all(|it| matches!(it.outcome, Outcome::Kept | Outcome::NotVerified(_))),
                false => judged.peek().is_none(),
            };
            if is_open && rule.revisions.contains(self.revision) {
                self.push(rule, outcome.clone());
            }
        }
        self.results
    }

    /// Ends the use of the session. One that a harsh probe had serves no other.
    pub(crate) async fn release(&mut self) {
        let Some(session) = self.session.take() else { return };
        match self.probe.conduct {
            Conduct::Gentle => self.shared.release(session).await,
            Conduct::Harsh => {
                session.close().await;
            }
        }
    }

    /// A request without an answer is a violation of its rule only where the server still answers others.
    async fn confirm_silences(&mut self) {
        let silences = std::mem::take(&mut self.silences);
        if silences.is_empty() {
            return;
        }
        let (is_open, answers) = match self.open().await {
            Ok(mut session) => {
                let (id, answer) = session.sentinel().await;
                session.close().await;
                (true, answer.response(&id).is_some())
            }
            Err(_) => (false, false),
        };
        let why = "there was no response, and the server answers nothing else either";
        for at in silences {
            // The sentinel of a session is a ping: its rule tells of a server that answers none.
            let is_of_sentinel = |result: &CheckResult| is_open && result.rule.id == rule::PING_01.id;
            if !answers && let Some(result) = self.results.get_mut(at).filter(|it| !is_of_sentinel(it)) {
                result.outcome = Outcome::NotVerified(why.to_owned());
            }
        }
    }
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Probe").field(&self.name).finish()
    }
}

pub(crate) fn reason(error: OpenError) -> String {
    match error {
        OpenError::Unreachable(why)
        | OpenError::Unsupported(why)
        | OpenError::Unauthorized(why)
        | OpenError::Busy(why) => why,
    }
}
