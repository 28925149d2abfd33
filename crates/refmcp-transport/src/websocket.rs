//! WebSocket: text frames, one message each. The protocol does not define it; it behaves as lines of text do.
//!
//! Close codes of protocol errors: 1003 for a binary frame, 1009 for one that is too long, 1007 for invalid UTF-8, 1008
//! for a peer that takes nothing, 1002 for the rest.
//!
//! What is held for a peer that does not read is limited: messages wait in the queue of the writer, and after some pings
//! whose pongs cannot be sent no more frames are read.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use futures_util::{Sink, SinkExt, StreamExt};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::task::yield_now;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::driver::ConnectionEnd;
use crate::pipe::{Frame, FrameReader, FrameWriter};

pub use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
pub use tokio_tungstenite::tungstenite::protocol::Role;

/// How long the farewell may take: a peer that closes too is waited for, others are not.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of the buffers for reading and for writing; longer messages have more while they last.
const BUFFER: usize = 16 << 10;

/// Bytes that are read before the runtime's timers and signals run.
const YIELD_AFTER: usize = 16 << 10;

/// Pings that are read while their pongs cannot be sent.
const MAX_UNSENT_PONGS: usize = 64;

/// Why a socket closes whose peer does not read.
const TAKES_NOTHING: &str = "the peer takes nothing";

/// So long that it makes no difference.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How a socket behaves.
#[derive(Debug, Clone, Copy)]
pub struct WebSocketSettings {
    /// Bytes of a message.
    pub max_message_size: usize,
    /// How often the peer is asked whether it is there. A peer that says nothing for twice as long, or takes nothing,
    /// is gone.
    pub ping_every: Duration,
    /// How long the peer may take to say anything at all.
    pub first_within: Duration,
}

/// A pipe over a stream that has left HTTP behind.
pub async fn pipe<S>(stream: S, role: Role, settings: WebSocketSettings) -> (SocketReader<S>, SocketWriter<S>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(Some(settings.max_message_size))
        .max_frame_size(Some(settings.max_message_size));
    let counted = CountedStream { stream, read: 0, since_yield: 0 };
    let socket = Socket::new(WebSocketStream::from_raw_socket(counted, role, Some(config)).await);
    let now = Instant::now();
    // Longer makes no difference, and can be added to a time.
    let [ping_every, first_within] = [settings.ping_every, settings.first_within].map(|it| it.min(YEAR));
    let mut pulse = interval_at(now + ping_every, ping_every);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let reader = SocketReader {
        socket: socket.clone(),
        current: Utf8Bytes::default(),
        fresh: false,
        pulse,
        heard: true,
        first_by: Some(now + first_within),
        unsent_pongs: 0,
        write_timeout: ping_every * 2,
        stuck: None,
    };
    let write_timeout = ping_every * 2;
    let stops = StopReason::default();
    (reader, SocketWriter { socket, queue: VecDeque::new(), bytes: 0, stuck: None, write_timeout, stops })
}

