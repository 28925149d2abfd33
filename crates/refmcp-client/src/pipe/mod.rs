//! The transport over a pipe, which carries one message after the other, both ways.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, TransportError};
use refmcp_transport::pipe::{Frame, FrameReader, FrameWriter};
use tokio::sync::watch;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::transport::{BoxFuture, MessageSink, Transport};

mod outbox;
#[cfg(test)]
mod tests;

pub(crate) use outbox::Outbox;

/// Bytes of the longest message of a server, unless it is set otherwise.
pub(crate) const DEFAULT_MAX_MESSAGE_SIZE: usize = 64 << 20;

/// How long queued messages may take to be written when the transport closes.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the closing handshake of a pipe may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to read on from a server that takes no more messages or has exited.
pub(crate) const READ_ON_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a whole message, or a line that is none, may lack its end before it is reported: a prompt never gets one.
const LINE_END_TIMEOUT: Duration = Duration::from_millis(100);

/// How long the rest of a message that has begun may take before that is reported.
const REST_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a line that was reported may get no longer before it is given up.
const ABANDONED_AFTER: Duration = Duration::from_secs(5);

/// What a pipe may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PipeContent {
    /// Messages and other lines, as on standard output.
    Mixed,
    /// Messages only: everything else is an invalid message.
    MessagesOnly,
}

/// A server over a pipe. A task runs it until a shutdown is requested or the pipe ends.
pub(crate) struct PipeTransport<W> {
    outbox: Arc<Outbox<W>>,
    /// Requests the shutdown; so does dropping it.
    shutdown: watch::Sender<bool>,
    /// True once the task has ended.
    ended: watch::Receiver<bool>,
}

/// The shutdown of a transport, as the task that runs it sees it.
pub(crate) struct ShutdownSignal {
    requested: watch::Receiver<bool>,
    ended: watch::Sender<bool>,
}

impl ShutdownSignal {
    /// Waits until the transport is closed or dropped.
    pub(crate) async fn requested(&mut self) {
        // An error says that the transport was dropped.
        let _ = self.requested.wait_for(|requested| *requested).await;
    }

    /// All that the transport used is released.
    pub(crate) fn done(self) {
        self.ended.send_replace(true);
    }
}

/// The tasks of a pipe, for the owner that ends them.
pub(crate) struct PipeTasks<W> {
    pub(crate) outbox: Arc<Outbox<W>>,
    pub(crate) reading: Task,
    pub(crate) flushing: Task,
    pub(crate) shutdown: ShutdownSignal,
}

impl<W: FrameWriter + 'static> PipeTransport<W> {
    /// Begins to read and to write; ending both is up to the owner of the tasks.
    pub(crate) fn begin<R: FrameReader + 'static>(
        (reader, writer): (R, W),
        sink: &Arc<dyn MessageSink>,
        max_message_size: usize,
        content: PipeContent,
    ) -> (Arc<Self>, PipeTasks<W>) {
        let outbox = Arc::new(Outbox::new(writer, sink.observed()));
        let (shutdown, requested) = watch::channel(false);
        let (done, ended) = watch::channel(false);
        let reading = read_messages(reader, outbox.clone(), sink.clone(), max_message_size, content);
        let flushed = outbox.clone();
        let tasks = PipeTasks {
            outbox: outbox.clone(),
            reading: Task::spawn(reading),
            flushing: Task::spawn(async move { flushed.run().await }),
            shutdown: ShutdownSignal { requested, ended: done },
        };
        (Arc::new(Self { outbox, shutdown, ended }), tasks)
    }

    /// Starts a transport that runs as long as its pipe.
    pub(crate) fn start<R: FrameReader + 'static>(
        ends: (R, W),
        sink: Arc<dyn MessageSink>,
        max_message_size: usize,
    ) -> Arc<dyn Transport> {
        let (transport, tasks) = Self::begin(ends, &sink, max_message_size, PipeContent::MessagesOnly);
        let PipeTasks { outbox, mut reading, mut flushing, mut shutdown } = tasks;
        tokio::spawn(async move {
            let why = tokio::select! {
                read = &mut reading => read_error(read),
                written = &mut flushing => match timeout(READ_ON_TIMEOUT, &mut reading).await {
                    Ok(read) => read_error(read),
                    Err(_) => write_error(written),
                },
                () = shutdown.requested() => TransportError::Closed,
            };
            // The closing handshake reads as well.
            reading.stop().await;
            // Calls that wait need not wait for the closing handshake.
            sink.closed(why);
            outbox.finish();
            if timeout(FLUSH_TIMEOUT + CLOSE_TIMEOUT, &mut flushing).await.is_err() {
                tracing::debug!("the pipe did not close in time");
            }
            flushing.stop().await;
            outbox.shut();
            shutdown.done();
        });
        transport
    }
}

impl<W: FrameWriter + 'static> Transport for PipeTransport<W> {
    fn send(self: Arc<Self>, message: ClientMessage) {
        let is_response = matches!(message.kind, ClientMessageKind::Response);
        self.outbox.send(message.json, is_response);
    }

    fn ready(&self) -> Option<BoxFuture<'_, ()>> {
        self.outbox.ready()
    }

    fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.shutdown.send_replace(true);
            // An error says that the task is gone, and all it used with it.
            let _ = self.ended.clone().wait_for(|ended| *ended).await;
        })
    }
}

