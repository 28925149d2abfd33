//! Simulated clients over HTTP: an exchange for each message, the send order, the GET stream, and resuming streams.

use std::collections::{BTreeMap, VecDeque};

use refmcp_proto::engine::ExchangeId;
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, TransportError};
use refmcp_proto::frame::{SseDecoder, SseItem};
use refmcp_proto::revision::{Lifecycle, Resumption};

use super::Simulation;
use super::client::Link;
use super::network::{ConnectionId, HttpHead, HttpMethod, HttpRequest, Payload, Side};
use super::queue::Scheduled;
use super::server::response_id;
use crate::history::{Event, Fault, GET_STREAM};

/// Attempts in a row to resume a stream that may bring nothing.
const MAX_FAILED_ATTEMPTS: u32 = 5;

/// The pause before a stream is resumed, in milliseconds.
const RETRY: u64 = 300;

/// What a client has open over HTTP.
#[derive(Default)]
pub(super) struct HttpClient {
    /// `Mcp-Session-Id`.
    session: Option<u64>,
    exchanges: BTreeMap<ExchangeId, HttpExchange>,
    get_stream: Option<HttpExchange>,
    /// Messages that wait for the acknowledgement of one before.
    waiting: VecDeque<ClientMessage>,
}

/// A message under way, and what comes back for it.
struct HttpExchange {
    kind: ExchangeKind,
    /// The session that it was sent in; a stream is resumed there, even if the client has another one since.
    session: Option<u64>,
    /// None between two attempts to resume a stream.
    connection: Option<ConnectionId>,
    body: Body,
    can_resume: bool,
    /// The last event: its stream and its number.
    position: Option<(u64, u64)>,
    failed_attempts: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExchangeKind {
    Request,
    Notification,
    Response,
    GetStream,
}

enum Body {
    /// The head has not come.
    None,
    Json(Vec<u8>),
    Events(Box<SseDecoder>),
    /// The status said all.
    Refused(u16),
}

impl Simulation {
    fn http(&mut self, index: usize) -> &mut HttpClient {
        match &mut self.clients[index].link {
            Link::Http(http) => http,
            Link::Pipe(..) => unreachable!("only clients over HTTP come here"),
        }
    }

    fn exchange_mut(&mut self, index: usize, exchange: ExchangeId) -> Option<&mut HttpExchange> {
        let http = self.http(index);
        if exchange.0 == GET_STREAM { http.get_stream.as_mut() } else { http.exchanges.get_mut(&exchange) }
    }

    pub(super) fn send_http_message(&mut self, index: usize, message: ClientMessage) {
        self.http(index).waiting.push_back(message);
        self.send_waiting(index);
    }

    /// Notifications and responses go one after the other, a request waits for notifications only.
    fn send_waiting(&mut self, index: usize) {
        let http = self.http(index);
        let open = |kinds: &[ExchangeKind]| http.exchanges.values().any(|it| kinds.contains(&it.kind));
        let mut notifies = open(&[ExchangeKind::Notification]);
        let mut unanswered = notifies || open(&[ExchangeKind::Response]);
        let mut ready = Vec::new();
        for message in std::mem::take(&mut http.waiting) {
            let waits = match message.kind {
                ClientMessageKind::Request { .. } => notifies,
                ClientMessageKind::Notification { .. } | ClientMessageKind::Response => unanswered,
            };
            notifies |= matches!(message.kind, ClientMessageKind::Notification { .. });
            unanswered |= !matches!(message.kind, ClientMessageKind::Request { .. });
            if waits {
                http.waiting.push_back(message);
            } else {
                ready.push(message);
            }
        }
        for message in ready {
            self.post(index, message);
        }
    }

