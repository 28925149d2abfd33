//! Drives one engine for many requests, and sends its messages to their streams.
//!
//! Messages leave the engine under its lock, into streams that take them without waiting, so their order is the
//! engine's. Handlers run outside of the lock.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use foldhash::HashMap;
use parking_lot::Mutex;
use refmcp_proto::engine::{
    CallId, Change, CloseReason, Dispatch, ExchangeId, HandlerOutcome, MessageKind, MessageTarget,
    OutgoingMessage, Output, ServerEngine,
};
use refmcp_proto::finding::Finding;
use refmcp_proto::jsonrpc::{Message, RequestId};
use refmcp_proto::revision::{Resumption, Revision, Rules};
use refmcp_server::backplane::{
    AttachOutcome, Backplane, OpenStreamOutcome, ReadFrom, SessionId, StreamKey, StreamNumber, StreamReader,
    Unavailable,
};
use refmcp_server::transport::clock::Clock;
use refmcp_server::transport::{
    CallService, Cancellation, CommandSink, EngineCommand, EngineHandle, RunningCall,
};
use refmcp_server::{Session, SessionParts, SessionService, Timestamp};
use tokio::task::{unconstrained, yield_now};
use tokio::time::Instant;

use crate::ops::log;
use crate::stream::response_stream::{self, GET_STREAM, ResponseStream};

/// One engine with its calls and streams: that of a session, or of one stateless request.
pub(crate) struct SessionDriver {
    engine: Mutex<ServerEngine>,
    service: SessionService,
    handle: EngineHandle,
    /// Streams of requests that wait for their answers.
    streams: Mutex<HashMap<ExchangeId, Arc<ResponseStream>>>,
    get_stream: OnceLock<Arc<ResponseStream>>,
    /// Where streams are logged, in sessions whose streams can be resumed.
    log: OnceLock<(Arc<dyn Backplane>, SessionId)>,
    running: Mutex<HashMap<CallId, (Cancellation, ExchangeId)>>,
    next_exchange: AtomicU64,
    stream_bytes: usize,
    /// The number of streams that are being read.
    readers: AtomicUsize,
    /// The GET stream ends as soon as no request is in flight.
    winding_down: AtomicBool,
    /// When the engine's timer fires, in milliseconds of the clock.
    timer: AtomicU64,
    me: Weak<Self>,
}

/// Counts as a reader of the session until it is dropped.
pub(crate) struct ReaderGuard(Arc<SessionDriver>);

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Passes commands of running calls to the driver, without keeping it alive.
struct DriverSink(Weak<SessionDriver>);

impl CommandSink for DriverSink {
    fn send_command(&self, command: EngineCommand) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        if let Some(driver) = self.0.upgrade() {
            driver.take(command);
        }
        // Commands never wait for a reader, but the task that writes to the client gets a turn.
        Box::pin(yield_now())
    }
}

impl SessionDriver {
    pub(crate) fn new(opened: SessionParts, stream_bytes: usize) -> Arc<Self> {
        let SessionParts { engine, service } = opened;
        let driver = Arc::new_cyclic(|me: &Weak<Self>| Self {
            engine: Mutex::new(engine),
            service,
            handle: EngineHandle::new(Arc::new(DriverSink(me.clone()))),
            streams: Mutex::default(),
            get_stream: OnceLock::new(),
            log: OnceLock::new(),
            running: Mutex::default(),
            next_exchange: AtomicU64::new(GET_STREAM.0 + 1),
            stream_bytes,
            readers: AtomicUsize::new(0),
            winding_down: AtomicBool::new(false),
            timer: AtomicU64::new(u64::MAX),
            me: me.clone(),
        });
        driver.session().connect(driver.handle.clone());
        driver
    }

    fn session(&self) -> &Session {
        self.service.session()
    }

    fn clock(&self) -> Clock {
        self.session().server().clock()
    }

    fn now(&self) -> Timestamp {
        self.clock().now()
    }

