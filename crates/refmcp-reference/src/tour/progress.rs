//! How far the tour of one client is: which steps have begun, and how each ended. It does nothing by itself.

use std::collections::BTreeMap;
use std::fmt;

use refmcp_server::peer::Peer;
use refmcp_server::revision::{Lifecycle, Revision};

use super::step::{Occasion, Step, TourSteps};

/// The tour of one client.
#[derive(Debug, Default)]
pub(crate) struct TourProgress {
    begun: BTreeMap<Step, Begun>,
    /// Numbers of runs so far.
    runs: u64,
    /// Calls of tools so far.
    calls: u64,
    /// The client has called the tool `tour`.
    is_led: bool,
}

/// A step that has begun.
#[derive(Debug)]
struct Begun {
    /// The run that has begun it.
    run: u64,
    /// How it ended, once it has.
    end: Option<String>,
}

/// What makes steps happen: a call of a tool, or an open session. Each has a number, so that a call whose handler runs
/// again goes on with the steps that it has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Run {
    number: u64,
    /// Which call of the client it is, from 1; 0 is none.
    call: u64,
    /// It is a call of the tool `tour`.
    is_tour: bool,
}

/// A client as the steps need to know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation<'a> {
    pub(crate) steps: &'a TourSteps,
    pub(crate) peer: &'a Peer,
    pub(crate) transport: &'a str,
    /// The client has subscribed to something, or it is not known.
    pub(crate) is_subscribed: bool,
    /// The client has said that its roots have changed.
    pub(crate) roots_changed: bool,
}

impl Situation<'_> {
    /// The steps that can happen to this client.
    fn steps(&self) -> impl Iterator<Item = Step> {
        self.steps.iter().filter(|step| step.is_for(self.peer, self.transport))
    }
}

impl TourProgress {
    /// A call of a tool.
    pub(crate) fn begin_call(&mut self, is_tour: bool) -> Run {
        self.runs += 1;
        self.calls += 1;
        self.is_led |= is_tour;
        Run { number: self.runs, call: self.calls, is_tour }
    }

    /// An open session.
    pub(crate) fn begin_session(&mut self) -> Run {
        self.runs += 1;
        Run { number: self.runs, call: 0, is_tour: false }
    }

    /// The next step of a run beside those that it has done: the first that no other run has begun.
    pub(crate) fn next(&mut self, run: Run, done: &[Step], about: &Situation<'_>) -> Option<Step> {
        let step =
            about.steps().filter(|step| !done.contains(step)).find(|step| self.is_due(*step, run, about))?;
        self.begin(step, run);
        Some(step)
    }

    /// The next step that a result of the tool `tour` makes happen.
    pub(crate) fn next_result(&mut self, run: Run, about: &Situation<'_>) -> Option<Step> {
        let results = |step: &Step| step.occasion() == Occasion::TourResult;
        let step = about.steps().filter(results).find(|step| self.is_free(*step, run))?;
        self.begin(step, run);
        Some(step)
    }

    /// The result after that.
    pub(crate) fn coming_result(&self, about: &Situation<'_>) -> Option<Step> {
        let results = |step: &Step| step.occasion() == Occasion::TourResult;
        about.steps().filter(results).find(|step| !self.begun.contains_key(step))
    }

    /// The older revision of a session that is opened in place of this one, where that is the next step.
    pub(crate) fn older_revision(&mut self, steps: &TourSteps, requested: Revision) -> Option<Revision> {
        let step = Step::VersionFallback;
        // It is no use to a client that has not seen the rest.
        let is_time = !steps.has(Step::Expiry) || self.begun.contains_key(&Step::Expiry);
        if !steps.has(step) || !is_time || self.begun.contains_key(&step) {
            return None;
        }
        let older = Revision::with(Lifecycle::Handshake).find(|revision| *revision < requested)?;
        let run = self.begin_session();
        self.begin(step, run);
        self.end(step, format!("{older} instead of {requested}"));
        Some(older)
    }

    /// Records how the ping of a session ended; an answer in any of them counts.
    pub(crate) fn ping_ended(&mut self, run: Run, how: &str) {
        self.begin(Step::Ping, run);
        if let Some(begun) = self.begun.get_mut(&Step::Ping)
            && begun.end.as_deref() != Some("answered")
        {
            begun.end = Some(how.to_owned());
        }
    }

