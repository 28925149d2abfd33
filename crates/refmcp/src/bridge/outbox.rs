//! What waits to be written to a client that reads everything from one place.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::crossing::{Heard, Near, Over, Why};

/// Bytes that may wait for a client that does not read. The server cannot be told to wait, so what is more ends it.
const MOST_BYTES: usize = 128 << 20;

/// A queue of messages.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Box<str>>,
    bytes: usize,
    /// How many messages there have been.
    count: u64,
    over: Option<Over>,
}

impl Outbox {
    /// Adds a message.
    pub(super) fn push(&self, json: &str) {
        let mut state = self.state.lock();
        state.count += 1;
        if state.bytes + json.len() > MOST_BYTES {
            let why = Why::Unread { most: MOST_BYTES };
            state.over.get_or_insert(Over { why, reached: true });
        } else {
            state.bytes += json.len();
            state.queue.push_back(json.into());
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Takes the next message.
    pub(super) fn pop(&self) -> Option<Box<str>> {
        let mut state = self.state.lock();
        let json = state.queue.pop_front()?;
        state.bytes -= json.len();
        Some(json)
    }

    /// Why nothing more is going to be added, once that is so.
    pub(super) fn over(&self) -> Option<Over> {
        self.state.lock().over.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state.lock().queue.is_empty()
    }

    /// How many messages there have been.
    pub(super) fn count(&self) -> u64 {
        self.state.lock().count
    }

    /// Waits until something has changed since it was last waited for.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Near for Outbox {
    fn hear(&self, heard: Heard<'_>) {
        self.push(heard.json);
    }

    fn settled(&self) {
        self.changed.notify_one();
    }

    fn over(&self, over: Over) {
        self.state.lock().over.get_or_insert(over);
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_leaves_unread_has_an_end() {
        let outbox = Outbox::default();
        let long = "x".repeat(MOST_BYTES / 2);
        outbox.push(&long);
        outbox.push(&long);
        assert!(outbox.over().is_none());
        outbox.push("x");
        assert_eq!(outbox.over().map(|over| over.why), Some(Why::Unread { most: MOST_BYTES }));
    }
}