    fn post(&mut self, index: usize, message: ClientMessage) {
        let is_stateless = message.rules.is_some_and(|rules| rules.lifecycle == Lifecycle::PerRequest);
        let (kind, method) = match &message.kind {
            ClientMessageKind::Request { .. } if is_stateless => {
                (ExchangeKind::Request, HttpMethod::PostStateless)
            }
            ClientMessageKind::Request { .. } => (ExchangeKind::Request, HttpMethod::PostRequest),
            ClientMessageKind::Notification { .. } => (ExchangeKind::Notification, HttpMethod::PostMessage),
            ClientMessageKind::Response => (ExchangeKind::Response, HttpMethod::PostMessage),
        };
        let initializes = matches!(&message.kind,
            ClientMessageKind::Request { method, .. } if **method == *"initialize");
        let session = self.http(index).session.filter(|_| !initializes);
        let request = HttpRequest { method, session, last_event: None, body: message.json };
        let connection = self.connect(index, message.exchange, request);
        let can_resume = message.rules.is_none_or(|rules| rules.resumption != Resumption::Never);
        self.http(index).exchanges.insert(
            message.exchange,
            HttpExchange {
                kind,
                session,
                connection: Some(connection),
                body: Body::None,
                can_resume,
                position: None,
                failed_attempts: 0,
            },
        );
    }

    fn connect(&mut self, index: usize, exchange: ExchangeId, request: HttpRequest) -> ConnectionId {
        let connection = self.network.connect(&mut self.random, index, exchange);
        let payload = Payload::Request(Box::new(request));
        self.network.send(&mut self.random, self.now, connection, Side::Server, payload);
        connection
    }

    /// Opens the GET stream of a session.
    pub(super) fn open_get_stream(&mut self, index: usize) {
        let Link::Http(http) = &mut self.clients[index].link else { return };
        let before = http.get_stream.replace(HttpExchange {
            kind: ExchangeKind::GetStream,
            session: http.session,
            connection: None,
            body: Body::None,
            can_resume: true,
            position: None,
            failed_attempts: 0,
        });
        self.drop_connection(before.and_then(|before| before.connection));
        self.queue.push(self.now, Scheduled::Resume(index, ExchangeId(GET_STREAM)));
    }

    /// Asks for a stream, or for the rest of one.
    pub(super) fn resume_stream(&mut self, index: usize, exchange: ExchangeId) {
        if self.clients[index].has_left {
            return;
        }
        let Some(resumed) = self.exchange_mut(index, exchange).filter(|it| it.connection.is_none()) else {
            return;
        };
        resumed.failed_attempts += 1;
        resumed.body = Body::None;
        let (position, session) = (resumed.position, resumed.session);
        let (method, last_event) = (HttpMethod::Get, position);
        let request = HttpRequest { method, session, last_event, body: Vec::new() };
        let connection = self.connect(index, exchange, request);
        if let Some(resumed) = self.exchange_mut(index, exchange) {
            resumed.connection = Some(connection);
        }
        let (client, after) = (self.clients[index].number, position.map(|(_, seq)| seq));
        let stream = history_stream(exchange, session);
        self.record(Event::Resumed { client, stream, after });
    }

    pub(super) fn http_arrival(&mut self, index: usize, connection: ConnectionId, payload: Payload) {
        let exchange = self.network.get(connection).exchange;
        // What comes by an earlier connection of an exchange is not read.
        let is_current =
            self.exchange_mut(index, exchange).is_some_and(|open| open.connection == Some(connection));
        if !is_current {
            return;
        }
        match payload {
            Payload::Head(head) => self.head(index, exchange, head),
            Payload::Bytes(bytes) => self.body(index, exchange, &bytes),
            Payload::End => self.response_ended(index, exchange),
            Payload::Request(_) => {}
        }
        self.settle_client(index);
    }

