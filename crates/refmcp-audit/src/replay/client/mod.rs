//! The client of a recording: what it sends, once what it had waited for has come.

mod plan;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use refmcp_transport::observer::Side;
use serde_json::Value;

use super::conversation::{
    Content, ConversationsError, RecordedConversation, Redirections, Step, check_size, step_content,
};
use super::part::{Part, PartKind};
use super::substitution::Substitutions;
use crate::recording::{Event, EventKind, Header};
use crate::verdict::Role;
use plan::{Item, ItemKind, OWN_FIELDS, Plan, reply};

/// The longest that an action is put off.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The stream for messages that belong to no request.
const GET_STREAM: u64 = 0;

/// Replays what the client of a conversation sent: says what is to be sent next, takes in what comes back.
#[derive(Debug)]
pub struct ClientReplay<'a> {
    recorded: &'a RecordedConversation,
    over: ReplayTransport,
    plan: Plan<'a>,
    /// The next item.
    at: usize,
    /// Of each recorded message of the server, whether it has come or is no longer waited for.
    met: Vec<Met>,
    /// The first message that is still waited for, or a later one.
    first_open: usize,
    /// Streams here whose responses have begun.
    heads: HashSet<u64>,
    /// Steps of the recording up to which all responses have begun.
    first_head: usize,
    substitutions: Substitutions,
    /// The id of the session over HTTP.
    session: Option<String>,
    /// The revision that was agreed on in the recording, and here.
    versions: Option<(String, String)>,
    /// Answers to requests that the recorded server did not make.
    replies: Vec<String>,
    live: RecordedConversation,
    bytes: usize,
    /// Events to resume from that have come, by the stream here.
    primed: HashMap<u64, usize>,
    is_over: bool,
    redirections: Redirections,
}

/// How the messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayTransport {
    /// One stream each way.
    Pipe,
    /// Streamable HTTP.
    Http,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    No,
    Yes,
    /// It did not come.
    Missed,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayAction {
    /// Send a message; over HTTP by POST.
    Send {
        /// The number of the HTTP request.
        stream: u64,
        /// The message.
        text: String,
        /// The header fields over HTTP; those that are usual for the message where the recording has none.
        headers: Option<Vec<Header>>,
    },
    /// Make an HTTP request without a body.
    Request {
        /// The number of the HTTP request.
        stream: u64,
        /// The method.
        method: String,
        /// The header fields; the usual ones where the recording has none.
        headers: Option<Vec<Header>>,
    },
    /// Leave the response of an HTTP request.
    Leave {
        /// The number of the HTTP request.
        stream: u64,
    },
}

/// Whether there is something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayState {
    /// [`ClientReplay::take`] has the next action.
    Ready,
    /// What the client of the recording waited for has not come yet.
    Waits {
        /// Whether it is a response or a request of the server. Notifications may differ from run to run, and are waited for
        /// briefly.
        is_needed: bool,
    },
    /// All was sent, and all has come.
    Done,
}

impl<'a> ClientReplay<'a> {
    /// The client of a conversation, over this transport.
    pub fn new(recorded: &'a RecordedConversation, over: ReplayTransport, transport: &str) -> Self {
        let met = |part: &Part| if part.from == Role::Client { Met::Yes } else { Met::No };
        let mut replay = Self {
            recorded,
            over,
            plan: Plan::new(recorded, over),
            at: 0,
            met: recorded.parts.iter().map(met).collect(),
            first_open: 0,
            heads: HashSet::new(),
            first_head: 0,
            substitutions: Substitutions::default(),
            session: None,
            versions: None,
            replies: Vec::new(),
            live: RecordedConversation::new(Side::Client, transport),
            bytes: 0,
            primed: HashMap::new(),
            is_over: false,
            redirections: Redirections::default(),
        };
        replay.settle();
        replay
    }

    /// Whether something is to be done now.
    pub fn state(&self) -> ReplayState {
        if !self.replies.is_empty() {
            return ReplayState::Ready;
        }
        if self.is_over {
            return ReplayState::Done;
        }
        let item = self.plan.items.get(self.at);
        let before = item.map_or(self.recorded.parts.len(), |item| item.parts_before);
        let unmet = || {
            let parts = self.recorded.parts.iter().zip(&self.met).take(before).skip(self.first_open);
            parts.filter(|(_, met)| **met == Met::No).map(|(part, _)| part)
        };
        let waits_for_head = item.is_some_and(|item| self.next_missing_head(item.steps_before).is_some());
        if unmet().any(|part| part.is_response() || part.is_request()) || waits_for_head {
            return ReplayState::Waits { is_needed: true };
        }
        match (unmet().next(), item) {
            (Some(_), _) => ReplayState::Waits { is_needed: false },
            (None, Some(_)) => ReplayState::Ready,
            (None, None) => ReplayState::Done,
        }
    }

    /// The first stream whose response began in the recording before a step, and has not here.
    fn next_missing_head(&self, steps: usize) -> Option<u64> {
        if !self.plan.has_heads() {
            return None;
        }
        let steps = self.recorded.steps.iter().take(steps).skip(self.first_head);
        steps.filter_map(|step| self.head_of(step)).find(|stream| !self.heads.contains(stream))
    }

