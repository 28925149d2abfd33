//! Rules about sessions over streamable HTTP: the session id, its end, and what follows.

use refmcp_proto::revision::{Lifecycle, Revision};
use refmcp_proto::rule::{self, Rule};
use refmcp_transport::observer::Side;

use crate::auditor::checks::values::violation_if;
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::{State, Stream, header};
use crate::auditor::message::Message;
use crate::recording::{Event, EventKind, Header};
use crate::verdict::{Evidence, Role};

pub(in crate::auditor::checks) static RULES: &[&Rule] =
    &[&rule::HTTP_18, &rule::HTTP_19, &rule::HTTP_21, &rule::HTTP_22, &rule::HTTP_23];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct HttpSessions {
    phase: Phase,
    /// Requests under way that name a session which has ended.
    late: Vec<Option<u64>>,
    /// The DELETE under way.
    delete: Option<Option<u64>>,
    /// Requests of a session under way that name none, with what shows it: the head, or the message.
    nameless: Vec<(Option<u64>, Evidence)>,
}

/// What is known of the session id.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The server has assigned none.
    #[default]
    None,
    /// The server has assigned one.
    Assigned,
    /// The client has deleted the session.
    Deleted,
    /// The server did not know the session any more, at this time.
    Lost { at: u64 },
}

const SESSION_ID: &str = "mcp-session-id";

/// Why a server closes a session that was neither used nor deleted for long.
const EXPIRED: &str = "the session was not used";

/// What a client sends within this time after 404, in milliseconds, it may have begun to send before.
const RACE: u64 = 1000;

/// Requests under way that are remembered: those after the end of a session, and those that name none.
const MAX_LATE: usize = 64;

/// How HTTP-19 is broken, and what is expected.
const NAMELESS: &str = "a request of a session has no Mcp-Session-Id";
const REPEAT: &str = "send Mcp-Session-Id as the response to initialize has it";

impl Check for HttpSessions {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        let Some(stream) = context.state.stream(message.stream).filter(|stream| stream.method == "POST")
        else {
            return;
        };
        if message.from != Role::Client || context.state.transport != "http" {
            return;
        }
        if let Some((_, evidence)) = self.nameless.iter_mut().find(|(of, _)| *of == message.stream) {
            *evidence = context.evidence();
        }
        let names_session = stream.header(SESSION_ID).is_some();
        let opens = matches!(message.request(), Some(("initialize", _)));
        if let Phase::Lost { at } = self.phase
            && (opens || names_session && message.at > at.saturating_add(RACE))
        {
            let what = match opens {
                true => "initialize names a session",
                false => "the client goes on with a session that was answered with 404",
            };
            let violation =
                violation_if(names_session, what, "open a new session by initialize without Mcp-Session-Id");
            context.judge_in(context.state.negotiated, &rule::HTTP_22, Role::Client, violation);
        }
        if opens {
            self.phase = Phase::None;
        } else if self.phase == Phase::Assigned && message.revision == context.state.negotiated {
            repeats_session(names_session, context.state.negotiated, context);
        }
    }

    fn event(&mut self, event: &Event, context: &mut Context<'_>) {
        if context.state.transport != "http" {
            return;
        }
        match &event.kind {
            EventKind::Request { method, headers, .. } => self.asked(event, method, headers, context),
            EventKind::Response { status, headers, .. } => {
                self.answered(event, *status, headers, context);
            }
            EventKind::Closed { why }
                if why == EXPIRED && context.state.side == Side::Server && self.phase == Phase::Assigned =>
            {
                let expected = "send DELETE when a session is no longer needed";
                let violation = violation_if(true, "the session expired, and was not deleted", expected);
                context.judge_in(context.state.negotiated, &rule::HTTP_23, Role::Client, violation);
            }
            _ => {}
        }
    }
}

impl HttpSessions {
    /// The head of a request. Those of POST are judged with their message.
    fn asked(&mut self, event: &Event, method: &str, headers: &[Header], context: &mut Context<'_>) {
        let names_session = header(headers, SESSION_ID).is_some();
        if context.state.side == Side::Server && !names_session && self.nameless.len() < MAX_LATE {
            self.nameless.push((event.stream, context.evidence()));
        }
        if matches!(method, "GET" | "DELETE") && self.phase == Phase::Assigned {
            repeats_session(names_session, context.state.negotiated, context);
        }
        if method == "DELETE" && names_session {
            self.delete = Some(event.stream);
            context.judge_in(context.state.negotiated, &rule::HTTP_23, Role::Client, None);
        } else if names_session && self.phase == Phase::Deleted && self.late.len() < MAX_LATE {
            self.late.push(event.stream);
        }
    }

    fn answered(&mut self, event: &Event, status: u16, headers: &[Header], context: &mut Context<'_>) {
        let is_success = (200..300).contains(&status);
        if self.delete == Some(event.stream) {
            self.delete = None;
            if is_success {
                self.phase = Phase::Deleted;
            }
            return;
        }
        if let Some(at) = self.late.iter().position(|late| *late == event.stream) {
            self.late.swap_remove(at);
            if is_success || status == 404 {
                let expected = "answer requests for a session that has ended with 404";
                let violation = violation_if(is_success, "a deleted session goes on", expected);
                context.judge_in(context.state.negotiated, &rule::HTTP_21, Role::Server, violation);
            }
        }
        let Some(stream) = context.state.stream(event.stream) else { return };
        let nameless = self.nameless.iter().position(|(of, _)| *of == event.stream);
        if let Some((_, evidence)) = nameless.map(|at| self.nameless.swap_remove(at))
            && status == 400
            && lacks_session(stream, context.state)
        {
            context.break_earlier(&rule::HTTP_19, Role::Client, (NAMELESS.to_owned(), REPEAT), evidence);
        }
        let has_sessions = context.state.negotiated.is_some_and(|it| it.lifecycle() == Lifecycle::Handshake);
        if status == 404 && stream.header(SESSION_ID).is_some() && has_sessions {
            self.phase = Phase::Lost { at: event.at };
        }
        if let Some(id) = header(headers, SESSION_ID).filter(|_| stream.opens_session && is_success) {
            self.phase = Phase::Assigned;
            let is_visible = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic());
            let expected = "use visible ASCII characters";
            let violation = violation_if(!is_visible, "the session id has other characters", expected);
            context.judge_in(stream.revision, &rule::HTTP_18, Role::Server, violation);
        }
    }
}

/// Whether a server of ours, whose sessions all have ids, refused a request of a session because it names none. It is a connection
/// of its own, since nothing tells to which session it belongs.
fn lacks_session(stream: &Stream, state: &State) -> bool {
    let is_of_session = |revision: Revision| revision.lifecycle() == Lifecycle::Handshake;
    // What is no message is refused before the session is looked for.
    let is_message = stream.method != "POST" || stream.requests + stream.other_messages > 0;
    state.negotiated.is_none()
        && stream.named_revision().is_some_and(is_of_session)
        && stream.revision.is_none_or(is_of_session)
        && stream.header(SESSION_ID).is_none()
        && !stream.opens_session
        && is_message
}

fn repeats_session(names_session: bool, agreed: Option<Revision>, context: &mut Context<'_>) {
    let violation = violation_if(!names_session, NAMELESS, REPEAT);
    context.judge_in(agreed, &rule::HTTP_19, Role::Client, violation);
}