/// A stream that counts what is read of it, and lets other tasks run between reads. A peer that sends faster than it is
/// read never leaves its reader waiting, and the budget of tokio counts reads and not their size.
#[derive(Debug)]
struct CountedStream<S> {
    stream: S,
    /// Bytes since the last whole message.
    read: usize,
    /// Bytes since the last yield.
    since_yield: usize,
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedStream<S> {
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
        let count = buffer.filled().len() - before;
        self.read += count;
        self.since_yield += count;
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Why a socket closes when it is stopped: because the server stops, unless another reason is set.
#[derive(Debug, Clone, Default)]
pub struct StopReason(Arc<OnceLock<(u16, &'static str)>>);

impl StopReason {
    /// Says why, with a code from 3000 on; those before are the protocol's own.
    pub fn set(&self, code: u16, reason: &'static str) {
        // The first reason is the one.
        let _ = self.0.set((code, reason));
    }

    fn farewell(&self) -> (CloseCode, &'static str) {
        let said = self.0.get().map(|(code, reason)| (CloseCode::from(*code), *reason));
        said.unwrap_or((CloseCode::Away, "the server stops"))
    }
}

/// The socket, which both ends of the pipe use; each holds it for no longer than one step takes.
#[derive(Debug)]
struct Socket<S> {
    stream: Arc<Mutex<WebSocketStream<CountedStream<S>>>>,
    ends: Arc<Ends>,
    /// Wakes both ends.
    waker: Waker,
}

/// The tasks that wait for the socket. Reading may have to write, and writing by one end must not make the other miss that
/// the socket can be written again; so both are woken.
#[derive(Debug, Default)]
struct Ends {
    reader: AtomicWaker,
    writer: AtomicWaker,
}

impl Wake for Ends {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.reader.wake();
        self.writer.wake();
    }
}

impl<S> Clone for Socket<S> {
    fn clone(&self) -> Self {
        let Self { stream, ends, waker } = self;
        Self { stream: stream.clone(), ends: ends.clone(), waker: waker.clone() }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    fn new(stream: WebSocketStream<CountedStream<S>>) -> Self {
        let ends = Arc::new(Ends::default());
        let waker = Waker::from(ends.clone());
        Self { stream: Arc::new(Mutex::new(stream)), ends, waker }
    }

    /// Polls the socket for one of its ends.
    async fn poll<V>(
        &self,
        end: impl Fn(&Ends) -> &AtomicWaker,
        mut poll: impl FnMut(&mut WebSocketStream<CountedStream<S>>, &mut Context<'_>) -> Poll<V>,
    ) -> V {
        poll_fn(|context| {
            end(&self.ends).register(context.waker());
            poll(&mut self.stream.lock(), &mut Context::from_waker(&self.waker))
        })
        .await
    }

    async fn next(&self) -> Option<Result<Message, Error>> {
        self.poll(|ends| &ends.reader, StreamExt::poll_next_unpin).await
    }

    /// Sends a ping; where there is no room for it, the writer's timeout decides.
    fn ping(&self) {
        let (mut stream, mut context) = (self.stream.lock(), Context::from_waker(&self.waker));
        let mut stream = Pin::new(&mut *stream);
        let Poll::Ready(ready) = stream.as_mut().poll_ready(&mut context) else { return };
        let sent = ready.and_then(|()| stream.as_mut().start_send(Message::Ping(Default::default())));
        let sent = sent.and_then(|()| match stream.poll_flush(&mut context) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Ok(()),
        });
        if let Err(error) = sent {
            tracing::debug!(%error, "a ping was not sent");
        }
    }

    /// Says why the socket closes, and sees to it that the peer can hear it.
    async fn farewell(&self, code: CloseCode, reason: &'static str) {
        let close = Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) }));
        let goodbye = async {
            self.poll(|ends| &ends.writer, SinkExt::poll_ready_unpin).await?;
            self.stream.lock().start_send_unpin(close)?;
            self.poll(|ends| &ends.writer, SinkExt::poll_flush_unpin).await
        };
        // A socket that is dropped with bytes unread is reset, and the reason is lost with it.
        let drained = async {
            if goodbye.await.is_ok() {
                let mut scrap = vec![0; 16 << 10];
                let mut read = |stream: &mut WebSocketStream<CountedStream<S>>, context: &mut Context<'_>| {
                    pin!(stream.get_mut().read(&mut scrap)).poll(context)
                };
                while self.poll(|ends| &ends.reader, &mut read).await.is_ok_and(|count| count > 0) {}
            }
        };
        // A peer that does not close in time is not waited for.
        let _ = timeout(CLOSE_TIMEOUT, drained).await;
    }
}

