//! The auditor: events of recordings in, verdicts on clients and servers out. It does no IO and reads no clock, so what it says
//! of a file and of a live connection is the same.
//!
//! | module | what it is |
//! |---|---|
//! | `conversation` | what one client and one server sent each other, with the verdicts on it |
//! | `state` | what is known of both: transport, revision, capabilities, requests without a response |
//! | `exchange` | requests without a response, and HTTP requests with theirs |
//! | `message` | a message as checks see it: sender, kind, members, the request that a response answers |
//! | `party` | what the parties say of themselves |
//! | `features` | which features of the protocol each party was seen to use |
//! | `client_step`, `client_steps` | the situations that a client can be in, and what it did there |
//! | `checks` | the checks, one file for each family of rules, with the state that only it needs |
//!
//! What is kept of a peer is limited: conversations, requests without a response, violations of a rule and their evidence.

mod checks;
mod client_step;
mod client_steps;
mod conversation;
mod exchange;
mod features;
mod message;
mod party;
mod state;

use std::collections::HashMap;

use refmcp_proto::revision::RevisionSet;
use refmcp_proto::rule::Rule;
use refmcp_transport::observer::Side;
use serde_json::Value;

use crate::recording::{Event, EventKind};
use crate::verdict::{Role, RuleOutcome, Verdict, Verdicts, Violation};
pub use client_step::{ClientStep, StepOutcome};
pub use client_steps::ClientSteps;
use conversation::Conversation;
pub use features::{Feature, Features, Support};

/// The rules that an [`Auditor`] judges.
pub fn audited_rules() -> impl Iterator<Item = &'static Rule> {
    checks::rules()
}

/// Judges conversations by what passed. Events of one connection come in their order.
#[derive(Debug, Default)]
pub struct Auditor {
    /// Conversations that go on.
    open: Vec<Conversation>,
    /// The conversation of each connection, as an index of `open`.
    connections: HashMap<u64, usize>,
    /// Connections of a server over HTTP that have not shown whether they are a session, with what passed so far.
    unknown: HashMap<u64, Vec<(u64, Event)>>,
    /// Verdicts on conversations that have ended, those between the same parties together.
    ended: Vec<Judgement>,
    new: Vec<(&'static Rule, Role, Violation)>,
    /// Conversations so far.
    conversations: u64,
    /// Events so far.
    events: u64,
    /// Connections that were not judged.
    left_out: u64,
}

/// The verdicts on one client and one server.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The name and version of the client, where it has said them.
    pub client: String,
    /// The name and version of the server, where it has said them.
    pub server: String,
    /// The transport.
    pub transport: String,
    /// The revisions that they spoke.
    pub revisions: RevisionSet,
    /// The side of the process that recorded.
    pub side: Side,
    /// The verdicts.
    pub verdicts: Verdicts,
    /// The features that they used.
    pub features: Features,
    /// The situations that the client was in.
    pub client_steps: ClientSteps,
}

impl Judgement {
    /// The rules that were broken.
    pub fn broken(&self) -> impl Iterator<Item = &Verdict> {
        self.verdicts.iter().filter(|verdict| verdict.outcome() == RuleOutcome::Broken)
    }

    /// The rules that were kept.
    pub fn kept(&self) -> impl Iterator<Item = &Verdict> {
        self.verdicts.iter().filter(|verdict| verdict.outcome() == RuleOutcome::Kept)
    }

    fn is_between(&self, other: &Self) -> bool {
        (&self.client, &self.server, &self.transport, self.side)
            == (&other.client, &other.server, &other.transport, other.side)
    }
}

/// Conversations that are judged at a time; connections beyond it are not.
const MAX_OPEN: usize = 4096;

/// Events before the first message of a connection that are held.
const MAX_BEFORE: usize = 4;

/// Different clients and servers whose verdicts are kept; further ones count together, in the last verdict.
const MAX_JUDGEMENTS: usize = 256;

impl Auditor {
    /// Takes the next event.
    pub fn observe(&mut self, event: &Event) {
        self.events += 1;
        let number = self.events;
        match &event.kind {
            EventKind::Opened { side: Side::Server, transport, .. } if transport == "http" => {
                if self.unknown.len() < MAX_OPEN {
                    self.unknown.insert(event.connection, vec![(number, event.clone())]);
                } else {
                    self.left_out += 1;
                }
                return;
            }
            EventKind::Opened { .. } => self.open(event, false),
            _ => {}
        }
        if let Some(before) = self.unknown.get_mut(&event.connection) {
            if let EventKind::Request { .. } = event.kind
                && before.len() < MAX_BEFORE
            {
                before.push((number, event.clone()));
                return;
            }
            let before = self.unknown.remove(&event.connection).unwrap_or_default();
            if let Some((_, opened)) = before.first() {
                self.open(opened, !is_of_session(event));
            }
            before.iter().for_each(|(number, event)| self.judge(event, *number));
        }
        self.judge(event, number);
    }

    /// Judges an event of a connection whose conversation is known.
    fn judge(&mut self, event: &Event, number: u64) {
        let Some(&index) = self.connections.get(&event.connection) else { return };
        let Some(conversation) = self.open.get_mut(index) else { return };
        conversation.observe(event, number);
        self.new.extend(conversation.take_new());
        if let EventKind::Closed { .. } = event.kind {
            self.connections.remove(&event.connection);
            if conversation.is_closed() {
                self.end(index);
            }
        }
    }