    /// Records how a step ended.
    pub(crate) fn end(&mut self, step: Step, how: impl Into<String>) {
        if let Some(begun) = self.begun.get_mut(&step) {
            begun.end.get_or_insert_with(|| how.into());
        }
    }

    /// The steps that can happen to this client, each with how far it is.
    pub(crate) fn lines<'a>(
        &'a self,
        about: &'a Situation<'a>,
    ) -> impl Iterator<Item = (Step, StepState<'a>)> {
        about.steps().map(|step| {
            let state = match self.begun.get(&step) {
                None => StepState::Open,
                Some(Begun { end: None, .. }) => StepState::Begun,
                Some(Begun { end: Some(how), .. }) => StepState::Ended(how),
            };
            (step, state)
        })
    }

    fn begin(&mut self, step: Step, run: Run) {
        self.begun.entry(step).or_insert(Begun { run: run.number, end: None });
    }

    /// Whether no other run has begun a step.
    fn is_free(&self, step: Step, run: Run) -> bool {
        self.begun.get(&step).is_none_or(|begun| begun.run == run.number)
    }

    /// Whether a step is repeated: changes that clients without sessions may have begun to listen for meanwhile.
    fn is_repeated(step: Step, run: Run, about: &Situation<'_>) -> bool {
        run.is_tour && step.is_change() && about.peer.rules().lifecycle == Lifecycle::PerRequest
    }

    fn is_due(&self, step: Step, run: Run, about: &Situation<'_>) -> bool {
        let is_call = run.call > 0;
        let is_occasion = match step.occasion() {
            Occasion::Session => !is_call,
            Occasion::SessionOrCall => true,
            Occasion::Call => is_call,
            Occasion::LaterCall => run.call > 1,
            Occasion::LastCall if run.is_tour => self.coming_result(about).is_none(),
            Occasion::LastCall => run.call > 2 && !self.is_led,
            Occasion::List | Occasion::TourResult | Occasion::Initialize => false,
        };
        let is_ready = match step {
            Step::ResourceUpdate => about.is_subscribed,
            Step::RootsChange => about.roots_changed,
            _ => true,
        };
        is_occasion && is_ready && (self.is_free(step, run) || Self::is_repeated(step, run, about))
    }
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepState<'a> {
    Open,
    Begun,
    Ended(&'a str),
}

impl fmt::Display for StepState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "not yet",
            Self::Begun => "begun",
            Self::Ended(how) => how,
        })
    }
}

#[cfg(test)]
mod tests {
    use refmcp_server::model::{ClientCapabilities, JsonObject};

    use super::*;

    fn peer(revision: Revision, capabilities: &[&str]) -> Peer {
        let all: JsonObject =
            capabilities.iter().map(|name| ((*name).to_owned(), JsonObject::new().into())).collect();
        let capabilities: ClientCapabilities = serde_json::from_value(all.into()).unwrap();
        Peer { revision, capabilities, info: None }
    }

    fn all() -> TourSteps {
        TourSteps::from_names(["all"]).unwrap()
    }

