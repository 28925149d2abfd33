//! The messages of one response, from the server's connection to the HTTP response that streams them.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Bytes that may wait for a reader: the longest message, and something beside it.
const MOST_BYTES: usize = 80 << 20;

/// A queue of messages that may end.
#[derive(Debug, Default)]
pub(super) struct Feed {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Box<str>>,
    bytes: usize,
    ended: bool,
}

/// What there is to read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Message(Box<str>),
    /// The last message.
    Last(Box<str>),
    End,
}

impl Feed {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Adds a message; whether there is a reader, and room.
    pub(super) fn push(&self, json: &str) -> bool {
        self.add(json, false)
    }

    /// Adds the last message.
    pub(super) fn finish(&self, json: &str) -> bool {
        self.add(json, true)
    }

    fn add(&self, json: &str, last: bool) -> bool {
        let mut state = self.state.lock();
        let fits = !state.ended && state.bytes + json.len() <= MOST_BYTES;
        if fits {
            state.bytes += json.len();
            state.queue.push_back(json.into());
        }
        state.ended |= last;
        drop(state);
        self.changed.notify_one();
        fits
    }

    /// Nothing more is going to be added.
    pub(super) fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_one();
    }

    /// The reader has gone; what was not read is given back.
    pub(super) fn leave(&self) -> VecDeque<Box<str>> {
        let mut state = self.state.lock();
        state.ended = true;
        state.bytes = 0;
        std::mem::take(&mut state.queue)
    }

    /// Waits for the next message. Nothing is lost when this is dropped.
    pub(super) async fn next(&self) -> Next {
        loop {
            {
                let mut state = self.state.lock();
                if let Some(json) = state.queue.pop_front() {
                    state.bytes -= json.len();
                    let last = state.ended && state.queue.is_empty();
                    return if last { Next::Last(json) } else { Next::Message(json) };
                }
                if state.ended {
                    return Next::End;
                }
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_message_is_known_as_such() {
        let feed = Feed::new();
        assert!(feed.push("a") && feed.finish("b") && !feed.push("c"));
        assert_eq!(feed.next().await, Next::Message("a".into()));
        assert_eq!(feed.next().await, Next::Last("b".into()));
        assert_eq!(feed.next().await, Next::End);
    }

    #[tokio::test]
    async fn unread_messages_are_given_back() {
        let feed = Feed::new();
        feed.push("a");
        assert_eq!(feed.leave(), ["a".into()]);
        assert!(!feed.push("b"));
        assert_eq!(feed.next().await, Next::End);
    }

    #[tokio::test]
    async fn a_reader_who_waits_is_woken() {
        let feed = Feed::new();
        let reading = tokio::spawn({
            let feed = feed.clone();
            async move { feed.next().await }
        });
        tokio::task::yield_now().await;
        feed.end();
        assert_eq!(reading.await.unwrap(), Next::End);
    }
}
