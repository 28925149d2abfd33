//! The audit that a server has by default: it judges the beginning of each conversation, at a cost that is bounded whatever
//! clients do.
//!
//! Of a conversation the first messages are judged in full. Then it is left for good, as a recording that breaks off: rules about
//! what comes later say nothing. Messages of all conversations together have a budget, so floods of short connections cost
//! little; where it is spent, nothing new is judged until it has come back. Memory is bounded by the number of conversations and
//! by the bytes that were seen of them; what was silent longest is left first.

mod budget;

use std::collections::{HashMap, VecDeque};

use refmcp_proto::rule::Rule;
use refmcp_transport::observer::Side;

use crate::auditor::{Auditor, Judgement};
use crate::client_verdict::ClientVerdict;
use crate::recording::{Event, EventKind};
use crate::verdict::{Role, Violation};
use budget::MessageBudget;

/// What a [`BoundedAuditor`] judges at most.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Messages of a conversation.
    pub messages: u64,
    /// Bytes of a conversation: messages and HTTP heads.
    pub bytes: usize,
    /// Conversations at a time.
    pub conversations: usize,
    /// Bytes of all these together.
    pub total_bytes: usize,
    /// Messages and HTTP requests of all conversations, per second in the long run.
    pub per_second: u32,
    /// The same, at once.
    pub at_once: u32,
    /// Milliseconds of silence after which requests from one address are another conversation.
    pub silence: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            messages: 256,
            bytes: 100 << 10,
            conversations: 32,
            total_bytes: 512 << 10,
            per_second: 32,
            at_once: 1024,
            silence: 60_000,
        }
    }
}

/// Tokens below which nothing new is judged, and with which it is again.
const FEW: u64 = 16;
const ENOUGH: u64 = 128;

/// Connections at a time that have not shown to which conversation they belong, or belong to one.
const MAX_CONNECTIONS: usize = 256;

/// Milliseconds of silence before a conversation gives way to another.
const BRIEF: u64 = 1_000;

/// Verdicts that are kept of conversations that were left, and bytes of the messages that each shows.
const MAX_KEPT: usize = 32;
const KEPT_TEXT: usize = 16 << 10;

/// Judges the beginning of conversations of a server. Without IO and clocks: the times are those of the events.
#[derive(Debug)]
pub struct BoundedAuditor {
    limits: Limits,
    auditor: Auditor,
    budget: MessageBudget,
    /// Connections that are judged.
    connections: HashMap<u64, JudgedConnection>,
    /// Conversations that are judged.
    open: Vec<OpenConversation>,
    /// Verdicts on conversations that were left before they ended.
    kept: VecDeque<KeptVerdict>,
    new: Vec<(&'static Rule, Role, Violation)>,
    ended: Vec<EndedConversation>,
    declines_until: u64,
}

#[derive(Debug)]
struct JudgedConnection {
    peer: String,
    conversation: Option<u64>,
    /// Bytes before the conversation is known.
    bytes: usize,
}

#[derive(Debug)]
struct OpenConversation {
    number: u64,
    /// The connection that was seen last.
    connection: u64,
    peer: String,
    /// Clients at one address share it.
    is_shared: bool,
    messages: u64,
    bytes: usize,
    last: u64,
}

#[derive(Debug)]
struct KeptVerdict {
    conversation: OpenConversation,
    reason: EndReason,
    judgement: Judgement,
}

/// A conversation that is no longer judged.
#[derive(Debug)]
pub struct EndedConversation {
    /// The verdicts.
    pub judgement: Judgement,
    /// How many messages were judged.
    pub messages: u64,
    /// Why no more are.
    pub reason: EndReason,
}

/// Why a conversation is no longer judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// It has ended, or was silent for long.
    Ended,
    /// As much of it as is judged has passed.
    Limit,
    /// Others needed its place, or too many messages passed at a time.
    Room,
}

impl Default for BoundedAuditor {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl BoundedAuditor {
    /// With other limits than the usual ones.
    pub fn new(limits: Limits) -> Self {
        Self {
            auditor: Auditor::default(),
            budget: MessageBudget::new(limits.per_second, limits.at_once),
            connections: HashMap::new(),
            open: Vec::new(),
            kept: VecDeque::new(),
            new: Vec::new(),
            ended: Vec::new(),
            declines_until: 0,
            limits,
        }
    }

    /// Takes the next event. Those of connections that are not judged are passed over.
    pub fn observe(&mut self, event: &Event) {
        if let EventKind::Opened { side: Side::Server, peer, .. } = &event.kind
            && self.admits(event.at)
        {
            let connection = JudgedConnection { peer: peer.clone(), conversation: None, bytes: 0 };
            self.connections.insert(event.connection, connection);
        }
        if !self.connections.contains_key(&event.connection) {
            return;
        }
        let bytes = event_bytes(event);
        if !self.has_room(event, bytes) {
            return;
        }
        self.auditor.observe(event);
        self.count(event, bytes);
        let new = self.auditor.take_new();
        let new = new
            .into_iter()
            .filter(|(rule, role, violation)| !self.is_repeated(event.connection, rule, *role, violation));
        let new: Vec<_> = new.collect();
        self.new.extend(new);
        if let EventKind::Closed { .. } = event.kind {
            self.connections.remove(&event.connection);
            self.take_ended_conversations();
        }
        if self.budget.left(event.at) < FEW {
            self.decline(self.budget.when(ENOUGH));
        }
    }

