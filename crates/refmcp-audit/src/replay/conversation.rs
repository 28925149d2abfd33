//! What one client and one server of a recording sent each other, step by step.

use std::collections::HashSet;
use std::io::BufRead;

use refmcp_transport::observer::{Direction, Side};

use super::part::{self, Part, PartKind};
use crate::recording::{self, Event, EventKind, Header, ReadError};
use crate::verdict::Role;

/// Bytes of messages that are held of a recording.
const MAX_BYTES: usize = 256 << 20;
/// Events that are held of a recording.
const MAX_STEPS: usize = 200_000;
/// How many messages or steps away something is looked for that belongs to a message.
pub(super) const NEAR: usize = 4096;

/// What one client and one server sent each other.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedConversation {
    /// The side that recorded.
    pub side: Side,
    /// The kind of transport: `stdio`, `http`, `http+sse`, `websocket`, `memory`.
    pub transport: String,
    /// What passed, in its order.
    pub steps: Vec<Step>,
    /// The messages of the steps; those of a batch one by one.
    pub parts: Vec<Part>,
}

/// Something that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The number of its line in the recording, from 1.
    pub line: usize,
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The connection and, over HTTP, the request that it belongs to.
    pub stream: Stream,
    /// Who sent it.
    pub from: Role,
    /// What it is.
    pub content: Content,
}

/// A connection, by how many were opened before, and over HTTP the request on it.
pub(super) type Stream = (u64, Option<u64>);

/// What passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A message or a batch, and the id of its SSE event.
    Message {
        /// The text.
        text: String,
        /// The id of its SSE event.
        event_id: Option<String>,
    },
    /// What should have been a message.
    Invalid(Vec<u8>),
    /// The head of an HTTP request.
    Request {
        /// The method.
        method: String,
        /// The header fields.
        headers: Vec<Header>,
    },
    /// The head of an HTTP response.
    Response {
        /// The status.
        status: u16,
        /// The header fields.
        headers: Vec<Header>,
    },
    /// An event to resume from, without a message.
    Primed {
        /// Its id.
        event_id: String,
    },
    /// The sender of a body has ended it, or its reader has left.
    Ended,
    /// The connection ended.
    Closed,
}

/// A recording that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConversationsError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is too long to be held.
    #[error(
        "line {line} of the recording: more than {MAX_STEPS} events or {} MB of messages; use a part of it",
        MAX_BYTES >> 20
    )]
    TooLong {
        /// The number of the line, from 1.
        line: usize,
    },
}

/// The conversations of a recording, in the order in which they began.
pub type Conversations = Vec<RecordedConversation>;