    /// The stream here whose response began with a step of the recording.
    fn head_of(&self, step: &Step) -> Option<u64> {
        let begins = matches!(step.content, Content::Response { .. });
        self.plan.streams.get(&step.stream).copied().filter(|_| begins)
    }

    /// Passes over what has come.
    fn settle(&mut self) {
        let is_open = |met: &Met| *met == Met::No;
        let open = self.met.iter().skip(self.first_open).position(is_open);
        self.first_open = open.map_or(self.met.len(), |open| self.first_open + open);
        let steps = self.recorded.steps.iter().skip(self.first_head);
        let missing = |step: &Step| self.head_of(step).is_some_and(|stream| !self.heads.contains(&stream));
        let head = steps.into_iter().position(missing);
        self.first_head = head.map_or(self.recorded.steps.len(), |head| self.first_head + head);
    }

    /// What is waited for does not come: goes on without it.
    pub fn give_up(&mut self) {
        let item = self.plan.items.get(self.at);
        let before = item.map_or(self.recorded.parts.len(), |item| item.parts_before);
        for met in self.met.iter_mut().take(before).filter(|met| **met == Met::No) {
            *met = Met::Missed;
        }
        if let Some(steps) = item.map(|item| item.steps_before) {
            while let Some(missing) = self.next_missing_head(steps) {
                self.heads.insert(missing);
            }
        }
        self.settle();
    }

    /// Nothing more comes at all.
    pub fn close(&mut self) {
        self.is_over = true;
        self.replies.clear();
    }

    /// How long the next action is to be put off: a client that cancels a request or leaves a stream does so while the server is
    /// at work.
    pub fn pause(&self) -> Duration {
        let item =
            self.plan.items.get(self.at).filter(|item| self.replies.is_empty() && self.is_cancellation(item));
        let gap = item.and_then(|item| {
            let at = |step: usize| self.recorded.steps.get(step).map(|step| step.at);
            at(item.steps_before)?.checked_sub(at(item.steps_before.checked_sub(1)?)?)
        });
        Duration::from_millis(gap.unwrap_or_default()).min(MAX_PAUSE)
    }

    fn is_cancellation(&self, item: &Item) -> bool {
        match item.what {
            ItemKind::Leave => true,
            ItemKind::Send { part: Some(part), .. } => {
                self.recorded.parts.get(part).is_some_and(|part| part.cancelled().is_some())
            }
            _ => false,
        }
    }

    /// The next action, where the state is `Ready`. None where what the client answered was not asked here.
    pub fn take(&mut self) -> Option<ReplayAction> {
        if !self.replies.is_empty() {
            let (stream, text) = (self.plan.next_stream, self.replies.remove(0));
            self.plan.next_stream += 1;
            return Some(ReplayAction::Send { stream, text, headers: None });
        }
        let item = self.plan.items.get(self.at)?;
        self.at += 1;
        let stream = item.stream;
        Some(match &item.what {
            ItemKind::Leave => ReplayAction::Leave { stream },
            ItemKind::Request { method, headers } => {
                if headers.is_none() && self.session.is_none() {
                    return None;
                }
                let headers = headers.as_deref().map(|headers| self.headers(headers));
                ReplayAction::Request { stream, method: method.clone(), headers }
            }
            ItemKind::Send { part, text, headers } => {
                let answers = part.and_then(|part| self.recorded.parts.get(part)?.answers);
                if answers.is_some_and(|asked| self.met.get(asked) != Some(&Met::Yes)) {
                    return None;
                }
                let headers = headers.as_deref().map(|headers| self.headers(headers));
                ReplayAction::Send { stream, text: self.substitutions.message(text), headers }
            }
        })
    }

    /// The id of the session over HTTP, once there is one.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The revision that was agreed on here.
    pub fn version(&self) -> Option<&str> {
        self.versions.as_ref().map(|(_, live)| live.as_str())
    }

    /// The header fields of a recorded request, with the values of this run.
    fn headers(&self, recorded: &[Header]) -> Vec<Header> {
        let mut headers = Vec::new();
        for (name, value) in recorded {
            let value = match (name.as_str(), &self.versions) {
                ("mcp-session-id", _) => match &self.session {
                    Some(session) => session,
                    None => continue,
                },
                (name, _) if OWN_FIELDS.contains(&name) || value.contains("***") => continue,
                ("mcp-protocol-version", Some((recorded, live))) if recorded == value => live,
                _ => self.substitutions.text(value),
            };
            headers.push((name.clone(), value.to_owned()));
        }
        headers
    }

