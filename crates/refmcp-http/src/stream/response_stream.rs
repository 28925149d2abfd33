//! Where the messages of one exchange go. They wait here until it is decided how the exchange is answered; from then on
//! a reader takes them from here or, where a reader may come back for what it missed, they go into the shared log and
//! are read from there.
//!
//! A writer never waits for a reader: what a reader does not take is kept up to a number of bytes.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use refmcp_proto::engine::MessageKind;
use refmcp_proto::jsonrpc::encode::{self, ResponseId};
use refmcp_proto::jsonrpc::{RequestId, RpcError};
use refmcp_server::backplane::{
    self, AppendOutcome, Backplane, Epoch, PostKey, PostOutcome, StreamKey, Unavailable,
};
use tokio::sync::Notify;

use crate::session::driver::GET_STREAM;

/// How long a log that cannot be reached is left alone, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The way out of one exchange.
#[derive(Debug)]
pub(crate) struct ResponseStream {
    /// Its number within the conversation.
    pub(crate) number: u64,
    /// The request that it answers; a standing outlet answers none.
    pub(crate) request: Option<RequestId>,
    max_bytes: usize,
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Message>,
    bytes: usize,
    /// Nothing more is to come.
    ended: bool,
    /// More was said than could be kept.
    overrun: bool,
    /// Whoever waits for the answer was sent away and is to come back.
    cut: bool,
    /// Counts readers; only the last one may read.
    reader: u64,
    log: Option<Arc<Log>>,
    /// Somebody is writing to the log.
    writing: bool,
}

/// A message on its way.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) json: Bytes,
    pub(crate) kind: MessageKind,
}

impl Message {
    /// For an answer: the code, when it is an error.
    pub(crate) fn answer(&self) -> Option<Option<i64>> {
        match self.kind {
            MessageKind::Response { error } => Some(error),
            MessageKind::Notification | MessageKind::Request => None,
        }
    }
}

/// The stream of the shared log that an outlet leads to.
#[derive(Debug)]
struct Log {
    backplane: Arc<dyn Backplane>,
    stream: StreamKey,
    /// The standing stream has many writers and so no epoch.
    epoch: Option<Epoch>,
    /// The number of the next event; on the standing stream, the key of the next post.
    next: AtomicU64,
}

/// What is next for a reader.
#[derive(Debug)]
pub(crate) enum Next {
    Message(Message),
    /// Nothing yet.
    Wait,
    /// Nothing more.
    End,
    /// Another reader has taken over, or more was said than could be kept.
    Lost,
}

impl ResponseStream {
    pub(crate) fn new(number: u64, request: Option<RequestId>, max_bytes: usize) -> Arc<Self> {
        Arc::new(Self { number, request, max_bytes, state: Mutex::default(), news: Notify::new() })
    }

    /// Takes a message.
    pub(crate) fn push(self: &Arc<Self>, message: Message) {
        let mut state = self.state.lock();
        if state.overrun || state.ended {
            return;
        }
        state.bytes += message.json.len();
        state.ended = self.number != GET_STREAM && message.answer().is_some();
        state.waiting.push_back(message);
        if state.bytes > self.max_bytes && state.waiting.len() > 1 {
            state.shed();
        }
        let logged = state.log.is_some();
        drop(state);
        if logged {
            self.write();
        } else {
            self.news.notify_waiters();
        }
    }

