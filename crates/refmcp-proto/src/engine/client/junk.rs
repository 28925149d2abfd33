//! Input of a pipe that is no message: log lines on standard output, answers gone wrong.
//!
//! A server that logs to its standard output and then answers is usable, so such lines are reported and left out. A
//! request must not wait for its whole time for an answer that has come in a form that cannot be read, though:
//!
//! * An answer that is malformed, or has an id that no request has, ends the request it was meant for, unless a proper
//!   answer follows within [`GRACE`].
//! * During the opening, other lines end the question which revisions the server speaks once it is quiet again; a
//!   session is then opened as if the question was ignored. When that brings such lines as well, the server is pinged.
//!   One that answers each message with something else than a message does not speak the protocol.

use std::time::Duration;

use super::config::TransportKind;
use super::handshake::Phase;
use super::io::{CallError, ClientMessage, ClientMessageKind, ClientOutput, OpenError, TransportError};
use super::opening::{Attempt, Evidence};
use super::{ClientEngine, id_of};
use crate::engine::ExchangeId;
use crate::jsonrpc::{encode, excerpt};
use crate::model::JsonObject;
use crate::time::Timestamp;

/// How long a proper answer is waited for once something came in its place.
const GRACE: Duration = Duration::from_secs(1);

/// What comes this soon after a message that was sent while the server was quiet is taken for the answer to it.
const PROMPT: Duration = Duration::from_millis(400);

/// Messages in a row that are answered by something else before the server is given up.
const MOST_REPLIES: u32 = 2;

/// Lines without a message among them that a server may print before it has answered anything.
const MOST_LINES: u32 = 1000;

/// What came that is no message, since the last message.
#[derive(Debug, Default)]
pub(super) struct Junk {
    lines: u32,
    /// The beginning of the latest line.
    last: Option<String>,
    /// A request that is going to end for want of a readable answer, when, and why.
    suspect: Option<(ExchangeId, Timestamp, String)>,
    /// When the server is pinged, unless it says more.
    ping_at: Option<Timestamp>,
    /// When something was last sent while the server was quiet.
    sent_in_quiet: Option<Timestamp>,
    replies: u32,
}

impl ClientEngine {
    /// A line came that is not even meant as a message.
    pub fn ignored_input(&mut self, now: Timestamp, line: &str) {
        if matches!(self.phase, Phase::Closed(_)) {
            return;
        }
        if self.config.transport != TransportKind::Pipe || line.trim().is_empty() {
            return self.note("RPC-01", format!("not a message: {line}"));
        }
        let line = excerpt(line);
        self.ignore("RPC-01", format!("not a message: {line}"));
        self.junk.lines = self.junk.lines.saturating_add(1);
        self.junk.last = Some(line.clone());
        let Phase::Opening(opening) = self.phase else { return };
        let prompt = self.junk.sent_in_quiet.take().is_some_and(|sent| now < sent + PROMPT);
        if prompt {
            self.junk.replies += 1;
        }
        if self.junk.replies >= MOST_REPLIES || self.junk.lines >= MOST_LINES {
            let why = format!("it answers with what is no message: {line}");
            return self.give_up(OpenError::Protocol(why));
        }
        let quiet_at = now + GRACE;
        match opening.attempt {
            Attempt::Discover(_) => {
                let what = format!("it answered server/discover with what is no message: {line}");
                self.suspect(opening.exchange, quiet_at, what);
            }
            Attempt::Initialize(_) => {
                self.junk.ping_at = Some(quiet_at);
                self.remind(quiet_at);
            }
        }
    }

    /// Something came that is meant as a message, and is none.
    pub(super) fn malformed(&mut self, now: Timestamp, fault: &str, line: &str) {
        if !is_meant_as_answer(line) {
            return self.ignored_input(now, line);
        }
        let what = format!("it sent an answer that cannot be read, {fault}: {}", excerpt(line));
        self.ignore("RPC-01", what.clone());
        let meant = id_in(line).map(ExchangeId).filter(|exchange| self.waits_for(*exchange));
        self.suspect_answer(now, meant, what);
    }

    /// An answer came whose id no request has.
    pub(super) fn wrong_id(&mut self, now: Timestamp, id: &str) {
        let what = format!("it sent an answer to a request that was never made, with the id {}", excerpt(id));
        self.ignore("RPC-05", what.clone());
        self.suspect_answer(now, None, what);
    }

    /// Something came that is too long to be kept.
    pub(super) fn too_long(&mut self, now: Timestamp, what: &str) {
        let what = format!("it sent a message that is {what}");
        self.ignore("RPC-01", what.clone());
        self.suspect_answer(now, None, what);
    }