    /// Takes in what happens here.
    ///
    /// # Errors
    /// The server sends more than can be held.
    pub fn observe(&mut self, event: &Event) -> Result<(), ConversationsError> {
        if let EventKind::Failed { .. } = event.kind {
            self.ended(event.stream);
            self.settle();
            return Ok(());
        }
        let line = self.live.steps.len() + 1;
        let Some((from, content)) = step_content(event, Side::Client) else { return Ok(()) };
        self.bytes += content.size();
        check_size(line, self.bytes, line)?;
        let first = self.live.parts.len();
        let stream = (event.connection, event.stream);
        if self.redirections.hide(stream, from, &content) {
            return Ok(());
        }
        let mut primed = None;
        match &content {
            Content::Response { headers, .. } if from == Role::Server => {
                self.heads.extend(event.stream);
                if let Some((_, id)) = headers.iter().find(|(name, _)| name == "mcp-session-id") {
                    self.session = Some(id.clone());
                }
            }
            Content::Primed { event_id } => primed = Some(event_id.clone()),
            _ => {}
        }
        let has_ended = matches!(content, Content::Ended) && from == Role::Server;
        self.live.push(Step { line, at: event.at, stream, from, content });
        if let Some(event_id) = primed {
            self.learn_primed(event.stream, &event_id);
        }
        for at in first..self.live.parts.len() {
            self.came(at);
        }
        if has_ended {
            self.ended(event.stream);
        }
        self.settle();
        Ok(())
    }

    /// A message came.
    fn came(&mut self, at: usize) {
        let Some(live) = self.live.parts.get(at).filter(|live| live.from == Role::Server) else { return };
        let same = |recorded: &Part| match (&recorded.kind, &live.kind) {
            (PartKind::Response { id }, PartKind::Response { id: live }) => id == live,
            (PartKind::Other, PartKind::Other) => true,
            (PartKind::Request { method, .. }, PartKind::Request { method: live, .. }) => method == live,
            (PartKind::Notification { method }, PartKind::Notification { method: of_live }) => {
                method == of_live && recorded.progress_token() == live.progress_token()
            }
            _ => false,
        };
        let is_open = |at: usize| self.met.get(at).is_some_and(|met| *met != Met::Yes);
        let found = self.recorded.server_parts().find(|(at, recorded)| is_open(*at) && same(recorded));
        let Some((found, recorded)) = found else {
            if let PartKind::Request { id, method } = &live.kind {
                self.replies.push(reply(id, method));
            }
            return;
        };
        self.substitutions.learn(recorded, live);
        let event_id = |conversation: &RecordedConversation, step: usize| match conversation.steps.get(step) {
            Some(Step { content: Content::Message { event_id, .. }, .. }) => event_id.clone(),
            _ => None,
        };
        if let (Some(old), Some(new)) =
            (event_id(self.recorded, recorded.step), event_id(&self.live, live.step))
        {
            self.substitutions.learn_text(&old, &new);
        }
        let version = |part: &Part| {
            part.value.pointer("/result/protocolVersion").and_then(Value::as_str).map(str::to_owned)
        };
        if let (Some(old), Some(new)) = (version(recorded), version(live)) {
            self.versions = Some((old, new));
        }
        if let Some(met) = self.met.get_mut(found) {
            *met = Met::Yes;
        }
    }

    /// An event to resume from came: the recording has one at the same place of the same stream.
    fn learn_primed(&mut self, stream: Option<u64>, event_id: &str) {
        let Some(stream) = stream else { return };
        let seen = self.primed.entry(stream).or_default();
        let of_stream = |step: &&Step| self.plan.streams.get(&step.stream) == Some(&stream);
        let recorded = self.recorded.steps.iter().filter(of_stream).filter_map(|step| match &step.content {
            Content::Primed { event_id } => Some(event_id),
            _ => None,
        });
        if let Some(recorded) = recorded.skip(*seen).take(1).next() {
            self.substitutions.learn_text(recorded, event_id);
        }
        *seen += 1;
    }

    /// Nothing more comes on a stream: what came on it in the recording is not waited for any more.
    fn ended(&mut self, stream: Option<u64>) {
        let Some(stream) = stream.filter(|_| self.over == ReplayTransport::Http) else { return };
        self.heads.insert(stream);
        if !self.plan.has_heads() {
            // A request that has its response has no stream any more; what the recording had for it came there.
            let owner =
                self.plan.items.iter().find(|item| item.stream == stream).and_then(|item| match item.what {
                    ItemKind::Send { part, .. } => part,
                    _ => None,
                });
            self.miss(|part| owner.is_some() && part.owner == owner);
            return;
        }
        let streams = self.plan.streams.clone();
        self.miss(|part| streams.get(&part.stream) == Some(&stream));
    }

    fn miss(&mut self, is_gone: impl Fn(&Part) -> bool) {
        for (part, met) in self.recorded.parts.iter().zip(&mut self.met) {
            if *met == Met::No && is_gone(part) {
                *met = Met::Missed;
            }
        }
    }

    /// How long the recorded client stayed after the last message.
    pub fn stayed(&self) -> Duration {
        let at = |step: usize| self.recorded.steps.get(step).map(|step| step.at);
        let last = self.recorded.parts.last().and_then(|part| at(part.step));
        let end = self.recorded.steps.last().map(|step| step.at);
        let stayed = end.zip(last).and_then(|(end, last)| end.checked_sub(last));
        Duration::from_millis(stayed.unwrap_or_default())
    }

    /// What passed here.
    pub fn finish(self) -> RecordedConversation {
        self.live
    }
}