impl<W> fmt::Debug for PipeTransport<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipeTransport").field("ended", &*self.ended.borrow()).finish_non_exhaustive()
    }
}

/// Hands all messages to the sink, until the pipe ends.
pub(crate) async fn read_messages<R: FrameReader, W: FrameWriter>(
    mut reader: R,
    outbox: Arc<Outbox<W>>,
    sink: Arc<dyn MessageSink>,
    max_message_size: usize,
    content: PipeContent,
) -> io::Result<()> {
    let observed = sink.observed();
    // Whether the line that has begun was reported, whether it was given up, and since when it is awaited.
    let (mut reported, mut abandoned, mut since) = (false, false, None);
    loop {
        let partial = reader.partial().trim_ascii_start();
        let more = if content == PipeContent::MessagesOnly || abandoned || partial.is_empty() {
            reader.fill().await?
        } else if reported {
            match timeout(ABANDONED_AFTER, reader.fill()).await {
                Ok(filled) => filled?,
                Err(_) => {
                    abandoned = true;
                    sink.line_abandoned(&String::from_utf8_lossy(beginning(reader.partial())));
                    continue;
                }
            }
        } else {
            let end_by = match looks_like_a_message(partial) {
                true if is_whole_message(partial) => Instant::now() + LINE_END_TIMEOUT,
                // A long message may come slowly; every part of it counts.
                true => Instant::now() + REST_TIMEOUT,
                false => *since.get_or_insert_with(Instant::now) + LINE_END_TIMEOUT,
            };
            match timeout_at(end_by, reader.fill()).await {
                Ok(filled) => filled?,
                Err(_) => {
                    reported = true;
                    observed.invalid_input(reader.partial(), "a line without an end");
                    let begun = String::from_utf8_lossy(beginning(reader.partial()));
                    sink.ignored_input(&format!("a line without an end: {begun}"));
                    continue;
                }
            }
        };
        while let Some(frame) = reader.next_frame() {
            (reported, abandoned, since) = (false, false, None);
            outbox.received();
            match frame {
                Frame::Message(bytes) if content == PipeContent::Mixed && !looks_like_a_message(bytes) => {
                    observed.invalid_input(bytes, "not JSON");
                    sink.ignored_input(&String::from_utf8_lossy(beginning(bytes)));
                }
                Frame::Message(bytes) => {
                    observed.received(bytes);
                    sink.message(None, bytes);
                }
                Frame::TooLong => {
                    observed.too_long(max_message_size);
                    sink.too_long(None, max_message_size);
                }
            }
            // A server that never stops sending must not starve timers, signals and other tasks.
            consume_budget().await;
        }
        if !more {
            return Ok(());
        }
    }
}

/// True if a line is meant as a message: an object or a list of objects. Log lines often begin with a bracket.
fn looks_like_a_message(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii_start();
    match line.split_first() {
        Some((b'{', _)) => true,
        Some((b'[', rest)) => matches!(rest.trim_ascii_start().first(), Some(b'{' | b']')),
        _ => false,
    }
}

/// True if nothing but the end of the line can follow. A long message that comes in parts is not read again with each.
fn is_whole_message(line: &[u8]) -> bool {
    const MAX_READ: usize = 64 << 10;
    let line = line.trim_ascii_end();
    line.len() <= MAX_READ
        && line.ends_with(b"}")
        && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

/// The part of a line that is quoted.
fn beginning(line: &[u8]) -> &[u8] {
    const MAX_QUOTED: usize = 500;
    line.get(..MAX_QUOTED).unwrap_or(line)
}

fn read_error(read: io::Result<()>) -> TransportError {
    TransportError::Broken(match read {
        Ok(()) => "the server closed it".to_owned(),
        Err(error) => error.to_string(),
    })
}

pub(crate) fn write_error(written: io::Result<()>) -> TransportError {
    TransportError::Broken(match written {
        Ok(()) => "the server takes no more messages".to_owned(),
        Err(error) => format!("the server takes no more messages: {error}"),
    })
}

/// A task that ends with its handle, and can be awaited again after its end.
pub(crate) struct Task {
    handle: AbortOnDropHandle<io::Result<()>>,
    finished: bool,
}

impl Task {
    pub(crate) fn spawn(work: impl Future<Output = io::Result<()>> + Send + 'static) -> Self {
        Self { handle: AbortOnDropHandle::new(tokio::spawn(work)), finished: false }
    }

    /// Aborts the task, and waits until all it held is dropped.
    pub(crate) async fn stop(&mut self) {
        self.handle.abort();
        // The result is not used.
        let _ = self.await;
    }
}

impl Future for Task {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.finished {
            return Poll::Ready(Err(io::Error::other("it has already ended")));
        }
        let ended = std::task::ready!(Pin::new(&mut self.handle).poll(context));
        self.finished = true;
        // A panic is an error.
        Poll::Ready(ended.unwrap_or_else(|error| Err(io::Error::other(error))))
    }
}