    fn head(&mut self, index: usize, exchange: ExchangeId, head: HttpHead) {
        if head.session.is_some() {
            self.http(index).session = head.session;
        }
        if let Some(open) = self.exchange_mut(index, exchange) {
            open.body = match head {
                HttpHead { status: 200, is_stream: true, .. } => {
                    Body::Events(Box::new(SseDecoder::new(1 << 20)))
                }
                HttpHead { status: 200 | 202, .. } => Body::Json(Vec::new()),
                HttpHead { status, .. } => Body::Refused(status),
            };
        }
    }

    fn body(&mut self, index: usize, exchange: ExchangeId, bytes: &[u8]) {
        let Some(open) = self.exchange_mut(index, exchange) else { return };
        let mut items = Vec::new();
        match &mut open.body {
            Body::Json(json) => json.extend_from_slice(bytes),
            // No event is as long as the limit.
            Body::Events(events) => drop(events.feed(bytes, &mut items)),
            Body::None | Body::Refused(_) => {}
        }
        for item in items {
            let (id, data) = match item {
                SseItem::Event(event) => (event.id, event.data),
                SseItem::Primed { id } => (Some(id), String::new()),
                SseItem::Retry(_) | SseItem::Comment => continue,
            };
            let position = id.as_deref().and_then(|id| id.split_once('.'));
            let position = position.and_then(|(stream, seq)| Some((stream.parse().ok()?, seq.parse().ok()?)));
            let Some(open) = self.exchange_mut(index, exchange) else { return };
            open.failed_attempts = 0;
            open.position = position.or(open.position);
            if !data.is_empty() {
                let seq = position.map(|(_, seq)| seq);
                self.receive(index, exchange, seq, data.as_bytes());
            }
        }
    }

    /// Hands a message on; with its response, an exchange is over.
    fn receive(&mut self, index: usize, exchange: ExchangeId, seq: Option<u64>, message: &[u8]) {
        let now = self.time();
        let session = self.exchange_mut(index, exchange).and_then(|open| open.session);
        self.record_received(index, Some(history_stream(exchange, session)), seq, message);
        let from = (exchange.0 != GET_STREAM).then_some(exchange);
        if from.is_some() && response_id(message) == Some(exchange.0) {
            self.close_exchange(index, exchange);
        }
        self.clients[index].engine.receive(now, from, message);
        self.settle_client(index);
    }

    fn close_exchange(&mut self, index: usize, exchange: ExchangeId) {
        let closed = self.http(index).exchanges.remove(&exchange);
        self.drop_connection(closed.and_then(|closed| closed.connection));
        self.send_waiting(index);
    }

    fn drop_connection(&mut self, connection: Option<ConnectionId>) {
        if let Some(connection) = connection {
            self.network.close(&mut self.random, self.now, connection, Side::Client);
        }
    }

    /// A response has come to its end.
    fn response_ended(&mut self, index: usize, exchange: ExchangeId) {
        let Some(open) = self.exchange_mut(index, exchange) else { return };
        let (kind, session, is_stream) = (open.kind, open.session, matches!(open.body, Body::Events(_)));
        match std::mem::replace(&mut open.body, Body::None) {
            Body::Json(json) if kind == ExchangeKind::Request => {
                self.receive(index, exchange, None, &json);
                // A body without the response has ended it all the same.
                self.ended(index, exchange, TransportError::Misbehaved("no answer".to_owned()));
            }
            Body::Refused(404) if session.is_some() => self.session_lost(index, exchange, session),
            Body::Refused(status) if kind == ExchangeKind::GetStream => {
                self.tell(|_| format!("client {index}: the GET stream is refused with {status}"));
                self.http(index).get_stream = None;
            }
            Body::Refused(status) => {
                let why =
                    TransportError::Refused { status, error: None, body: String::new(), retry_after: None };
                self.ended(index, exchange, why);
            }
            Body::Json(_) => self.close_exchange(index, exchange),
            Body::Events(_) | Body::None => self.broken(index, exchange, is_stream),
        }
    }