/// Reads a recording. A last line that is cut off is left out.
///
/// # Errors
/// It cannot be read, a line is no event, or there is too much of it.
pub fn conversations<R: BufRead>(recording: R) -> Result<Conversations, ConversationsError> {
    let mut builder = ConversationBuilder::default();
    let mut events = recording::read(recording);
    while let Some(event) = events.next() {
        match event {
            Ok(event) => builder.observe(&event, events.line())?,
            Err(ReadError::CutOff { .. }) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(builder.finish())
}

/// Sorts events into conversations.
#[derive(Debug, Default)]
pub struct ConversationBuilder {
    conversations: Vec<RecordedConversation>,
    /// The connections that are known, and the conversation of each.
    connections: Vec<Connection>,
    redirections: Redirections,
    steps: usize,
    bytes: usize,
    /// Connections so far.
    opened: u64,
}

/// Requests that are made a second time because the server redirected them: they count once.
#[derive(Debug, Default)]
pub(super) struct Redirections(HashSet<Stream>);

impl Redirections {
    /// Whether a step is the redirection of a request, or what is sent again.
    pub(super) fn hide(&mut self, stream: Stream, from: Role, content: &Content) -> bool {
        match content {
            Content::Response { status: 307 | 308, .. } if from == Role::Server => {
                self.0.insert(stream);
                true
            }
            Content::Response { .. } => {
                self.0.remove(&stream);
                false
            }
            Content::Ended | Content::Request { .. } | Content::Message { .. } | Content::Invalid(_) => {
                self.0.contains(&stream)
            }
            Content::Primed { .. } | Content::Closed => false,
        }
    }
}

#[derive(Debug)]
struct Connection {
    number: u64,
    /// How many were opened before: numbers are used again by processes that record into one file, one after the other.
    opened_before: u64,
    side: Side,
    transport: String,
    /// Heads that came before it was known to which conversation the connection belongs.
    waiting: Vec<Step>,
    conversation: Option<usize>,
}

impl ConversationBuilder {
    /// Takes in an event, and the number of its line.
    ///
    /// # Errors
    /// There is too much to be held.
    pub fn observe(&mut self, event: &Event, line: usize) -> Result<(), ConversationsError> {
        if let EventKind::Opened { side, transport, .. } = &event.kind {
            // A process that appends to a recording counts its connections from 1 again.
            self.connections.retain(|known| known.number != event.connection);
            self.connections.push(Connection {
                number: event.connection,
                opened_before: self.opened,
                side: *side,
                transport: transport.clone(),
                waiting: Vec::new(),
                conversation: None,
            });
            self.opened += 1;
            return self.count(0, line);
        }
        // What comes without its line `opened` has no side.
        let Some(at) = self.connections.iter().rposition(|known| known.number == event.connection) else {
            return Ok(());
        };
        let known = self.connections.get(at).map(|known| (known.side, known.opened_before));
        let Some((side, opened_before)) = known else { return Ok(()) };
        let Some((from, content)) = step_content(event, side) else { return Ok(()) };
        self.count(content.size(), line)?;
        let stream = (opened_before, event.stream);
        if self.redirections.hide(stream, from, &content) {
            return Ok(());
        }
        let step = Step { line, at: event.at, stream, from, content };
        let opens = from == Role::Client && opens_session(&step.content);
        let known = self.connections.get(at).and_then(|known| known.conversation);
        // A connection over HTTP may carry several sessions, one after the other.
        let known = known.filter(|known| !opens || !self.is_new_session(*known));
        let Some(connection) = self.connections.get_mut(at) else { return Ok(()) };
        match known {
            Some(known) => self.push(known, step),
            None if !is_message(&step.content) => connection.waiting.push(step),
            None => {
                let mut waiting = std::mem::take(&mut connection.waiting);
                waiting.push(step);
                let joined = self.joined(at, opens);
                for step in waiting {
                    self.push(joined, step);
                }
            }
        }
        Ok(())
    }

    /// Whether `initialize` begins another conversation than this one.
    fn is_new_session(&self, known: usize) -> bool {
        self.conversations.get(known).is_some_and(|it| {
            it.transport == "http"
                && it.steps.iter().any(|step| step.from == Role::Client && opens_session(&step.content))
        })
    }

    /// The conversation that a connection belongs to from now on. Over HTTP a session, or a client without one, may use
    /// several connections: one without `initialize` goes on with what was opened last.
    fn joined(&mut self, at: usize, opens: bool) -> usize {
        let Some(connection) = self.connections.get_mut(at) else { return 0 };
        let (side, transport) = (connection.side, &connection.transport);
        let same = |it: &RecordedConversation| it.side == side && it.transport == *transport;
        let known = self.conversations.iter().rposition(same).filter(|_| transport == "http" && !opens);
        let joined = known.unwrap_or(self.conversations.len());
        if known.is_none() {
            let transport = transport.clone();
            self.conversations.push(RecordedConversation {
                side,
                transport,
                steps: Vec::new(),
                parts: Vec::new(),
            });
        }
        connection.conversation = Some(joined);
        joined
    }

    fn push(&mut self, conversation: usize, step: Step) {
        if let Some(conversation) = self.conversations.get_mut(conversation) {
            conversation.push(step);
        }
    }

    fn count(&mut self, bytes: usize, line: usize) -> Result<(), ConversationsError> {
        self.steps += 1;
        self.bytes += bytes;
        check_size(self.steps, self.bytes, line)
    }

    /// The conversations in which a message passed.
    pub fn finish(self) -> Conversations {
        self.conversations
    }
}

impl RecordedConversation {
    /// Without steps yet.
    pub fn new(side: Side, transport: impl Into<String>) -> Self {
        Self { side, transport: transport.into(), steps: Vec::new(), parts: Vec::new() }
    }

    /// Takes in a step.
    pub fn push(&mut self, step: Step) {
        let at = self.steps.len();
        match &step.content {
            Content::Message { text, .. } => {
                for (text, value) in part::split(text) {
                    let found = part::classified(at, &step, text, value);
                    let found = self.placed(found);
                    self.parts.push(found);
                }
            }
            Content::Invalid(bytes) => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                let found = part::classified(at, &step, text, serde_json::Value::Null);
                let found = self.placed(found);
                self.parts.push(found);
            }
            _ => {}
        }
        self.steps.push(step);
    }

    /// What the client sent, in its order.
    pub fn client_parts(&self) -> impl Iterator<Item = (usize, &Part)> {
        self.parts.iter().enumerate().filter(|(_, part)| part.from == Role::Client)
    }

    /// What the server sent, in its order.
    pub fn server_parts(&self) -> impl Iterator<Item = (usize, &Part)> {
        self.parts.iter().enumerate().filter(|(_, part)| part.from == Role::Server)
    }

    /// The status of the HTTP response that belongs to a message of the client, and its fields.
    pub fn response_head(&self, part: &Part) -> Option<(u16, &[Header])> {
        let stream = self.steps.get(part.step)?.stream;
        self.steps.get(part.step..)?.iter().take(NEAR).find_map(|step| match &step.content {
            Content::Response { status, headers } if step.stream == stream => Some((*status, &**headers)),
            _ => None,
        })
    }

    /// The message with the request that it belongs to and the request that it answers.
    fn placed(&self, mut part: Part) -> Part {
        let stream = part.stream;
        let earlier = || self.parts.iter().enumerate().rev().take(NEAR);
        // Ids of clients without sessions are unique within one HTTP request only.
        let nearest = |is_it: &dyn Fn(&Part) -> bool| {
            let mut same = earlier().filter(|(_, it)| is_it(it));
            let first = same.next().map(|(at, it)| (at, it.stream));
            match first {
                Some((at, of)) if of == stream || self.transport != "http" => Some(at),
                _ => same.find(|(_, it)| it.stream == stream).map(|(at, _)| at).or(first.map(|it| it.0)),
            }
        };
        let request_of = |role: Role, id: &serde_json::Value| {
            nearest(&|it: &Part| {
                it.from == role && matches!(&it.kind, PartKind::Request { id: known, .. } if known == id)
            })
        };
        let of_stream = || {
            let is_one = self.transport == "http" && stream.1.is_some_and(|stream| stream != 0);
            let is_request = |it: &Part| it.from == Role::Client && it.stream == stream && it.is_request();
            earlier().filter(|_| is_one).find(|(_, it)| is_request(it)).map(|(at, _)| at)
        };
        match (&part.kind, part.from) {
            (PartKind::Response { id }, Role::Server) => {
                part.owner = request_of(Role::Client, id).or_else(of_stream);
            }
            (PartKind::Response { id }, Role::Client) => {
                part.answers = request_of(Role::Server, id);
                let request = part.answers.and_then(|at| self.parts.get(at));
                part.owner = request.and_then(|request| request.owner);
                part.is_owned_by_stream = request.is_some_and(|request| request.is_owned_by_stream);
            }
            (_, Role::Server) => {
                let by_token = part.progress_token().and_then(|token| {
                    nearest(&|it: &Part| it.from == Role::Client && it.requested_token() == Some(token))
                });
                let by_subscription = part.subscription().and_then(|id| request_of(Role::Client, id));
                let by_content = by_subscription.or(by_token);
                part.owner = by_content.or_else(of_stream);
                part.is_owned_by_stream = by_content.is_none() && part.owner.is_some();
            }
            (PartKind::Notification { .. }, Role::Client) => {
                part.owner = part.cancelled().and_then(|id| request_of(Role::Client, id));
            }
            _ => {}
        }
        part
    }
}

/// Whether so much can be held.
pub(super) fn check_size(steps: usize, bytes: usize, line: usize) -> Result<(), ConversationsError> {
    let is_too_long = steps > MAX_STEPS || bytes > MAX_BYTES;
    if is_too_long { Err(ConversationsError::TooLong { line }) } else { Ok(()) }
}

/// Who sent something, as this side recorded it, and what it was; nothing for what is only said about it.
pub(super) fn step_content(event: &Event, side: Side) -> Option<(Role, Content)> {
    let (direction, content) = directed(event)?;
    let is_from_client = (side == Side::Client) == (direction == Direction::Sent);
    Some((if is_from_client { Role::Client } else { Role::Server }, content))
}

fn directed(event: &Event) -> Option<(Direction, Content)> {
    Some(match &event.kind {
        EventKind::Message { direction, text, event_id } => {
            (*direction, Content::Message { text: text.clone(), event_id: event_id.clone() })
        }
        EventKind::Invalid { direction, bytes, .. } => (*direction, Content::Invalid(bytes.clone())),
        EventKind::Request { direction, method, headers, .. } => {
            (*direction, Content::Request { method: method.clone(), headers: headers.clone() })
        }
        EventKind::Response { direction, status, headers } => {
            (*direction, Content::Response { status: *status, headers: headers.clone() })
        }
        EventKind::Sse { direction, event_id: Some(event_id), name: None, .. } => {
            (*direction, Content::Primed { event_id: event_id.clone() })
        }
        EventKind::Ended { direction } => (*direction, Content::Ended),
        EventKind::Closed { .. } => (Direction::Received, Content::Closed),
        _ => return None,
    })
}

impl Content {
    /// The bytes that are held.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Message { text, .. } => text.len(),
            Self::Invalid(bytes) => bytes.len(),
            Self::Request { headers, .. } | Self::Response { headers, .. } => {
                headers.iter().map(|(name, value)| name.len() + value.len()).sum()
            }
            _ => 0,
        }
    }
}

fn is_message(content: &Content) -> bool {
    matches!(content, Content::Message { .. } | Content::Invalid(_))
}

/// Whether this is `initialize`, which opens a session.
fn opens_session(content: &Content) -> bool {
    matches!(content, Content::Message { text, .. } if part::split(text)
        .iter()
        .any(|(_, value)| value.get("method").is_some_and(|method| method == "initialize")))
}
