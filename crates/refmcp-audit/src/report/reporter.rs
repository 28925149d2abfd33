//! From recordings to a report.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::BufRead;

use refmcp_proto::rule::{self, Rule};
use refmcp_transport::observer::Side;

use super::excerpt::Excerpt;
use super::model::{ClientStepReport, FeatureReport, JudgementReport, RecordingFile, Report};
use super::rule::{EvidenceReport, RuleReport, ViolationReport};
use crate::auditor::{Auditor, ClientStep, Feature, Judgement, audited_rules};
use crate::client_verdict::ClientVerdict;
use crate::recording::{self, Event, ReadError};
use crate::verdict::{Evidence, Role, Verdict, Violation};

/// Judges recordings together, and keeps what a report says of where things are.
#[derive(Debug, Default)]
pub struct Reporter {
    auditor: Auditor,
    files: Vec<RecordingFile>,
    runs: Vec<Run>,
    events: u64,
    excerpt: Excerpt,
    /// The highest number of a connection.
    connections: u64,
}

/// Events on lines one after the other. An empty line or another recording begins a new run.
#[derive(Debug)]
struct Run {
    /// The number of the first event.
    event: u64,
    /// The line of the first event.
    line: u64,
    /// The recording.
    file: usize,
    /// What was added to the numbers of connections.
    offset: u64,
}

impl Reporter {
    /// Reads a recording to its end and judges it together with those before. A last line that is cut off is left out.
    ///
    /// # Errors
    ///
    /// It cannot be read, or a line is no event.
    pub fn read(&mut self, name: &str, recording: impl BufRead) -> Result<(), ReadError> {
        // Each recording numbers its own connections.
        let offset = self.connections;
        let mut file = RecordingFile { name: name.to_owned(), events: 0, cut_off: false };
        let mut events = recording::read(recording);
        let mut next_line = 0;
        while let Some(event) = events.next() {
            let mut event = match event {
                Ok(event) => event,
                Err(ReadError::CutOff { .. }) => {
                    file.cut_off = true;
                    break;
                }
                Err(error) => return Err(error),
            };
            let line = events.line() as u64;
            file.events += 1;
            self.events += 1;
            if line != next_line {
                self.runs.push(Run { event: self.events, line, file: self.files.len(), offset });
            }
            next_line = line + 1;
            event.connection = event.connection.saturating_add(offset);
            self.connections = self.connections.max(event.connection);
            self.auditor.observe(&event);
            self.excerpt.observe(self.events, offset, &event);
        }
        self.files.push(file);
        Ok(())
    }

    /// Judges an event as it passes: the report names the message instead of a line of a recording.
    pub fn observe(&mut self, event: &Event) {
        if self.files.is_empty() {
            self.files.push(RecordingFile { name: String::new(), events: 0, cut_off: false });
            self.runs.push(Run { event: 1, line: 1, file: 0, offset: 0 });
        }
        self.events += 1;
        self.files.iter_mut().for_each(|file| file.events += 1);
        self.connections = self.connections.max(event.connection);
        self.auditor.observe(event);
        self.excerpt.observe(self.events, 0, event);
    }

    /// The different violations since this was last called, each with its rule and party.
    pub fn take_new(&mut self) -> Vec<(&'static Rule, Role, Violation)> {
        self.auditor.take_new()
    }

    /// Whether [`Reporter::take_new`] has told that the party at the other end of this connection broke a rule.
    pub fn has_told(&self, connection: u64, rule: &Rule) -> bool {
        self.auditor.has_told(connection, rule)
    }

    /// The verdict on the client of a connection that is open.
    pub fn client_verdict(&self, connection: u64) -> Option<ClientVerdict> {
        let judgement = self.auditor.judgement(connection)?;
        Some(ClientVerdict::new(&judgement, Some(connection), None, true))
    }

