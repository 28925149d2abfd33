//! The checks of the auditor, one file for each family of rules.
//!
//! A check keeps the state that only it needs. Where a rule's situation arises it says what it saw by [`VerdictWriter::judge`]: that
//! the rule was kept, or how it was broken and what is expected instead. Texts repeat no values of arguments, headers and URIs:
//! they name the member, and the evidence shows the message. CONTRIBUTING.md says how a check is added.

mod apps;
mod authorization;
mod batches;
mod cancellation;
mod capabilities;
mod client_features;
mod discovery;
mod elicitation;
mod handshake;
mod http_events;
mod http_requests;
mod http_sessions;
mod http_sse;
mod id_set;
mod ids;
mod input;
mod input_rounds;
mod lists;
mod logging;
mod messages;
mod meta;
mod mirrored_headers;
mod progress;
mod prompts;
mod resources;
mod roots;
mod sampling;
mod skills;
mod stateless_results;
mod stdio;
mod subscriptions;
mod task_record;
mod tasks;
mod tasks_extension;
mod tools;
mod unanswered;
mod values;

use std::fmt;

use refmcp_proto::revision::Revision;
use refmcp_proto::rule::Rule;

use super::conversation::State;
use super::message::Message;
use crate::recording::{Event, EventKind};
use crate::verdict::{Evidence, MAX_EVIDENCE, Role, Verdicts, Violation};

/// A family of rules that are checked together.
pub(crate) trait Check: fmt::Debug + Send {
    /// The rules that it judges.
    fn rules(&self) -> &'static [&'static Rule];

    /// A message; one of a batch is seen by itself. The state is as it was before.
    fn message(&mut self, _message: &Message<'_>, _state: &State, _findings: &mut VerdictWriter<'_>) {}

    /// An event of any kind; messages in it have been seen before. The state has the head of this request already.
    fn event(&mut self, _event: &Event, _state: &State, _findings: &mut VerdictWriter<'_>) {}

    /// The conversation has ended.
    fn finished(&mut self, _state: &State, _findings: &mut VerdictWriter<'_>) {}
}

pub(crate) type Checks = Vec<Box<dyn Check>>;

/// The checks of a new conversation.
pub(super) fn all() -> Checks {
    vec![
        Box::new(messages::Messages::default()),
        Box::new(batches::Batches::default()),
        Box::new(ids::Ids::default()),
        Box::new(meta::Metas),
        Box::new(handshake::HandshakeOrder::default()),
        Box::new(capabilities::Capabilities),
        Box::new(stateless_results::StatelessResults),
        Box::new(discovery::Discovery::default()),
        Box::new(unanswered::Unanswered),
        Box::new(progress::Progress::default()),
        Box::new(cancellation::Cancellation::default()),
        Box::new(input_rounds::InputRounds::default()),
        Box::new(subscriptions::Subscriptions::default()),
        Box::<stdio::Stdio>::default(),
        Box::<http_requests::HttpRequests>::default(),
        Box::<http_events::HttpEvents>::default(),
        Box::<http_sessions::HttpSessions>::default(),
        Box::<mirrored_headers::MirroredHeaders>::default(),
        Box::<http_sse::HttpSse>::default(),
        Box::<authorization::Authorization>::default(),
        Box::new(tools::Tools::default()),
        Box::new(resources::Resources::default()),
        Box::new(prompts::Prompts),
        Box::new(lists::Lists::default()),
        Box::new(logging::Logging::default()),
        Box::new(client_features::ClientFeatures::default()),
        Box::new(tasks::Tasks::default()),
        Box::new(tasks_extension::TasksExtension::default()),
        Box::new(skills::Skills::default()),
        Box::new(apps::Apps::default()),
    ]
}

/// The rules that are judged by what passes.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    all().into_iter().flat_map(|check| check.rules()).copied()
}

/// Where a check says what it saw.
pub(crate) struct VerdictWriter<'a> {
    verdicts: &'a mut Verdicts,
    /// The sender of the message.
    from: Option<Role>,
    /// The revision by which the message is judged; rules that it does not have are left out.
    revision: Option<Revision>,
    event: Option<&'a Event>,
    /// Its number.
    number: u64,
}

