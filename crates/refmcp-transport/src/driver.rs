//! The loop between a pipe and the driver of a server engine.
//!
//! A chunk of input is worked off message by message; calls that are done at once leave their answers in the write
//! queue, and all of them are written together. When the peer does not read, the queue fills, then nothing more is read
//! and running calls wait: a slow peer slows only itself. What the queue holds beyond a little is reserved in the memory
//! budget; a response that finds no room there becomes an error.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use refmcp_proto::engine::{Change, CloseReason, ExchangeId, MessageKind, OutgoingMessage, ServerEngine};
use refmcp_proto::jsonrpc::{RpcError, error_instead};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::changes::ChangeReceiver;
use crate::clock::Clock;
use crate::engine_driver::{EngineDriver, Outbox, poll_now};
use crate::memory_budget::{MemoryAccount, MemoryBudget, MemoryReservation, NoMemory};
use crate::observer::Observed;
use crate::pipe::{Frame, FrameReader, FrameWriter};
use crate::service::{CallService, EngineHandle};

/// Backpressure: bytes in the write queue above which nothing more is taken in.
const HIGH_WATER: usize = 1 << 20;

/// Bytes of each direction that need no reservation: the connection itself is counted with as much.
const UNRESERVED: usize = 16 << 10;

/// Bytes by which the reservation of the write queue changes, so that few messages change it.
const RESERVATION_STEP: usize = 4 << 10;

/// How a connection ended; none of these is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The peer closed its side, and every call was answered.
    Closed,
    /// The peer went away while there was something to write.
    PeerGone,
    /// We were told to stop.
    ShutDown,
    /// The peer no longer answered.
    PingTimeout,
    /// The peer sent more than there is memory for.
    NoMemory,
}

impl fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the peer closed it",
            Self::PeerGone => "the peer has gone",
            Self::ShutDown => "this side was told to stop",
            Self::PingTimeout => "the peer no longer answered",
            Self::NoMemory => "there is no memory for what the peer sends",
        })
    }
}

/// How a pipe is driven.
#[derive(Debug)]
pub struct DriverOptions {
    /// The time that the engine is told.
    pub clock: Clock,
    /// What changes, for the client.
    pub feed: Option<ChangeReceiver>,
    /// The runtime of the calls, if it is another: then even handlers which block all its threads delay no message.
    pub handlers: Option<Handle>,
    /// How long calls may go on once the connection ends.
    pub grace: Duration,
    /// Where messages are reported.
    pub observed: Observed,
    /// What the connection may hold in memory.
    pub memory: MemoryAccount,
}

impl Default for DriverOptions {
    fn default() -> Self {
        let (grace, observed) = (Duration::from_secs(5), Observed::default());
        let memory = MemoryBudget::default().account();
        Self { clock: Clock::new(), feed: None, handlers: None, grace, observed, memory }
    }
}

/// Drives one connection over one pipe.
#[derive(Debug)]
pub struct Driver<R, W, S> {
    reader: R,
    writer: W,
    engine: Arc<EngineDriver<S, WriteQueue>>,
    /// Told when a running call has sent something, or has ended.
    stepped: Arc<Notify>,
    feed: Option<ChangeReceiver>,
    grace: Duration,
    observed: Observed,
    closing: Option<(ConnectionEnd, Instant)>,
    input_ended: bool,
    /// What the reader holds of messages that are not complete.
    unread: MemoryReservation,
}

/// What has happened, for those who wait.
enum Event {
    Changes,
    Other,
}

/// Messages on their way to the writer.
#[derive(Debug)]
struct WriteQueue {
    messages: VecDeque<Vec<u8>>,
    /// Their bytes, and those that the writer holds.
    bytes: usize,
    /// Whether the loop waits for something to happen.
    idle: bool,
    stepped: Arc<Notify>,
    /// Told when there is room again.
    freed: Arc<Notify>,
    stale: bool,
    observed: Observed,
    /// Bytes of responses to batches that are not complete.
    batch_bytes: usize,
    /// For the bytes, and those of batches.
    reserved: MemoryReservation,
}

impl Outbox for WriteQueue {
    fn send(&mut self, mut message: OutgoingMessage) {
        if let Err(error) = self.reserve(message.json.len()) {
            match message.kind {
                MessageKind::Response { .. } => {
                    message.json = error_instead(&message.json, &RpcError::internal(error.to_string()));
                }
                MessageKind::Notification => {
                    return tracing::warn!(bytes = message.json.len(), %error, "a notification was not sent");
                }
                // The handler waits for its response.
                MessageKind::Request => {}
            }
            self.reserved.grow(message.json.len());
        }
        self.bytes += message.json.len();
        self.messages.push_back(message.json);
    }