    /// Nothing more is to come.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        let log = state.log.clone();
        drop(state);
        self.news.notify_waiters();
        if let Some(log) = log {
            drive(async move {
                if let Some(epoch) = log.epoch
                    && let Err(fault) = log.backplane.forget(&log.stream, epoch).await
                {
                    tracing::warn!(%fault, "a stream was not ended");
                }
            });
        }
    }

    /// Whether there is nothing left to say, and nothing will be.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.state.lock();
        state.ended && state.waiting.is_empty()
    }

    /// Sends away whoever waits for the answer; it comes all the same, to whoever asks for it then.
    pub(crate) fn cut(&self) {
        let mut state = self.state.lock();
        state.cut = true;
        state.reader += 1;
        let log = state.log.clone();
        drop(state);
        self.news.notify_waiters();
        if let Some(log) = log {
            drive(async move {
                if let Err(fault) = log.backplane.detach(&log.stream).await {
                    tracing::warn!(%fault, "a reader was not sent away");
                }
            });
        }
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.state.lock().cut
    }

    /// The answer, when it is the first thing there is to say.
    pub(crate) fn try_answer(&self) -> Option<Message> {
        let mut state = self.state.lock();
        state.waiting.front()?.answer()?;
        state.waiting.pop_front()
    }

    /// Waits for the first thing there is to say; gives it when it is the answer, and leaves it when it is not.
    pub(crate) async fn answer(&self) -> Option<Message> {
        loop {
            let mut news = std::pin::pin!(self.news.notified());
            news.as_mut().enable();
            let decided = {
                let state = self.state.lock();
                !state.waiting.is_empty() || state.ended || state.cut || state.overrun
            };
            if decided {
                return self.try_answer();
            }
            news.await;
        }
    }

    /// Becomes the reader in place of whoever was.
    pub(crate) fn attach(self: &Arc<Self>) -> Reader {
        let mut state = self.state.lock();
        state.reader += 1;
        let turn = state.reader;
        drop(state);
        self.news.notify_waiters();
        Reader { outlet: self.clone(), turn }
    }

    /// From here on everything goes into the shared log, beginning with what waits.
    pub(crate) fn attach_log(
        self: &Arc<Self>,
        backplane: Arc<dyn Backplane>,
        stream: StreamKey,
        epoch: Option<Epoch>,
    ) {
        let next = AtomicU64::new(if epoch.is_some() { 1 } else { next_key() });
        self.state.lock().log = Some(Arc::new(Log { backplane, stream, epoch, next }));
        if self.is_over() {
            return self.end();
        }
        self.write();
    }

    /// Writes what waits to the log, unless somebody does already.
    fn write(self: &Arc<Self>) {
        if !std::mem::replace(&mut self.state.lock().writing, true) {
            drive(self.clone().write_all());
        }
    }

    async fn write_all(self: Arc<Self>) {
        let mut pause = PAUSE.0;
        while let Some((log, message)) = self.to_write() {
            match log.store(&message).await {
                Ok(Stored::Yes) => self.written(),
                Ok(Stored::NoRoom) => self.replace_first(&message),
                // The stream is not ours any more, and neither is what is left to say.
                Ok(Stored::Over) => return self.abandon(),
                Err(fault) => {
                    tracing::warn!(%fault, "an event waits");
                    tokio::time::sleep(pause).await;
                    pause = PAUSE.1.min(pause * 2);
                    continue;
                }
            }
            pause = PAUSE.0;
        }
    }

    fn to_write(&self) -> Option<(Arc<Log>, Message)> {
        let mut state = self.state.lock();
        let found = state.log.clone().zip(state.waiting.front().cloned());
        state.writing = found.is_some();
        found
    }

    fn written(&self) {
        let mut state = self.state.lock();
        if let Some(message) = state.waiting.pop_front() {
            state.bytes -= message.json.len();
        }
    }

    /// An answer that finds no room is an error; anything else can be missed.
    fn replace_first(&self, message: &Message) {
        let mut json = Vec::new();
        let error = RpcError::internal("the answer finds no room in the log of this stream");
        let request = self.request.as_ref().filter(|_| message.answer() != Some(Some(error.code)));
        let written = request.map(|id| encode::error(&mut json, ResponseId::Id(id), &error));
        self.written();
        if message.answer().is_some() && matches!(written, Some(Ok(()))) {
            let kind = MessageKind::Response { error: Some(error.code) };
            let mut state = self.state.lock();
            state.bytes += json.len();
            state.waiting.push_front(Message { json: json.into(), kind });
        }
    }

    fn abandon(&self) {
        let mut state = self.state.lock();
        state.waiting.clear();
        state.bytes = 0;
        state.ended = true;
        state.writing = false;
    }
}

impl State {
    /// Makes room. A log that cannot be reached for long costs what can be missed: it has no number yet, so there will
    /// be no hole. A reader who is too slow is left with nothing, and told so.
    fn shed(&mut self) {
        if self.log.is_some() {
            let before = self.waiting.len();
            self.waiting.retain(|message| message.kind != MessageKind::Notification);
            self.bytes = self.waiting.iter().map(|message| message.json.len()).sum();
            tracing::warn!(dropped = before - self.waiting.len(), "the log is too slow");
        } else {
            self.waiting.clear();
            self.bytes = 0;
            self.overrun = true;
        }
    }
}

/// What became of a message.
enum Stored {
    Yes,
    NoRoom,
    Over,
}

impl Log {
    async fn store(&self, message: &Message) -> Result<Stored, Unavailable> {
        let json = message.json.clone();
        let next = self.next.load(Ordering::Relaxed);
        let Some(epoch) = self.epoch else {
            return Ok(match self.backplane.post(&self.stream.session, post_key(next), json).await? {
                PostOutcome::Stored(_) | PostOutcome::Already(_) => {
                    self.next.store(next_key(), Ordering::Relaxed);
                    Stored::Yes
                }
                PostOutcome::TooLarge | PostOutcome::Full => Stored::NoRoom,
                PostOutcome::Unknown => Stored::Over,
            });
        };
        let kind = if message.answer().is_some() {
            backplane::EventKind::Final
        } else {
            backplane::EventKind::Event
        };
        Ok(match self.backplane.append(&self.stream, epoch, next, json, kind).await? {
            AppendOutcome::Stored | AppendOutcome::Already => {
                self.next.store(next + 1, Ordering::Relaxed);
                Stored::Yes
            }
            AppendOutcome::TooLarge | AppendOutcome::Full => Stored::NoRoom,
            AppendOutcome::Fenced
            | AppendOutcome::Gap { .. }
            | AppendOutcome::Ended
            | AppendOutcome::Cancelled
            | AppendOutcome::Unknown => Stored::Over,
        })
    }
}

