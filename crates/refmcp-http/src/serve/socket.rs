//! The socket of a client. Writing to it fails if the client reads nothing for too long. And it can be read empty before
//! it is closed: the system resets a connection that is closed with unread bytes, and a client that is still sending would
//! lose the response. Memory is reserved for a head that is not complete.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use refmcp_server::transport::{MemoryAccount, MemoryReservation};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep, timeout};

/// How long, and how many bytes, a socket is read before it is closed.
const DRAIN: (Duration, u64) = (Duration::from_secs(1), 16 << 20);

/// Bytes of a head for which no memory is reserved.
const SHORT_HEAD: usize = 8 << 10;

/// Bytes that are read at once: fewer than fill hyper's buffer, which would grow and never shrink.
const READ: u64 = (8 << 10) - 1;

/// Bytes that are worth joining before they are written.
const JOINED: usize = 1024;

#[derive(Debug)]
pub(super) struct ClientSocket<S: Socket> {
    /// None only while it is dropped.
    stream: Option<S>,
    /// Bytes that were read before; they are read again first.
    prefix: Bytes,
    state: SocketState,
    /// How long the client may read nothing.
    write_timeout: Duration,
    /// The timer of that, while a write is pending.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Bytes of a head that is not complete, and what is reserved for them.
    head: (usize, MemoryReservation),
}

/// What is known of a socket by both its reader and its server.
#[derive(Debug, Clone, Default)]
pub(super) struct SocketState(Arc<SocketFlags>);

#[derive(Debug, Default)]
struct SocketFlags {
    drain_on_close: AtomicBool,
    /// Whether bytes have come since the last response.
    head_begun: AtomicBool,
    /// Whether a request is being answered: what comes is its body.
    in_request: AtomicBool,
}

impl SocketState {
    /// Has the socket read empty before it is closed.
    pub(super) fn drain_on_close(&self) {
        self.0.drain_on_close.store(true, Ordering::Relaxed);
    }

    /// The head of a request is complete.
    pub(super) fn begin_request(&self) {
        self.0.in_request.store(true, Ordering::Relaxed);
    }

    /// A request has its response: what comes now is the next one.
    pub(super) fn end_request(&self) {
        self.0.head_begun.store(false, Ordering::Relaxed);
        self.0.in_request.store(false, Ordering::Relaxed);
    }

    /// Whether a part of a request has come that is not answered.
    pub(super) fn is_head_begun(&self) -> bool {
        self.0.head_begun.load(Ordering::Relaxed)
    }
}

pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Socket for S {}

impl<S: Socket> ClientSocket<S> {
    pub(super) fn new(
        stream: S,
        prefix: Bytes,
        write_timeout: Duration,
        state: SocketState,
        memory: &MemoryAccount,
    ) -> Self {
        let head = (0, memory.reservation());
        Self { stream: Some(stream), prefix, state, write_timeout, stalled: None, head }
    }

    /// Reserves memory for a head of which so many more bytes have come.
    fn count_head(&mut self, bytes: usize) -> io::Result<()> {
        let (head, reserved) = &mut self.head;
        let is_new = !self.state.0.head_begun.swap(true, Ordering::Relaxed);
        if is_new {
            *head = 0;
        }
        if self.state.0.in_request.load(Ordering::Relaxed) {
            *head = 0;
        } else {
            *head += bytes;
        }
        let wanted = head.saturating_sub(SHORT_HEAD);
        if wanted != reserved.bytes() {
            reserved
                .try_resize(wanted)
                .map_err(|error| io::Error::new(io::ErrorKind::QuotaExceeded, error))?;
        }
        Ok(())
    }