    fn close(&mut self, CloseReason::PingTimeout: CloseReason) {
        self.stale = true;
    }

    fn step_done(&mut self, engine: &mut ServerEngine) {
        if engine.batch_bytes() != self.batch_bytes {
            self.batch_bytes = engine.batch_bytes();
            if let Err(error) = self.reserve(0) {
                engine.refuse_batch_responses(&RpcError::internal(error.to_string()));
                self.batch_bytes = engine.batch_bytes();
            }
        }
        self.observed.negotiated(|| engine.peer().map(|peer| peer.rules().revision));
        if std::mem::take(&mut self.idle) {
            self.stepped.notify_one();
        }
    }

    fn full(&self) -> Option<OwnedNotified> {
        (self.bytes >= HIGH_WATER).then(|| self.freed.clone().notified_owned())
    }
}

impl WriteQueue {
    fn new(observed: Observed, memory: &MemoryAccount) -> Self {
        Self {
            messages: VecDeque::new(),
            bytes: 0,
            idle: false,
            stepped: Arc::default(),
            freed: Arc::default(),
            stale: false,
            observed,
            batch_bytes: 0,
            reserved: memory.reservation(),
        }
    }

    /// Reserves memory for so many bytes more than there are.
    fn reserve(&mut self, bytes: usize) -> Result<(), NoMemory> {
        let wanted = reservation_for(self.bytes + self.batch_bytes + bytes);
        if wanted > self.reserved.bytes() { self.reserved.try_resize(wanted) } else { Ok(()) }
    }

    /// Hands the messages to the writer.
    fn write(&mut self, writer: &mut impl FrameWriter) {
        while let Some(json) = self.messages.pop_front() {
            self.observed.sent(&json);
            writer.push(&json);
        }
        let was_full = self.bytes >= HIGH_WATER;
        self.bytes = writer.pending();
        let kept = reservation_for(self.bytes + self.batch_bytes);
        if kept < self.reserved.bytes() {
            self.reserved.shrink(self.reserved.bytes() - kept);
        }
        if was_full && self.bytes < HIGH_WATER {
            self.freed.notify_waiters();
        }
    }
}

impl Drop for WriteQueue {
    /// A connection that is over has room for everything.
    fn drop(&mut self) {
        self.freed.notify_waiters();
    }
}

