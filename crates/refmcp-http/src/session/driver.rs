//! An engine that many exchanges share, and the streams its messages go to.
//!
//! Messages leave the engine under its lock, into logs that take them at once: their order is the engine's. Handlers
//! run outside of the lock.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};

use foldhash::HashMap;
use parking_lot::Mutex;
use refmcp_proto::engine::{
    CallId, Change, CloseReason, Dispatch, ExchangeId, HandlerOutcome, MessageKind, MessageTarget,
    OutgoingMessage, Output, ServerEngine,
};
use refmcp_proto::finding::Finding;
use refmcp_proto::jsonrpc::{Message, RequestId};
use refmcp_proto::revision::{Resumption, Rules};
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

use crate::ops::error_log;
use crate::stream::response_stream::{self, ResponseStream};

/// The number of the outlet for what belongs to no request.
pub(crate) const GET_STREAM: u64 = 0;

/// One engine and everything that hangs on it.
pub(crate) struct SessionDriver {
    engine: Mutex<ServerEngine>,
    service: SessionService,
    handle: EngineHandle,
    /// Exchanges that wait for their answers.
    outlets: Mutex<HashMap<u64, Arc<ResponseStream>>>,
    standing: OnceLock<Arc<ResponseStream>>,
    /// Where what was missed can be read again, in sessions that have that.
    log: OnceLock<(Arc<dyn Backplane>, SessionId)>,
    running: Mutex<HashMap<CallId, (Cancellation, ExchangeId)>>,
    next_outlet: AtomicU64,
    outlet_bytes: usize,
    /// How many read what is said here.
    readers: AtomicUsize,
    /// Once nothing is in flight any more, nothing more is said.
    winding_down: AtomicBool,
    /// When the timer rings, in milliseconds of the clock.
    alarm: AtomicU64,
    me: Weak<Self>,
}

/// One who reads what a conversation says.
pub(crate) struct ReaderGuard(Arc<SessionDriver>);

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The way from running calls to the engine; it does not keep the conversation alive.
struct Up(Weak<SessionDriver>);

impl CommandSink for Up {
    fn send_command(&self, command: EngineCommand) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        if let Some(conversation) = self.0.upgrade() {
            conversation.take(command);
        }
        // Nothing waits for a reader here; but whoever writes to it gets a turn before more is said.
        Box::pin(yield_now())
    }
}

