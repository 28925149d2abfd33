//! What is known of a conversation: transport, revision, handshake, what each party said of itself, requests without a response.

use std::collections::HashMap;

use refmcp_proto::model::keys;
use refmcp_proto::revision::{Lifecycle, Revision, RevisionSet};
use refmcp_transport::observer::{Direction, Side};
use serde_json::Value;

use super::exchange::{Request, Stream, shows_stateless};
use super::message::{Body, Message};
use super::party::{PartyFacts, name};
use crate::recording::Event;
use crate::verdict::Role;

/// What checks can ask of a conversation. It is as it was before the message that is being checked.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) side: Side,
    /// `stdio`, `http`, `http+sse`, `websocket` or `memory`.
    pub(crate) transport: String,
    /// The name of the server, or the address of the client.
    pub(super) peer: String,
    /// The revision of the session.
    pub(crate) negotiated: Option<Revision>,
    /// How far the handshake is.
    pub(crate) handshake: Handshake,
    pub(crate) client: PartyFacts,
    pub(crate) server: PartyFacts,
    /// Requests without a response.
    requests: HashMap<RequestKey, Request>,
    /// HTTP requests whose response has not ended.
    pub(super) streams: HashMap<u64, Stream>,
    pub(super) revisions: RevisionSet,
    /// A request may be missing in `requests`, so a response without a request says nothing.
    pub(crate) is_overfull: bool,
    /// The client has resumed a stream, so messages of the server may come a second time.
    pub(crate) is_resumed: bool,
    /// The server has shown that it serves requests without a session.
    pub(crate) serves_stateless: bool,
    /// When its last connection was closed; none while one is open or where the recording breaks off.
    pub(crate) closed_at: Option<u64>,
    /// The number of the event that is being checked.
    pub(crate) event: u64,
}

/// How far the handshake of a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Handshake {
    /// `initialize` was not sent.
    None,
    /// `initialize` has no response.
    Requested,
    /// `initialize` has a result, and the client has not confirmed.
    Answered,
    /// `notifications/initialized` was sent.
    Ready,
}

/// A request is known by its sender and its id, and over HTTP by its stream too: other clients may use the same id.
type RequestKey = (Role, Option<u64>, String);

/// Requests without a response and HTTP requests that are remembered; what exceeds it is judged by itself.
const MAX_REQUESTS: usize = 4096;

/// Milliseconds after which a message has surely reached the other side.
const UNDER_WAY: u64 = 5_000;

impl State {
    pub(super) fn new(side: Side, transport: &str, peer: &str) -> Self {
        Self {
            side,
            transport: transport.to_owned(),
            peer: peer.to_owned(),
            negotiated: None,
            handshake: Handshake::None,
            client: PartyFacts::default(),
            server: PartyFacts::default(),
            requests: HashMap::new(),
            streams: HashMap::new(),
            revisions: RevisionSet::EMPTY,
            is_overfull: false,
            is_resumed: false,
            serves_stateless: false,
            closed_at: None,
            event: 0,
        }
    }

    /// Who sent what passed in this direction.
    pub(crate) fn sender(&self, direction: Direction) -> Role {
        Role::sender(self.side, direction)
    }

    /// The party that the recording process talks to.
    pub(super) fn other_role(&self) -> Role {
        self.sender(Direction::Received)
    }

    /// Whether this is HTTP with a request for each message: neither a pipe nor a WebSocket.
    pub(crate) fn is_http(&self) -> bool {
        matches!(&*self.transport, "http" | "http+sse")
    }

    /// Whether each request has an HTTP request of its own, whose response has all that belongs to it. Over HTTP+SSE one stream has
    /// everything, as a pipe.
    pub(crate) fn has_streams(&self) -> bool {
        self.transport == "http"
    }

    /// Whether everything that the client sends is seen: not where a session goes on that another process opened, and not
    /// where a server over HTTP sees requests one by one.
    pub(crate) fn is_whole(&self) -> bool {
        let foreign = self.handshake == Handshake::None && self.negotiated.is_some();
        let one_by_one = self.side == Side::Server && self.transport == "http" && self.is_stateless();
        !foreign && !one_by_one
    }

    /// Whether this process is that party, so that its messages are recorded in the order in which it acts.
    pub(crate) fn is_recorded_by(&self, role: Role) -> bool {
        matches!((self.side, role), (Side::Client, Role::Client) | (Side::Server, Role::Server))
    }