    /// Whether a stream is being read or a request is in flight.
    pub(crate) fn is_in_use(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0 || self.engine.lock().in_flight() > 0
    }

    /// Counts a reader for as long as the guard is kept.
    pub(crate) fn add_reader(self: &Arc<Self>) -> ReaderGuard {
        self.readers.fetch_add(1, Ordering::Relaxed);
        ReaderGuard(self.clone())
    }

    /// Makes the streams of this session resumable.
    pub(crate) fn keep_log(&self, backplane: Arc<dyn Backplane>, session: SessionId) {
        // A driver has one session; if it were opened twice, the first would stay.
        let _ = self.log.set((backplane, session));
    }

    /// Opens the stream of a request's answer.
    pub(crate) fn open_stream(&self, request: Option<RequestId>) -> Arc<ResponseStream> {
        let exchange = ExchangeId(self.next_exchange.fetch_add(1, Ordering::Relaxed));
        let stream = ResponseStream::new(exchange, request, self.stream_bytes);
        self.streams.lock().insert(exchange, stream.clone());
        stream
    }

    /// The stream of messages that belong to no request.
    pub(crate) fn get_stream(&self) -> &Arc<ResponseStream> {
        self.get_stream.get_or_init(|| {
            let stream = ResponseStream::new(GET_STREAM, None, self.stream_bytes);
            if let Some((backplane, session)) = self.log.get() {
                stream.attach_log(backplane.clone(), StreamKey::get_stream(session.clone()), None);
            }
            stream
        })
    }

    /// The number of requests that wait for their answers.
    pub(crate) fn open_streams(&self) -> usize {
        self.streams.lock().len()
    }

    /// Opens a stream of the log for a request; none where streams cannot be resumed.
    pub(crate) async fn attach_log(
        &self,
        stream: &Arc<ResponseStream>,
    ) -> Result<Option<OpenStreamOutcome>, Unavailable> {
        let Some((backplane, session)) = self.log.get() else { return Ok(None) };
        let opened = backplane.open_stream(session, stream.request.clone()).await?;
        if let OpenStreamOutcome::Opened(number, epoch) = opened {
            stream.attach_log(backplane.clone(), StreamKey::new(session.clone(), number), Some(epoch));
        }
        Ok(Some(opened))
    }

    /// Reads a stream of the log; none where streams cannot be resumed.
    pub(crate) async fn read(
        &self,
        number: StreamNumber,
        from: ReadFrom,
    ) -> Result<Option<Result<StreamReader, AttachOutcome>>, Unavailable> {
        let Some((backplane, session)) = self.log.get() else { return Ok(None) };
        let stream = StreamKey::new(session.clone(), number);
        StreamReader::begin(backplane.clone(), stream, from).await.map(Some)
    }

    pub(crate) fn receive(&self, exchange: ExchangeId, message: Message<'_>) {
        let received = Instant::now();
        let now = self.clock().at(received);
        self.with_engine_since(received, |engine| engine.message(now, exchange, message));
    }

    /// Receives bytes that may be a batch.
    pub(crate) fn receive_bytes(&self, exchange: ExchangeId, bytes: &[u8]) {
        let received = Instant::now();
        let now = self.clock().at(received);
        self.with_engine_since(received, |engine| engine.receive(now, exchange, bytes));
    }

    /// Records what is wrong with a request beside its message, such as a missing header.
    pub(crate) fn note(&self, finding: Option<Finding>) {
        if let Some(finding) = finding {
            self.with_engine(|engine| engine.record_finding(finding));
        }
    }

    /// The client has closed the connection of a request.
    pub(crate) fn close_exchange(&self, exchange: ExchangeId) {
        self.streams.lock().remove(&exchange);
        self.with_engine(|engine| engine.close_exchange(exchange));
    }

    /// Cancels a request whose answer cannot be sent.
    pub(crate) fn cancel_exchange(&self, exchange: ExchangeId) {
        self.streams.lock().remove(&exchange);
        self.with_engine(|engine| engine.cancel_exchange(exchange));
    }