    fn about<'a>(steps: &'a TourSteps, peer: &'a Peer, transport: &'a str) -> Situation<'a> {
        Situation { steps, peer, transport, is_subscribed: true, roots_changed: false }
    }

    /// The names of all steps that a run makes happen.
    fn steps(progress: &mut TourProgress, run: Run, about: &Situation<'_>) -> Vec<&'static str> {
        let mut done = Vec::new();
        while let Some(step) = progress.next(run, &done, about) {
            done.push(step);
        }
        done.into_iter().map(Step::name).collect()
    }

    const CHANGES: [&str; 5] =
        ["logs", "tool-list-change", "prompt-list-change", "resource-list-change", "resource-update"];

    #[test]
    fn one_call_of_any_tool_makes_every_harmless_step_happen() {
        let (tour, client) = (all(), peer(Revision::V2025_11_25, &["roots", "sampling", "elicitation"]));
        let about = about(&tour, &client, "stdio");
        let mut progress = TourProgress::default();
        let run = progress.begin_call(false);
        let expected = [&["progress"], &CHANGES[..], &["roots", "sampling", "elicit-form", "slow"]].concat();
        assert_eq!(steps(&mut progress, run, &about), expected);
        assert_eq!(
            steps(&mut progress, run, &about),
            expected,
            "a handler that runs again goes on with them"
        );
        let second = progress.begin_call(false);
        assert!(steps(&mut progress, second, &about).is_empty(), "each step happens once");
    }

    #[test]
    fn an_open_session_makes_what_needs_no_call_happen() {
        let (tour, client) = (all(), peer(Revision::V2025_06_18, &["sampling"]));
        let about = about(&tour, &client, "stdio");
        let mut progress = TourProgress::default();
        let run = progress.begin_session();
        assert_eq!(steps(&mut progress, run, &about), [&["ping"], &CHANGES[..], &["sampling"]].concat());
        let call = progress.begin_call(false);
        assert_eq!(steps(&mut progress, call, &about), ["progress", "slow"]);
    }

    #[test]
    fn what_a_client_must_recover_from_comes_last_and_over_http() {
        let (tour, client) = (all(), peer(Revision::V2025_11_25, &[]));
        let about = about(&tour, &client, "http");
        let mut progress = TourProgress::default();
        let first = progress.begin_call(true);
        assert!(!steps(&mut progress, first, &about).iter().any(|step| ["cut", "expiry"].contains(step)));
        let second = progress.begin_call(true);
        assert_eq!(steps(&mut progress, second, &about), ["cut"]);
        for expected in [Step::Content, Step::ToolError, Step::ProtocolError, Step::Cancel] {
            assert_eq!(progress.older_revision(&tour, client.revision), None);
            let run = progress.begin_call(true);
            assert_eq!(steps(&mut progress, run, &about), [""; 0]);
            assert_eq!(progress.next_result(run, &about), Some(expected));
        }
        let last = progress.begin_call(true);
        assert_eq!(steps(&mut progress, last, &about), ["expiry"]);
        assert_eq!(progress.older_revision(&tour, client.revision), Some(Revision::V2025_06_18));
        assert_eq!(progress.older_revision(&tour, client.revision), None, "only once");
    }

    #[test]
    fn the_session_of_a_client_that_does_not_call_the_tour_ends_after_three_calls() {
        let (tour, client) = (all(), peer(Revision::V2025_06_18, &[]));
        let about = about(&tour, &client, "http");
        let mut progress = TourProgress::default();
        let ends = (0..3).map(|_| {
            let run = progress.begin_call(false);
            steps(&mut progress, run, &about).contains(&"expiry")
        });
        assert_eq!(ends.collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn steps_that_revision_transport_and_client_do_not_have_are_left_out() {
        let (tour, client) = (all(), peer(Revision::V2026_07_28, &["roots", "sampling"]));
        let about = about(&tour, &client, "http");
        let progress = TourProgress::default();
        let names: Vec<&str> = progress.lines(&about).map(|(step, _)| step.name()).collect();
        for absent in
            ["ping", "elicit-form", "elicit-url", "roots-change", "cut", "expiry", "version-fallback"]
        {
            assert!(!names.contains(&absent), "{absent}");
        }
        assert!(names.contains(&"roots") && names.contains(&"sampling"));
    }

    #[test]
    fn changes_are_repeated_where_it_is_not_known_who_listens() {
        let (tour, client) = (all(), peer(Revision::V2026_07_28, &[]));
        let about = about(&tour, &client, "stdio");
        let mut progress = TourProgress::default();
        let first = progress.begin_call(true);
        assert!(steps(&mut progress, first, &about).ends_with(&["resource-update", "slow"]));
        let second = progress.begin_call(true);
        assert_eq!(steps(&mut progress, second, &about), CHANGES[1..]);
    }

    #[test]
    fn a_fallback_that_was_chosen_alone_comes_first() {
        let tour = TourSteps::from_names(["version-fallback"]).unwrap();
        let mut progress = TourProgress::default();
        assert_eq!(progress.older_revision(&tour, Revision::V2025_06_18), Some(Revision::V2025_03_26));
        assert_eq!(TourProgress::default().older_revision(&tour, Revision::V2024_11_05), None);
    }
}
