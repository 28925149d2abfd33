//! An engine that many exchanges share, and the streams its messages go to.
//!
//! Messages leave the engine under its lock, into logs that take them at once: their order is the engine's. Handlers
//! run outside of the lock.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use refmcp_proto::engine::{
    CallId, Change, Channel, CloseReason, Dispatch, Kind, Outcome, Output, Sending, ServerEngine, To,
};
use refmcp_proto::jsonrpc::{Message, RequestId};
use refmcp_proto::revision::{Resumption, Rules};
use refmcp_server::transport::clock::Clock;
use refmcp_server::transport::{Cancel, Command, Link, Running, Service, Uplink};
use refmcp_server::{Opened, Runner, Session};
use tokio::task::unconstrained;
use tokio::time::Instant;

use crate::stream::EventStream;

/// The stream of what belongs to no request.
pub(crate) const STANDING: u64 = 0;

/// One engine and everything that hangs on it.
pub(crate) struct Conversation {
    engine: Mutex<ServerEngine>,
    service: Arc<Runner>,
    session: Arc<Session>,
    clock: Clock,
    link: Link,
    streams: Mutex<HashMap<u64, Arc<EventStream>>>,
    running: Mutex<HashMap<CallId, (Cancel, Channel)>>,
    next_stream: AtomicU64,
    stream_bytes: usize,
    /// When the timer rings, in milliseconds of the clock.
    alarm: AtomicU64,
    me: Weak<Self>,
}

/// The way from running calls to the engine; it does not keep the conversation alive.
struct Up(Weak<Conversation>);

impl Uplink for Up {
    fn tell(&self, command: Command) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        if let Some(conversation) = self.0.upgrade() {
            conversation.take(command);
        }
        Box::pin(std::future::ready(()))
    }
}

impl Conversation {
    pub(crate) fn new(opened: Opened, clock: Clock, stream_bytes: usize) -> Arc<Self> {
        let Opened { engine, service, session } = opened;
        let conversation = Arc::new_cyclic(|me: &Weak<Self>| Self {
            engine: Mutex::new(engine),
            service,
            session,
            clock,
            link: Link::to(Arc::new(Up(me.clone()))),
            streams: Mutex::default(),
            running: Mutex::default(),
            next_stream: AtomicU64::new(STANDING + 1),
            stream_bytes,
            alarm: AtomicU64::new(u64::MAX),
            me: me.clone(),
        });
        conversation.session.connect(conversation.link.clone());
        conversation
    }

    /// Opens a stream for the answer to a request.
    pub(crate) fn open_stream(&self, request: Option<RequestId>) -> Arc<EventStream> {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let stream = EventStream::new(number, request, self.stream_bytes);
        lock(&self.streams).insert(number, stream.clone());
        stream
    }