impl<'a> VerdictWriter<'a> {
    pub(super) fn of_message(
        state: &State,
        event: &'a Event,
        message: &Message<'_>,
        verdicts: &'a mut Verdicts,
    ) -> Self {
        let (from, revision) = (Some(message.from), message.revision);
        Self { verdicts, from, revision, event: Some(event), number: state.event }
    }

    pub(super) fn of_event(state: &State, event: &'a Event, verdicts: &'a mut Verdicts) -> Self {
        let from = match &event.kind {
            EventKind::Message { direction, .. }
            | EventKind::Invalid { direction, .. }
            | EventKind::Request { direction, .. }
            | EventKind::Response { direction, .. }
            | EventKind::Sse { direction, .. }
            | EventKind::Ended { direction } => Some(state.sender(*direction)),
            _ => None,
        };
        let revision = event.revision.or(state.negotiated);
        Self { verdicts, from, revision, event: Some(event), number: state.event }
    }

    pub(super) fn at_end(state: &State, verdicts: &'a mut Verdicts) -> Self {
        Self { verdicts, from: None, revision: state.negotiated, event: None, number: 0 }
    }

    /// The sender kept the rule, or broke it: `violation` says what it did, and what it should do instead.
    pub(crate) fn judge(&mut self, rule: &'static Rule, violation: Option<(String, &str)>) {
        if let Some(from) = self.from {
            self.judge_party(rule, from, violation);
        }
    }

    /// A party broke a rule by what it did earlier, which the evidence shows.
    pub(crate) fn break_earlier(
        &mut self,
        rule: &'static Rule,
        role: Role,
        (what, expected): (String, &str),
        evidence: Evidence,
    ) {
        let applies = self.revision.is_none_or(|revision| rule.revisions.contains(revision));
        if applies && role.is_bound_by(rule) {
            let expected = expected.to_owned();
            self.verdicts.break_rule(rule, role, Violation { what, expected, count: 1, evidence });
        }
    }

    /// A party kept the rule, or broke it.
    pub(crate) fn judge_party(&mut self, rule: &'static Rule, role: Role, violation: Option<(String, &str)>) {
        let applies = self.revision.is_none_or(|revision| rule.revisions.contains(revision));
        if !applies || !role.is_bound_by(rule) {
            return;
        }
        match violation {
            None => self.verdicts.keep(rule, role),
            Some((what, expected)) => {
                let (expected, evidence) = (expected.to_owned(), self.evidence());
                self.verdicts.break_rule(rule, role, Violation { what, expected, count: 1, evidence });
            }
        }
    }

    /// The same, by a revision other than that of the session; nothing where it is unknown.
    pub(crate) fn judge_in(
        &mut self,
        revision: Option<Revision>,
        rule: &'static Rule,
        role: Role,
        violation: Option<(String, &str)>,
    ) {
        if revision.is_some() {
            let of_session = std::mem::replace(&mut self.revision, revision);
            self.judge_party(rule, role, violation);
            self.revision = of_session;
        }
    }

    /// The same verdicts, about an event that has passed before.
    pub(crate) fn at<'b>(&'b mut self, event: &'b Event) -> VerdictWriter<'b> {
        let Self { from, revision, .. } = *self;
        VerdictWriter { verdicts: self.verdicts, from, revision, event: Some(event), number: self.number }
    }

    fn evidence(&self) -> Evidence {
        let Some(event) = self.event else { return Evidence::default() };
        let text = match &event.kind {
            EventKind::Message { text, .. } => text.clone(),
            EventKind::Invalid { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
            EventKind::Request { method, target, headers, .. } => {
                head(&format!("{method} {target}"), headers)
            }
            EventKind::Response { status, headers, .. } => head(&status.to_string(), headers),
            _ => String::new(),
        };
        let Event { at, connection, stream, .. } = *event;
        Evidence { event: self.number, at, connection, stream, text: shortened(text) }
    }
}

fn head(start: &str, headers: &[(String, String)]) -> String {
    headers.iter().fold(start.to_owned(), |text, (name, value)| format!("{text}\n{name}: {value}"))
}

fn shortened(mut text: String) -> String {
    if text.len() > MAX_EVIDENCE {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(MAX_EVIDENCE));
        text += &format!("… ({whole} bytes in all)");
    }
    text
}