    /// The different violations since this was last called, each with its rule and party.
    pub fn take_new(&mut self) -> Vec<(&'static Rule, Role, Violation)> {
        std::mem::take(&mut self.new)
    }

    /// The conversations that are no longer judged since this was last called.
    pub fn take_ended(&mut self) -> Vec<EndedConversation> {
        std::mem::take(&mut self.ended)
    }

    /// Until when no new connection is judged, in milliseconds since the Unix epoch.
    pub fn declines_until(&self) -> u64 {
        self.declines_until
    }

    /// Whether a connection is judged.
    pub fn is_judged(&self, connection: u64) -> bool {
        self.connections.contains_key(&connection)
    }

    /// Whether [`BoundedAuditor::take_new`] has told that the client broke a rule.
    pub fn has_told(&self, connection: u64, rule: &Rule) -> bool {
        self.auditor.has_told(connection, rule)
    }

    /// Leaves all conversations: the server ends.
    pub fn finish(&mut self) -> Vec<EndedConversation> {
        while let Some(conversation) = self.open.first().map(|open| open.number) {
            self.leave(conversation, EndReason::Ended);
        }
        self.take_ended()
    }

    /// The verdict on the client of a connection, or on the requests that came without sessions from an address.
    pub fn client_verdict(&self, connection: Option<u64>, peer: &str) -> Option<ClientVerdict> {
        let kept_of = |id: u64| {
            self.kept.iter().find(|it| !it.conversation.is_shared && it.conversation.connection == id)
        };
        if let Some(kept) = connection.and_then(kept_of) {
            return Some(kept.client_verdict(connection));
        }
        let number = connection.and_then(|id| self.connections.get(&id)).and_then(|it| it.conversation);
        let of_connection = |open: &&OpenConversation| match number {
            Some(number) => open.number == number,
            None => open.is_shared && open.peer == peer,
        };
        let open = self.open.iter().find(of_connection);
        let now = open.and_then(|open| {
            let judgement = self.auditor.conversation_judgement(open.number)?;
            Some(ClientVerdict::new(&judgement, connection, Some(open.messages), true))
        });
        if open.is_some_and(|open| !open.is_shared) {
            return now;
        }
        let earlier = self.kept.iter().filter(|it| it.conversation.is_shared && it.conversation.peer == peer);
        earlier.map(|kept| kept.client_verdict(connection)).chain(now).reduce(ClientVerdict::merged)
    }

    /// Whether a connection that is opened now is judged.
    fn admits(&mut self, now: u64) -> bool {
        let silent: Vec<u64> = self
            .open
            .iter()
            .filter(|open| open.is_shared && now.saturating_sub(open.last) >= self.limits.silence)
            .map(|open| open.number)
            .collect();
        silent.into_iter().for_each(|number| self.leave(number, EndReason::Ended));
        if now < self.declines_until {
            return false;
        }
        if self.open.len() >= self.limits.conversations && !self.leave_silent(now) {
            self.decline(now + BRIEF);
        }
        if self.connections.len() >= MAX_CONNECTIONS {
            self.decline(now + BRIEF);
        }
        now >= self.declines_until
    }

    /// Nothing new is judged for some time. Conversations that go on over new connections would miss some of them.
    fn decline(&mut self, until: u64) {
        self.declines_until = self.declines_until.max(until);
        let shared: Vec<u64> =
            self.open.iter().filter(|open| open.is_shared).map(|open| open.number).collect();
        shared.into_iter().for_each(|number| self.leave(number, EndReason::Room));
    }

    /// Leaves the conversation that was silent for longest, unless all are busy.
    fn leave_silent(&mut self, now: u64) -> bool {
        let silent = self.open.iter().min_by_key(|open| open.last);
        let silent = silent.filter(|open| now.saturating_sub(open.last) >= BRIEF).map(|open| open.number);
        silent.inspect(|number| self.leave(*number, EndReason::Room)).is_some()
    }