    /// The stream of this number, if it is still kept. The standing one is made when it is first wanted.
    pub(crate) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        let mut streams = lock(&self.streams);
        if number == STANDING {
            let standing = || EventStream::new(STANDING, None, self.stream_bytes);
            return Some(streams.entry(STANDING).or_insert_with(standing).clone());
        }
        streams.get(&number).cloned()
    }

    /// Whether a stream of this number was ever opened.
    pub(crate) fn had_stream(&self, number: u64) -> bool {
        number < self.next_stream.load(Ordering::Relaxed)
    }

    /// Whether anybody reads one of the streams: readers share them with us.
    pub(crate) fn is_read(&self) -> bool {
        lock(&self.streams).values().any(|stream| Arc::strong_count(stream) > 1)
    }

    /// How many streams are kept.
    pub(crate) fn stream_count(&self) -> usize {
        lock(&self.streams).len()
    }

    /// Forgets a stream: its answer went another way, or nobody came back for it in time.
    pub(crate) fn forget_stream(&self, number: u64) {
        lock(&self.streams).remove(&number);
    }

    /// Forgets the streams that ended before this.
    pub(crate) fn forget_streams_before(&self, time: Instant) {
        lock(&self.streams).retain(|_, stream| stream.ended_at().is_none_or(|ended| ended > time));
    }

    /// Takes in a message of the client.
    pub(crate) fn receive(&self, channel: u64, message: Message<'_>) {
        let now = self.clock.now();
        self.with_engine(|engine| engine.message(now, Channel(channel), message));
    }

    /// Takes in bytes that may be a batch.
    pub(crate) fn receive_bytes(&self, channel: u64, bytes: &[u8]) {
        let now = self.clock.now();
        self.with_engine(|engine| engine.receive(now, Channel(channel), bytes));
    }

    /// An exchange has broken off.
    pub(crate) fn close_channel(&self, channel: u64) {
        self.with_engine(|engine| engine.close_channel(Channel(channel)));
        self.forget_stream(channel);
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
        for stream in lock(&self.streams).values() {
            stream.detach();
        }
    }

    /// Ends listening streams properly, and the standing one; calls go on.
    pub(crate) fn wind_down(&self) {
        self.with_engine(ServerEngine::wind_down);
        if let Some(standing) = lock(&self.streams).get(&STANDING) {
            standing.detach();
        }
    }

    /// The rules of the session, once there is one.
    pub(crate) fn session_rules(&self) -> Option<&'static Rules> {
        lock(&self.engine).peer().map(|peer| peer.rules())
    }

    /// How many requests are in flight.
    pub(crate) fn in_flight(&self) -> usize {
        lock(&self.engine).in_flight()
    }

    fn with_engine(&self, act: impl FnOnce(&mut ServerEngine)) {
        let mut engine = lock(&self.engine);
        act(&mut engine);
        let runs = self.drain(&mut engine);
        self.set_alarm(&engine);
        drop(engine);
        for call in runs {
            self.start(call);
        }
    }

    /// Delivers what the engine has to say, in its order, and gives the calls to run once the lock is free.
    #[expect(clippy::vec_box, reason = "the engine boxes them, and handlers keep the box")]
    fn drain(&self, engine: &mut ServerEngine) -> Vec<Box<Dispatch>> {
        let mut runs = Vec::new();
        while let Some(output) = engine.poll() {
            match output {
                Output::Send(message) => self.deliver(message),
                Output::Run(call) => runs.push(call),
                Output::Cancel(call) => {
                    if let Some((cancel, _)) = lock(&self.running).remove(&call) {
                        cancel.cancel(self.clock.now());
                    }
                }
                Output::RootsChanged => self.service.roots_changed(),
                Output::Note(finding) => self.service.noted(&finding),
                Output::Close(CloseReason::Stale) => {
                    for stream in lock(&self.streams).values() {
                        stream.detach();
                    }
                }
            }
        }
        runs
    }

    fn deliver(&self, message: Sending) {
        let number = match message.to {
            To::Channel(Channel(number)) => number,
            To::Session => STANDING,
        };
        let answer = match message.kind {
            Kind::Answer { error } => Some(error),
            Kind::Notification | Kind::Request => None,
        };
        if let Some(stream) = self.stream(number) {
            stream.append(message.json, answer.filter(|_| number != STANDING));
        }
    }

    fn start(&self, call: Box<Dispatch>) {
        let (number, channel) = (call.call, call.channel);
        let Running { inline, cancel, mut work } = self.service.start(call, &self.link);
        if inline {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(outcome) = Pin::new(&mut unconstrained(&mut work)).poll(&mut context) {
                return self.finish(number, outcome);
            }
        }
        lock(&self.running).insert(number, (cancel.clone(), channel));
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

    fn finish(&self, call: CallId, outcome: Outcome) {
        lock(&self.running).remove(&call);
        let now = self.clock.now();
        self.with_engine(|engine| engine.finish(now, call, outcome));
    }

    fn take(&self, command: Command) {
        match command {
            Command::Finished(call, outcome) => self.finish(call, outcome),
            Command::Progress(call, progress) => self.with_engine(|engine| engine.progress(call, progress)),
            Command::Log(call, note) => self.with_engine(|engine| engine.log(call, note)),
            Command::Changed(change) => self.with_engine(|engine| engine.session_changed(&change)),
            Command::Inspect(look) => look(&lock(&self.engine)),
            Command::Detach(call) => {
                let polling = |rules: &Rules| rules.resumption == Resumption::Polling;
                if !self.session_rules().is_some_and(polling) {
                    return;
                }
                let channel = lock(&self.running).get(&call).map(|(_, channel)| channel.0);
                if let Some(stream) = channel.and_then(|channel| self.stream(channel)) {
                    stream.detach();
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
        let (me, at) = (self.me.clone(), self.clock.instant(deadline));
        tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            let Some(conversation) = me.upgrade() else { return };
            conversation.alarm.store(u64::MAX, Ordering::Relaxed);
            let now = conversation.clock.now();
            conversation.with_engine(|engine| engine.tick(now));
        });
    }
}

impl Drop for Conversation {
    /// Nobody is left to whom running calls could answer.
    fn drop(&mut self) {
        let now = self.clock.now();
        for (cancel, _) in lock(&self.running).values() {
            cancel.cancel(now);
        }
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation").field("session", &self.session.number()).finish_non_exhaustive()
    }
}

/// What is behind these locks is never left half done, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
