//! Drives one engine for many requests: that of a session, or of one stateless request.

use std::cell::Cell;
use std::sync::{Arc, Weak};

use refmcp_proto::engine::{
    Change, DetachedCall, ExchangeId, InputOutcome, MessageKind, MessageTarget, OutgoingMessage,
    ServerEngine, SessionFacts,
};
use refmcp_proto::finding::Finding;
use refmcp_proto::jsonrpc::{RequestId, RpcError};
use refmcp_proto::revision::{Revision, Rules};
use refmcp_server::backplane::{
    AttachOutcome, Backplane, OpenStreamOutcome, PostKey, ReadFrom, SessionId, StreamKey, StreamNumber,
    StreamReader, Unavailable, WriterEpoch,
};
use refmcp_server::transport::memory_budget::NoMemory;
use refmcp_server::transport::{EngineDriver, MemoryAccount, MemoryReservation, Observed, Outbox as _};
use refmcp_server::{Connection, Server, SessionParts, SessionService, Timestamp};

use crate::refusal::{Reason, Refusal};
use crate::request::observed::ObservedRequest;
use crate::request::response::encode_error;
use crate::session::shared::SharedSession;
use crate::session::streams::{Received, Streams};
use crate::stream::response_stream::{GET_STREAM, ResponseStream, SessionLog, drive};

/// The driver of one engine; clones are the same driver.
#[derive(Debug, Clone)]
pub(crate) struct SessionDriver(Arc<EngineDriver<SessionService, Streams>>);

/// A driver that is not kept alive.
#[derive(Debug, Clone, Default)]
pub(crate) struct WeakSessionDriver(Weak<EngineDriver<SessionService, Streams>>);

impl WeakSessionDriver {
    pub(crate) fn upgrade(&self) -> Option<SessionDriver> {
        self.0.upgrade().map(SessionDriver)
    }
}

/// Counts as a reader of the session until it is dropped.
pub(crate) struct ReaderGuard(SessionDriver);

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.0.streams(|streams| streams.readers -= 1);
    }
}

impl SessionDriver {
    pub(crate) fn new(opened: SessionParts, stream_bytes: usize) -> Self {
        let SessionParts { engine, service } = opened;
        let session = service.session().clone();
        let (streams, clock) =
            (Streams::new(session.number(), stream_bytes, &session.memory()), session.server().clock());
        let driver = EngineDriver::new(engine, service, streams, clock, None);
        session.connect(driver.handle());
        Self(driver)
    }

    pub(crate) fn downgrade(&self) -> WeakSessionDriver {
        WeakSessionDriver(Arc::downgrade(&self.0))
    }

    /// The server that the session is with.
    pub(super) fn server(&self) -> Server {
        self.0.service().session().server().clone()
    }

    fn streams<V>(&self, act: impl FnOnce(&mut Streams) -> V) -> V {
        self.0.inspect(|_, streams| act(streams))
    }

    /// Whether a stream is being read or a request is in flight.
    pub(crate) fn is_in_use(&self) -> bool {
        self.0.inspect(|engine, streams| streams.readers > 0 || engine.in_flight() > 0)
    }

    /// Counts a reader for as long as the guard is kept.
    pub(crate) fn add_reader(&self) -> ReaderGuard {
        self.streams(|streams| streams.readers += 1);
        ReaderGuard(self.clone())
    }

    /// Makes the streams of this session resumable.
    pub(crate) fn keep_log(&self, backplane: Arc<dyn Backplane>, session: SessionId, writer: WriterEpoch) {
        let driver = self.downgrade();
        self.streams(|streams| streams.log = Some(SessionLog { backplane, session, writer, driver }));
    }

    fn log(&self) -> Option<SessionLog> {
        self.streams(|streams| streams.log.clone())
    }

    /// The stream of messages that belong to no request.
    pub(crate) fn get_stream(&self) -> Arc<ResponseStream> {
        self.streams(|streams| streams.get_stream().clone())
    }

    /// Opens a stream of the log for a request; none where streams cannot be resumed.
    pub(crate) async fn attach_log(
        &self,
        stream: &Arc<ResponseStream>,
        request: Option<RequestId>,
    ) -> Result<Option<OpenStreamOutcome>, Unavailable> {
        let (log, shared) = self.streams(|streams| (streams.log.clone(), streams.shared().cloned()));
        let Some(log) = log else { return Ok(None) };
        let opened = log.backplane.open_stream(&log.session, request.clone(), log.writer).await?;
        if let OpenStreamOutcome::Opened(number) = opened {
            // Before the log: a call that waits for input is parked once there is one, and runs no longer.
            if let (Some(shared), Some(request)) = (shared, request) {
                shared.runs_here(stream.clone(), number, request);
            }
            stream.attach_log(log, number, 0);
        }
        Ok(Some(opened))
    }

