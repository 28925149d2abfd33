//! The messages of one exchange: written to a log first, read from there by whoever listens.
//!
//! A writer never waits for a reader. What a slow or absent reader has not taken stays in the log up to a number of
//! bytes; beyond that the oldest messages go, and a reader who needs them is told so instead of missing them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A log of messages with at most one reader.
#[derive(Debug)]
pub(crate) struct EventStream {
    /// Its number within the conversation; part of every event's id.
    pub(crate) number: u64,
    /// The request that it answers; a standing stream answers none.
    pub(crate) request: Option<RequestId>,
    max_bytes: usize,
    log: Mutex<Log>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Log {
    /// The number of messages that are no longer here.
    gone: u64,
    messages: VecDeque<Message>,
    bytes: usize,
    ended: Option<Instant>,
    /// How far readers have come.
    read: u64,
    /// Counts readers; only the last one may read.
    reader: u64,
    /// The reader was sent away and nobody has come back.
    cut: bool,
}

/// A message in a log.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) json: Bytes,
    /// For the last message: the code, when it is an error.
    pub(crate) answer: Option<Option<i64>>,
}

/// What is next for a reader.
pub(crate) enum Next {
    Message(u64, Message),
    /// Nothing yet.
    Wait,
    /// Nothing more.
    End,
    /// Another reader has taken over, or what comes next is gone.
    Lost,
}

impl EventStream {
    pub(crate) fn new(number: u64, request: Option<RequestId>, max_bytes: usize) -> Arc<Self> {
        Arc::new(Self { number, request, max_bytes, log: Mutex::default(), news: Notify::new() })
    }

    /// Adds a message.
    pub(crate) fn append(&self, json: Vec<u8>, answer: Option<Option<i64>>) {
        let mut log = self.log();
        log.bytes += json.len();
        if answer.is_some() {
            log.ended = Some(Instant::now());
        }
        log.messages.push_back(Message { json: json.into(), answer });
        while log.bytes > self.max_bytes && log.messages.len() > 1 {
            if let Some(oldest) = log.messages.pop_front() {
                log.bytes -= oldest.json.len();
                log.gone += 1;
            }
        }
        drop(log);
        self.news.notify_waiters();
    }

    /// Becomes the reader, behind so many messages; whoever read before is cut off. `None` when some of what follows
    /// is gone, or when there never was that much.
    pub(crate) fn attach(self: &Arc<Self>, after: u64) -> Option<Reader> {
        let mut log = self.log();
        if after < log.gone || after > log.gone + log.messages.len() as u64 {
            return None;
        }
        log.reader += 1;
        log.cut = false;
        let turn = log.reader;
        drop(log);
        self.news.notify_waiters();
        Some(Reader { stream: self.clone(), turn, taken: after })
    }

    /// Cuts off the reader; the stream itself goes on.
    pub(crate) fn detach(&self) {
        let mut log = self.log();
        log.reader += 1;
        log.cut = true;
        drop(log);
        self.news.notify_waiters();
    }

    /// Whether the reader was sent away and nobody has come back.
    pub(crate) fn is_cut(&self) -> bool {
        self.log().cut
    }

    /// How many messages are gone.
    pub(crate) fn kept_from(&self) -> u64 {
        self.log().gone
    }

    /// How many messages somebody has read, or nobody can read any more.
    pub(crate) fn unread_from(&self) -> u64 {
        let log = self.log();
        log.read.max(log.gone)
    }

    /// Whether the stream has ended with this message.
    pub(crate) fn ends_with(&self, message: u64) -> bool {
        let log = self.log();
        log.ended.is_some() && message == log.gone + log.messages.len() as u64
    }

    /// Since when nothing more is to come.
    pub(crate) fn ended_at(&self) -> Option<Instant> {
        self.log().ended
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one who reads a stream.
#[derive(Debug)]
pub(crate) struct Reader {
    stream: Arc<EventStream>,
    turn: u64,
    taken: u64,
}

impl Reader {
    /// What is next, without waiting.
    pub(crate) fn try_next(&mut self) -> Next {
        let mut log = self.stream.log();
        if log.reader != self.turn || self.taken < log.gone {
            return Next::Lost;
        }
        let index = usize::try_from(self.taken - log.gone).unwrap_or(usize::MAX);
        match log.messages.get(index) {
            Some(message) => {
                let message = message.clone();
                self.taken += 1;
                log.read = log.read.max(self.taken);
                Next::Message(self.taken, message)
            }
            None if log.ended.is_some() => Next::End,
            None => Next::Wait,
        }
    }

    /// What is next.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            let stream = self.stream.clone();
            let mut news = std::pin::pin!(stream.news.notified());
            news.as_mut().enable();
            match self.try_next() {
                Next::Wait => news.await,
                found => return found,
            }
        }
    }

    pub(crate) fn stream(&self) -> &Arc<EventStream> {
        &self.stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(reader: &mut Reader) -> Vec<u64> {
        let mut seen = Vec::new();
        while let Next::Message(number, _) = reader.try_next() {
            seen.push(number);
        }
        seen
    }

    #[tokio::test]
    async fn a_second_reader_goes_on_where_the_first_stopped() {
        let stream = EventStream::new(1, None, 1000);
        let mut first = stream.attach(0).unwrap();
        stream.append(b"a".to_vec(), None);
        stream.append(b"b".to_vec(), None);
        assert_eq!(numbers(&mut first), [1, 2]);
        stream.append(b"c".to_vec(), Some(None));
        let mut second = stream.attach(1).unwrap();
        assert!(matches!(first.try_next(), Next::Lost));
        assert_eq!(numbers(&mut second), [2, 3]);
        assert!(matches!(second.next().await, Next::End));
        assert!(stream.attach(4).is_none(), "beyond the end");
    }

    #[tokio::test]
    async fn what_is_gone_is_said_to_be_gone() {
        let stream = EventStream::new(1, None, 10);
        let mut slow = stream.attach(0).unwrap();
        for _ in 0..5 {
            stream.append(b"12345".to_vec(), None);
        }
        assert!(matches!(slow.try_next(), Next::Lost));
        assert!(stream.attach(0).is_none());
        assert_eq!(numbers(&mut stream.attach(3).unwrap()), [4, 5]);
    }
}
