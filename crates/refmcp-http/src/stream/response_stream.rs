//! The messages of one response. They wait here until the kind of response is decided; then a reader takes them from
//! here or, in a session whose streams can be resumed, they go into the backplane's log and are read from there.
//!
//! A writer never waits for a reader: pending messages are kept up to a number of bytes, and as long as the memory budget
//! has room for them.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use refmcp_proto::engine::{ExchangeId, InputOutcome, MessageKind};
use refmcp_proto::jsonrpc::{RpcError, error_instead, id_of};
use refmcp_server::backplane::{
    self, AppendOutcome, Backplane, PostKey, PostOutcome, SessionId, StreamKey, StreamNumber, Unavailable,
    WriterEpoch,
};
use refmcp_server::transport::{MemoryAccount, MemoryReservation};
use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::session::driver::WeakSessionDriver;
use crate::stream::message::Message;
use crate::stream::retry::{RETRY_DELAY, until_available};

/// The exchange of the GET stream: messages that belong to no request.
pub(crate) const GET_STREAM: ExchangeId = ExchangeId(0);

/// The messages of one response, or of the GET stream.
#[derive(Debug)]
pub(crate) struct ResponseStream {
    pub(crate) exchange: ExchangeId,
    max_bytes: usize,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    pending: VecDeque<Message>,
    /// The memory of the pending messages.
    reserved: MemoryReservation,
    /// No more messages follow.
    ended: bool,
    /// More messages were pending than fit, and were dropped, while there was no log.
    overrun: bool,
    /// The client was disconnected and is to resume the stream.
    detached: bool,
    /// Counts readers; only the latest may read.
    reader: u64,
    log: Option<Arc<Log>>,
    /// A task is writing to the log.
    writing: bool,
}

/// Where the streams of a session are logged.
#[derive(Debug, Clone)]
pub(crate) struct SessionLog {
    pub(crate) backplane: Arc<dyn Backplane>,
    pub(crate) session: SessionId,
    pub(crate) writer: WriterEpoch,
    /// The driver of the session: it hears of requests to the client that do not fit into the log.
    pub(crate) driver: WeakSessionDriver,
}

/// The stream of the backplane's log that messages go to.
#[derive(Debug)]
struct Log {
    backplane: Arc<dyn Backplane>,
    key: StreamKey,
    writer: WriterEpoch,
    driver: WeakSessionDriver,
    /// The number of the next event; on the GET stream, the key of the next post.
    next: AtomicU64,
}

#[derive(Debug)]
pub(crate) enum Next {
    Message(Message),
    /// No message yet.
    Wait,
    /// No more messages follow.
    End,
    /// Another reader has taken over, or messages were dropped.
    Lost,
}

impl ResponseStream {
    pub(crate) fn new(exchange: ExchangeId, max_bytes: usize, memory: &MemoryAccount) -> Arc<Self> {
        let state = Mutex::new(State::new(memory));
        Arc::new(Self { exchange, max_bytes, state, changed: Notify::new() })
    }

    pub(crate) fn push(self: &Arc<Self>, message: Message) {
        let mut state = self.state.lock();
        let is_get_stream = self.exchange == GET_STREAM;
        if state.ended || state.overrun && (is_get_stream || message.kind == MessageKind::Notification) {
            return;
        }
        state.ended = !is_get_stream && message.is_response();
        state.add(message, is_get_stream);
        if state.reserved.bytes() > self.max_bytes && state.pending.len() > 1 {
            state.make_room(is_get_stream);
        }
        let logged = state.log.is_some();
        drop(state);
        if logged {
            self.write();
        } else {
            self.changed.notify_waiters();
        }
    }

    /// Ends the stream: no more messages follow.
    pub(crate) fn end(&self) {
        if let Some(log) = self.change(|state| state.ended = true) {
            drive(async move {
                if !log.is_get_stream() {
                    let forget = || log.backplane.forget(&log.key, log.writer);
                    until_available("a stream that has ended counts as running", forget).await;
                }
            });
        }
    }

