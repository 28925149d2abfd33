//! Rules about the SSE streams of sessions: ids of events, resumption, the retry delay, when a stream ends.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use refmcp_proto::rule::{self, Rule};

use crate::auditor::checks::values::violation_if;
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::{Handshake, Request, Stream, header};
use crate::auditor::message::{Body, Message};
use crate::recording::{Event, EventKind, Header};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[
    &rule::HTTP_08,
    &rule::HTTP_09,
    &rule::HTTP_10,
    &rule::HTTP_11,
    &rule::HTTP_15,
    &rule::HTTP_16,
    &rule::HTTP_17,
];

/// The number of a stream.
type Key = u64;

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct HttpEvents {
    hasher: RandomState,
    /// Events with an id, by it.
    events: HashMap<String, SeenEvent>,
    /// Streams that were opened, the resumed ones too.
    streams: HashMap<Key, SeenStream>,
    /// Requests of the server, by the hash of their text, with their stream.
    requests: HashMap<u64, Key>,
    /// Streams that ended without a response. What is wrong counts once the session goes on.
    early_ends: Vec<Event>,
}

#[derive(Debug)]
struct SeenEvent {
    /// The stream that it was sent on first.
    origin: Key,
    content: u64,
}

#[derive(Debug, Default)]
struct SeenStream {
    /// The stream that this one resumes, or itself; none where it resumes one that was not seen.
    origin: Option<Key>,
    is_resumed: bool,
    is_post: bool,
    has_begun: bool,
    has_ids: bool,
    retry: Option<u64>,
    /// When something was last sent on it.
    last_at: u64,
    /// The client has left it.
    is_left: bool,
}

/// Events, streams and requests that are remembered, each.
const MAX_SEEN: usize = 4096;

/// Forgets what was seen where that is too much. What is not known is not judged.
fn make_room<K, V>(seen: &mut HashMap<K, V>) {
    if seen.len() >= MAX_SEEN {
        seen.clear();
    }
}

impl Check for HttpEvents {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        match (message.from, &message.body) {
            (Role::Client, Body::Request { method: "initialize", .. }) => {
                let streams = std::mem::take(&mut self.streams);
                *self = Self { streams, ..Self::default() };
            }
            (Role::Server, Body::Response { request: Some(request), .. }) => {
                self.commit_early_ends(request.at, context);
            }
            (Role::Server, Body::Request { .. }) => {
                if let Some(stream) = message.stream.filter(|_| context.state.transport == "http") {
                    self.check_broadcast(stream, message.text, context);
                }
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &Event, context: &mut Context<'_>) {
        let Some(key) = event.stream.filter(|_| context.state.transport == "http") else { return };
        match &event.kind {
            EventKind::Request { method, headers, .. } => {
                self.open(key, event, method, headers, context);
            }
            EventKind::Message { direction, text, event_id }
                if context.state.sender(*direction) == Role::Server =>
            {
                self.begin(key, false, context);
                if let Some(id) = event_id.as_ref().filter(|id| !id.is_empty()) {
                    self.event_id(key, id, text, context);
                }
                self.touch(key, event.at);
            }
            EventKind::Sse { event_id, retry, data, .. } => {
                if let Some(id) = event_id.as_ref().filter(|id| !id.is_empty()) {
                    self.begin(key, data.is_empty(), context);
                    self.event_id(key, id, data, context);
                }
                if let Some(seen) = self.streams.get_mut(&key) {
                    seen.retry = retry.or(seen.retry);
                }
                self.touch(key, event.at);
            }
            EventKind::Ended { direction } => {
                let is_left = context.state.sender(*direction) == Role::Client;
                if !is_left {
                    self.touch(key, event.at);
                    self.ended(key, event, context);
                }
                match self.streams.get_mut(&key) {
                    // What has no ids is not resumed.
                    Some(seen) if !seen.has_ids => drop(self.streams.remove(&key)),
                    Some(seen) => seen.is_left = is_left,
                    None => {}
                }
            }
            _ => {}
        }
    }
}

impl HttpEvents {
    fn open(&mut self, key: Key, event: &Event, method: &str, headers: &[Header], context: &mut Context<'_>) {
        let after = header(headers, "last-event-id").filter(|_| method == "GET");
        let origin = match after {
            Some(id) => self.events.get(id).map(|seen| seen.origin),
            None => Some(key),
        };
        let mut seen = SeenStream {
            origin,
            is_resumed: after.is_some(),
            is_post: method == "POST",
            ..SeenStream::default()
        };
        if let Some(origin) = origin.filter(|_| after.is_some()) {
            let broken = self.streams.iter().filter(|(_, it)| it.origin == Some(origin));
            if let Some((_, broken)) = broken.max_by_key(|(_, it)| it.last_at) {
                if let Some(retry) = broken.retry.filter(|_| !broken.is_left) {
                    // Times are cut to milliseconds.
                    let waited = event.at.saturating_sub(broken.last_at).saturating_add(1);
                    let what = "a stream is resumed before its retry delay is over";
                    let violation =
                        violation_if(waited < retry, what, "wait as long as the last retry field says");
                    context.judge_in(context.state.negotiated, &rule::HTTP_11, Role::Client, violation);
                }
                seen.retry = broken.retry;
            }
            self.early_ends.retain(|end| end.stream != Some(origin));
        }
        make_room(&mut self.streams);
        self.streams.insert(key, seen);
    }