/// Messages that come in.
#[derive(Debug)]
pub struct SocketReader<S> {
    socket: Socket<S>,
    /// The message that came last, and whether it was handed out.
    current: Utf8Bytes,
    fresh: bool,
    pulse: Interval,
    /// Whether anything came since the last ping.
    heard: bool,
    first_by: Option<Instant>,
    /// Pings that were read since all pongs were sent.
    unsent_pongs: usize,
    /// How long the peer may take nothing.
    write_timeout: Duration,
    /// Since when pongs cannot be sent.
    stuck: Option<Instant>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> SocketReader<S> {
    /// Closes the socket with this code.
    async fn refuse(&self, code: CloseCode, reason: &'static str) -> io::Result<bool> {
        self.socket.farewell(code, reason).await;
        Err(io::Error::new(io::ErrorKind::InvalidData, reason))
    }

    /// Waits until the pongs are sent; `false` if the peer takes nothing for too long. Dropping the future loses nothing.
    async fn send_pongs(&mut self) -> io::Result<bool> {
        let since = *self.stuck.get_or_insert_with(Instant::now);
        let flushed = self.socket.poll(|ends| &ends.reader, SinkExt::poll_flush_unpin);
        let Ok(flushed) = timeout_at(since + self.write_timeout, flushed).await else { return Ok(false) };
        flushed.map_err(|error| io::Error::new(io::ErrorKind::BrokenPipe, error))?;
        (self.stuck, self.unsent_pongs) = (None, 0);
        Ok(true)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> FrameReader for SocketReader<S> {
    async fn fill(&mut self) -> io::Result<bool> {
        loop {
            if self.unsent_pongs >= MAX_UNSENT_PONGS && !self.send_pongs().await? {
                return self.refuse(CloseCode::Policy, TAKES_NOTHING).await;
            }
            let first_by = self.first_by;
            let frame = tokio::select! {
                frame = self.socket.next() => frame,
                _ = self.pulse.tick() => {
                    if !std::mem::take(&mut self.heard) {
                        let reason = "no answer to a ping";
                        self.socket.farewell(CloseCode::Policy, reason).await;
                        // The peer has gone, as far as can be known.
                        return Err(io::Error::new(io::ErrorKind::ConnectionAborted, reason));
                    }
                    self.socket.ping();
                    continue;
                }
                () = async { tokio::time::sleep_until(first_by.unwrap_or_else(Instant::now)).await },
                    if first_by.is_some() => {
                    return self.refuse(CloseCode::Policy, "nothing was said").await;
                }
            };
            self.heard = true;
            return match frame {
                Some(Ok(Message::Text(text))) => {
                    self.first_by = None;
                    self.socket.stream.lock().get_mut().read = 0;
                    self.current = text;
                    self.fresh = true;
                    Ok(true)
                }
                // The library answers pings by itself.
                Some(Ok(Message::Ping(_))) => {
                    self.unsent_pongs += 1;
                    continue;
                }
                Some(Ok(Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Close(_))) => {
                    // Reading on sends our side of the farewell, and ends when the peer has it.
                    let heard =
                        async { while self.socket.next().await.is_some_and(|frame| frame.is_ok()) {} };
                    let _ = timeout(CLOSE_TIMEOUT, heard).await;
                    Ok(false)
                }
                None => Ok(false),
                Some(Ok(Message::Binary(_))) => {
                    self.refuse(CloseCode::Unsupported, "messages are text").await
                }
                Some(Err(Error::Capacity(_))) => {
                    self.refuse(CloseCode::Size, "the message is too long").await
                }
                Some(Err(Error::Utf8(_))) => self.refuse(CloseCode::Invalid, "the text is not UTF-8").await,
                Some(Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) => {
                    Err(io::ErrorKind::ConnectionReset.into())
                }
                Some(Err(Error::Protocol(error))) => {
                    tracing::debug!(%error, "not WebSocket");
                    self.refuse(CloseCode::Protocol, "this is not WebSocket").await
                }
                Some(Err(Error::Io(error))) => Err(error),
                Some(Err(error)) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, error)),
            };
        }
    }

    fn next_frame(&mut self) -> Option<Frame<'_>> {
        std::mem::take(&mut self.fresh).then(|| Frame::Message(self.current.as_bytes()))
    }

    fn buffered(&self) -> usize {
        self.socket.stream.lock().get_ref().read
    }
}

/// Messages that go out.
#[derive(Debug)]
pub struct SocketWriter<S> {
    socket: Socket<S>,
    queue: VecDeque<Utf8Bytes>,
    bytes: usize,
    /// Since when the peer has taken nothing.
    stuck: Option<Instant>,
    write_timeout: Duration,
    stops: StopReason,
}

