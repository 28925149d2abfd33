//! A connection that somebody listens in on: every byte that passes, as it is inside of TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::dial::Stream;

/// Bytes that have passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferredBytes<'a> {
    /// To the server.
    Sent(&'a [u8]),
    /// From the server.
    Received(&'a [u8]),
}

/// Hears of every byte, with the number of the connection. They may be secrets: headers say who asks.
pub type ByteObserver = Arc<dyn Fn(u64, TransferredBytes<'_>) + Send + Sync>;

/// A connection with a observer on it.
pub(crate) struct ObservedStream {
    stream: Stream,
    observer: ByteObserver,
    number: u64,
}

impl ObservedStream {
    pub(super) fn new(stream: Stream, observer: ByteObserver) -> Self {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        Self { stream, observer, number: CONNECTIONS.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }
}

impl std::fmt::Debug for ObservedStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObservedStream").field("number", &self.number).finish_non_exhaustive()
    }
}

impl AsyncRead for ObservedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut me.stream).poll_read(cx, buf);
        let came = buf.filled().get(before..).unwrap_or_default();
        if !came.is_empty() {
            (me.observer)(me.number, TransferredBytes::Received(came));
        }
        read
    }
}

impl AsyncWrite for ObservedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        let written = Pin::new(&mut me.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(count)) = &written {
            (me.observer)(me.number, TransferredBytes::Sent(buf.get(..*count).unwrap_or_default()));
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