    /// Reads a stream of the log; none where streams cannot be resumed.
    pub(crate) async fn read(
        &self,
        number: StreamNumber,
        from: ReadFrom,
    ) -> Result<Option<Result<StreamReader, AttachOutcome>>, Unavailable> {
        let Some(log) = self.log() else { return Ok(None) };
        let reading = StreamReader::begin(log.backplane, StreamKey::new(log.session, number), from).await?;
        if let (StreamNumber::GET, Ok(reader)) = (number, &reading) {
            self.streams(|streams| streams.get_reader = Some(reader.token()));
        }
        Ok(Some(reading))
    }

    /// Receives what has a response; nothing while `max_streams` others wait for theirs.
    pub(crate) fn exchange(
        &self,
        observed: &ObservedRequest,
        max_streams: usize,
        receive: impl FnOnce(&mut ServerEngine, Timestamp, ExchangeId),
    ) -> Option<Received> {
        let begun = Cell::new(None);
        self.0.receive(
            observed.body().as_deref(),
            |engine, streams, now| {
                begun.set(streams.begin_exchange(max_streams));
                if let Some(exchange) = begun.get() {
                    receive(engine, now, exchange);
                }
            },
            |streams| begun.get().map(|exchange| streams.received(exchange)),
        )
    }

    /// Receives what has no response, or has it on the GET stream.
    pub(crate) fn receive(
        &self,
        observed: &ObservedRequest,
        receive: impl FnOnce(&mut ServerEngine, Timestamp, ExchangeId),
    ) {
        self.0.receive(observed.body().as_deref(), |engine, _, now| receive(engine, now, GET_STREAM), |_| ());
    }

    /// Records what is wrong with a request beside its message, such as a missing header.
    pub(crate) fn record_finding(&self, finding: Option<Finding>) {
        if let Some(finding) = finding {
            self.0.step(|engine| engine.record_finding(finding));
        }
    }

    /// The same of a request that is refused, so that no message of it is received.
    pub(crate) fn record_refused_finding(&self, observed: &ObservedRequest, finding: Option<Finding>) {
        if let Some(finding) = finding {
            self.receive(observed, |engine, _, _| engine.record_finding(finding));
        }
    }

    /// The client has closed the connection of a request.
    pub(crate) fn close_exchange(&self, exchange: ExchangeId) {
        self.streams(|streams| streams.forget(exchange));
        self.0.step(|engine| engine.close_exchange(exchange));
    }

    /// Cancels a request whose answer cannot be sent.
    pub(crate) fn cancel_exchange(&self, exchange: ExchangeId) {
        self.streams(|streams| streams.forget(exchange));
        self.0.step(|engine| engine.cancel_exchange(exchange));
    }

    /// Notifies the client of a change. A session of several replicas gets the messages of one key once.
    pub(crate) fn changed(&self, change: &Change, key: Option<PostKey>) {
        let notify = |engine: &mut ServerEngine, streams: &mut Streams, _| {
            streams.set_post_key(key);
            engine.changed(change);
        };
        self.0.receive(None, notify, |streams| streams.set_post_key(None));
    }

    /// Shares the session with other replicas.
    pub(super) fn share(&self, shared: Arc<SharedSession>) {
        self.streams(|streams| streams.share_with(shared));
    }

    /// Goes on with a call of another replica, whose messages go to a stream with so many events.
    pub(super) fn resume_call(&self, number: StreamNumber, last: u64, call: DetachedCall) {
        let resume = |engine: &mut ServerEngine, streams: &mut Streams, _| {
            let (exchange, stream) = streams.resume_exchange(number, last);
            if let Some(shared) = streams.shared() {
                shared.runs_here(stream, number, call.request_id().clone());
            }
            engine.resume_call(exchange, call);
        };
        self.0.receive(None, resume, |_| ());
    }

    /// Ends a stream of another replica, which has so many events, with an error.
    pub(super) fn end_stream(&self, number: StreamNumber, last: u64, request: &RequestId, error: &RpcError) {
        let json = encode_error(Some(request), error).into();
        self.streams(|streams| {
            let (exchange, _) = streams.resume_exchange(number, last);
            let kind = MessageKind::Response { error: Some(error.code) };
            streams.send(OutgoingMessage { to: MessageTarget::Exchange(exchange), kind, json });
        });
    }

    /// The resources whose changes the client has subscribed to.
    pub(crate) fn watched_resources(&self) -> Vec<String> {
        self.0.inspect(|engine, _| engine.watched_resources().map(str::to_owned).collect())
    }