    /// Whether the event is judged; else its conversation is left.
    fn has_room(&mut self, event: &Event, bytes: usize) -> bool {
        let Some(connection) = self.connections.get(&event.connection) else { return false };
        let number = connection.conversation;
        let open = self.open.iter().find(|open| Some(open.number) == number);
        let (messages, held) = open.map_or((0, connection.bytes), |open| (open.messages, open.bytes));
        let is_over =
            held + bytes > self.limits.bytes || messages >= self.limits.messages && is_message(event);
        let reason = if is_over {
            EndReason::Limit
        } else if costs(event) && !self.budget.take(event.at) {
            EndReason::Room
        } else {
            while self.held() + bytes > self.limits.total_bytes {
                let others = self.open.iter().filter(|open| Some(open.number) != number);
                let Some(silent) = others.min_by_key(|open| open.last).map(|open| open.number) else { break };
                self.leave(silent, EndReason::Room);
            }
            if self.held() + bytes <= self.limits.total_bytes {
                return true;
            }
            EndReason::Room
        };
        match number {
            Some(number) => self.leave(number, reason),
            None => {
                self.auditor.forget(event.connection);
                self.connections.remove(&event.connection);
            }
        }
        false
    }

    fn held(&self) -> usize {
        let pending = self.connections.values().map(|connection| connection.bytes);
        self.open.iter().map(|open| open.bytes).chain(pending).sum()
    }

    /// Counts an event that was judged, for its conversation once that is known.
    fn count(&mut self, event: &Event, bytes: usize) {
        let Some(connection) = self.connections.get_mut(&event.connection) else { return };
        connection.bytes += bytes;
        let Some((number, is_shared)) = self.auditor.conversation(event.connection) else { return };
        connection.conversation = Some(number);
        let bytes = std::mem::take(&mut connection.bytes);
        let at = self.open.iter().position(|open| open.number == number).unwrap_or(self.open.len());
        if at == self.open.len() {
            let (connection, peer) = (event.connection, connection.peer.clone());
            let open =
                OpenConversation { number, connection, peer, is_shared, messages: 0, bytes: 0, last: 0 };
            self.open.push(open);
        }
        if let Some(open) = self.open.get_mut(at) {
            (open.connection, open.is_shared, open.last) = (event.connection, is_shared, event.at);
            open.messages += u64::from(is_message(event));
            open.bytes += bytes;
        }
    }

    /// Takes those that have ended by themselves.
    fn take_ended_conversations(&mut self) {
        for judgement in self.auditor.take_ended() {
            let gone = self.open.iter().position(|open| !self.auditor.is_open(open.number));
            let messages = gone.map_or(0, |at| self.open.swap_remove(at).messages);
            self.ended.push(EndedConversation { judgement, messages, reason: EndReason::Ended });
        }
    }

    /// Judges no more of a conversation, and keeps the verdict for its client.
    fn leave(&mut self, number: u64, reason: EndReason) {
        let Some(at) = self.open.iter().position(|open| open.number == number) else { return };
        let conversation = self.open.swap_remove(at);
        self.connections.retain(|_, connection| connection.conversation != Some(number));
        let Some(mut judgement) = self.auditor.stop(number) else { return };
        let messages = conversation.messages;
        self.ended.push(EndedConversation { judgement: judgement.clone(), messages, reason });
        judgement.verdicts.limit_texts(KEPT_TEXT);
        if self.kept.len() >= MAX_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(KeptVerdict { conversation, reason, judgement });
    }

    /// Whether the same was told of the same address a short time ago: clients without sessions go on after their conversation
    /// was left.
    fn is_repeated(&self, connection: u64, rule: &Rule, role: Role, violation: &Violation) -> bool {
        let of_connection = |open: &&OpenConversation| open.connection == connection && open.is_shared;
        let Some(open) = self.open.iter().find(of_connection) else { return false };
        self.kept.iter().any(|kept| {
            let left = kept.conversation.is_shared && kept.reason != EndReason::Ended;
            left && kept.conversation.peer == open.peer
                && kept.judgement.verdicts.get(rule, role).is_some_and(|verdict| {
                    verdict.violations.iter().any(|known| known.what == violation.what)
                })
        })
    }
}

impl KeptVerdict {
    fn client_verdict(&self, connection: Option<u64>) -> ClientVerdict {
        let is_whole = self.reason == EndReason::Ended;
        ClientVerdict::new(&self.judgement, connection, Some(self.conversation.messages), is_whole)
    }
}

fn is_message(event: &Event) -> bool {
    matches!(event.kind, EventKind::Message { .. } | EventKind::Invalid { .. })
}

/// Whether the event takes of the budget: a message, or an HTTP request, which may have none.
fn costs(event: &Event) -> bool {
    is_message(event) || matches!(event.kind, EventKind::Request { .. })
}

/// Bytes of what passed.
fn event_bytes(event: &Event) -> usize {
    let of_headers = |headers: &[(String, String)]| -> usize {
        headers.iter().map(|(name, value)| name.len() + value.len()).sum()
    };
    match &event.kind {
        EventKind::Message { text, .. } => text.len(),
        EventKind::Invalid { bytes, .. } | EventKind::Stderr { bytes } => bytes.len(),
        EventKind::Request { target, headers, .. } => target.len() + of_headers(headers),
        EventKind::Response { headers, .. } => of_headers(headers),
        EventKind::Sse { data, .. } => data.len(),
        _ => 0,
    }
}