    fn suspect_answer(&mut self, now: Timestamp, meant: Option<ExchangeId>, what: String) {
        if self.config.transport == TransportKind::Pipe
            && let Some(exchange) = meant.or_else(|| self.only_waiting())
        {
            self.suspect(exchange, now + GRACE, what);
        }
    }

    fn suspect(&mut self, exchange: ExchangeId, at: Timestamp, what: String) {
        self.junk.suspect = Some((exchange, at, what));
        self.remind(at);
    }

    /// The request that an answer without a usable id is for: the only one that waits for an answer.
    pub(super) fn only_waiting(&self) -> Option<ExchangeId> {
        if let Phase::Opening(opening) = self.phase {
            return Some(opening.exchange);
        }
        let mut waiting = self.calls.values().filter_map(super::calls::Call::awaited);
        waiting.next().filter(|_| waiting.next().is_none())
    }

    fn waits_for(&self, exchange: ExchangeId) -> bool {
        let opens = matches!(self.phase, Phase::Opening(opening) if opening.exchange == exchange);
        opens || self.call_of(exchange).is_some()
    }

    /// A message came: whatever else comes, the server speaks the protocol.
    pub(super) fn speaks(&mut self) {
        self.junk.lines = 0;
        self.junk.replies = 0;
        self.junk.last = None;
        self.junk.ping_at = None;
        self.junk.sent_in_quiet = None;
    }

    pub(super) fn tick_junk(&mut self, now: Timestamp) {
        if let Some((exchange, at, what)) = self.junk.suspect.take() {
            if now < at {
                self.suspect(exchange, at, what);
            } else {
                self.end_suspect(now, exchange, what);
            }
        }
        match self.junk.ping_at {
            Some(at) if now < at => self.remind(at),
            Some(_) => {
                self.junk.ping_at = None;
                self.ping_in_quiet(now);
            }
            None => {}
        }
    }

    fn end_suspect(&mut self, now: Timestamp, exchange: ExchangeId, what: String) {
        match self.phase {
            Phase::Opening(opening) if opening.exchange == exchange => {
                self.conclude(now, opening, Evidence::Nonsense(what), None);
                self.junk.sent_in_quiet = Some(now);
            }
            _ => {
                if let Some(call) = self.call_of(exchange) {
                    self.stop(call, "the answer cannot be read", CallError::Protocol(what));
                }
            }
        }
    }

    fn ping_in_quiet(&mut self, now: Timestamp) {
        if !matches!(self.phase, Phase::Opening(_)) {
            return;
        }
        let exchange = self.next_exchange();
        let mut json = Vec::new();
        // Writing values of the model into memory does not fail.
        if encode::request(&mut json, &id_of(exchange), "ping", &JsonObject::new()).is_ok() {
            let kind =
                ClientMessageKind::Request { method: "ping".into(), name: None, param_headers: Vec::new() };
            self.outputs.push_back(ClientOutput::Send(ClientMessage { exchange, kind, json, rules: None }));
            self.junk.sent_in_quiet = Some(now);
        }
    }

    /// The same fault, with what the server has written in place of an answer.
    pub(super) fn with_junk(&self, why: OpenError) -> OpenError {
        let Some(line) = self.junk.last.as_ref().filter(|_| matches!(self.phase, Phase::Opening(_))) else {
            return why;
        };
        match why {
            OpenError::TimedOut { .. } => {
                OpenError::Protocol(format!("{why}, and wrote what is no message: {line}"))
            }
            OpenError::Transport(TransportError::Broken(how)) => {
                let how = format!("{how}; it wrote what is no message: {line}");
                OpenError::Transport(TransportError::Broken(how))
            }
            why => why,
        }
    }

    /// Notes what is ignored, and tells of it each time.
    fn ignore(&mut self, rule: &'static str, what: String) {
        self.outputs.push_back(ClientOutput::Ignored(what.clone()));
        self.note(rule, what);
    }
}

/// Whether a line is an answer gone wrong, and not a log line that happens to be JSON.
fn is_meant_as_answer(line: &str) -> bool {
    let has = |member: &str| line.contains(member);
    let answers = has("\"result\"") || has("\"error\"");
    line.trim_start().starts_with(['{', '['])
        && !has("\"method\"")
        && (has("\"jsonrpc\"") || has("\"id\"") && answers)
}

/// The id in an answer that is no answer otherwise.
fn id_in(line: &str) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct WithId {
        id: u64,
    }
    serde_json::from_str::<WithId>(line).ok().map(|it| it.id)
}