    /// Fails if writing has been pending for too long.
    fn with_timeout<T>(
        &mut self,
        tried: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if tried.is_ready() {
            self.stalled = None;
            return tried;
        }
        let after = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(after)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn stream(&mut self) -> io::Result<Pin<&mut S>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl<S: Socket> Drop for ClientSocket<S> {
    fn drop(&mut self) {
        let stream = self.stream.take().filter(|_| self.state.0.drain_on_close.load(Ordering::Relaxed));
        if let (Some(mut stream), Ok(runtime)) = (stream, Handle::try_current()) {
            runtime.spawn(timeout(DRAIN.0, async move {
                // Best effort: the client may be gone.
                let _ = stream.shutdown().await;
                let _ = tokio::io::copy(&mut stream.take(DRAIN.1), &mut tokio::io::sink()).await;
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
        if self.prefix.is_empty() {
            let before = buffer.filled().len();
            let read = Pin::new(&mut self.stream()?.take(READ)).poll_read(context, buffer);
            let bytes = buffer.filled().len() - before;
            if bytes > 0 {
                self.count_head(bytes)?;
            }
            return read;
        }
        self.state.0.head_begun.store(true, Ordering::Relaxed);
        let most = self.prefix.len().min(buffer.remaining());
        buffer.put_slice(&self.prefix.split_to(most));
        Poll::Ready(Ok(()))
    }
}

impl<S: Socket> AsyncWrite for ClientSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tried = self.stream()?.poll_write(context, bytes);
        self.with_timeout(tried, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = self.stream()?.poll_flush(context);
        self.with_timeout(tried, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tried = match joined(slices, &mut [0; JOINED]) {
            Some(bytes) => self.stream()?.poll_write(context, bytes),
            None => self.stream()?.poll_write_vectored(context, slices),
        };
        self.with_timeout(tried, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}

/// Short slices as one, if they fit: one write is faster than a vectored one.
fn joined<'a>(slices: &[IoSlice<'_>], room: &'a mut [u8; JOINED]) -> Option<&'a [u8]> {
    let mut end = 0;
    for slice in slices {
        room.get_mut(end..end + slice.len())?.copy_from_slice(slice);
        end += slice.len();
    }
    room.get(..end)
}

#[cfg(test)]
mod tests {
    use refmcp_server::transport::MemoryBudget;

    use super::*;

    fn account() -> MemoryAccount {
        MemoryBudget::new(30 << 10).account()
    }

    #[tokio::test]
    async fn a_long_head_is_counted_until_its_request_begins() {
        let (near, mut far) = tokio::io::duplex(100 << 10);
        let (account, state) = (account(), SocketState::default());
        let mut socket =
            ClientSocket::new(near, Bytes::new(), Duration::from_secs(5), state.clone(), &account);
        far.write_all(&vec![b'h'; SHORT_HEAD + 100]).await.unwrap();
        socket.read_exact(&mut vec![0; SHORT_HEAD + 100]).await.unwrap();
        assert_eq!(account.held(), 100);
        state.begin_request();
        far.write_all(b"body").await.unwrap();
        socket.read_exact(&mut [0; 4]).await.unwrap();
        assert_eq!(account.held(), 0);
        state.end_request();
        far.write_all(&vec![b'h'; 60 << 10]).await.unwrap();
        let error = socket.read_exact(&mut vec![0; 60 << 10]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
    }

    #[tokio::test]
    async fn each_head_is_counted_anew() {
        let (near, mut far) = tokio::io::duplex(1000);
        let (account, state) = (account(), SocketState::default());
        let mut socket =
            ClientSocket::new(near, Bytes::new(), Duration::from_secs(5), state.clone(), &account);
        for _ in 0..100 {
            far.write_all(&[b'h'; 1000]).await.unwrap();
            socket.read_exact(&mut [0; 1000]).await.unwrap();
            state.begin_request();
            state.end_request();
        }
        assert_eq!(account.held(), 0);
    }

    #[tokio::test]
    async fn little_is_read_at_once() {
        let (near, mut far) = tokio::io::duplex(100 << 10);
        let mut socket =
            ClientSocket::new(near, Bytes::new(), Duration::from_secs(5), SocketState::default(), &account());
        far.write_all(&[b'x'; 20 << 10]).await.unwrap();
        assert_eq!(socket.read(&mut vec![0; 64 << 10]).await.unwrap() as u64, READ);
    }

    #[test]
    fn short_slices_are_joined_and_long_ones_are_not() {
        let (short, long) = (IoSlice::new(b"head"), IoSlice::new(&[7; JOINED]));
        assert_eq!(joined(&[short, IoSlice::new(b""), short], &mut [0; JOINED]), Some(&b"headhead"[..]));
        assert_eq!(joined(&[long], &mut [0; JOINED]), Some(&[7; JOINED][..]));
        assert_eq!(joined(&[short, long], &mut [0; JOINED]), None);
    }

    #[tokio::test(start_paused = true)]
    async fn writing_fails_if_the_client_reads_nothing() {
        let (near, mut far) = tokio::io::duplex(10);
        let patience = Duration::from_secs(5);
        let mut socket = ClientSocket::new(near, Bytes::new(), patience, SocketState::default(), &account());
        let writing = tokio::spawn(async move { socket.write_all(&[0; 40]).await.unwrap_err().kind() });
        // StreamReader now and then is enough.
        for _ in 0..2 {
            tokio::time::sleep(patience * 3 / 4).await;
            far.read_exact(&mut [0; 10]).await.unwrap();
        }
        assert_eq!(writing.await.unwrap(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn the_rest_of_a_request_is_read_before_closing() {
        let (near, mut far) = tokio::io::duplex(10);
        let state = SocketState::default();
        state.drain_on_close();
        drop(ClientSocket::new(near, Bytes::new(), Duration::from_secs(5), state, &account()));
        far.write_all(&[0; 1000]).await.unwrap();
    }
}