    /// Whether no more messages follow.
    pub(crate) fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// Whether every message was taken and no more follow.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.state.lock();
        state.ended && state.pending.is_empty()
    }

    /// Disconnects the client wherever it reads the stream, which it is to resume later.
    pub(crate) fn detach_reader(&self) {
        let log = self.change(|state| {
            state.detached = true;
            state.reader += 1;
        });
        if let Some(log) = log {
            drive(async move {
                if let Err(error) = log.backplane.detach(&log.key, None).await {
                    tracing::warn!(%error, "a reader was not detached");
                }
            });
        }
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.state.lock().detached
    }

    /// The JSON-RPC response, if it is the first message.
    pub(crate) fn try_first_response(&self) -> Option<Message> {
        self.state.lock().pop_if(|first| first.is_response())
    }

    /// Waits for the first message and takes it if it is the JSON-RPC response.
    pub(crate) async fn first_response(&self) -> Option<Message> {
        let decided =
            |state: &State| !state.pending.is_empty() || state.ended || state.detached || state.overrun;
        self.until(|state| decided(state).then_some(())).await;
        self.try_first_response()
    }

    /// Waits until the state has something.
    async fn until<T>(&self, find: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let found = find(&self.state.lock());
            if let Some(found) = found {
                return found;
            }
            changed.await;
        }
    }

    /// A new reader, which replaces the one before.
    pub(crate) fn attach(self: &Arc<Self>) -> Reader {
        let mut number = 0;
        self.change(|state| {
            state.reader += 1;
            number = state.reader;
        });
        Reader { stream: self.clone(), number }
    }

    /// Sends all messages to a stream of the log from now on, pending ones first. It has so many events.
    pub(crate) fn attach_log(self: &Arc<Self>, log: SessionLog, number: StreamNumber, last: u64) {
        let SessionLog { backplane, session, writer, driver } = log;
        let next = AtomicU64::new(if number == StreamNumber::GET { next_key() } else { last + 1 });
        let key = StreamKey::new(session, number);
        let mut is_answered = false;
        self.change(|state| {
            state.log = Some(Arc::new(Log { backplane, key, writer, driver, next }));
            state.overrun = false;
            is_answered = !state.ended || state.pending.iter().any(Message::is_response);
            if !is_answered {
                state.clear();
            }
        });
        if !is_answered {
            return self.end();
        }
        self.write();
    }

    /// Waits until no more messages follow, and all are in the log or with their reader.
    pub(crate) async fn settled(&self) {
        self.until(|state| (state.ended && state.pending.is_empty()).then_some(())).await;
    }

    /// Waits for the stream of the log; none if this ends before.
    pub(crate) async fn log_number(&self) -> Option<StreamNumber> {
        self.until(|state| match &state.log {
            Some(log) => Some(Some(log.key.number)),
            None => (state.ended || state.overrun).then_some(None),
        })
        .await
    }

    /// Writes pending messages to the log, unless a task does so already.
    fn write(self: &Arc<Self>) {
        if !std::mem::replace(&mut self.state.lock().writing, true) {
            drive(self.clone().write_all());
        }
    }

    async fn write_all(self: Arc<Self>) {
        let mut delay = RETRY_DELAY.0;
        while let Some((log, message)) = self.next_to_write() {
            if let Some(gate) = &message.gate
                && !gate.clone().opened().await
            {
                drop(self.state.lock().pop());
                continue;
            }
            match log.store(&message).await {
                Ok(Stored::Yes) => drop(self.state.lock().pop()),
                Ok(Stored::NoRoom) => self.replace_first(&log, &message).await,
                // The log has ended this stream, so the pending messages have no reader.
                Ok(Stored::Over) => return self.abandon(),
                Err(error) => {
                    tracing::warn!(%error, "an event was not logged; it is tried again");
                    tokio::time::sleep(delay).await;
                    delay = RETRY_DELAY.1.min(delay * 2);
                    continue;
                }
            }
            delay = RETRY_DELAY.0;
        }
        self.changed.notify_waiters();
    }

    fn next_to_write(&self) -> Option<(Arc<Log>, Message)> {
        let mut state = self.state.lock();
        let found = state.log.clone().zip(state.pending.front().cloned());
        state.writing = found.is_some();
        found
    }

    /// Replaces an answer that does not fit into the log by an error. A request to the client that does not fit fails.
    async fn replace_first(&self, log: &Log, message: &Message) {
        drop(self.state.lock().pop());
        let bytes = message.json.len();
        match message.kind {
            MessageKind::Notification => tracing::warn!(bytes, "a notification finds no room in the log"),
            MessageKind::Request => {
                tracing::warn!(bytes, "a request to the client finds no room in the log");
                let Some(id) = id_of(&message.json) else { return };
                let error =
                    RpcError::internal("the request to the client finds no room in the log of its stream");
                // Not under the engine's lock.
                yield_now().await;
                if let Some(driver) = log.driver.upgrade() {
                    driver.deliver(&id, InputOutcome::Error(error));
                }
            }
            MessageKind::Response { .. } => {
                let error = RpcError::internal("the answer finds no room in the log of this stream");
                let json = Bytes::from(error_instead(&message.json, &error));
                if json == message.json {
                    return tracing::error!("not even an error finds room in the log");
                }
                let mut state = self.state.lock();
                state.reserved.grow(json.len());
                let kind = MessageKind::Response { error: Some(error.code) };
                state.pending.push_front(Message { json, kind, post_key: None, gate: None });
            }
        }
    }

    fn abandon(&self) {
        let mut state = self.state.lock();
        state.clear();
        state.ended = true;
        state.writing = false;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Changes the state and wakes readers; gives the log for what is left to do there.
    fn change(&self, change: impl FnOnce(&mut State)) -> Option<Arc<Log>> {
        let mut state = self.state.lock();
        change(&mut state);
        let log = state.log.clone();
        drop(state);
        self.changed.notify_waiters();
        log
    }
}