/// A number that no other post of this process has.
fn next_key() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

/// A key that no post of any other process has, either.
fn post_key(number: u64) -> PostKey {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    let process = *PROCESS.get_or_init(|| getrandom::u64().unwrap_or_default());
    PostKey(u128::from(process) << 64 | u128::from(number))
}

/// Runs as much of some work as can be done at once, and the rest in the background.
pub(crate) fn drive(work: impl Future<Output = ()> + Send + 'static) {
    let mut work = Box::pin(work);
    if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        tokio::spawn(work);
    }
}

/// The one who reads an outlet.
#[derive(Debug)]
pub(crate) struct Reader {
    outlet: Arc<ResponseStream>,
    turn: u64,
}

impl Reader {
    /// What is next, without waiting.
    pub(crate) fn try_next(&self) -> Next {
        let mut state = self.outlet.state.lock();
        if state.reader != self.turn || state.overrun {
            return Next::Lost;
        }
        match state.waiting.pop_front() {
            Some(message) => {
                state.bytes -= message.json.len();
                Next::Message(message)
            }
            None if state.ended => Next::End,
            None => Next::Wait,
        }
    }

    /// What is next.
    pub(crate) async fn next(&self) -> Next {
        loop {
            let mut news = std::pin::pin!(self.outlet.news.notified());
            news.as_mut().enable();
            match self.try_next() {
                Next::Wait => news.await,
                found => return found,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use refmcp_server::backplane::{
        BackplaneSettings, MemoryBackplane, NewSession, OpenStreamOutcome, ReadFrom, SessionId, StreamReader,
    };

    use super::*;

    fn note(text: &str) -> Message {
        Message { json: text.to_owned().into(), kind: MessageKind::Notification }
    }

    fn answer(text: &str) -> Message {
        Message { json: text.to_owned().into(), kind: MessageKind::Response { error: None } }
    }

    fn text(next: Next) -> String {
        match next {
            Next::Message(message) => String::from_utf8(message.json.to_vec()).unwrap(),
            other => format!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn an_answer_that_comes_first_is_given_and_anything_else_stays() {
        let outlet = ResponseStream::new(1, Some(RequestId::from(1)), 100);
        assert!(outlet.try_answer().is_none());
        outlet.push(answer("a"));
        assert_eq!(outlet.answer().await.unwrap().json, "a");
        let outlet = ResponseStream::new(1, Some(RequestId::from(1)), 100);
        outlet.push(note("n"));
        outlet.push(answer("a"));
        assert!(outlet.answer().await.is_none());
        let reader = outlet.attach();
        assert_eq!(text(reader.next().await), "n");
        assert_eq!(text(reader.next().await), "a");
        assert_eq!(text(reader.next().await), "End");
    }

    #[tokio::test]
    async fn whoever_reads_last_reads() {
        let outlet = ResponseStream::new(0, None, 100);
        let first = outlet.attach();
        outlet.push(note("n"));
        let second = outlet.attach();
        assert_eq!(text(first.try_next()), "Lost");
        assert_eq!(text(second.try_next()), "n");
        assert_eq!(text(second.try_next()), "Wait");
    }

    #[tokio::test]
    async fn a_reader_that_is_too_slow_is_told() {
        let outlet = ResponseStream::new(0, None, 10);
        let reader = outlet.attach();
        outlet.push(note("123456789"));
        outlet.push(note("123456789"));
        assert_eq!(text(reader.next().await), "Lost");
    }

    #[tokio::test]
    async fn what_leads_to_the_log_is_there_at_once_and_in_order() {
        let memory: Arc<dyn Backplane> = Arc::new(MemoryBackplane::new(BackplaneSettings {
            stream_bytes: 1000,
            ..BackplaneSettings::default()
        }));
        let session = SessionId::new("s");
        memory.create_session(&session, NewSession::default(), Duration::from_secs(9)).await.unwrap();
        let request = Some(RequestId::from(1));
        let opened = memory.open_stream(&session, request.clone()).await.unwrap();
        let OpenStreamOutcome::Opened(number, epoch) = opened else { panic!("{opened:?}") };
        let stream = StreamKey::new(session, number);
        let outlet = ResponseStream::new(1, request, 10_000);
        outlet.push(note("1"));
        outlet.attach_log(memory.clone(), stream.clone(), Some(epoch));
        outlet.push(note("2"));
        outlet.push(answer(&"x".repeat(2000)));
        let mut reading = StreamReader::begin(memory, stream, ReadFrom::After(0)).await.unwrap().unwrap();
        let backplane::ReadOutcome::Events(events) = reading.next().await.unwrap() else {
            panic!("no events")
        };
        let texts: Vec<_> = events.iter().map(|event| String::from_utf8_lossy(&event.bytes)).collect();
        assert_eq!(texts[..2], ["1", "2"]);
        assert!(texts[2].contains("-32603"), "an answer without room is an error: {}", texts[2]);
        assert_eq!(reading.next().await.unwrap(), backplane::ReadOutcome::End);
    }
}
