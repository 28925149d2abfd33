//! The simulated server over HTTP: sessions, when a response becomes a stream, the log of streams and who reads it.
//!
//! This is what `refmcp-http` does with an engine and the backplane, without its tasks.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use refmcp_proto::engine::{ExchangeId, MessageKind, MessageTarget, OutgoingMessage};
use refmcp_proto::frame::{SseEvent, encode_event};
use refmcp_proto::jsonrpc::RequestId;
use refmcp_proto::revision::Resumption;
use refmcp_server::backplane::{
    AppendOutcome, AttachOutcome, Backplane, BackplaneSettings, MemoryBackplane, NewSession,
    OpenStreamOutcome, PostKey, ReadFrom, ReadOutcome, SessionId, StreamEventKind, StreamKey, StreamNumber,
    StreamReader, WriterEpoch,
};

use super::Simulation;
use super::network::{ConnectionId, HttpHead, HttpMethod, HttpRequest, Payload, Side};
use super::nonce;
use super::plan::Plan;
use super::queue::Scheduled;
use super::server::{EngineId, Place};
use crate::history::Event;

/// How long a response may take before it becomes a stream, in milliseconds.
const STREAM_AFTER: u64 = 250;

/// Bytes under way to a client, above which no more events are read for it.
const WINDOW: usize = 400;

/// What is sent back for a request.
pub(super) struct ServerStream {
    connection: ConnectionId,
    /// The id of the request on the wire.
    request: Option<u64>,
    pending: VecDeque<OutgoingMessage>,
    mode: StreamMode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamMode {
    /// The request is being received.
    Receiving,
    /// It will be one JSON object, or a stream.
    Deciding,
    /// A stream that cannot be resumed.
    Direct,
    /// A stream of the log, and the number of the next event.
    Logged(StreamNumber, u64),
}

/// A backplane, which in some conversations has so little room that streams lose events.
pub(super) fn small_or_usual(plan: &Plan) -> Arc<MemoryBackplane> {
    let stream_bytes = if plan.small_log { 700 } else { 1 << 20 };
    Arc::new(MemoryBackplane::new(BackplaneSettings { stream_bytes, ..BackplaneSettings::default() }))
}

/// The value of a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("nothing of the backplane in memory waits here"),
    }
}

fn session_id(number: u64) -> SessionId {
    SessionId::new(number.to_string())
}

impl Simulation {
    pub(super) fn http_request(&mut self, connection: ConnectionId, request: &HttpRequest) {
        let client = self.network.get(connection).client;
        match (request.method, request.session) {
            (HttpMethod::PostStateless, _) => {
                let engine = self.server.new_engine();
                let id = self.server.add(engine, client, Place::Request);
                self.exchange(id, connection, &request.body);
                self.end_if_answered(id);
            }
            (HttpMethod::PostRequest, None) => self.open_session(connection, client, &request.body),
            (HttpMethod::Delete, Some(number)) => {
                let known = self.server.sessions.contains_key(&number);
                self.end_session(number);
                self.respond_empty(connection, if known { 204 } else { 404 });
            }
            (method, Some(number)) => match self.server.sessions.get(&number).copied() {
                None => self.respond_empty(connection, 404),
                Some(id) => match method {
                    HttpMethod::Get => self.get(id, number, connection, request.last_event),
                    HttpMethod::PostMessage => {
                        self.engine_receives(id, ExchangeId::default(), &request.body);
                        self.settle(id);
                        self.respond_empty(connection, 202);
                    }
                    _ => self.exchange(id, connection, &request.body),
                },
            },
            (_, None) => self.respond_empty(connection, 400),
        }
    }

    fn open_session(&mut self, connection: ConnectionId, client: usize, body: &[u8]) {
        self.server.last_session += 1;
        let number = self.server.last_session;
        let engine = self.server.new_engine();
        let id = self.server.add(engine, client, Place::Session { number, epoch: 0 });
        if let Some(backplane) = &self.server.backplane {
            let idle = Duration::from_secs(3600);
            // The id is new, and there is room for it.
            let _created = ready(backplane.create_session(&session_id(number), NewSession::default(), idle));
        }
        self.server.sessions.insert(number, id);
        self.exchange(id, connection, body);
        if self.server.get(id).is_some_and(|served| served.engine.facts().is_none()) {
            self.end_session(number);
        }
    }

