//! Input of a pipe that is no message: log lines on standard output, malformed responses.
//!
//! A server that logs to its standard output and then responds is usable, so such lines are reported and ignored. But a
//! request must not wait until its deadline for a response that has come in an unreadable form:
//!
//! * A response that is malformed, or has an unknown id, ends the request it was meant for, unless a proper response
//!   follows within [`GRACE`], or [`OPENING_GRACE`] while the connection opens: a session can be opened all the same.
//! * While the connection opens, a message that is too long ends it: its end may never come.
//! * While the connection opens, other lines end `server/discover` once the server is quiet again; a session is then opened
//!   as if the server did not know the method. When that brings such lines as well, the server is pinged. A server that
//!   responds to each message with something else does not speak the protocol, nor does one that leaves a line without its
//!   end and is quiet.

use std::time::Duration;

use super::config::TransportKind;
use super::handshake::Phase;
use super::io::{CallError, ClientMessage, ClientMessageKind, ClientOutput, OpenError, TransportError};
use super::negotiation::{Attempt, AttemptOutcome};
use super::{ClientEngine, ONLY_MESSAGES, ONLY_MESSAGES_IN_PIPE, id_of};
use crate::engine::ExchangeId;
use crate::engine::report::ReportFindings;
use crate::jsonrpc::{encode, excerpt};
use crate::model::JsonObject;
use crate::revision::Method;
use crate::rule::{self, Rule};
use crate::time::Timestamp;

/// How long a proper response may take after something unreadable came.
const GRACE: Duration = Duration::from_secs(1);

/// The same while the connection opens.
const OPENING_GRACE: Duration = Duration::from_millis(200);

/// What comes this soon after a message to a quiet server is taken for its response.
const PROMPT: Duration = Duration::from_millis(400);

/// Messages in a row with such a response before the server is given up.
const MAX_REPLIES: u32 = 2;

/// Lines in a row that a server may print before its first response.
const MAX_LINES: u32 = 1000;

/// Input that is no message, since the last message.
#[derive(Debug, Default)]
pub(super) struct IgnoredInput {
    lines: u32,
    /// The beginning of the latest line.
    last: Option<String>,
    /// A request that fails unless a readable response comes, when, and why.
    schedule_failure: Option<(ExchangeId, Timestamp, String)>,
    /// When the server is pinged, unless it writes more.
    ping_at: Option<Timestamp>,
    /// When something was last sent while the server was quiet.
    sent_in_quiet: Option<Timestamp>,
    replies: u32,
}

impl ClientEngine {
    /// A line came that is not meant as a message.
    pub fn ignored_input(&mut self, now: Timestamp, line: &str) {
        if self.is_closed() {
            return;
        }
        if self.config.transport != TransportKind::Pipe || line.trim().is_empty() {
            let what = format!("not a message: {}", excerpt(line));
            return self.report(&rule::RPC_01, what, ONLY_MESSAGES);
        }
        let line = excerpt(line);
        self.ignore(&rule::STDIO_02, format!("not a message: {line}"));
        self.ignored.lines = self.ignored.lines.saturating_add(1);
        self.ignored.last = Some(line.clone());
        let Phase::Opening(negotiation) = self.phase else { return };
        let prompt = self.ignored.sent_in_quiet.take().is_some_and(|sent| now < sent + PROMPT);
        if prompt {
            self.ignored.replies += 1;
        }
        if self.ignored.replies >= MAX_REPLIES || self.ignored.lines >= MAX_LINES {
            let why = format!("it answers with what is no message: {line}");
            return self.give_up(OpenError::Protocol(why));
        }
        let quiet_at = now + GRACE;
        match negotiation.attempt {
            Attempt::Discover(_) => {
                let what = format!("it answered server/discover with what is no message: {line}");
                self.schedule_failure(negotiation.exchange, quiet_at, what);
            }
            Attempt::Initialize(_) => {
                self.ignored.ping_at = Some(quiet_at);
                self.wake_at(quiet_at);
            }
        }
    }

    /// A line that was told of has no end, and the server is quiet. While the connection opens, no response can be expected
    /// of such a server; later, what it prints may be of a call that takes its time.
    pub fn line_abandoned(&mut self, begun: &str) {
        if matches!(self.phase, Phase::Opening(_)) {
            let why = format!("it wrote a line without an end, and nothing more: {}", excerpt(begun));
            self.give_up(OpenError::Protocol(why));
        }
    }

    /// Something came that is meant as a message and malformed.
    pub(super) fn malformed(&mut self, now: Timestamp, error: &str, line: &str) {
        if !is_meant_as_response(line) {
            return self.ignored_input(now, line);
        }
        let what = format!("it sent an answer that cannot be read, {error}: {}", excerpt(line));
        self.ignore(&rule::RPC_01, what.clone());
        let meant = id_in(line).map(ExchangeId).filter(|exchange| self.waits_for(*exchange));
        self.fail_waiting_request(now, meant, what);
    }

