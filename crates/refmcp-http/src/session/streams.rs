//! The streams of one engine: its outbox over HTTP, where each request has a stream of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use refmcp_proto::engine::{
    CallId, CloseReason, ExchangeId, MessageKind, MessageTarget, OutgoingMessage, ServerEngine, SharedOutput,
};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_server::backplane::{PostKey, ReaderToken, StreamNumber};
use refmcp_server::transport::memory_budget::NoMemory;
use refmcp_server::transport::{MemoryAccount, MemoryReservation, Outbox};
use tokio_util::sync::DropGuard;

use crate::ops::refusal_log;
use crate::session::shared::SharedSession;
use crate::stream::message::{Gate, Message};
use crate::stream::response_stream::{GET_STREAM, ResponseStream, SessionLog};

pub(crate) struct Streams {
    /// The number of the session, for logs.
    session: u64,
    max_bytes: usize,
    /// For the session itself and responses to batches that are not complete; its account is that of the session.
    reserved: MemoryReservation,
    /// Bytes of it for the session itself.
    session_bytes: usize,
    last_exchange: u64,
    /// Exchanges whose messages are being received, with what has come back so far.
    receiving: Vec<(ExchangeId, Option<Received>)>,
    /// The streams of requests that wait for their responses.
    open: BTreeMap<ExchangeId, Arc<ResponseStream>>,
    get_stream: Option<Arc<ResponseStream>>,
    /// Where streams are logged, in sessions whose streams can be resumed.
    pub(crate) log: Option<SessionLog>,
    /// The reader of the GET stream here, or the last one.
    pub(super) get_reader: Option<ReaderToken>,
    /// What other replicas share, where there are any.
    shared: Option<Box<SharedStreams>>,
    /// The number of streams that are being read.
    pub(crate) readers: u32,
    /// The GET stream ends as soon as no request is in flight.
    pub(crate) winding_down: bool,
}

/// What streams have besides, where other replicas serve the same session.
struct SharedStreams {
    session: Arc<SharedSession>,
    /// Tells tasks of the shared session that the engine is gone.
    _until_gone: DropGuard,
    /// What has to be done before requests to the client are sent.
    gate: Option<Gate>,
    /// The key of messages to the session that other replicas have too.
    post_key: Option<PostKey>,
}

/// What comes back for a request. A response that is the first message needs no stream.
pub(crate) enum Received {
    Response(Message),
    Stream(Arc<ResponseStream>),
}

impl Streams {
    pub(crate) fn new(session: u64, max_bytes: usize, memory: &MemoryAccount) -> Self {
        Self {
            session,
            max_bytes,
            reserved: memory.reservation(),
            session_bytes: 0,
            last_exchange: GET_STREAM.0,
            receiving: Vec::new(),
            open: BTreeMap::new(),
            get_stream: None,
            log: None,
            get_reader: None,
            shared: None,
            readers: 0,
            winding_down: false,
        }
    }

    /// Keeps what is reserved for the session itself.
    pub(super) fn keep_memory(&mut self, reserved: MemoryReservation) {
        self.session_bytes = reserved.bytes();
        self.reserved = reserved;
    }

    /// Reserves so many bytes for the session itself from now on.
    pub(super) fn resize_memory(&mut self, bytes: usize) -> Result<(), NoMemory> {
        self.reserved.try_resize(self.reserved.bytes() - self.session_bytes + bytes)?;
        self.session_bytes = bytes;
        Ok(())
    }

    /// Shares the session with other replicas.
    pub(super) fn share_with(&mut self, session: Arc<SharedSession>) {
        let _until_gone = session.gone.clone().drop_guard();
        self.shared = Some(Box::new(SharedStreams { session, _until_gone, gate: None, post_key: None }));
    }

    /// What is shared with other replicas, where there are any.
    pub(super) fn shared(&self) -> Option<&Arc<SharedSession>> {
        self.shared.as_ref().map(|shared| &shared.session)
    }

    /// Sets the key of the next messages to the session, which matters where other replicas have them too.
    pub(super) fn set_post_key(&mut self, key: Option<PostKey>) {
        if let Some(shared) = &mut self.shared {
            shared.post_key = key;
        }
    }

    /// Begins an exchange; none while `max` others wait for their responses.
    pub(crate) fn begin_exchange(&mut self, max: usize) -> Option<ExchangeId> {
        if self.open.len() + self.receiving.len() >= max {
            return None;
        }
        self.last_exchange += 1;
        let exchange = ExchangeId(self.last_exchange);
        self.receiving.push((exchange, None));
        Some(exchange)
    }

    /// Begins an exchange whose messages go to a stream of the log, after so many events.
    pub(crate) fn resume_exchange(
        &mut self,
        number: StreamNumber,
        last: u64,
    ) -> (ExchangeId, Arc<ResponseStream>) {
        self.last_exchange += 1;
        let exchange = ExchangeId(self.last_exchange);
        let stream = ResponseStream::new(exchange, self.max_bytes, self.reserved.account());
        if let Some(log) = &self.log {
            stream.attach_log(log.clone(), number, last);
        }
        self.open.insert(exchange, stream.clone());
        (exchange, stream)
    }

