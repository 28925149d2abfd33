//! A socket that can be read empty before it is dropped. The system resets a connection that is closed with bytes
//! unread, and a client that is still sending then loses the very answer that tells it to stop.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How long, and for how many bytes, a client is listened to that does not stop.
const PATIENCE: (Duration, u64) = (Duration::from_secs(1), 16 << 20);

/// A socket, and whether its client may still be sending when it goes.
#[derive(Debug)]
pub(super) struct Lingering<S: Socket> {
    /// Gone only while it is dropped.
    stream: Option<S>,
    lingers: Lingers,
}

/// Says of a socket that it is to be read empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Lingers(Arc<AtomicBool>);

impl Lingers {
    pub(super) fn yes(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a connection is made of.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Socket for S {}

impl<S: Socket> Lingering<S> {
    pub(super) fn new(stream: S, lingers: Lingers) -> Self {
        Self { stream: Some(stream), lingers }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut S>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl<S: Socket> Drop for Lingering<S> {
    fn drop(&mut self) {
        let stream = self.stream.take().filter(|_| self.lingers.0.load(Ordering::Relaxed));
        if let (Some(mut stream), Ok(runtime)) = (stream, Handle::try_current()) {
            runtime.spawn(timeout(PATIENCE.0, async move {
                // A client that is gone already has nothing to lose.
                let _ = stream.shutdown().await;
                let _ = tokio::io::copy(&mut stream.take(PATIENCE.1), &mut tokio::io::sink()).await;
            }));
        }
    }
}

impl<S: Socket> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(context, buffer)
    }
}

impl<S: Socket> AsyncWrite for Lingering<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}