impl<R: FrameReader, W: FrameWriter, S: CallService> Driver<R, W, S> {
    /// A driver on the current runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new((reader, writer): (R, W), engine: ServerEngine, service: S, options: DriverOptions) -> Self {
        let DriverOptions { clock, feed, handlers, grace, observed, memory } = options;
        let queue = WriteQueue::new(observed.clone(), &memory);
        let stepped = queue.stepped.clone();
        let engine = EngineDriver::new(engine, service, queue, clock, handlers);
        let (closing, input_ended, unread) = (None, false, memory.reservation());
        Self { reader, writer, engine, stepped, feed, grace, observed, closing, input_ended, unread }
    }

    /// A handle to the engine.
    pub fn handle(&self) -> EngineHandle {
        self.engine.handle()
    }

    /// Runs until the peer has gone, or until `shutdown` is cancelled and the calls in flight are done.
    pub async fn run(mut self, shutdown: CancellationToken) -> io::Result<ConnectionEnd> {
        let feed = self.feed.take();
        // Waited for once, and not anew for every message.
        let (mut stopped, mut changes) = (pin!(shutdown.cancelled()), pin!(next_changes(feed.as_ref())));
        loop {
            let all_taken = self.take_frames();
            self.write();
            while self.writer.pending() > 0 {
                match poll_now(self.writer.flush()) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => return self.gone(error),
                    Poll::Pending => break,
                }
            }
            // Calls that wait for room go on. Once: one that never stops talking must not keep us from reading.
            self.write();
            if !all_taken && self.has_room() {
                continue;
            }
            if let Some(end) = self.ended() {
                self.writer.close(end).await;
                return Ok(end);
            }
            match self.next_event(stopped.as_mut(), changes.as_mut()).await {
                Ok(Event::Changes) => changes.set(next_changes(feed.as_ref())),
                Ok(Event::Other) => {}
                Err(error) => return self.gone(error),
            }
        }
    }

    /// Waits for whatever happens next and takes it in.
    async fn next_event(
        &mut self,
        stopped: Pin<&mut impl Future<Output = ()>>,
        changes: Pin<&mut impl Future<Output = BTreeSet<Change>>>,
    ) -> io::Result<Event> {
        let room = self.has_room();
        let cut_off = self.closing.map(|(_, cut_off)| cut_off);
        tokio::select! {
            flushed = self.writer.flush(), if self.writer.pending() > 0 => flushed?,
            () = self.stepped.notified() => {}
            more = self.reader.fill(), if room && !self.input_ended && self.closing.is_none() => {
                match more {
                    Ok(true) => self.reserve_unread(),
                    Ok(false) => self.end_of_input(),
                    Err(error) if is_gone(&error) => self.end_of_input(),
                    Err(error) => return Err(error),
                }
            }
            changes = changes, if room => {
                self.engine.step(|engine| changes.iter().for_each(|change| engine.changed(change)));
                return Ok(Event::Changes);
            }
            () = at(cut_off) => self.engine.step(ServerEngine::cancel_all),
            () = stopped, if self.closing.is_none() => {
                self.engine.step(|engine| {
                    engine.wind_down();
                    engine.close_input();
                });
                self.close(ConnectionEnd::ShutDown);
            }
        }
        Ok(Event::Other)
    }

    /// Hands what was read to the engine, while there is room for the answers; whether that was all.
    fn take_frames(&mut self) -> bool {
        while self.has_room() {
            let Some(frame) = self.reader.next_frame() else { return true };
            let pipe = ExchangeId::default();
            let message = match frame {
                Frame::Message(bytes) => {
                    self.observed.received(bytes);
                    Some(bytes)
                }
                Frame::TooLong => {
                    self.observed.invalid_input(&[], "longer than the limit");
                    None
                }
            };
            self.engine.receive(
                message,
                |engine, queue, now| {
                    queue.idle = false;
                    match message {
                        Some(bytes) => engine.receive(now, pipe, bytes),
                        None => engine.receive_too_long(pipe),
                    }
                },
                |queue| queue.write(&mut self.writer),
            );
        }
        false
    }

    /// Takes over what running calls have sent; from here on they tell the loop of more.
    fn write(&mut self) {
        let stale = self.engine.inspect(|_, queue| {
            queue.write(&mut self.writer);
            queue.idle = true;
            queue.stale
        });
        if stale {
            self.close(ConnectionEnd::PingTimeout);
        }
    }

    fn has_room(&self) -> bool {
        self.writer.pending() < HIGH_WATER
    }

    /// Reserves memory for what the reader holds; the connection ends where there is none.
    fn reserve_unread(&mut self) {
        let unread = self.reader.buffered().saturating_sub(UNRESERVED);
        if unread != self.unread.bytes() && self.unread.try_resize(unread).is_err() {
            self.engine.step(ServerEngine::cancel_all);
            self.close(ConnectionEnd::NoMemory);
        }
    }

    fn end_of_input(&mut self) {
        self.input_ended = true;
        self.take_frames();
        self.engine.step(ServerEngine::close_input);
        self.close(ConnectionEnd::Closed);
    }

    fn close(&mut self, end: ConnectionEnd) {
        self.closing.get_or_insert((end, Instant::now() + self.grace));
    }

    /// Whether everything is said.
    fn ended(&self) -> Option<ConnectionEnd> {
        let (end, cut_off) = self.closing?;
        let all_sent = |engine: &mut ServerEngine, queue: &mut WriteQueue| {
            engine.in_flight() == 0 && queue.messages.is_empty() && self.writer.pending() == 0
        };
        let done = matches!(end, ConnectionEnd::PingTimeout | ConnectionEnd::NoMemory)
            || Instant::now() >= cut_off
            || self.engine.inspect(all_sent);
        done.then_some(end)
    }

    /// A pipe that breaks is a peer that went away: nothing is wrong with us.
    fn gone(&mut self, error: io::Error) -> io::Result<ConnectionEnd> {
        self.engine.step(ServerEngine::cancel_all);
        if is_gone(&error) { Ok(ConnectionEnd::PeerGone) } else { Err(error) }
    }
}

/// The reservation for so many bytes in the write queue.
fn reservation_for(bytes: usize) -> usize {
    bytes.saturating_sub(UNRESERVED).next_multiple_of(RESERVATION_STEP)
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | ConnectionAborted | NotConnected | UnexpectedEof)
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn next_changes(feed: Option<&ChangeReceiver>) -> BTreeSet<Change> {
    match feed {
        Some(feed) => {
            feed.changed().await;
            feed.take()
        }
        None => std::future::pending().await,
    }
}