    /// Notifies the client of a change.
    pub(crate) fn changed(&self, change: &Change) {
        self.with_engine(|engine| engine.changed(change));
    }

    /// Ends everything: subscriptions with their last message, calls without answers.
    pub(crate) fn end(&self) {
        self.with_engine(|engine| {
            engine.wind_down();
            engine.cancel_all();
        });
        for stream in self.streams.lock().drain() {
            stream.1.end();
        }
        if let Some(stream) = self.get_stream.get() {
            stream.end();
        }
    }

    /// Ends what would never end by itself; calls go on, and so do the streams of their answers.
    pub(crate) fn wind_down(&self) {
        self.winding_down.store(true, Ordering::Relaxed);
        self.with_engine(ServerEngine::wind_down);
        if self.log.get().is_some() {
            self.get_stream().detach_reader();
        }
    }

    /// Frees memory that is not needed while the session is silent.
    pub(crate) fn shrink(&self) {
        self.engine.lock().shrink();
        self.streams.lock().shrink_to_fit();
        self.running.lock().shrink_to_fit();
    }

    /// The rules of the session's revision, once it is initialized.
    pub(crate) fn session_rules(&self) -> Option<&'static Rules> {
        self.engine.lock().peer().map(|peer| peer.rules())
    }

    /// The same, those of the latest revision with sessions until then.
    pub(crate) fn rules(&self) -> &'static Rules {
        self.session_rules().unwrap_or(Revision::LATEST_SESSION.rules())
    }

    /// Whether the client has sent `initialized`.
    pub(crate) fn is_ready(&self) -> bool {
        self.engine.lock().is_ready()
    }

    /// The scopes that a request of this session needs.
    pub(crate) fn scopes_needed(&self, method: &str, params: Option<&str>) -> Vec<Arc<str>> {
        self.session().scopes_needed(method, params)
    }

    fn with_engine(&self, act: impl FnOnce(&mut ServerEngine)) {
        self.with_engine_since(None, act);
    }

    /// The same for a message that was received at this time.
    fn with_engine_since(&self, received: impl Into<Option<Instant>>, act: impl FnOnce(&mut ServerEngine)) {
        let mut engine = self.engine.lock();
        act(&mut engine);
        let (first, more) = self.drain(&mut engine, received.into());
        self.set_timer(&engine);
        if self.winding_down.load(Ordering::Relaxed) && engine.in_flight() == 0 {
            self.get_stream().end();
        }
        drop(engine);
        for call in first.into_iter().chain(more) {
            self.start(call);
        }
    }

    /// Delivers the engine's messages in its order; returns the calls to start once the lock is released: mostly none
    /// or one.
    #[expect(clippy::vec_box, reason = "the engine boxes them, and handlers keep the box")]
    fn drain(
        &self,
        engine: &mut ServerEngine,
        received: Option<Instant>,
    ) -> (Option<Box<Dispatch>>, Vec<Box<Dispatch>>) {
        let (mut first, mut more) = (None, Vec::new());
        while let Some(output) = engine.poll() {
            match output {
                Output::Send(message) => self.deliver(message),
                Output::Run(call) if first.is_none() => first = Some(call),
                Output::Run(call) => more.push(call),
                Output::Cancel(call) => {
                    if let Some((cancel, _)) = self.running.lock().remove(&call) {
                        cancel.cancel(self.now());
                    }
                }
                Output::NoResponse(exchange) => {
                    if let Some(stream) = self.streams.lock().remove(&exchange) {
                        stream.end();
                    }
                }
                // Sessions stay in this process.
                Output::Shared(_) => {}
                Output::RootsChanged => self.service.roots_changed(),
                Output::Finding(finding) => self.service.found(&finding),
                Output::Responded { method, failed } => {
                    let took = received.map_or(Duration::ZERO, |received| received.elapsed());
                    self.service.answered(method.as_ref(), failed, took);
                }
                Output::Close(CloseReason::Stale) => {
                    for stream in self.streams.lock().values() {
                        stream.detach_reader();
                    }
                    self.get_stream().detach_reader();
                }
            }
        }
        (first, more)
    }

    fn deliver(&self, OutgoingMessage { to, kind, json }: OutgoingMessage) {
        if let MessageKind::Response { error: Some(code) } = kind {
            log::rpc_error_answered(self.session().number(), code, &json);
        }
        let message = response_stream::Message { json: json.into(), kind };
        match to {
            MessageTarget::Session | MessageTarget::Exchange(GET_STREAM) => self.get_stream().push(message),
            MessageTarget::Exchange(exchange) => {
                let mut streams = self.streams.lock();
                // The answer is the last message.
                let stream = match kind {
                    MessageKind::Response { .. } => streams.remove(&exchange),
                    MessageKind::Notification | MessageKind::Request => streams.get(&exchange).cloned(),
                };
                drop(streams);
                if let Some(stream) = stream {
                    stream.push(message);
                }
            }
        }
    }

    fn start(&self, call: Box<Dispatch>) {
        let (number, exchange) = (call.call, call.exchange);
        let RunningCall { inline, cancel, mut work } = self.service.start(call, &self.handle);
        if inline {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(outcome) = Pin::new(&mut unconstrained(&mut work)).poll(&mut context) {
                return self.finish(number, outcome);
            }
        }
        self.running.lock().insert(number, (cancel.clone(), exchange));
        let me = self.me.clone();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                outcome = work => {
                    if let Some(driver) = me.upgrade() {
                        driver.finish(number, outcome);
                    }
                }
                () = cancel.cancelled() => {}
            }
        });
    }

    fn finish(&self, call: CallId, outcome: HandlerOutcome) {
        self.running.lock().remove(&call);
        let now = self.now();
        self.with_engine(|engine| engine.finish(now, call, outcome));
    }

    fn take(&self, command: EngineCommand) {
        match command {
            EngineCommand::Finished(call, outcome) => self.finish(call, outcome),
            EngineCommand::Progress(call, progress) => {
                self.with_engine(|engine| engine.progress(call, progress));
            }
            EngineCommand::Log(call, note) => self.with_engine(|engine| engine.log(call, note)),
            EngineCommand::Changed(change) => self.with_engine(|engine| engine.session_changed(&change)),
            EngineCommand::Inspect(look) => look(&self.engine.lock()),
            EngineCommand::Detach(call) => {
                let polling = |rules: &Rules| rules.resumption == Resumption::Polling;
                if !self.session_rules().is_some_and(polling) {
                    return;
                }
                let exchange = self.running.lock().get(&call).map(|(_, exchange)| *exchange);
                let stream = exchange.and_then(|exchange| self.streams.lock().get(&exchange).cloned());
                if let Some(stream) = stream {
                    stream.detach_reader();
                }
            }
        }
    }

    /// Calls the engine again at its deadline.
    fn set_timer(&self, engine: &ServerEngine) {
        let Some(deadline) = engine.deadline() else { return };
        let millis = deadline.as_millis();
        if self.timer.fetch_min(millis, Ordering::Relaxed) <= millis {
            return;
        }
        let (me, at) = (self.me.clone(), self.clock().instant(deadline));
        tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            let Some(driver) = me.upgrade() else { return };
            driver.timer.store(u64::MAX, Ordering::Relaxed);
            let now = driver.now();
            driver.with_engine(|engine| engine.tick(now));
        });
    }
}

impl Drop for SessionDriver {
    /// Cancels running calls: their answers have no client any more.
    fn drop(&mut self) {
        let now = self.now();
        for (cancel, _) in self.running.lock().values() {
            cancel.cancel(now);
        }
    }
}

impl std::fmt::Debug for SessionDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionDriver").field("session", &self.session().number()).finish_non_exhaustive()
    }
}