    /// Receives a request, and sends what comes back for it.
    fn exchange(&mut self, id: EngineId, connection: ConnectionId, body: &[u8]) {
        let Some(served) = self.server.get(id) else { return };
        served.last_exchange += 1;
        let exchange = ExchangeId(served.last_exchange);
        let request = body.strip_prefix(br#"{"jsonrpc":"2.0","id":"#).and_then(nonce::digits);
        let (pending, mode) = (VecDeque::new(), StreamMode::Receiving);
        served.streams.insert(exchange, ServerStream { connection, request, pending, mode });
        self.engine_receives(id, exchange, body);
        self.settle(id);
        if let Some(stream) = self.stream(id, exchange) {
            stream.mode = StreamMode::Deciding;
            self.decide(id, exchange, false);
        }
        let is_open = self.stream(id, exchange).is_some_and(|stream| stream.mode == StreamMode::Deciding);
        if is_open && self.session_of(id).is_some() {
            self.queue.push(self.now + STREAM_AFTER, Scheduled::DecideStream(id, exchange));
        }
    }

    fn stream(&mut self, id: EngineId, exchange: ExchangeId) -> Option<&mut ServerStream> {
        self.server.get(id)?.streams.get_mut(&exchange)
    }

    /// The session that an engine serves, and its epoch there.
    fn session_of(&mut self, id: EngineId) -> Option<(u64, u32)> {
        match self.server.get(id)?.place {
            Place::Session { number, epoch } => Some((number, epoch)),
            Place::Pipe(..) | Place::Request => None,
        }
    }

    pub(super) fn send_http(&mut self, id: EngineId, message: OutgoingMessage) {
        match message.to {
            MessageTarget::Session | MessageTarget::Exchange(ExchangeId(0)) => {
                let Some((number, _)) = self.session_of(id) else { return };
                let Some(backplane) = self.server.backplane.clone() else { return };
                self.server.last_post += 1;
                let key = PostKey(self.server.last_post);
                // A session that is over has no client to hear it.
                let _posted = ready(backplane.post(&session_id(number), key, message.json.into()));
            }
            MessageTarget::Exchange(exchange) => {
                let Some(stream) = self.stream(id, exchange) else { return };
                stream.pending.push_back(message);
                self.flush(id, exchange);
            }
        }
    }

    pub(super) fn decide_late(&mut self, id: EngineId, exchange: ExchangeId) {
        if self.stream(id, exchange).is_some_and(|stream| stream.mode == StreamMode::Deciding) {
            self.decide(id, exchange, true);
            self.pump_readers(id);
        }
    }

    /// Sends the response as JSON if it comes first, else opens a stream for whatever came, or when it is late.
    fn decide(&mut self, id: EngineId, exchange: ExchangeId, is_late: bool) {
        let session = self.session_of(id);
        let Some(stream) = self.stream(id, exchange) else { return };
        let (connection, request) = (stream.connection, stream.request);
        match stream.pending.front() {
            Some(first) if matches!(first.kind, MessageKind::Response { .. }) => {
                let json = stream.pending.pop_front().map(|message| message.json).unwrap_or_default();
                self.server.get(id).map(|served| served.streams.remove(&exchange));
                let session = session.map(|(number, _)| number);
                self.send_to_client(
                    connection,
                    Payload::Head(HttpHead { status: 200, is_stream: false, session }),
                );
                self.send_to_client(connection, Payload::Bytes(json));
                self.send_to_client(connection, Payload::End);
            }
            None if !is_late => {}
            _ => {
                let head = HttpHead { status: 200, is_stream: true, session: session.map(|it| it.0) };
                self.send_to_client(connection, Payload::Head(head));
                let mode = match session {
                    Some(session) => self.open_log(id, session, connection, request),
                    None => Some(StreamMode::Direct),
                };
                if let (Some(mode), Some(stream)) = (mode, self.stream(id, exchange)) {
                    stream.mode = mode;
                }
                self.flush(id, exchange);
            }
        }
    }

    fn open_log(
        &mut self,
        id: EngineId,
        (session, epoch): (u64, u32),
        connection: ConnectionId,
        request: Option<u64>,
    ) -> Option<StreamMode> {
        let backplane = self.server.backplane.clone()?;
        let request = request.and_then(|id| i64::try_from(id).ok()).map(RequestId::Integer);
        let opened = ready(backplane.open_stream(&session_id(session), request, WriterEpoch(epoch))).ok()?;
        let OpenStreamOutcome::Opened(number) = opened else { return None };
        let key = StreamKey::new(session_id(session), number);
        let reader = ready(StreamReader::begin(backplane, key, ReadFrom::After(0))).ok()?.ok()?;
        self.prime(id, connection, number);
        self.server.get(id)?.readers.push((connection, reader));
        Some(StreamMode::Logged(number, 1))
    }

    /// Sends the event that a stream can be resumed from before it has any, where the revision has that.
    fn prime(&mut self, id: EngineId, connection: ConnectionId, number: StreamNumber) {
        let rules = self.server.get(id).and_then(|served| Some(served.engine.peer()?.rules()));
        if rules.is_some_and(|rules| rules.resumption == Resumption::Polling) {
            let id = format!("{}.0", number.0);
            let event = SseEvent { id: Some(&id), retry: Some(500), ..SseEvent::default() };
            self.send_event(connection, &event);
        }
    }

    fn flush(&mut self, id: EngineId, exchange: ExchangeId) {
        loop {
            let session = self.session_of(id);
            let Some(stream) = self.stream(id, exchange) else { return };
            let (mode, connection) = (stream.mode, stream.connection);
            match mode {
                StreamMode::Receiving => return,
                StreamMode::Deciding => {
                    return if !stream.pending.is_empty() {
                        self.decide(id, exchange, false);
                    };
                }
                StreamMode::Direct | StreamMode::Logged(..) => {}
            }
            let Some(message) = stream.pending.pop_front() else { return };
            let is_response = matches!(message.kind, MessageKind::Response { .. });
            if is_response {
                self.server.get(id).map(|served| served.streams.remove(&exchange));
            }
            match (mode, session) {
                (StreamMode::Logged(number, next), Some(session)) => {
                    if let Some(stream) = self.stream(id, exchange) {
                        stream.mode = StreamMode::Logged(number, next + 1);
                    }
                    self.append(id, session, (number, next), message.json, is_response);
                }
                _ => {
                    let data = String::from_utf8_lossy(&message.json);
                    self.send_event(connection, &SseEvent { data: &data, ..SseEvent::default() });
                    if is_response {
                        self.send_to_client(connection, Payload::End);
                    }
                }
            }
        }
    }

    fn append(
        &mut self,
        id: EngineId,
        (session, epoch): (u64, u32),
        (number, seq): (StreamNumber, u64),
        json: Vec<u8>,
        is_final: bool,
    ) {
        let Some(backplane) = self.server.backplane.clone() else { return };
        let key = StreamKey::new(session_id(session), number);
        let kind = if is_final { StreamEventKind::Final } else { StreamEventKind::Event };
        let appended = ready(backplane.append(&key, WriterEpoch(epoch), seq, json.into(), kind));
        if !matches!(appended, Ok(AppendOutcome::Stored | AppendOutcome::Unknown | AppendOutcome::Cancelled))
        {
            let client = self.server.get(id).map_or(0, |served| served.client);
            let client = self.clients[client].number;
            self.record(Event::Reported {
                client,
                what: format!("event {seq} of {number:?}: {appended:?}").into(),
            });
        }
    }

    /// No response follows on an exchange.
    pub(super) fn no_response(&mut self, id: EngineId, exchange: ExchangeId) {
        let session = self.session_of(id);
        let Some(served) = self.server.get(id) else { return };
        let Some(stream) = served.streams.remove(&exchange) else { return };
        match (stream.mode, session) {
            (StreamMode::Logged(number, _), Some((session, epoch))) => {
                let Some(backplane) = self.server.backplane.clone() else { return };
                let key = StreamKey::new(session_id(session), number);
                // A stream that has ended needs not be forgotten.
                let _forgotten = ready(backplane.forget(&key, WriterEpoch(epoch)));
            }
            (mode, _) => {
                if mode != StreamMode::Direct {
                    let head = HttpHead { status: 200, is_stream: true, session: None };
                    self.send_to_client(stream.connection, Payload::Head(head));
                }
                self.send_to_client(stream.connection, Payload::End);
            }
        }
    }

    /// The GET stream, or the rest of a stream after an event.
    fn get(&mut self, id: EngineId, session: u64, connection: ConnectionId, last: Option<(u64, u64)>) {
        let Some(backplane) = self.server.backplane.clone() else { return };
        let (number, from) = match last {
            Some((number, seq)) => (StreamNumber(number), ReadFrom::After(seq)),
            None => (StreamNumber::GET, ReadFrom::Unread),
        };
        let key = StreamKey::new(session_id(session), number);
        match ready(StreamReader::begin(backplane, key, from)) {
            Ok(Ok(reader)) => {
                let head = HttpHead { status: 200, is_stream: true, session: None };
                self.send_to_client(connection, Payload::Head(head));
                if last.is_none() {
                    self.prime(id, connection, number);
                }
                if let Some(served) = self.server.get(id) {
                    served.readers.push((connection, reader));
                }
                self.pump_readers(id);
            }
            Ok(Err(AttachOutcome::Gone { request: Some(_) })) => {
                let client = self.network.get(connection).client;
                self.log_overrun(client);
                self.respond_empty(connection, 400);
            }
            _ => self.respond_empty(connection, 400),
        }
    }

    /// Sends readers what is in the log, as far as they take it.
    pub(super) fn pump_readers(&mut self, id: EngineId) {
        let Some(served) = self.server.get(id).filter(|served| !served.readers.is_empty()) else { return };
        let mut readers = std::mem::take(&mut served.readers);
        readers.retain_mut(|(connection, reader)| self.pump(*connection, reader));
        if let Some(served) = self.server.get(id) {
            readers.append(&mut served.readers);
            served.readers = readers;
        }
    }

    /// Whether the reader goes on.
    fn pump(&mut self, connection: ConnectionId, reader: &mut StreamReader) -> bool {
        while self.network.in_flight(connection, Side::Client) < WINDOW {
            let number = reader.stream().number.0;
            match ready(reader.try_next()) {
                Ok(ReadOutcome::Events(events)) => {
                    for event in events {
                        let id = format!("{number}.{}", event.seq);
                        let data = String::from_utf8_lossy(&event.bytes);
                        let sent = SseEvent { id: Some(&id), data: &data, ..SseEvent::default() };
                        self.send_event(connection, &sent);
                        if event.kind == StreamEventKind::Final {
                            self.send_to_client(connection, Payload::End);
                            return false;
                        }
                    }
                }
                Ok(ReadOutcome::Nothing) => return true,
                ended => {
                    if matches!(ended, Ok(ReadOutcome::Gone { request: Some(_) })) {
                        let client = self.network.get(connection).client;
                        self.log_overrun(client);
                    }
                    self.send_to_client(connection, Payload::End);
                    return false;
                }
            }
        }
        true
    }

    /// The client has taken something from a connection.
    pub(super) fn server_drained(&mut self, connection: ConnectionId) {
        let reads = |(of, _): &(ConnectionId, StreamReader)| *of == connection;
        let reading = |served: &super::server::ServedEngine| served.readers.iter().any(reads);
        let engines = &self.server.engines;
        if let Some(index) = engines.iter().position(|served| served.as_ref().is_some_and(reading)) {
            self.pump_readers(EngineId(index));
        }
    }

    pub(super) fn http_disconnected(&mut self, connection: ConnectionId) {
        for index in 0..self.server.engines.len() {
            let Some(served) = &mut self.server.engines[index] else { continue };
            served.readers.retain(|(of, _)| *of != connection);
            let on_it = |(_, stream): &(&ExchangeId, &ServerStream)| stream.connection == connection;
            let Some((exchange, stream)) = served.streams.iter().find(on_it) else { continue };
            let (exchange, request) = (*exchange, stream.request);
            // A call of a session goes on, and its response can be fetched.
            if matches!(served.place, Place::Request) {
                served.engine.close_exchange(exchange);
                served.streams.remove(&exchange);
                let client = self.clients[served.client].number;
                if let Some(request) = request {
                    self.record(Event::CancellationProcessed { client, request });
                }
                self.end_engine(EngineId(index));
            }
        }
    }

    /// Drops the engine of a request that has its response.
    pub(super) fn end_if_answered(&mut self, id: EngineId) {
        let is_answered = |served: &mut super::server::ServedEngine| {
            matches!(served.place, Place::Request) && served.streams.is_empty()
        };
        if self.server.get(id).is_some_and(is_answered) {
            self.end_engine(id);
        }
    }

    /// Ends a session, as `DELETE` does.
    pub(super) fn end_session(&mut self, number: u64) {
        let Some(id) = self.server.sessions.remove(&number) else { return };
        self.end_engine(id);
        if let Some(backplane) = self.server.backplane.clone() {
            // Nothing is left of a session that is unknown.
            let _closed = ready(backplane.close_session(&session_id(number)));
        }
    }

    fn respond_empty(&mut self, connection: ConnectionId, status: u16) {
        self.send_to_client(connection, Payload::Head(HttpHead { status, is_stream: false, session: None }));
        self.send_to_client(connection, Payload::End);
    }

    fn send_event(&mut self, connection: ConnectionId, event: &SseEvent<'_>) {
        let mut bytes = Vec::with_capacity(event.data.len() + 40);
        // Ids are numbers, and have no line breaks.
        let _written = encode_event(&mut bytes, event);
        self.send_to_client(connection, Payload::Bytes(bytes));
    }

    fn send_to_client(&mut self, connection: ConnectionId, payload: Payload) {
        self.network.send(&mut self.random, self.now, connection, Side::Client, payload);
    }
}