    /// Whether a party knew at this time of what its peer sent at an earlier one: the message may have been under way.
    pub(crate) fn surely_knew(&self, role: Role, sent: u64, now: u64) -> bool {
        // A server records an event of a stream when it is written to the connection, which may be long after it acted.
        let is_in_order = self.is_recorded_by(role) && !(role == Role::Server && self.has_streams());
        is_in_order || now.saturating_sub(sent) >= UNDER_WAY
    }

    /// Whether no session was opened.
    pub(crate) fn is_stateless(&self) -> bool {
        self.handshake == Handshake::None
    }

    /// What a party said of itself.
    pub(crate) fn facts(&self, role: Role) -> &PartyFacts {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }

    /// The requests of a party that have no response.
    pub(crate) fn unanswered(&self, from: Role) -> impl Iterator<Item = (&str, &Request)> {
        self.requests.iter().filter(move |(key, _)| key.0 == from).map(|(key, request)| (&*key.2, request))
    }

    /// The request without a response that has this id, on this stream or, where it is none of HTTP's, on any. Where several on
    /// other streams have it, none is known to be meant.
    pub(crate) fn request(&self, from: Role, stream: Option<u64>, id: &Value) -> Option<&Request> {
        let id = id.to_string();
        self.requests.get(&(from, stream, id.clone())).or_else(|| {
            // A response to a server's request is a POST of its own, and a resumed stream has a new number.
            let same = || {
                let same = self.requests.iter().filter(|(key, _)| key.0 == from && key.2 == id);
                same.filter(|(_, request)| !request.is_refused)
            };
            let only = |is_lost: bool| {
                let mut same =
                    same().map(|(_, request)| request).filter(|request| request.is_lost == is_lost);
                same.next().filter(|_| same.next().is_none())
            };
            let waits = same().any(|(_, request)| !request.is_lost);
            only(!waits)
        })
    }

    /// The HTTP request with this number, until its response has ended.
    pub(crate) fn stream(&self, stream: Option<u64>) -> Option<&Stream> {
        stream.and_then(|id| self.streams.get(&id))
    }

    pub(super) fn open_stream(&mut self, event: &Event, stream: Stream) {
        if let Some(id) = event.stream
            && self.streams.len() < MAX_REQUESTS
        {
            self.streams.insert(id, stream);
        }
    }

    /// Takes note that the requests of an HTTP request get no response.
    pub(super) fn lose_requests(&mut self, stream: Option<u64>, loses: impl Fn(&Request) -> bool) {
        if stream.is_some() {
            let lost = self.requests.values_mut().filter(|request| request.stream == stream);
            lost.filter(|request| loses(request)).for_each(|request| request.is_lost = true);
        }
    }

    /// Takes note that an HTTP request was refused, and with it its requests.
    pub(super) fn refuse_requests(&mut self, stream: Option<u64>) {
        self.lose_requests(stream, |_| true);
        let of_stream = |request: &&mut Request| stream.is_some() && request.stream == stream;
        self.requests.values_mut().filter(of_stream).for_each(|request| request.is_refused = true);
    }

    /// The request that this is the response to.
    pub(super) fn answered_by(&self, from: Role, stream: Option<u64>, value: &Value) -> Option<Request> {
        let is_response = value.get("method").is_none();
        let id = value.get("id").filter(|id| is_response && !id.is_null())?;
        self.request(from.peer(), stream, id).cloned()
    }

    /// The revision that a message is judged by: that of its session, or the one that the request names.
    pub(super) fn revision_of(&self, body: &Body<'_>, stream: Option<u64>) -> Option<Revision> {
        // A revision with sessions is not spoken by `_meta`.
        let named = |params: &Value| {
            let version = params.get("_meta")?.get(keys::PROTOCOL_VERSION)?.as_str()?;
            version.parse().ok().filter(|revision: &Revision| revision.lifecycle() == Lifecycle::PerRequest)
        };
        match body {
            // It opens a session, whatever was spoken before.
            Body::Request { method: "initialize", params, .. } => named(params).or(self.negotiated),
            Body::Request { params, .. } | Body::Notification { params, .. } => {
                let in_header = || self.stream(stream)?.stateless_revision();
                named(params).or(self.negotiated).or_else(in_header).or_else(|| self.stateless_revision())
            }
            Body::Response { request, .. } => request
                .and_then(|request| request.revision)
                .or(self.negotiated)
                .or_else(|| self.stateless_revision()),
        }
    }

