//! The queue of outgoing messages.
//!
//! A sender writes at once if no answer is due, so that a single call costs no wake-up. Messages that are sent while
//! answers are due are gathered and written together by one task.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use refmcp_transport::pipe::FrameWriter;
use refmcp_transport::{ConnectionEnd, Observed};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::transport::BoxFuture;

/// Bytes in the queue above which senders wait.
pub(crate) const HIGH_WATER: usize = 1 << 20;

/// Bytes in the queue above which no further response is taken: callers wait for room, but a server that asks without
/// reading could fill the memory.
pub(crate) const MAX_RESPONSES: usize = 4 << 20;

/// The queue before a pipe.
pub(crate) struct Outbox<W> {
    state: Mutex<State<W>>,
    /// True if something was sent since the last message was received.
    awaiting: AtomicBool,
    /// Wakes the task that writes.
    work: Notify,
    /// Wakes senders that wait for room.
    room: Notify,
    /// Told when responses have filled the queue.
    overflow: Notify,
    observed: Observed,
}

struct State<W> {
    /// `None` while the writing task has it, and at the end.
    writer: Option<W>,
    queue: Vec<Vec<u8>>,
    /// Bytes in the queue.
    queued: usize,
    /// Bytes that the writer has taken and not yet written.
    unwritten: usize,
    /// Nothing more is queued.
    finishing: bool,
    /// Nothing more is written.
    over: bool,
}

impl<W> State<W> {
    fn is_full(&self) -> bool {
        self.queued + self.unwritten > HIGH_WATER
    }

    fn end(&mut self) -> Option<W> {
        self.over = true;
        self.queue = Vec::new();
        self.queued = 0;
        self.unwritten = 0;
        self.writer.take()
    }
}

impl<W: FrameWriter> State<W> {
    fn hand_over(&mut self, writer: &mut W) {
        for json in self.queue.drain(..) {
            writer.push(&json);
        }
        self.queued = 0;
        self.unwritten = writer.pending();
    }
}

impl<W> Outbox<W> {
    pub(crate) fn new(writer: W, observed: Observed) -> Self {
        let state = State {
            writer: Some(writer),
            queue: Vec::new(),
            queued: 0,
            unwritten: 0,
            finishing: false,
            over: false,
        };
        Self {
            state: Mutex::new(state),
            awaiting: AtomicBool::new(false),
            work: Notify::new(),
            room: Notify::new(),
            overflow: Notify::new(),
            observed,
        }
    }

    /// A message was received: the next sender writes at once.
    pub(crate) fn received(&self) {
        self.awaiting.store(false, Ordering::Relaxed);
    }

    /// Takes no more messages; those in the queue are still written.
    pub(crate) fn finish(&self) {
        self.state.lock().finishing = true;
        self.work.notify_one();
    }

    /// Writes nothing more, not even what is queued.
    pub(crate) fn shut(&self) {
        // Dropped without the lock.
        let writer = self.state.lock().end();
        drop(writer);
        self.room.notify_waiters();
    }
}

impl<W: FrameWriter> Outbox<W> {
    /// Sends a message after all before it. Responses that the server does not take end the pipe.
    pub(crate) fn send(&self, json: Vec<u8>, is_response: bool) {
        let first = !self.awaiting.swap(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        let State { writer, queue, queued, unwritten, finishing, over } = &mut *state;
        if *over || *finishing {
            return;
        }
        if is_response && *queued + *unwritten > MAX_RESPONSES {
            return self.overflow.notify_one();
        }
        self.observed.sent(&json);
        // The timers of some pipes need a runtime.
        match writer {
            Some(writer) if first && queue.is_empty() && Handle::try_current().is_ok() => {
                writer.push(&json);
                write_now(writer);
                *unwritten = writer.pending();
                if *unwritten == 0 {
                    return;
                }
            }
            _ => {
                *queued += json.len();
                queue.push(json);
            }
        }
        drop(state);
        self.work.notify_one();
    }

    /// Waits while the queue is full.
    pub(crate) fn ready(&self) -> Option<BoxFuture<'_, ()>>
    where
        W: 'static,
    {
        if !self.state.lock().is_full() {
            return None;
        }
        Some(Box::pin(async {
            loop {
                let mut changed = pin!(self.room.notified());
                changed.as_mut().enable();
                if !self.state.lock().is_full() {
                    return;
                }
                changed.await;
            }
        }))
    }

    /// Writes queued messages, until [`Self::finish`] or an error of the pipe.
    pub(crate) async fn run(&self) -> io::Result<()> {
        let written = tokio::select! {
            written = self.write_all() => written,
            () = self.overflow.notified() => Err(io::Error::other(format!(
                "it sends requests and does not read the responses, of which {MAX_RESPONSES} bytes wait"
            ))),
        };
        self.shut();
        written
    }

    async fn write_all(&self) -> io::Result<()> {
        loop {
            self.work.notified().await;
            // Other senders that are ready get into the same write.
            yield_now().await;
            let Some(mut writer) = self.state.lock().writer.take() else { return Ok(()) };
            loop {
                self.state.lock().hand_over(&mut writer);
                self.tell_room();
                if writer.pending() == 0 {
                    break;
                }
                writer.flush().await?;
            }
            if let Some(mut writer) = self.give_back(writer) {
                writer.close(ConnectionEnd::Closed).await;
                return Ok(());
            }
        }
    }

    /// Returns the writer to the senders, unless this was the last write.
    fn give_back(&self, writer: W) -> Option<W> {
        let mut state = self.state.lock();
        if state.over || (state.finishing && state.queue.is_empty()) {
            return Some(writer);
        }
        if !state.queue.is_empty() {
            self.work.notify_one();
        }
        state.writer = Some(writer);
        None
    }

    fn tell_room(&self) {
        if !self.state.lock().is_full() {
            self.room.notify_waiters();
        }
    }
}

/// Writes as much as possible without waiting. An error shows again when the writing task tries.
fn write_now<W: FrameWriter>(writer: &mut W) {
    let mut context = Context::from_waker(Waker::noop());
    while writer.pending() > 0 {
        match pin!(writer.flush()).poll(&mut context) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) | Poll::Pending => break,
        }
    }
}