    /// What has come back for the message of an exchange; later messages go to the stream.
    pub(crate) fn received(&mut self, exchange: ExchangeId) -> Received {
        let receiving = self.receiving.iter().position(|(receiving, _)| *receiving == exchange);
        match receiving.and_then(|position| self.receiving.swap_remove(position).1) {
            Some(Received::Stream(stream)) if !stream.has_ended() => self.open(exchange, stream),
            Some(received) => received,
            None => {
                self.open(exchange, ResponseStream::new(exchange, self.max_bytes, self.reserved.account()))
            }
        }
    }

    fn open(&mut self, exchange: ExchangeId, stream: Arc<ResponseStream>) -> Received {
        self.open.insert(exchange, stream.clone());
        Received::Stream(stream)
    }

    /// The stream of an exchange that is not over.
    fn stream(&mut self, exchange: ExchangeId) -> Option<Arc<ResponseStream>> {
        let Some((_, received)) = self.receiving.iter_mut().find(|(receiving, _)| *receiving == exchange)
        else {
            return self.open.get(&exchange).cloned();
        };
        let new = || Received::Stream(ResponseStream::new(exchange, self.max_bytes, self.reserved.account()));
        match received.get_or_insert_with(new) {
            Received::Stream(stream) => Some(stream.clone()),
            Received::Response(_) => None,
        }
    }

    /// Forgets the stream of an exchange that has no reader any more.
    pub(crate) fn forget(&mut self, exchange: ExchangeId) {
        self.open.remove(&exchange);
    }

    /// The stream of messages that belong to no request.
    pub(crate) fn get_stream(&mut self) -> &Arc<ResponseStream> {
        self.get_stream.get_or_insert_with(|| {
            let stream = ResponseStream::new(GET_STREAM, self.max_bytes, self.reserved.account());
            if let Some(log) = &self.log {
                stream.attach_log(log.clone(), StreamNumber::GET, 0);
            }
            stream
        })
    }

    /// Ends all streams.
    pub(crate) fn end(&mut self) {
        let streams = std::mem::take(&mut self.open).into_values().chain(self.get_stream.clone());
        streams.for_each(|stream| stream.end());
    }

    /// Frees memory that is not needed while the session is silent.
    pub(crate) fn shrink(&mut self) {
        self.receiving.shrink_to_fit();
    }
}

impl Outbox for Streams {
    const YIELDS: bool = true;

    fn send(&mut self, OutgoingMessage { to, kind, json }: OutgoingMessage) {
        if matches!(kind, MessageKind::Response { error: Some(_) }) || json.starts_with(b"[") {
            refusal_log::rpc_errors_answered(self.session, &json);
        }
        let mut message = Message { json: json.into(), kind, post_key: None, gate: None };
        if let Some(shared) = &self.shared {
            message.post_key = shared.post_key;
            message.gate = shared.gate.clone().filter(|_| kind == MessageKind::Request);
        }
        let exchange = match to {
            MessageTarget::Session | MessageTarget::Exchange(GET_STREAM) => {
                return self.get_stream().push(message);
            }
            MessageTarget::Exchange(exchange) => exchange,
        };
        let is_response = message.is_response();
        if is_response
            && let Some((_, nothing @ None)) = self.receiving.iter_mut().find(|(other, _)| *other == exchange)
        {
            *nothing = Some(Received::Response(message));
        } else if let Some(stream) = self.stream(exchange) {
            stream.push(message);
            // The response is the last message.
            if is_response {
                self.open.remove(&exchange);
            }
        }
    }

    fn end_exchange(&mut self, exchange: ExchangeId) {
        if let Some(stream) = self.stream(exchange) {
            stream.end();
            self.open.remove(&exchange);
        }
    }

    fn detach(&mut self, exchange: ExchangeId) {
        if let Some(stream) = self.stream(exchange) {
            stream.detach_reader();
        }
    }

    fn close(&mut self, CloseReason::PingTimeout: CloseReason) {
        self.open.values().for_each(|stream| stream.detach_reader());
        self.get_stream().detach_reader();
    }

    fn share(&mut self, output: SharedOutput) {
        let Some(session) = self.shared().cloned() else { return };
        let stream = match &output {
            SharedOutput::Expect { call: Some(call), .. } => self.stream(call.exchange),
            _ => None,
        };
        if let Some(gate) = session.share(output, stream)
            && let Some(shared) = &mut self.shared
        {
            shared.gate = Some(gate);
        }
    }

    fn call_spawned(&mut self, engine: &ServerEngine, call: CallId) {
        if let (Some(shared), Some(id)) = (self.shared(), engine.request_id(call)) {
            shared.watch(id.clone());
        }
    }

    fn step_done(&mut self, engine: &mut ServerEngine) {
        let bytes = self.session_bytes + engine.batch_bytes();
        if bytes != self.reserved.bytes()
            && let Err(error) = self.reserved.try_resize(bytes)
        {
            engine.refuse_batch_responses(&RpcError::internal(error.to_string()));
        }
        if let Some(shared) = &mut self.shared {
            shared.session.step_done(engine);
            shared.gate = None;
        }
        if self.winding_down && engine.in_flight() == 0 {
            self.get_stream().end();
        }
    }
}