impl<S> SocketWriter<S> {
    /// Sets why the socket is stopped.
    pub fn stop_reason(&self) -> StopReason {
        self.stops.clone()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> SocketWriter<S> {
    /// Hands the queue to the socket; only what the socket has room for leaves it, so nothing is lost on the way.
    async fn send_queue(&mut self) -> Result<(), Error> {
        while !self.queue.is_empty() {
            self.socket.poll(|ends| &ends.writer, SinkExt::poll_ready_unpin).await?;
            if let Some(text) = self.queue.pop_front() {
                self.socket.stream.lock().start_send_unpin(Message::Text(text))?;
            }
            self.stuck = None;
        }
        self.socket.poll(|ends| &ends.writer, SinkExt::poll_flush_unpin).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> FrameWriter for SocketWriter<S> {
    fn push(&mut self, json: &[u8]) {
        self.bytes += json.len();
        // The engine writes JSON, which is UTF-8; were it not, the peer would get marks in place of the rest.
        let text = String::from_utf8_lossy(json).into_owned();
        self.queue.push_back(text.into());
    }

    fn pending(&self) -> usize {
        self.bytes
    }

    async fn flush(&mut self) -> io::Result<()> {
        let since = *self.stuck.get_or_insert_with(Instant::now);
        let sent = timeout_at(since + self.write_timeout, self.send_queue()).await;
        let too_slow = || io::Error::new(io::ErrorKind::ConnectionAborted, TAKES_NOTHING);
        sent.map_err(|_| too_slow())?.map_err(|error| io::Error::new(io::ErrorKind::BrokenPipe, error))?;
        self.bytes = 0;
        self.stuck = None;
        Ok(())
    }

    async fn close(&mut self, end: ConnectionEnd) {
        let (code, reason) = match end {
            ConnectionEnd::Closed | ConnectionEnd::PeerGone => (CloseCode::Normal, ""),
            ConnectionEnd::ShutDown => self.stops.farewell(),
            ConnectionEnd::PingTimeout => (CloseCode::Policy, "no answer to a ping"),
            ConnectionEnd::NoMemory => (CloseCode::Again, "too many bytes are held for this client"),
        };
        self.socket.farewell(code, reason).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: WebSocketSettings = WebSocketSettings {
        max_message_size: 100,
        ping_every: Duration::from_secs(10),
        first_within: Duration::from_secs(60),
    };

    type Peer = WebSocketStream<tokio::io::DuplexStream>;

    async fn pair() -> (SocketReader<tokio::io::DuplexStream>, SocketWriter<tokio::io::DuplexStream>, Peer) {
        let (near, far) = tokio::io::duplex(1000);
        let (reader, writer) = pipe(near, Role::Server, SETTINGS).await;
        (reader, writer, WebSocketStream::from_raw_socket(far, Role::Client, None).await)
    }

    /// The code that the peer is told when it sends this.
    async fn code_for(message: Message) -> CloseCode {
        let (mut reader, _writer, mut peer) = pair().await;
        let reading = tokio::spawn(async move { reader.fill().await.unwrap_err().kind() });
        peer.send(message).await.unwrap();
        let Some(Ok(Message::Close(Some(close)))) = peer.next().await else { panic!("no close") };
        drop(peer);
        assert_eq!(reading.await.unwrap(), io::ErrorKind::InvalidData);
        close.code
    }

    #[tokio::test]
    async fn protocol_errors_have_their_close_codes() {
        assert_eq!(code_for(Message::Binary(vec![1].into())).await, CloseCode::Unsupported);
        assert_eq!(code_for(Message::Text("x".repeat(101).into())).await, CloseCode::Size);
    }

    #[tokio::test]
    async fn messages_go_both_ways_in_order() {
        let (mut reader, mut writer, mut peer) = pair().await;
        for n in 0..50 {
            writer.push(format!("{n:050}").as_bytes());
        }
        let writing = tokio::spawn(async move {
            while writer.pending() > 0 {
                writer.flush().await.unwrap();
            }
        });
        for n in 0..50 {
            assert_eq!(peer.next().await.unwrap().unwrap(), Message::Text(format!("{n:050}").into()));
        }
        writing.await.unwrap();
        peer.send(Message::Text("{}".into())).await.unwrap();
        assert!(reader.fill().await.unwrap());
        assert_eq!(reader.next_frame(), Some(Frame::Message(b"{}")));
        assert_eq!(reader.next_frame(), None);
    }

    #[tokio::test]
    async fn stop_reasons_are_sent_on_close() {
        for (said, told) in
            [(&[][..], (1001, "the server stops")), (&[(3000, "a"), (3001, "b")], (3000, "a"))]
        {
            let (_reader, mut writer, mut peer) = pair().await;
            for (code, reason) in said {
                writer.stop_reason().set(*code, reason);
            }
            let closing = tokio::spawn(async move { writer.close(ConnectionEnd::ShutDown).await });
            let Some(Ok(Message::Close(Some(close)))) = peer.next().await else { panic!("no close") };
            assert_eq!((close.code.into(), close.reason.as_str()), told);
            drop(peer);
            closing.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_farewell_is_answered() {
        let (mut reader, _writer, mut peer) = pair().await;
        let reading = tokio::spawn(async move { reader.fill().await.unwrap() });
        peer.close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() })).await.unwrap();
        let Some(Ok(Message::Close(Some(close)))) = peer.next().await else { panic!("no close") };
        assert_eq!(close.code, CloseCode::Normal);
        drop(peer);
        assert!(!reading.await.unwrap(), "nothing more comes");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_answers_no_ping_is_gone() {
        let (mut reader, _writer, mut peer) = pair().await;
        peer.send(Message::Text("{}".into())).await.unwrap();
        assert!(reader.fill().await.unwrap());
        let began = Instant::now();
        assert!(reader.fill().await.is_err());
        assert!(began.elapsed() >= SETTINGS.ping_every * 2, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_answers_pings_may_be_silent_for_long() {
        let (mut reader, _writer, mut peer) = pair().await;
        peer.send(Message::Text("{}".into())).await.unwrap();
        assert!(reader.fill().await.unwrap());
        let answering = tokio::spawn(async move { while peer.next().await.is_some() {} });
        assert!(timeout(SETTINGS.ping_every * 20, reader.fill()).await.is_err(), "still waiting");
        drop(reader);
        answering.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_speaks_is_left() {
        let (mut reader, _writer, mut peer) = pair().await;
        let answering = tokio::spawn(async move { while peer.next().await.is_some() {} });
        let began = Instant::now();
        assert!(reader.fill().await.is_err());
        let waited = began.elapsed();
        assert!(
            waited >= SETTINGS.first_within && waited <= SETTINGS.first_within + CLOSE_TIMEOUT,
            "{waited:?}"
        );
        answering.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn pings_of_a_peer_that_reads_nothing_are_not_answered_without_end() {
        let (mut reader, writer, mut peer) = pair().await;
        drop(writer);
        let reading = tokio::spawn(async move { reader.fill().await.unwrap_err().to_string() });
        let pinging = tokio::spawn(async move {
            let mut sent = 0;
            while peer.send(Message::Ping(vec![7; 50].into())).await.is_ok() {
                sent += 1;
            }
            sent
        });
        assert_eq!(reading.await.unwrap(), TAKES_NOTHING);
        let sent = pinging.await.unwrap();
        // Two buffers of 1,000 bytes, and the pings that are read without an answer.
        assert!(sent < 2 * MAX_UNSENT_PONGS, "{sent}");
    }

    #[tokio::test(start_paused = true)]
    async fn bursts_of_pings_are_answered() {
        let (mut reader, _writer, peer) = pair().await;
        let reading = tokio::spawn(async move { while reader.fill().await.unwrap() {} });
        let (mut sink, mut stream) = peer.split();
        let pinging = tokio::spawn(async move {
            for _ in 0..10 * MAX_UNSENT_PONGS {
                sink.send(Message::Ping(vec![7; 50].into())).await.unwrap();
            }
            sink
        });
        let mut pongs = 0;
        while pongs == 0 || !pinging.is_finished() {
            match stream.next().await {
                Some(Ok(Message::Pong(_))) => pongs += 1,
                other => panic!("{other:?} after {pongs} pongs"),
            }
        }
        assert!(pongs > MAX_UNSENT_PONGS, "{pongs}");
        drop((pinging.await.unwrap(), stream));
        reading.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_is_not_complete_counts() {
        let (mut reader, _writer, mut peer) = pair().await;
        // The head of a masked text frame of 100 bytes, and half of it.
        let half = [&[0x81, 0x80 | 100, 0, 0, 0, 0][..], &[b'x'; 50]].concat();
        tokio::io::AsyncWriteExt::write_all(peer.get_mut(), &half).await.unwrap();
        assert!(timeout(Duration::from_secs(1), reader.fill()).await.is_err());
        assert_eq!(reader.buffered(), half.len());
        tokio::io::AsyncWriteExt::write_all(peer.get_mut(), &[b'x'; 50]).await.unwrap();
        assert!(reader.fill().await.unwrap());
        assert_eq!(reader.buffered(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_left() {
        let (_reader, mut writer, _peer) = pair().await;
        writer.push(&[b'x'; 4000]);
        let began = Instant::now();
        let error = writer.flush().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(began.elapsed(), SETTINGS.ping_every * 2);
    }
}