    /// The different violations since this was last called, each with its rule and party. A rule that the recording process
    /// has found broken before is left out: it has told so itself.
    pub fn take_new(&mut self) -> Vec<(&'static Rule, Role, Violation)> {
        std::mem::take(&mut self.new)
    }

    /// The verdicts so far, as if all conversations ended here.
    pub fn judgements(&self) -> Vec<Judgement> {
        let mut all = self.ended.clone();
        for conversation in &self.open {
            add(&mut all, conversation.judgement());
        }
        all
    }

    /// The verdicts so far on the conversation of a connection, while it goes on.
    pub fn judgement(&self, connection: u64) -> Option<Judgement> {
        self.of_connection(connection).map(Conversation::judgement)
    }

    /// Whether [`Auditor::take_new`] has told that the party at the other end of this connection broke a rule.
    pub fn has_told(&self, connection: u64, rule: &Rule) -> bool {
        self.of_connection(connection).is_some_and(|conversation| conversation.has_told(rule.id))
    }

    /// The number of the conversation of a connection, and whether clients at one address share it; `None` before its first
    /// message and once it has ended.
    pub(crate) fn conversation(&self, connection: u64) -> Option<(u64, bool)> {
        self.of_connection(connection).map(|conversation| (conversation.id, conversation.is_shared()))
    }

    /// The verdicts so far on a conversation, while it goes on.
    pub(crate) fn conversation_judgement(&self, conversation: u64) -> Option<Judgement> {
        self.open.iter().find(|open| open.id == conversation).map(Conversation::judgement)
    }

    /// Whether a conversation goes on.
    pub(crate) fn is_open(&self, conversation: u64) -> bool {
        self.open.iter().any(|open| open.id == conversation)
    }

    fn of_connection(&self, connection: u64) -> Option<&Conversation> {
        self.connections.get(&connection).and_then(|index| self.open.get(*index))
    }

    /// Stops judging a conversation, as where a recording breaks off: what still has to come is missed by no rule. Returns the
    /// verdicts until here.
    pub(crate) fn stop(&mut self, conversation: u64) -> Option<Judgement> {
        let index = self.open.iter().position(|open| open.id == conversation)?;
        self.remove(index).map(|conversation| conversation.judgement())
    }

    /// Forgets a connection that has shown no conversation yet.
    pub(crate) fn forget(&mut self, connection: u64) {
        self.unknown.remove(&connection);
    }

    /// The verdicts on conversations that have ended since this was last called.
    pub(crate) fn take_ended(&mut self) -> Vec<Judgement> {
        std::mem::take(&mut self.ended)
    }

    /// How many connections were not judged, because too many were open at a time.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Ends all conversations, and returns the verdicts.
    pub fn finish(mut self) -> Vec<Judgement> {
        while !self.open.is_empty() {
            self.end(0);
        }
        self.ended
    }

    /// Opens a conversation for a connection, or has it join one without sessions.
    fn open(&mut self, opened: &Event, may_join: bool) {
        let EventKind::Opened { side, transport, peer } = &opened.kind else { return };
        let joined = || self.open.iter().position(|open| open.is_joined_by(*side, transport, peer));
        let index = match may_join.then(joined).flatten() {
            Some(index) => index,
            None if self.open.len() < MAX_OPEN => {
                self.conversations += 1;
                self.open.push(Conversation::new(self.conversations, *side, transport, peer));
                self.open.len() - 1
            }
            None => {
                self.left_out += 1;
                return;
            }
        };
        self.connections.insert(opened.connection, index);
    }

    fn remove(&mut self, index: usize) -> Option<Conversation> {
        let moved = self.open.len().checked_sub(1).filter(|last| index <= *last)?;
        let conversation = self.open.swap_remove(index);
        self.connections.retain(|_, at| *at != index);
        // The last one is where the removed one was.
        self.connections.values_mut().filter(|at| **at == moved).for_each(|at| *at = index);
        Some(conversation)
    }

    fn end(&mut self, index: usize) {
        let Some(mut conversation) = self.remove(index) else { return };
        conversation.finish();
        self.new.extend(conversation.take_new());
        add(&mut self.ended, conversation.judgement());
    }
}

/// Whether the first message of a connection opens a session, or belongs to one that another process opened.
fn is_of_session(event: &Event) -> bool {
    let opens = |message: &Value| message.get("method").is_some_and(|method| method == "initialize");
    event.revision.is_some()
        || match &event.kind {
            EventKind::Message { text, .. } if text.contains("initialize") => {
                let message: Value = serde_json::from_str(text).unwrap_or_default();
                opens(&message) || message.as_array().is_some_and(|batch| batch.iter().any(opens))
            }
            _ => false,
        }
}

/// Adds the verdicts to those on the same parties.
fn add(all: &mut Vec<Judgement>, judgement: Judgement) {
    let full = all.len() >= MAX_JUDGEMENTS;
    let same = all.iter().position(|known| known.is_between(&judgement));
    let same = same.or_else(|| full.then(|| all.len() - 1));
    match same.and_then(|at| all.get_mut(at)) {
        Some(known) => {
            // The names would blame one party for what others did.
            for (name, other, further) in [
                (&mut known.client, &judgement.client, "further clients"),
                (&mut known.server, &judgement.server, "further servers"),
            ] {
                if name != other {
                    further.clone_into(name);
                }
            }
            known.revisions = judgement.revisions.iter().fold(known.revisions, RevisionSet::with);
            known.verdicts.merge(judgement.verdicts);
            known.features.merge(&judgement.features);
            known.client_steps.merge(&judgement.client_steps);
        }
        None => all.push(judgement),
    }
}