    fn touch(&mut self, key: Key, at: u64) {
        if let Some(seen) = self.streams.get_mut(&key) {
            seen.last_at = at;
        }
    }

    /// The first event of a stream: whether it is one to resume from, with an id and no data.
    fn begin(&mut self, key: Key, is_priming: bool, context: &mut Context<'_>) {
        let is_sse = context.state.stream(Some(key)).is_some_and(Stream::is_sse);
        let Some(seen) = self.streams.get_mut(&key).filter(|seen| is_sse && seen.is_post && !seen.has_begun)
        else {
            return;
        };
        seen.has_begun = true;
        let what = "the stream of a request does not begin with an event to resume from";
        let violation = violation_if(!is_priming, what, "begin it with an event that has an id and no data");
        context.judge_in(context.state.negotiated, &rule::HTTP_09, Role::Server, violation);
    }

    /// An event with an id.
    fn event_id(&mut self, key: Key, id: &str, content: &str, context: &mut Context<'_>) {
        let Some(seen) = self.streams.get_mut(&key) else { return };
        seen.has_ids = true;
        let (is_resumed, is_post, origin) = (seen.is_resumed, seen.is_post, seen.origin);
        let (is_empty, content) = (content.is_empty(), self.hasher.hash_one(content));
        let unique = |is_broken| {
            violation_if(is_broken, "two events have the same id", "give each event of a session its own id")
        };
        let Some(known) = self.events.get(id) else {
            context.judge_in(context.state.negotiated, &rule::HTTP_16, Role::Server, unique(false));
            make_room(&mut self.events);
            self.events.insert(id.to_owned(), SeenEvent { origin: origin.unwrap_or(key), content });
            return;
        };
        // The stream of a POST is new. Another one may repeat events, and say again where it is.
        if is_post || known.content != content && !is_empty {
            context.judge_in(context.state.negotiated, &rule::HTTP_16, Role::Server, unique(true));
        } else if is_resumed && !is_empty && origin.is_some() {
            let what = "a resumed stream repeats an event of another stream";
            let violation =
                violation_if(origin != Some(known.origin), what, "repeat events of the broken stream alone");
            context.judge_in(context.state.negotiated, &rule::HTTP_17, Role::Server, violation);
        }
    }

    /// A request of the server is sent on one stream, and repeated only where that is resumed.
    fn check_broadcast(&mut self, key: Key, text: &str, context: &mut Context<'_>) {
        let Some(seen) = self.streams.get(&key) else { return };
        let (content, origin) = (self.hasher.hash_one(text), seen.origin);
        let on_another = self.requests.get(&content).is_some_and(|at| origin != Some(*at));
        let violation = violation_if(
            on_another && !seen.is_resumed,
            "the same request is sent on two streams",
            "send each message on one stream alone",
        );
        context.judge_in(context.state.negotiated, &rule::HTTP_15, Role::Server, violation);
        make_room(&mut self.requests);
        self.requests.insert(content, origin.unwrap_or(key));
    }

    /// The server ends the body of a response.
    fn ended(&mut self, key: Key, event: &Event, context: &mut Context<'_>) {
        let Some(stream) = context.state.stream(Some(key)).filter(|stream| stream.is_sse()) else { return };
        let Some(seen) = self.streams.get(&key).filter(|seen| seen.is_post) else { return };
        let is_here = |request: &&Request| request.stream == event.stream;
        let unanswered: Vec<_> =
            context.state.unanswered(Role::Client).map(|(_, it)| it).filter(is_here).collect();
        if unanswered.is_empty() {
            if stream.requests > 0 {
                context.judge_in(context.state.negotiated, &rule::HTTP_08, Role::Server, None);
            }
            return;
        }
        let is_cancelled = unanswered.iter().any(|request| request.cancelled);
        let is_resumed = self.streams.values().any(|it| it.is_resumed && it.origin == Some(key));
        if is_cancelled || is_resumed || context.state.handshake != Handshake::Ready {
            return;
        }
        if seen.has_ids {
            context.judge_in(context.state.negotiated, &rule::HTTP_10, Role::Server, None);
        }
        let may_end =
            seen.has_ids && context.state.negotiated.is_some_and(|it| rule::HTTP_10.revisions.contains(it));
        if !may_end && self.early_ends.len() < MAX_SEEN {
            self.early_ends.push(event.clone());
        }
    }

    /// The session goes on after the end of a stream: that was not the end of the session.
    fn commit_early_ends(&mut self, asked_at: u64, context: &mut Context<'_>) {
        let (counted, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.early_ends).into_iter().partition(|end| end.at < asked_at);
        self.early_ends = waiting;
        let negotiated = context.state.negotiated;
        for end in &counted {
            for (rule, expected) in [
                (&rule::HTTP_08, "keep it open until the response is sent"),
                (&rule::HTTP_10, "give an event an id before a stream is ended, so that it can be resumed"),
            ] {
                let violation = ("a stream ends without the response to its request".to_owned(), expected);
                context.at(end).judge_in(negotiated, rule, Role::Server, Some(violation));
            }
        }
    }
}