    /// Ends all conversations. The report is about both parties, or about one; the excerpt is for [`html`](super::html).
    pub fn finish(self, party: Option<Role>) -> (Report, Excerpt) {
        let Self { auditor, files, runs, excerpt, .. } = self;
        let audited: HashSet<&str> = audited_rules().map(|rule| rule.id).collect();
        let places = Places { files: &files, runs: &runs };
        let left_out = auditor.left_out();
        let judged = auditor.finish();
        let mut judgements: Vec<JudgementReport> =
            judged.iter().map(|judgement| judgement_report(judgement, party, &audited, &places)).collect();
        // What is broken comes first.
        judgements
            .sort_by_key(|judgement| Reverse((judgement.broken_musts().count(), judgement.advice().count())));
        (Report::new(files, left_out, judgements), excerpt)
    }
}

/// Where events are in the recordings.
struct Places<'a> {
    files: &'a [RecordingFile],
    runs: &'a [Run],
}

impl Places<'_> {
    fn evidence(&self, evidence: &Evidence) -> Option<EvidenceReport> {
        let after = self.runs.partition_point(|run| run.event <= evidence.event);
        let run = self.runs.get(after.checked_sub(1)?)?;
        let Evidence { event, at, stream, .. } = *evidence;
        let file = self.files.get(run.file)?;
        Some(EvidenceReport {
            file: file.name.clone(),
            line: if file.is_written() { run.line + (event - run.event) } else { 0 },
            event,
            at,
            connection: evidence.connection.saturating_sub(run.offset),
            stream,
            text: evidence.text.clone(),
        })
    }

    fn violation(&self, violation: &Violation) -> ViolationReport {
        let Violation { what, expected, count, evidence } = violation.clone();
        let evidence = self.evidence(&evidence);
        ViolationReport { what, expected, count, revisions: Vec::new(), evidence, exchange: None }
    }
}

fn judgement_report(
    judgement: &Judgement,
    party: Option<Role>,
    audited: &HashSet<&str>,
    places: &Places<'_>,
) -> JudgementReport {
    let is_wanted = |role: &Role| party.is_none_or(|party| party == *role);
    let roles: Vec<Role> = [Role::Client, Role::Server].into_iter().filter(is_wanted).collect();
    let features = Feature::ALL.iter().map(|feature| {
        let support = |role: Role| judgement.features.support(*feature, role).filter(|_| is_wanted(&role));
        FeatureReport {
            feature: feature.to_string(),
            client: support(Role::Client),
            server: support(Role::Server),
        }
    });
    let client_steps = ClientStep::ALL.iter().filter(|_| is_wanted(&Role::Client)).map(|step| {
        let (done, declined) = judgement.client_steps.counts(*step);
        let outcome = judgement.client_steps.outcome(*step);
        ClientStepReport { step: step.to_string(), shows: step.shows().to_owned(), outcome, done, declined }
    });
    let verdicts = roles.iter().flat_map(|role| verdicts(judgement, *role));
    let rules = verdicts.map(|verdict| {
        let violations = verdict.violations.iter().map(|violation| places.violation(violation)).collect();
        let is_audited = audited.contains(verdict.rule.id);
        RuleReport::new(&verdict, is_audited, violations)
    });
    JudgementReport {
        client: judgement.client.clone(),
        server: judgement.server.clone(),
        transport: judgement.transport.clone(),
        revisions: judgement.revisions.iter().map(|revision| revision.to_string()).collect(),
        recorded_by: match judgement.side {
            Side::Client => Role::Client,
            Side::Server => Role::Server,
        },
        features: features.collect(),
        client_steps: client_steps.collect(),
        rules: rules.collect(),
    }
}

/// The rules that bind a party in the revisions that were spoken, and those that were judged before one was agreed.
fn verdicts(judgement: &Judgement, role: Role) -> impl Iterator<Item = Verdict> {
    let revisions = judgement.revisions;
    rule::all().filter(move |rule| role.is_bound_by(rule)).filter_map(move |rule| {
        let judged = judgement.verdicts.get(rule, role).cloned();
        let in_revisions = rule.revisions.intersects(revisions);
        judged.or_else(|| in_revisions.then(|| Verdict::unexercised(rule, role)))
    })
}
