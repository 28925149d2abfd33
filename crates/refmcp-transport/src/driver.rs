//! The loop between a pipe and a server engine. It moves messages and runs calls; every rule is in the engine.
//!
//! One task owns the engine, so nothing is locked. A chunk of input is worked off message by message; calls that are
//! done at once leave their answers in the write queue, and all of them are written together. Other calls run as
//! tasks and report through a bounded channel. When the peer does not read, the queue fills, then nothing more is
//! read and running calls wait: a slow peer slows only itself.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use refmcp_proto::engine::{CallId, Change, CloseReason, Dispatch, ExchangeId, Output, ServerEngine};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::cancel::Cancellation;
use crate::changes::ChangeReceiver;
use crate::clock::Clock;
use crate::pipe::{Frame, FrameReader, FrameWriter};
use crate::service::{CallService, EngineCommand, EngineHandle, RunningCall};

/// Bytes in the write queue above which nothing more is taken in.
const HIGH_WATER: usize = 1 << 20;

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
    Stale,
}

/// Drives one connection over one pipe.
#[derive(Debug)]
pub struct Driver<R, W, S> {
    reader: R,
    writer: W,
    engine: ServerEngine,
    service: Arc<S>,
    feed: Option<ChangeReceiver>,
    clock: Clock,
    handle: EngineHandle,
    commands: mpsc::Receiver<EngineCommand>,
    running: HashMap<CallId, Cancellation>,
    handlers: Handle,
    grace: Duration,
    closing: Option<(ConnectionEnd, Instant)>,
    input_ended: bool,
    /// When the latest message was handed to the engine.
    received: Instant,
}

impl<R: FrameReader, W: FrameWriter, S: CallService> Driver<R, W, S> {
    /// A driver that runs calls on the current runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new((reader, writer): (R, W), engine: ServerEngine, service: Arc<S>) -> Self {
        let (handle, commands) = EngineHandle::queue();
        Self {
            reader,
            writer,
            engine,
            service,
            feed: None,
            clock: Clock::new(),
            handle,
            commands,
            running: HashMap::new(),
            handlers: Handle::current(),
            grace: Duration::from_secs(5),
            closing: None,
            input_ended: false,
            received: Instant::now(),
        }
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Tells the client what changes.
    #[must_use]
    pub fn feed(mut self, feed: ChangeReceiver) -> Self {
        self.feed = Some(feed);
        self
    }

    /// Runs calls on another runtime, so that even handlers which block every one of its threads delay no message.
    #[must_use]
    pub fn handlers(mut self, handlers: Handle) -> Self {
        self.handlers = handlers;
        self
    }

    /// How long calls may go on once the connection ends.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// A handle to the engine.
    pub fn handle(&self) -> EngineHandle {
        self.handle.clone()
    }

