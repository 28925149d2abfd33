//! A byte stream that lets other tasks run between reads. A peer that sends faster than it is read never leaves its reader
//! waiting, and the budget of tokio counts reads and not their size.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::yield_now;

/// Bytes after which the runtime's timers and signals run.
const YIELD_AFTER: usize = 16 << 10;

/// The stream.
#[derive(Debug)]
pub(crate) struct YieldingStream<S> {
    stream: S,
    /// Bytes since the last yield.
    since_yield: usize,
}

impl<S> YieldingStream<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, since_yield: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for YieldingStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.since_yield >= YIELD_AFTER {
            self.since_yield = 0;
            // Its first poll has the task woken once the runtime has looked at timers and sockets.
            if pin!(yield_now()).poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.since_yield += buffer.filled().len() - before;
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for YieldingStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