impl State {
    fn new(memory: &MemoryAccount) -> Self {
        Self {
            pending: VecDeque::new(),
            reserved: memory.reservation(),
            ended: false,
            overrun: false,
            detached: false,
            reader: 0,
            log: None,
            writing: false,
        }
    }

    /// Adds a message. Where there is no memory for it, notifications are dropped, and a response becomes an error.
    fn add(&mut self, mut message: Message, is_get_stream: bool) {
        if self.reserved.try_grow(message.json.len()).is_err() {
            self.make_room(is_get_stream);
            if let Err(error) = self.reserved.try_grow(message.json.len()) {
                match message.kind {
                    MessageKind::Notification => return,
                    // The handler waits for its response.
                    MessageKind::Request => {}
                    MessageKind::Response { .. } => {
                        let error = RpcError::internal(format!("the request was executed, but {error}"));
                        message.json = error_instead(&message.json, &error).into();
                        message.kind = MessageKind::Response { error: Some(error.code) };
                    }
                }
                self.reserved.grow(message.json.len());
            }
        }
        self.pending.push_back(message);
    }

    fn pop(&mut self) -> Option<Message> {
        self.pop_if(|_| true)
    }

    fn pop_if(&mut self, wanted: impl FnOnce(&mut Message) -> bool) -> Option<Message> {
        let message = self.pending.pop_front_if(wanted)?;
        self.reserved.shrink(message.json.len());
        Some(message)
    }

    fn clear(&mut self) {
        self.pending.clear();
        self.reserved.shrink(usize::MAX);
    }