    /// Calls the engine.
    pub(crate) fn step(&self, act: impl FnOnce(&mut ServerEngine)) {
        self.0.step(act);
    }

    /// Takes the response of the client to a request of the engine, wherever it arrived.
    pub(crate) fn deliver(&self, id: &RequestId, outcome: InputOutcome) {
        self.0.deliver(id, outcome);
    }

    /// What is agreed on and set in the session.
    pub(super) fn facts(&self) -> Option<SessionFacts> {
        self.0.inspect(|engine, _| engine.facts())
    }

    /// Takes over what another replica has changed: these facts, made under the engine's lock.
    pub(super) fn adopt(&self, facts: impl FnOnce() -> Option<SessionFacts>) -> Result<(), Refusal> {
        let now = self.0.service().session().server().now();
        let mut adopted = Ok(());
        self.0.step(|engine| {
            if let Some(facts) = facts() {
                adopted = engine.adopt(now, &facts);
            }
        });
        adopted.map_err(|error| {
            Refusal::unavailable(Reason::Sessions, "this session cannot be served here", 1)
                .with_detail(error.to_string())
        })
    }

    /// Ends everything: subscriptions with their last message, calls without answers. Parked calls are left to other
    /// replicas, and so are their streams.
    pub(crate) fn end(&self) {
        self.0.inspect(|engine, streams| {
            let Some(shared) = streams.shared().cloned() else { return };
            let left = engine.leave_parked(|call| shared.leave(call));
            left.into_iter().for_each(|exchange| streams.forget(exchange));
        });
        self.0.step(|engine| {
            engine.wind_down();
            engine.cancel_all();
        });
        self.streams(Streams::end);
    }

    /// Ends what would never end by itself; calls go on, and so do the streams of their answers.
    pub(crate) fn wind_down(&self) {
        self.streams(|streams| streams.winding_down = true);
        self.0.step(ServerEngine::wind_down);
        // The GET stream may have a reader at another replica by now, which stays.
        if let Some((log, reader)) = self.streams(|streams| streams.log.clone().zip(streams.get_reader)) {
            drive(async move {
                let detached = log.backplane.detach(&StreamKey::get_stream(log.session), Some(reader)).await;
                if let Err(error) = detached {
                    tracing::warn!(%error, "a reader was not detached");
                }
            });
        }
    }

    /// How the client has opened the session.
    pub(crate) fn connection(&self) -> &Connection {
        self.0.service().session().connection()
    }

    /// Where messages of the session are reported.
    pub(crate) fn observed(&self) -> &Observed {
        &self.connection().observed
    }

    /// What the session may hold in memory.
    pub(super) fn memory(&self) -> MemoryAccount {
        self.0.service().session().memory()
    }

    /// Keeps what is reserved in that account for the session itself.
    pub(super) fn keep_memory(&self, reserved: MemoryReservation) {
        self.streams(|streams| streams.keep_memory(reserved));
    }

    /// Reserves so many bytes for the session itself from now on.
    pub(super) fn resize_memory(&self, bytes: usize) -> Result<(), NoMemory> {
        self.streams(|streams| streams.resize_memory(bytes))
    }

    /// Frees memory that is not needed while the session is silent.
    pub(crate) fn shrink(&self) {
        self.0.inspect(|engine, streams| {
            engine.shrink();
            streams.shrink();
        });
    }

    /// The rules of the session's revision, once it is initialized.
    pub(crate) fn session_rules(&self) -> Option<&'static Rules> {
        self.0.inspect(|engine, _| engine.peer().map(|peer| peer.rules()))
    }

    /// The same, those of the latest revision with sessions until then.
    pub(crate) fn rules(&self) -> &'static Rules {
        self.session_rules().unwrap_or(Revision::LATEST_SESSION.rules())
    }

    /// Whether the server has ended the session.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.service().session().has_ended()
    }

    /// Whether the client has sent `initialized`.
    pub(crate) fn is_ready(&self) -> bool {
        self.0.inspect(|engine, _| engine.is_ready())
    }

    /// The scopes that a request of this session needs.
    pub(crate) fn scopes_needed(&self, method: &str, params: Option<&str>) -> Vec<Arc<str>> {
        self.0.service().session().scopes_needed(method, params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There are many idle sessions, and with its two counts each driver fits into a block of 640 bytes.
    #[test]
    fn a_driver_is_small() {
        let bytes = size_of::<EngineDriver<SessionService, Streams>>() + 2 * size_of::<usize>();
        assert!(
            bytes <= 640,
            "{bytes}, the engine {}, the streams {}",
            size_of::<ServerEngine>(),
            size_of::<Streams>()
        );
    }
}
