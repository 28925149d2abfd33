//! A transport over a pipe: whatever carries one message after the other, both ways.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use refmcp_proto::engine::client::{ClientMessage, TransportError};
use refmcp_transport::pipe::{Frame, FrameReader, FrameWriter};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::transport::{BoxFuture, MessageSink, Transport};

mod outbox;
#[cfg(test)]
mod tests;

pub(crate) use outbox::Outbox;

/// Bytes of the longest message that is taken from a server, unless it is set otherwise.
pub(crate) const DEFAULT_MAX_MESSAGE: usize = 64 << 20;

/// How long what is queued may take to leave once the transport closes.
pub(crate) const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// How long the closing words of a pipe may take.
const FAREWELL_WITHIN: Duration = Duration::from_secs(2);

/// How long answers may still come from a server that takes no more messages.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(500);

/// Whether what is between messages is only noise, or already a message gone wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PipeContent {
    /// Other things than messages come the same way, as on standard output.
    Mixed,
    /// Everything that comes is meant as a message.
    MessagesOnly,
}

/// The way to a server over a pipe. Somebody else conducts it: a task that ends when it is asked to, and says why
/// there is nothing more to come.
pub(crate) struct PipeTransport<W> {
    outbox: Arc<Outbox<W>>,
    /// Asks the conductor to close; so does dropping it.
    closing: watch::Sender<bool>,
    /// Whether the conductor is done.
    ended: watch::Receiver<bool>,
}

/// What the conductor of a transport is told, and tells.
pub(crate) struct ShutdownSignal {
    closing: watch::Receiver<bool>,
    ended: watch::Sender<bool>,
}

impl ShutdownSignal {
    /// Waits until the transport is to close, or nobody has it any more.
    pub(crate) async fn asked_to_close(&mut self) {
        // An error says that the transport is gone, which is a way to ask.
        let _ = self.closing.wait_for(|asked| *asked).await;
    }

    /// Everything the transport needed is gone.
    pub(crate) fn done(self) {
        self.ended.send_replace(true);
    }
}

impl<W: FrameWriter + 'static> PipeTransport<W> {
    /// A transport, and what its conductor needs.
    pub(crate) fn with_shutdown(outbox: Arc<Outbox<W>>) -> (Arc<Self>, ShutdownSignal) {
        let (closing, asked) = watch::channel(false);
        let (done, ended) = watch::channel(false);
        (Arc::new(Self { outbox, closing, ended }), ShutdownSignal { closing: asked, ended: done })
    }

    /// A transport that lives as long as its pipe.
    pub(crate) fn start<R: FrameReader + 'static>(
        (reader, writer): (R, W),
        sink: Arc<dyn MessageSink>,
        max_message: usize,
    ) -> Arc<dyn Transport> {
        let outbox = Arc::new(Outbox::new(writer));
        let (transport, mut shutdown) = Self::with_shutdown(outbox.clone());
        let mut reading =
            Task::spawn(listen(reader, outbox.clone(), sink.clone(), max_message, PipeContent::MessagesOnly));
        let mut flushing = Task::spawn({
            let outbox = outbox.clone();
            async move { outbox.run().await }
        });
        tokio::spawn(async move {
            let why = tokio::select! {
                heard = &mut reading => why_silent(heard),
                sent = &mut flushing => match timeout(LAST_WORDS, &mut reading).await {
                    Ok(heard) => why_silent(heard),
                    Err(_) => why_deaf(sent),
                },
                () = shutdown.asked_to_close() => TransportError::Closed,
            };
            // The farewell reads as well, and must not share with anybody.
            reading.stop().await;
            // Whoever waits for an answer need not wait for the farewell.
            sink.closed(why);
            outbox.hang_up();
            if timeout(FLUSH_WITHIN + FAREWELL_WITHIN, &mut flushing).await.is_err() {
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
        self.outbox.send(message.json);
    }

    fn ready(&self) -> Option<BoxFuture<'_, ()>> {
        self.outbox.ready()
    }

    fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.closing.send_replace(true);
            // An error says that the conductor is gone, and everything with it.
            let _ = self.ended.clone().wait_for(|ended| *ended).await;
        })
    }
}

impl<W> fmt::Debug for PipeTransport<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipeTransport").field("ended", &*self.ended.borrow()).finish_non_exhaustive()
    }
}

/// Hands everything that comes to the sink, until nothing more does.
pub(crate) async fn listen<R: FrameReader, W: FrameWriter>(
    mut reader: R,
    outbox: Arc<Outbox<W>>,
    sink: Arc<dyn MessageSink>,
    max_message: usize,
    between: PipeContent,
) -> io::Result<()> {
    loop {
        let more = reader.fill().await?;
        let mut noisy = false;
        while let Some(frame) = reader.next_frame() {
            outbox.heard();
            match frame {
                Frame::Message(bytes) if between == PipeContent::Mixed && !looks_like_a_message(bytes) => {
                    noisy = true;
                    sink.ignored_input(&String::from_utf8_lossy(beginning(bytes)));
                }
                Frame::Message(bytes) => sink.message(None, bytes),
                Frame::TooLong => sink.too_long(None, max_message),
            }
        }
        if !more {
            return Ok(());
        }
        if noisy {
            // A server that never stops printing must not keep others from ending it.
            tokio::task::yield_now().await;
        }
    }
}

/// Whether a line is meant as a message: an object, or a list of objects. Log lines like to begin with a bracket.
fn looks_like_a_message(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii_start();
    match line.split_first() {
        Some((b'{', _)) => true,
        Some((b'[', rest)) => matches!(rest.trim_ascii_start().first(), Some(b'{' | b']')),
        _ => false,
    }
}

/// As much of a line as anybody wants to see.
fn beginning(line: &[u8]) -> &[u8] {
    const MOST: usize = 500;
    line.get(..MOST).unwrap_or(line)
}

fn why_silent(heard: io::Result<()>) -> TransportError {
    TransportError::Broken(match heard {
        Ok(()) => "the server closed it".to_owned(),
        Err(fault) => fault.to_string(),
    })
}

pub(crate) fn why_deaf(sent: io::Result<()>) -> TransportError {
    TransportError::Broken(match sent {
        Ok(()) => "the server takes no more messages".to_owned(),
        Err(fault) => format!("the server takes no more messages: {fault}"),
    })
}

/// A task that ends with its handle.
#[derive(Debug)]
pub(crate) struct Task<T> {
    handle: JoinHandle<T>,
    reaped: bool,
}

impl<T: Send + 'static> Task<io::Result<T>> {
    pub(crate) fn spawn(work: impl Future<Output = io::Result<T>> + Send + 'static) -> Self {
        Self { handle: tokio::spawn(work), reaped: false }
    }
}

impl<T> Task<io::Result<T>> {
    /// Ends it, wherever it is, and whatever it holds is gone.
    pub(crate) async fn stop(&mut self) {
        self.handle.abort();
        // What it came to no longer matters.
        let _ = self.await;
    }
}

impl<T> Future for Task<io::Result<T>> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.reaped {
            return Poll::Ready(Err(io::Error::other("it has already ended")));
        }
        let ended = std::task::ready!(Pin::new(&mut self.handle).poll(context));
        self.reaped = true;
        // Work that panicked has failed.
        Poll::Ready(ended.unwrap_or_else(|fault| Err(io::Error::other(fault))))
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.handle.abort();
    }
}