    /// Drops notifications. They have no event number yet, so no gap results in the log, which may still be opened; the
    /// first may have one while it is being written. A reader without a log has a gap, and its stream breaks. The GET
    /// stream without a log loses all: any number of responses may come there.
    fn make_room(&mut self, is_get_stream: bool) {
        self.overrun = self.log.is_none();
        if self.overrun && is_get_stream {
            return self.clear();
        }
        let (before, mut is_first) = (self.pending.len(), true);
        self.pending.retain(|message| {
            let is_being_written = std::mem::take(&mut is_first) && self.writing;
            is_being_written || message.kind != MessageKind::Notification
        });
        let kept = self.pending.iter().map(|message| message.json.len()).sum();
        self.reserved.shrink(self.reserved.bytes().saturating_sub(kept));
        if !self.overrun {
            tracing::warn!(dropped = before - self.pending.len(), "the log is too slow");
        }
    }
}

enum Stored {
    Yes,
    NoRoom,
    Over,
}

impl Log {
    /// Many replicas write the GET stream, so its events are posted.
    fn is_get_stream(&self) -> bool {
        self.key.number == StreamNumber::GET
    }

    async fn store(&self, message: &Message) -> Result<Stored, Unavailable> {
        let json = message.json.clone();
        let next = self.next.load(Ordering::Relaxed);
        if self.is_get_stream() {
            let key = message.post_key.unwrap_or_else(|| post_key(next));
            return Ok(match self.backplane.post(&self.key.session, key, json).await? {
                PostOutcome::Stored(_) | PostOutcome::Already(_) => {
                    self.next.store(next_key(), Ordering::Relaxed);
                    Stored::Yes
                }
                PostOutcome::TooLarge | PostOutcome::Full => Stored::NoRoom,
                PostOutcome::Unknown => Stored::Over,
            });
        }
        let kind = if message.is_response() {
            backplane::StreamEventKind::Final
        } else {
            backplane::StreamEventKind::Event
        };
        Ok(match self.backplane.append(&self.key, self.writer, next, json, kind).await? {
            AppendOutcome::Stored | AppendOutcome::Already => {
                self.next.store(next + 1, Ordering::Relaxed);
                Stored::Yes
            }
            AppendOutcome::TooLarge | AppendOutcome::Full => Stored::NoRoom,
            AppendOutcome::Gap { .. }
            | AppendOutcome::Fenced
            | AppendOutcome::Ended
            | AppendOutcome::Cancelled
            | AppendOutcome::Unknown => Stored::Over,
        })
    }
}

/// A number that no other post of this process has.
fn next_key() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

/// A key that no post of another process has, either.
fn post_key(number: u64) -> PostKey {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    let process = *PROCESS.get_or_init(|| getrandom::u64().unwrap_or_default());
    PostKey(u128::from(process) << 64 | u128::from(number))
}

/// Polls a future once and spawns a task for the rest if it is not done by then.
pub(crate) fn drive(work: impl Future<Output = ()> + Send + 'static) {
    let mut work = Box::pin(work);
    if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        tokio::spawn(work);
    }
}

#[derive(Debug)]
pub(crate) struct Reader {
    stream: Arc<ResponseStream>,
    number: u64,
}

impl Reader {
    pub(crate) fn try_next(&self) -> Next {
        let mut state = self.stream.state.lock();
        if state.reader != self.number || state.overrun {
            return Next::Lost;
        }
        match state.pop() {
            Some(message) => Next::Message(message),
            None if state.ended => Next::End,
            None => Next::Wait,
        }
    }

    /// Waits until there is something to read.
    pub(crate) async fn readable(&self) {
        loop {
            let mut changed = std::pin::pin!(self.stream.changed.notified());
            changed.as_mut().enable();
            {
                let state = self.stream.state.lock();
                let is_reader = state.reader == self.number && !state.overrun;
                if !is_reader || state.ended || !state.pending.is_empty() {
                    return;
                }
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests;
