//! The socket of a client, with two manners that sockets lack. It does not wait for ever for a client that takes
//! nothing. And it can be read empty before it is dropped: the system resets a connection that is closed with bytes
//! unread, and a client that is still sending then loses the very answer that tells it to stop.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep, timeout};

/// How long, and for how many bytes, a client is listened to that does not stop.
const PATIENCE: (Duration, u64) = (Duration::from_secs(1), 16 << 20);

/// Bytes that are worth putting together before they are written.
const SHORT: usize = 1024;

/// A socket, and whether its client may still be sending when it goes.
#[derive(Debug)]
pub(super) struct ClientSocket<S: Socket> {
    /// Gone only while it is dropped.
    stream: Option<S>,
    lingers: Lingers,
    /// How long the client may take nothing.
    write_timeout: Duration,
    /// Rings when the client has taken nothing for that long.
    stalled: Option<Pin<Box<Sleep>>>,
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

impl<S: Socket> ClientSocket<S> {
    pub(super) fn new(stream: S, write_timeout: Duration, lingers: Lingers) -> Self {
        Self { stream: Some(stream), lingers, write_timeout, stalled: None }
    }

    /// Passes on what came of an attempt to write, unless nothing has come of any for too long.
    fn within_time<T>(
        &mut self,
        tried: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if tried.is_ready() {
            self.stalled = None;
            return tried;
        }
        let patience = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn stream(&mut self) -> io::Result<Pin<&mut S>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl<S: Socket> Drop for ClientSocket<S> {
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

impl<S: Socket> AsyncRead for ClientSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(context, buffer)
    }
}

impl<S: Socket> AsyncWrite for ClientSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tried = self.stream()?.poll_write(context, bytes);
        self.within_time(tried, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = self.stream()?.poll_flush(context);
        self.within_time(tried, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tried = match joined(slices, &mut [0; SHORT]) {
            Some(bytes) => self.stream()?.poll_write(context, bytes),
            None => self.stream()?.poll_write_vectored(context, slices),
        };
        self.within_time(tried, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}

/// Several short pieces as one, if they fit: the system takes one piece faster than several.
fn joined<'a>(slices: &[IoSlice<'_>], room: &'a mut [u8; SHORT]) -> Option<&'a [u8]> {
    let mut end = 0;
    for slice in slices {
        room.get_mut(end..end + slice.len())?.copy_from_slice(slice);
        end += slice.len();
    }
    room.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pieces_are_joined_and_long_ones_are_not() {
        let (short, long) = (IoSlice::new(b"head"), IoSlice::new(&[7; SHORT]));
        assert_eq!(joined(&[short, IoSlice::new(b""), short], &mut [0; SHORT]), Some(&b"headhead"[..]));
        assert_eq!(joined(&[long], &mut [0; SHORT]), Some(&[7; SHORT][..]));
        assert_eq!(joined(&[short, long], &mut [0; SHORT]), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_left() {
        let (near, mut far) = tokio::io::duplex(10);
        let patience = Duration::from_secs(5);
        let mut socket = ClientSocket::new(near, patience, Lingers::default());
        let writing = tokio::spawn(async move { socket.write_all(&[0; 40]).await.unwrap_err().kind() });
        // As long as it takes something now and then, it is waited for.
        for _ in 0..2 {
            tokio::time::sleep(patience * 3 / 4).await;
            far.read_exact(&mut [0; 10]).await.unwrap();
        }
        assert_eq!(writing.await.unwrap(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_still_sends_is_heard_out() {
        let (near, mut far) = tokio::io::duplex(10);
        let lingers = Lingers::default();
        lingers.yes();
        drop(ClientSocket::new(near, Duration::from_secs(5), lingers));
        far.write_all(&[0; 1000]).await.unwrap();
    }
}