    fn session_lost(&mut self, index: usize, exchange: ExchangeId, lost: Option<u64>) {
        let http = self.http(index);
        http.session.take_if(|session| Some(*session) == lost);
        let get_stream = http.get_stream.take_if(|stream| stream.session == lost);
        self.drop_connection(get_stream.and_then(|stream| stream.connection));
        self.ended(index, exchange, TransportError::SessionLost);
    }

    fn ended(&mut self, index: usize, exchange: ExchangeId, why: TransportError) {
        let now = self.time();
        let is_get_stream = exchange.0 == GET_STREAM;
        if !is_get_stream && self.http(index).exchanges.contains_key(&exchange) {
            self.close_exchange(index, exchange);
            self.clients[index].engine.ended(now, exchange, why);
        }
        self.settle_client(index);
    }

    /// The connection of an exchange is lost.
    pub(super) fn exchange_broken(&mut self, index: usize, connection: ConnectionId) {
        let exchange = self.network.get(connection).exchange;
        let Some(open) = self.exchange_mut(index, exchange) else { return };
        if open.connection == Some(connection) {
            let is_stream = matches!(open.body, Body::Events(_));
            self.broken(index, exchange, is_stream);
        }
    }

    /// A response broke off: a stream is resumed, if it can be.
    fn broken(&mut self, index: usize, exchange: ExchangeId, was_stream: bool) {
        let Some(open) = self.exchange_mut(index, exchange) else { return };
        let connection = open.connection.take();
        let is_get_stream = open.kind == ExchangeKind::GetStream;
        let can_resume = open.can_resume && (is_get_stream || open.position.is_some());
        let goes_on = can_resume && (was_stream || open.failed_attempts > 0);
        let pause = RETRY << open.failed_attempts.min(8);
        let tries = is_get_stream || open.failed_attempts < MAX_FAILED_ATTEMPTS;
        self.drop_connection(connection);
        if goes_on && tries {
            self.queue.push(self.now + pause, Scheduled::Resume(index, exchange));
        } else {
            self.ended(index, exchange, TransportError::Broken("the connection was lost".to_owned()));
        }
    }

    /// Drops the connections of streams that can be resumed, and resumes them at once by other ones.
    pub(super) fn reconnect_http(&mut self, index: usize) {
        let http = self.http(index);
        let exchanges = http.exchanges.iter_mut().map(|(exchange, open)| (*exchange, open));
        let streams = exchanges.chain(http.get_stream.iter_mut().map(|open| (ExchangeId(GET_STREAM), open)));
        let resumable = streams.filter(|(_, open)| open.can_resume && open.position.is_some());
        let dropped: Vec<_> = resumable.map(|(exchange, open)| (exchange, open.connection.take())).collect();
        for (exchange, connection) in dropped {
            self.fault(Some(index), None, Fault::Reconnected);
            self.resume_stream(index, exchange);
            self.drop_connection(connection);
        }
    }

    /// What comes for an exchange is not used any more.
    pub(super) fn abandon(&mut self, index: usize, exchange: ExchangeId) {
        if let Link::Http(http) = &self.clients[index].link
            && http.exchanges.contains_key(&exchange)
        {
            self.close_exchange(index, exchange);
        }
    }

    /// Ends the session and closes all connections.
    pub(super) fn leave_http(&mut self, index: usize) {
        let http = std::mem::take(self.http(index));
        if let Some(session) = http.session {
            let request = HttpRequest {
                method: HttpMethod::Delete,
                session: Some(session),
                last_event: None,
                body: Vec::new(),
            };
            self.connect(index, ExchangeId(u64::MAX), request);
        }
        for open in http.exchanges.into_values().chain(http.get_stream) {
            self.drop_connection(open.connection);
        }
    }
}

/// The number of a stream in the history. Each session has a GET stream of its own.
fn history_stream(exchange: ExchangeId, session: Option<u64>) -> u64 {
    if exchange.0 == GET_STREAM { u64::MAX - session.unwrap_or(0) } else { exchange.0 }
}