impl SessionDriver {
    pub(crate) fn new(opened: SessionParts, outlet_bytes: usize) -> Arc<Self> {
        let SessionParts { engine, service } = opened;
        let conversation = Arc::new_cyclic(|me: &Weak<Self>| Self {
            engine: Mutex::new(engine),
            service,
            handle: EngineHandle::new(Arc::new(Up(me.clone()))),
            outlets: Mutex::default(),
            standing: OnceLock::new(),
            log: OnceLock::new(),
            running: Mutex::default(),
            next_outlet: AtomicU64::new(GET_STREAM + 1),
            outlet_bytes,
            readers: AtomicUsize::new(0),
            winding_down: AtomicBool::new(false),
            alarm: AtomicU64::new(u64::MAX),
            me: me.clone(),
        });
        conversation.session().connect(conversation.handle.clone());
        conversation
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

    /// Whether anybody reads what is said here.
    pub(crate) fn is_read(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    /// Somebody reads what is said here, for as long as this is kept.
    pub(crate) fn add_reader(self: &Arc<Self>) -> ReaderGuard {
        self.readers.fetch_add(1, Ordering::Relaxed);
        ReaderGuard(self.clone())
    }

    /// From now on, streams of this session can be taken up again.
    pub(crate) fn keep_log(&self, backplane: Arc<dyn Backplane>, session: SessionId) {
        // A conversation is one session's; were it opened twice, the first would stay.
        let _ = self.log.set((backplane, session));
    }

    /// Opens a way out for the answer to a request.
    pub(crate) fn open_outlet(&self, request: Option<RequestId>) -> Arc<ResponseStream> {
        let number = self.next_outlet.fetch_add(1, Ordering::Relaxed);
        let outlet = ResponseStream::new(number, request, self.outlet_bytes);
        self.outlets.lock().insert(number, outlet.clone());
        outlet
    }

    /// The way out for what belongs to no request.
    pub(crate) fn standing(&self) -> &Arc<ResponseStream> {
        self.standing.get_or_init(|| {
            let outlet = ResponseStream::new(GET_STREAM, None, self.outlet_bytes);
            if let Some((backplane, session)) = self.log.get() {
                outlet.attach_log(backplane.clone(), StreamKey::get_stream(session.clone()), None);
            }
            outlet
        })
    }

    /// How many exchanges wait for their answers.
    pub(crate) fn exchanges(&self) -> usize {
        self.outlets.lock().len()
    }

    /// The stream of the log that an exchange goes to from now on; none where nothing can be read again.
    pub(crate) async fn log(
        &self,
        outlet: &Arc<ResponseStream>,
    ) -> Result<Option<OpenStreamOutcome>, Unavailable> {
        let Some((backplane, session)) = self.log.get() else { return Ok(None) };
        let opened = backplane.open_stream(session, outlet.request.clone()).await?;
        if let OpenStreamOutcome::Opened(number, epoch) = opened {
            let stream = StreamKey::new(session.clone(), number);
            outlet.attach_log(backplane.clone(), stream, Some(epoch));
        }
        Ok(Some(opened))
    }

    /// Reads a stream of the log; none where nothing can be read again.
    pub(crate) async fn read(
        &self,
        number: StreamNumber,
        from: ReadFrom,
    ) -> Result<Option<Result<StreamReader, AttachOutcome>>, Unavailable> {
        let Some((backplane, session)) = self.log.get() else { return Ok(None) };
        let stream = StreamKey::new(session.clone(), number);
        StreamReader::begin(backplane.clone(), stream, from).await.map(Some)
    }

    /// Takes in a message of the client.
    pub(crate) fn receive(&self, channel: u64, message: Message<'_>) {
        let now = self.now();
        self.with_engine(|engine| engine.message(now, ExchangeId(channel), message));
    }

    /// Takes in bytes that may be a batch.
    pub(crate) fn receive_bytes(&self, channel: u64, bytes: &[u8]) {
        let now = self.now();
        self.with_engine(|engine| engine.receive(now, ExchangeId(channel), bytes));
    }

    /// Notes what the client did wrong beside its messages, such as a header that is missing.
    pub(crate) fn note(&self, finding: Finding) {
        self.with_engine(|engine| engine.record_finding(finding));
    }

    /// An exchange has broken off.
    pub(crate) fn close_channel(&self, channel: u64) {
        self.outlets.lock().remove(&channel);
        self.with_engine(|engine| engine.close_exchange(ExchangeId(channel)));
    }

    /// An exchange cannot be answered: nothing is done for it.
    pub(crate) fn refuse(&self, channel: u64) {
        self.outlets.lock().remove(&channel);
        self.with_engine(|engine| engine.cancel_exchange(ExchangeId(channel)));
    }

    /// Tells of a change.
    pub(crate) fn changed(&self, change: &Change) {
        self.with_engine(|engine| engine.changed(change));
    }

    /// Ends everything: listeners properly, calls without answers.
    pub(crate) fn end(&self) {
        self.with_engine(|engine| {
            engine.wind_down();
            engine.cancel_all();
        });
        for outlet in self.outlets.lock().drain() {
            outlet.1.end();
        }
        if let Some(standing) = self.standing.get() {
            standing.end();
        }
    }

    /// Ends what would never end by itself; calls go on, and what carries their answers.
    pub(crate) fn wind_down(&self) {
        self.winding_down.store(true, Ordering::Relaxed);
        self.with_engine(ServerEngine::wind_down);
        if self.log.get().is_some() {
            self.standing().cut();
        }
    }

    /// Gives back room that a busier time has left behind.
    pub(crate) fn shrink(&self) {
        self.engine.lock().shrink();
        self.outlets.lock().shrink_to_fit();
        self.running.lock().shrink_to_fit();
    }

    /// The rules of the session, once there is one.
    pub(crate) fn session_rules(&self) -> Option<&'static Rules> {
        self.engine.lock().peer().map(|peer| peer.rules())
    }

    /// Whether the client has said that it is ready.
    pub(crate) fn is_ready(&self) -> bool {
        self.engine.lock().is_ready()
    }

    /// The scopes that a request of this session takes.
    pub(crate) fn scopes_needed(&self, method: &str, params: Option<&str>) -> Vec<Arc<str>> {
        self.session().scopes_needed(method, params)
    }

    /// How many requests are in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.engine.lock().in_flight()
    }