    /// The newest of the revisions without sessions that were spoken.
    fn stateless_revision(&self) -> Option<Revision> {
        self.revisions.iter().rfind(|revision| revision.lifecycle() != Lifecycle::Handshake)
    }

    /// Takes note of a message that was checked.
    pub(super) fn take(&mut self, message: &Message<'_>) {
        if let Some(revision) = message.revision {
            self.revisions = self.revisions.with(revision);
        }
        if let Some(stream) = message.stream.and_then(|id| self.streams.get_mut(&id)) {
            stream.take(message);
        }
        match &message.body {
            Body::Request { id, method, params } => self.take_request(message, id, method, params),
            Body::Notification { method: "notifications/initialized", .. } => {
                if self.handshake == Handshake::Answered {
                    self.handshake = Handshake::Ready;
                }
            }
            Body::Notification { method: "notifications/cancelled", params } => {
                let id = params.get("requestId").map(Value::to_string);
                let from = message.from;
                let cancelled =
                    self.requests.iter_mut().filter(|(key, _)| key.0 == from && Some(&key.2) == id.as_ref());
                cancelled.for_each(|(_, request)| request.cancelled = true);
            }
            Body::Notification { .. } => {}
            Body::Response { id, request, result } => {
                if let Some(request) = request {
                    self.serves_stateless |= message.from == Role::Server && shows_stateless(result);
                    match result {
                        Ok(result) => self.take_result(request, result),
                        // The client may open the session again.
                        Err(_)
                            if request.method == "initialize" && self.handshake == Handshake::Requested =>
                        {
                            self.handshake = Handshake::None;
                        }
                        Err(_) => {}
                    }
                    let id = id.to_string();
                    let from = request.from;
                    self.requests.remove(&(from, request.stream, id));
                }
            }
        }
    }

    fn take_request(&mut self, message: &Message<'_>, id: &Value, method: &str, params: &Value) {
        if let Some(meta) = params.get("_meta").filter(|_| message.from == Role::Client) {
            if let Some(info) = meta.get(keys::CLIENT_INFO) {
                self.client.name = name(info);
            }
            if let Some(capabilities) = meta.get(keys::CLIENT_CAPABILITIES) {
                self.client.capabilities = capabilities.clone();
            }
        }
        // Over HTTP it opens another session, in the place of one that has ended.
        let opens = self.handshake < Handshake::Answered || self.is_http();
        if method == "initialize" && message.from == Role::Client && opens {
            self.handshake = Handshake::Requested;
            self.client.name = params.get("clientInfo").map(name).unwrap_or_default();
            self.client.capabilities = params.get("capabilities").cloned().unwrap_or_default();
        }
        self.is_overfull |= self.requests.len() >= MAX_REQUESTS;
        if self.requests.len() < MAX_REQUESTS {
            let request = Request {
                from: message.from,
                method: method.to_owned(),
                params: params.clone(),
                at: message.at,
                stream: message.stream.filter(|_| message.from == Role::Client),
                revision: message.revision,
                cancelled: false,
                is_lost: false,
                is_refused: false,
            };
            self.requests.insert((message.from, request.stream, id.to_string()), request);
        }
    }

    fn take_result(&mut self, request: &Request, result: &Value) {
        let info = result.get("_meta").and_then(|meta| meta.get(keys::SERVER_INFO));
        if let Some(info) = info.filter(|_| request.from == Role::Client) {
            self.server.name = name(info);
        }
        match &*request.method {
            "initialize" if self.handshake == Handshake::Requested => {
                self.handshake = Handshake::Answered;
                self.negotiated = result
                    .get("protocolVersion")
                    .and_then(Value::as_str)
                    .and_then(|version| version.parse().ok());
                self.revisions = self.negotiated.into_iter().fold(self.revisions, RevisionSet::with);
                self.take_server(result);
            }
            "server/discover" => self.take_server(result),
            _ => {}
        }
    }

    fn take_server(&mut self, result: &Value) {
        // Without sessions it is in `_meta`.
        let stamp = || result.get("_meta")?.get("io.modelcontextprotocol/serverInfo");
        if let Some(info) = result.get("serverInfo").or_else(stamp) {
            self.server.name = name(info);
        }
        self.server.capabilities = result.get("capabilities").cloned().unwrap_or_default();
    }
}