    /// A response came whose id no request has.
    pub(super) fn unknown_id(&mut self, now: Timestamp, id: &str) {
        let what = format!("it sent an answer to a request that was never made, with the id {}", excerpt(id));
        self.ignore(&rule::RPC_05, what.clone());
        self.fail_waiting_request(now, None, what);
    }

    /// A message came that is too long.
    pub(super) fn too_long(&mut self, now: Timestamp, what: &str) {
        let what = format!("it sent a message that is {what}");
        self.ignore(&rule::RPC_01, what.clone());
        if matches!(self.phase, Phase::Opening(_)) {
            return self.give_up(OpenError::Protocol(what));
        }
        self.fail_waiting_request(now, None, what);
    }

    fn fail_waiting_request(&mut self, now: Timestamp, meant: Option<ExchangeId>, what: String) {
        if self.config.transport == TransportKind::Pipe
            && let Some(exchange) = meant.or_else(|| self.only_waiting())
        {
            let grace = if matches!(self.phase, Phase::Opening(_)) { OPENING_GRACE } else { GRACE };
            self.schedule_failure(exchange, now + grace, what);
        }
    }

    fn schedule_failure(&mut self, exchange: ExchangeId, at: Timestamp, what: String) {
        self.ignored.schedule_failure = Some((exchange, at, what));
        self.wake_at(at);
    }

    /// The request that a response without a usable id is for: the only one that waits for a response.
    pub(super) fn only_waiting(&self) -> Option<ExchangeId> {
        if let Phase::Opening(negotiation) = self.phase {
            return Some(negotiation.exchange);
        }
        let mut waiting = self.calls.values().filter_map(super::calls::Call::awaited);
        waiting.next().filter(|_| waiting.next().is_none())
    }

    fn waits_for(&self, exchange: ExchangeId) -> bool {
        let opens = matches!(self.phase, Phase::Opening(negotiation) if negotiation.exchange == exchange);
        opens || self.call_of(exchange).is_some()
    }

    /// A message came, so the server speaks the protocol.
    pub(super) fn message_received(&mut self) {
        self.ignored.lines = 0;
        self.ignored.replies = 0;
        self.ignored.last = None;
        self.ignored.ping_at = None;
        self.ignored.sent_in_quiet = None;
    }

    pub(super) fn tick_ignored_input(&mut self, now: Timestamp) {
        if let Some((exchange, at, what)) = self.ignored.schedule_failure.take() {
            if now < at {
                self.schedule_failure(exchange, at, what);
            } else {
                self.fail_request(now, exchange, what);
            }
        }
        match self.ignored.ping_at {
            Some(at) if now < at => self.wake_at(at),
            Some(_) => {
                self.ignored.ping_at = None;
                self.ping_in_quiet(now);
            }
            None => {}
        }
    }

    fn fail_request(&mut self, now: Timestamp, exchange: ExchangeId, what: String) {
        match self.phase {
            Phase::Opening(negotiation) if negotiation.exchange == exchange => {
                self.conclude(now, negotiation, AttemptOutcome::Malformed(what), None);
                self.ignored.sent_in_quiet = Some(now);
            }
            _ => {
                if let Some(call) = self.call_of(exchange) {
                    self.stop(now, call, "the answer cannot be read", CallError::Protocol(what));
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
        if encode::request(&mut json, &id_of(exchange), Method::Ping.name(), &JsonObject::new()).is_ok() {
            let kind = ClientMessageKind::Request {
                method: Method::Ping.name().into(),
                name: None,
                param_headers: Vec::new(),
            };
            self.outputs.push_back(ClientOutput::Send(ClientMessage { exchange, kind, json, rules: None }));
            self.ignored.sent_in_quiet = Some(now);
        }
    }

    /// The same error, with what the server has written instead of a response.
    pub(super) fn with_ignored_input(&self, why: OpenError) -> OpenError {
        let Some(line) = self.ignored.last.as_ref().filter(|_| matches!(self.phase, Phase::Opening(_)))
        else {
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

    /// Reports what is ignored: as a finding, and each time as an output.
    fn ignore(&mut self, rule: &'static Rule, what: String) {
        self.outputs.push_back(ClientOutput::Ignored(what.clone()));
        let expected =
            if rule.id == rule::RPC_05.id { "repeat the id of the request" } else { ONLY_MESSAGES_IN_PIPE };
        self.report(rule, what, expected);
    }
}

/// Whether a line is a malformed response, and not a log line that happens to be JSON.
fn is_meant_as_response(line: &str) -> bool {
    let has = |member: &str| line.contains(member);
    let answers = has("\"result\"") || has("\"error\"");
    line.trim_start().starts_with(['{', '['])
        && !has("\"method\"")
        && (has("\"jsonrpc\"") || has("\"id\"") && answers)
}

/// The id in a malformed response.
fn id_in(line: &str) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct WithId {
        id: u64,
    }
    serde_json::from_str::<WithId>(line).ok().map(|it| it.id)
}
