//! Messages on their way out.
//!
//! Whoever sends writes at once when nothing else is under way, so that a single call costs no wake-up. Whatever is
//! sent while answers are still due is gathered and written together by one task, which also does all waiting.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use refmcp_transport::ConnectionEnd;
use refmcp_transport::pipe::FrameWriter;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::transport::BoxFuture;

/// Bytes in the queue above which more had better wait.
pub(crate) const HIGH_WATER: usize = 1 << 20;

/// The queue before a pipe.
pub(crate) struct Outbox<W> {
    state: Mutex<State<W>>,
    /// Whether something was sent since anything was heard.
    awaiting: AtomicBool,
    /// Wakes the task that writes.
    work: Notify,
    /// Wakes whoever waits for room.
    room: Notify,
}

struct State<W> {
    /// Where it goes; away while the writing task has it, or when nothing goes out any more.
    writer: Option<W>,
    queue: Vec<Vec<u8>>,
    /// Bytes in the queue.
    queued: usize,
    /// Bytes that the writer has taken and not yet written.
    unwritten: usize,
    /// What is queued is the last.
    hanging_up: bool,
    /// Nothing goes out any more.
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
    pub(crate) fn new(writer: W) -> Self {
        let state = State {
            writer: Some(writer),
            queue: Vec::new(),
            queued: 0,
            unwritten: 0,
            hanging_up: false,
            over: false,
        };
        Self {
            state: Mutex::new(state),
            awaiting: AtomicBool::new(false),
            work: Notify::new(),
            room: Notify::new(),
        }
    }

    /// Something came: whoever sends next has nobody to wait for.
    pub(crate) fn heard(&self) {
        self.awaiting.store(false, Ordering::Relaxed);
    }

    /// Nothing more is sent; what is queued still goes.
    pub(crate) fn hang_up(&self) {
        self.state.lock().hanging_up = true;
        self.work.notify_one();
    }

    /// Nothing more goes out, not even what is queued.
    pub(crate) fn shut(&self) {
        // Whatever the writer does when it is dropped is done without the lock.
        let writer = self.state.lock().end();
        drop(writer);
        self.room.notify_waiters();
    }
}

impl<W: FrameWriter> Outbox<W> {
    /// Sends a message, after all that were sent before.
    pub(crate) fn send(&self, json: Vec<u8>) {
        let first = !self.awaiting.swap(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        let State { writer, queue, queued, unwritten, hanging_up, over } = &mut *state;
        if *over || *hanging_up {
            return;
        }
        // Some pipes have a timer, which needs a runtime.
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

    /// Waits while too much is queued.
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

    /// Writes what is queued whenever there is something, until it is hung up or the pipe fails.
    pub(crate) async fn run(&self) -> io::Result<()> {
        let written = self.write_all().await;
        self.shut();
        written
    }

    async fn write_all(&self) -> io::Result<()> {
        loop {
            self.work.notified().await;
            // Whoever is about to send as well gets into the same write.
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

    /// Lets others write, unless this was the last.
    fn give_back(&self, writer: W) -> Option<W> {
        let mut state = self.state.lock();
        if state.over || (state.hanging_up && state.queue.is_empty()) {
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

impl<W> fmt::Debug for Outbox<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Outbox")
            .field("queued", &state.queued)
            .field("unwritten", &state.unwritten)
            .field("over", &state.over)
            .finish_non_exhaustive()
    }
}

/// Writes as much as goes without waiting. A fault shows again when the writing task tries.
fn write_now<W: FrameWriter>(writer: &mut W) {
    let mut context = Context::from_waker(Waker::noop());
    while writer.pending() > 0 {
        match pin!(writer.flush()).poll(&mut context) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) | Poll::Pending => break,
        }
    }
}