    fn with_engine(&self, act: impl FnOnce(&mut ServerEngine)) {
        let mut engine = self.engine.lock();
        act(&mut engine);
        let (first, more) = self.drain(&mut engine);
        self.set_alarm(&engine);
        if self.winding_down.load(Ordering::Relaxed) && engine.in_flight() == 0 {
            self.standing().end();
        }
        drop(engine);
        for call in first.into_iter().chain(more) {
            self.start(call);
        }
    }

    /// Delivers what the engine has to say, in its order, and gives the calls to run once the lock is free: mostly none
    /// or one.
    #[expect(clippy::vec_box, reason = "the engine boxes them, and handlers keep the box")]
    fn drain(&self, engine: &mut ServerEngine) -> (Option<Box<Dispatch>>, Vec<Box<Dispatch>>) {
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
                Output::NoResponse(ExchangeId(number)) => {
                    if let Some(outlet) = self.outlets.lock().remove(&number) {
                        outlet.end();
                    }
                }
                Output::RootsChanged => self.service.roots_changed(),
                Output::Finding(finding) => self.service.found(&finding),
                Output::Close(CloseReason::Stale) => {
                    for outlet in self.outlets.lock().values() {
                        outlet.cut();
                    }
                    self.standing().cut();
                }
            }
        }
        (first, more)
    }

    fn deliver(&self, OutgoingMessage { to, kind, json }: OutgoingMessage) {
        if let MessageKind::Response { error: Some(code) } = kind {
            error_log::answered(self.session().number(), code, &json);
        }
        let message = response_stream::Message { json: json.into(), kind };
        match to {
            MessageTarget::Session | MessageTarget::Exchange(ExchangeId(GET_STREAM)) => {
                self.standing().push(message)
            }
            MessageTarget::Exchange(ExchangeId(number)) => {
                let mut outlets = self.outlets.lock();
                // The answer is the last that is said.
                let outlet = match kind {
                    MessageKind::Response { .. } => outlets.remove(&number),
                    MessageKind::Notification | MessageKind::Request => outlets.get(&number).cloned(),
                };
                drop(outlets);
                if let Some(outlet) = outlet {
                    outlet.push(message);
                }
            }
        }
    }

    fn start(&self, call: Box<Dispatch>) {
        let (number, channel) = (call.call, call.exchange);
        let RunningCall { inline, cancel, mut work } = self.service.start(call, &self.handle);
        if inline {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(outcome) = Pin::new(&mut unconstrained(&mut work)).poll(&mut context) {
                return self.finish(number, outcome);
            }
        }
        self.running.lock().insert(number, (cancel.clone(), channel));
        let me = self.me.clone();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                outcome = work => {
                    if let Some(conversation) = me.upgrade() {
                        conversation.finish(number, outcome);
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
                self.with_engine(|engine| engine.progress(call, progress))
            }
            EngineCommand::Log(call, note) => self.with_engine(|engine| engine.log(call, note)),
            EngineCommand::Changed(change) => self.with_engine(|engine| engine.session_changed(&change)),
            EngineCommand::Inspect(look) => look(&self.engine.lock()),
            EngineCommand::Detach(call) => {
                let polling = |rules: &Rules| rules.resumption == Resumption::Polling;
                if !self.session_rules().is_some_and(polling) {
                    return;
                }
                let channel = self.running.lock().get(&call).map(|(_, channel)| channel.0);
                let outlet = channel.and_then(|channel| self.outlets.lock().get(&channel).cloned());
                if let Some(outlet) = outlet {
                    outlet.cut();
                }
            }
        }
    }

    /// Sees to it that the engine is called when it wants to be.
    fn set_alarm(&self, engine: &ServerEngine) {
        let Some(deadline) = engine.deadline() else { return };
        let millis = deadline.as_millis();
        if self.alarm.fetch_min(millis, Ordering::Relaxed) <= millis {
            return;
        }
        let (me, at) = (self.me.clone(), self.clock().instant(deadline));
        tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            let Some(conversation) = me.upgrade() else { return };
            conversation.alarm.store(u64::MAX, Ordering::Relaxed);
            let now = conversation.now();
            conversation.with_engine(|engine| engine.tick(now));
        });
    }
}

impl Drop for SessionDriver {
    /// Nobody is left to whom running calls could answer.
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
