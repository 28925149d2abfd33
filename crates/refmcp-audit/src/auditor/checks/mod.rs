//! The checks of the auditor, one file for each family of rules, in folders by what they are about.
//!
//! A check keeps the state that only it needs. Where a rule's situation arises it says what it saw by [`Context::require`]: that
//! the rule was kept, or how it was broken and what is expected instead. Texts repeat no values of arguments, headers and URIs:
//! they name the member, and the evidence shows the message. CONTRIBUTING.md says how a check is added.

mod base_protocol;
mod client_features;
mod extensions;
mod id_set;
mod lifecycle;
mod server_features;
mod transport;
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
    /// A message; one of a batch is seen by itself. The state is as it was before.
    fn message(&mut self, _message: &Message<'_>, _context: &mut Context<'_>) {}

    /// An event of any kind; messages in it have been seen before. The state has the head of this request already.
    fn event(&mut self, _event: &Event, _context: &mut Context<'_>) {}

    /// The conversation has ended.
    fn finished(&mut self, _context: &mut Context<'_>) {}
}

/// The rules that a check judges, and the check as it begins a conversation.
type Family = (&'static [&'static Rule], fn() -> Box<dyn Check>);

static FAMILIES: &[Family] = &[
    (base_protocol::messages::RULES, new::<base_protocol::messages::Messages>),
    (base_protocol::shapes::RULES, new::<base_protocol::shapes::Shapes>),
    (base_protocol::batches::RULES, new::<base_protocol::batches::Batches>),
    (base_protocol::ids::RULES, new::<base_protocol::ids::Ids>),
    (base_protocol::meta::RULES, new::<base_protocol::meta::Metas>),
    (lifecycle::handshake::RULES, new::<lifecycle::handshake::HandshakeOrder>),
    (lifecycle::capabilities::RULES, new::<lifecycle::capabilities::Capabilities>),
    (lifecycle::stateless_results::RULES, new::<lifecycle::stateless_results::StatelessResults>),
    (lifecycle::discovery::RULES, new::<lifecycle::discovery::Discovery>),
    (base_protocol::unanswered::RULES, new::<base_protocol::unanswered::Unanswered>),
    (base_protocol::progress::RULES, new::<base_protocol::progress::Progress>),
    (base_protocol::cancellation::RULES, new::<base_protocol::cancellation::Cancellation>),
    (client_features::input_rounds::RULES, new::<client_features::input_rounds::InputRounds>),
    (server_features::subscriptions::RULES, new::<server_features::subscriptions::Subscriptions>),
    (transport::stdio::RULES, new::<transport::stdio::Stdio>),
    (transport::http_requests::RULES, new::<transport::http_requests::HttpRequests>),
    (transport::http_events::RULES, new::<transport::http_events::HttpEvents>),
    (transport::http_sessions::RULES, new::<transport::http_sessions::HttpSessions>),
    (transport::mirrored_headers::RULES, new::<transport::mirrored_headers::MirroredHeaders>),
    (transport::http_sse::RULES, new::<transport::http_sse::HttpSse>),
    (transport::authorization::RULES, new::<transport::authorization::Authorization>),
    (server_features::tools::RULES, new::<server_features::tools::Tools>),
    (server_features::resources::RULES, new::<server_features::resources::Resources>),
    (server_features::prompts::RULES, new::<server_features::prompts::Prompts>),
    (server_features::lists::RULES, new::<server_features::lists::Lists>),
    (server_features::logging::RULES, new::<server_features::logging::Logging>),
    (client_features::RULES, new::<client_features::ClientFeatures>),
    (extensions::tasks::RULES, new::<extensions::tasks::Tasks>),
    (extensions::tasks_extension::RULES, new::<extensions::tasks_extension::TasksExtension>),
    (extensions::skills::RULES, new::<extensions::skills::Skills>),
    (extensions::apps::RULES, new::<extensions::apps::Apps>),
];

/// The checks of a new conversation.
pub(super) fn all() -> Vec<Box<dyn Check>> {
    FAMILIES.iter().map(|(_, new)| new()).collect()
}

/// The rules that are judged by what passes.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    FAMILIES.iter().flat_map(|(rules, _)| *rules).copied()
}

fn new<C: Check + Default + 'static>() -> Box<dyn Check> {
    Box::new(C::default())
}

/// What a check knows beside a message or an event, and where it says what it saw.
pub(crate) struct Context<'a> {
    pub(crate) state: &'a State,
    verdicts: &'a mut Verdicts,
    /// The sender of the message.
    from: Option<Role>,
    /// The revision by which the message is judged; rules that it does not have are left out.
    revision: Option<Revision>,
    event: Option<&'a Event>,
}

impl<'a> Context<'a> {
    pub(super) fn of_message(
        state: &'a State,
        event: &'a Event,
        message: &Message<'_>,
        verdicts: &'a mut Verdicts,
    ) -> Self {
        Self { state, verdicts, from: Some(message.from), revision: message.revision, event: Some(event) }
    }

    pub(super) fn of_event(state: &'a State, event: &'a Event, verdicts: &'a mut Verdicts) -> Self {
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
        Self { state, verdicts, from, revision, event: Some(event) }
    }

    pub(super) fn at_end(state: &'a State, verdicts: &'a mut Verdicts) -> Self {
        Self { state, verdicts, from: None, revision: state.negotiated, event: None }
    }

    /// The sender kept the rule.
    pub(crate) fn kept(&mut self, rule: &'static Rule) {
        self.judge(rule, None);
    }

    /// The sender broke the rule: what it did, and what it should do instead.
    pub(crate) fn broken(&mut self, rule: &'static Rule, what: impl Into<String>, expected: &str) {
        self.judge(rule, Some((what.into(), expected)));
    }

    /// The sender kept the rule where this holds, and broke it otherwise.
    pub(crate) fn require(&mut self, rule: &'static Rule, holds: bool, what: &str, expected: &str) {
        self.judge(rule, (!holds).then(|| (what.to_owned(), expected)));
    }

    /// The sender kept the rule, or broke it by this violation.
    pub(crate) fn judge(&mut self, rule: &'static Rule, violation: Option<(String, &str)>) {
        if let Some(from) = self.from {
            self.judge_party(rule, from, violation);
        }
    }

    /// A party kept the rule, or broke it.
    pub(crate) fn judge_party(&mut self, rule: &'static Rule, role: Role, violation: Option<(String, &str)>) {
        match violation {
            _ if !self.applies(rule, role) => {}
            None => self.verdicts.keep(rule, role),
            Some(violation) => self.break_earlier(rule, role, violation, self.evidence()),
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
        if self.applies(rule, role) {
            let expected = expected.to_owned();
            self.verdicts.break_rule(rule, role, Violation { what, expected, count: 1, evidence });
        }
    }

    fn applies(&self, rule: &Rule, role: Role) -> bool {
        self.revision.is_none_or(|revision| rule.revisions.contains(revision)) && role.is_bound_by(rule)
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

    /// The same context, about an event that has passed before.
    pub(crate) fn at<'b>(&'b mut self, event: &'b Event) -> Context<'b> {
        Context { verdicts: self.verdicts, event: Some(event), ..*self }
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
        Evidence { event: self.state.event, at, connection, stream, text: shortened(text) }
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