    /// Runs until the peer has gone, or until `shutdown` is cancelled and the calls in flight are done.
    pub async fn run(mut self, shutdown: CancellationToken) -> io::Result<ConnectionEnd> {
        loop {
            let all_taken = self.take_frames();
            self.work();
            while self.writer.pending() > 0 {
                match poll_now(self.writer.flush()) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(fault)) => return self.gone(fault),
                    Poll::Pending => break,
                }
            }
            if !all_taken && self.has_room() {
                continue;
            }
            if let Some(end) = self.ended() {
                self.writer.close(end).await;
                return Ok(end);
            }
            if let Err(fault) = self.next_event(&shutdown).await {
                return self.gone(fault);
            }
        }
    }

    /// Waits for whatever happens next and takes it in.
    async fn next_event(&mut self, shutdown: &CancellationToken) -> io::Result<()> {
        let room = self.has_room();
        let deadline = self.engine.deadline().map(|time| self.clock.instant(time));
        let cut_off = self.closing.map(|(_, cut_off)| cut_off);
        tokio::select! {
            flushed = self.writer.flush(), if self.writer.pending() > 0 => flushed?,
            command = self.commands.recv(), if room => {
                if let Some(command) = command {
                    self.take(command);
                    self.take_commands();
                }
            }
            more = self.reader.fill(), if room && !self.input_ended && self.closing.is_none() => {
                match more {
                    Ok(true) => {}
                    Ok(false) => self.end_of_input(),
                    Err(fault) if is_gone(&fault) => self.end_of_input(),
                    Err(fault) => return Err(fault),
                }
            }
            changes = next_changes(self.feed.as_ref()), if room => {
                for change in changes {
                    self.engine.changed(&change);
                }
            }
            () = at(deadline) => self.engine.tick(self.clock.now()),
            () = at(cut_off) => self.engine.cancel_all(),
            () = shutdown.cancelled(), if self.closing.is_none() => {
                self.engine.wind_down();
                self.engine.close_input();
                self.close(ConnectionEnd::ShutDown);
            }
        }
        Ok(())
    }

    /// Hands what was read to the engine, while there is room for the answers; whether that was all.
    fn take_frames(&mut self) -> bool {
        while self.has_room() {
            let Some(frame) = self.reader.next_frame() else { return true };
            match frame {
                Frame::Message(bytes) => {
                    self.received = Instant::now();
                    self.engine.receive(self.clock.at(self.received), ExchangeId::default(), bytes);
                }
                Frame::TooLong => self.engine.receive_too_long(ExchangeId::default()),
            }
            self.work();
        }
        false
    }

    fn has_room(&self) -> bool {
        self.writer.pending() < HIGH_WATER
    }

    /// Takes in what running calls have said by now, while there is room for it. Not what they say meanwhile: a call
    /// that never stops talking must not keep us from hearing that it is cancelled.
    fn take_commands(&mut self) {
        self.work();
        for _ in 0..self.commands.len() {
            if !self.has_room() {
                break;
            }
            if let Ok(command) = self.commands.try_recv() {
                self.take(command);
                self.work();
            }
        }
    }

    fn take(&mut self, command: EngineCommand) {
        match command {
            EngineCommand::Finished(call, outcome) => {
                self.running.remove(&call);
                self.engine.finish(self.clock.now(), call, outcome);
            }
            EngineCommand::Progress(call, progress) => self.engine.progress(call, progress),
            EngineCommand::Log(call, note) => self.engine.log(call, note),
            EngineCommand::Changed(change) => self.engine.session_changed(&change),
            EngineCommand::Inspect(look) => look(&self.engine),
            // A pipe carries everything; there is no connection of a call's own to end.
            EngineCommand::Detach(_) => {}
        }
    }

    /// Does what the engine wants done.
    fn work(&mut self) {
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Send(message) => self.writer.push(&message.json),
                Output::Run(call) => self.start(call),
                Output::Cancel(call) => {
                    if let Some(cancel) = self.running.remove(&call) {
                        cancel.cancel(self.clock.now());
                    }
                }
                // A pipe is for everything that is said, and its session stays in this process.
                Output::NoResponse(_) | Output::Shared(_) => {}
                Output::RootsChanged => self.service.roots_changed(),
                Output::Finding(finding) => self.service.found(&finding),
                Output::Responded { method, failed } => {
                    self.service.answered(method.as_ref(), failed, self.received.elapsed());
                }
                Output::Close(CloseReason::Stale) => self.close(ConnectionEnd::Stale),
            }
        }
    }

    fn start(&mut self, call: Box<Dispatch>) {
        let number = call.call;
        let RunningCall { inline, cancel, mut work } = self.service.start(call, &self.handle);
        // The turn belongs to the driver: however many calls it runs, none is sent away for having used it up.
        if inline && let Poll::Ready(outcome) = poll_now(unconstrained(&mut work)) {
            // What the call said while it ran comes before its answer.
            for _ in 0..self.commands.len() {
                if let Ok(command) = self.commands.try_recv() {
                    self.take(command);
                }
            }
            self.engine.finish(self.clock.now(), number, outcome);
            return;
        }
        self.running.insert(number, cancel.clone());
        let handle = self.handle.clone();
        self.handlers.spawn(async move {
            tokio::select! {
                // The work first: when it is cancelled it may tidy up within this one turn.
                biased;
                outcome = work => handle.finished(number, outcome).await,
                () = cancel.cancelled() => {}
            }
        });
    }

    fn end_of_input(&mut self) {
        self.input_ended = true;
        self.take_frames();
        self.engine.close_input();
        self.close(ConnectionEnd::Closed);
    }

    fn close(&mut self, end: ConnectionEnd) {
        self.closing.get_or_insert((end, Instant::now() + self.grace));
    }

    /// Whether everything is said.
    fn ended(&self) -> Option<ConnectionEnd> {
        let (end, cut_off) = self.closing?;
        let done = self.engine.in_flight() == 0 && self.writer.pending() == 0;
        (done || end == ConnectionEnd::Stale || Instant::now() >= cut_off).then_some(end)
    }

    /// A pipe that breaks is a peer that went away: nothing is wrong with us.
    fn gone(&mut self, fault: io::Error) -> io::Result<ConnectionEnd> {
        self.engine.cancel_all();
        self.work();
        if is_gone(&fault) { Ok(ConnectionEnd::PeerGone) } else { Err(fault) }
    }
}

impl<R, W, S> Drop for Driver<R, W, S> {
    /// Running calls are cancelled with their driver.
    fn drop(&mut self) {
        for cancel in self.running.values() {
            cancel.cancel(self.clock.now());
        }
    }
}

fn is_gone(fault: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(fault.kind(), BrokenPipe | ConnectionReset | ConnectionAborted | NotConnected | UnexpectedEof)
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

/// Polls once. What is not ready is awaited later, with another waker.
fn poll_now<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}
