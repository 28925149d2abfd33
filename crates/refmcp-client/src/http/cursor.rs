//! Where a stream of events is to be taken up again, and when.

use std::time::Duration;

use hyper::header::HeaderValue;
use refmcp_proto::frame::{SseItem, SseReceived};
use tokio::time::Instant;

use super::headers::event_id;

const USUAL_PAUSE: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A stream that was held open for so long was worth the attempt, even if nothing came: some intermediaries end
/// every stream after a while.
const HELD_OPEN: Duration = Duration::from_secs(5);

/// Where and when to take up a stream again.
#[derive(Debug)]
pub(super) struct StreamCursor {
    id: Option<HeaderValue>,
    text: String,
    pause: Duration,
    fruitless: u32,
    since: Instant,
    /// The id after which the server was asked to go on, until something else came.
    resumed_after: Option<String>,
}

impl StreamCursor {
    pub(super) fn new() -> Self {
        Self {
            id: None,
            text: String::new(),
            pause: USUAL_PAUSE,
            fruitless: 0,
            since: Instant::now(),
            resumed_after: None,
        }
    }

    /// The id to go on after.
    pub(super) fn id(&self) -> Option<&HeaderValue> {
        self.id.as_ref()
    }

    /// Attempts in a row that brought nothing.
    pub(super) fn fruitless(&self) -> u32 {
        self.fruitless
    }

    /// How long to wait before the next attempt.
    pub(super) fn pause(&self) -> Duration {
        self.pause.saturating_mul(1 << self.fruitless.min(16)).min(LONGEST_PAUSE)
    }

    /// Another attempt is made.
    pub(super) fn attempt(&mut self) {
        self.fruitless = self.fruitless.saturating_add(1);
    }

    /// A stream was opened.
    pub(super) fn opened(&mut self) {
        self.since = Instant::now();
        self.resumed_after = self.id.is_some().then(|| self.text.clone());
    }

    /// A stream has ended.
    pub(super) fn ended(&mut self) {
        if self.since.elapsed() >= HELD_OPEN {
            self.fruitless = 0;
        }
    }

    /// Takes note of what has come; what is a message is given back, unless it was given before.
    pub(super) fn note(&mut self, item: SseItem) -> Option<SseReceived> {
        match item {
            SseItem::Event(event) => {
                let replayed = self.resumed_after.take().filter(|_| event.id.is_some());
                if replayed.is_some() && replayed == event.id {
                    return None;
                }
                if let Some(id) = &event.id {
                    self.mark(id);
                }
                if event.data.is_empty() {
                    return None;
                }
                self.fruitless = 0;
                Some(event)
            }
            SseItem::Primed { id } => {
                if id != self.text {
                    self.mark(&id);
                    self.fruitless = 0;
                }
                None
            }
            SseItem::Retry(millis) => {
                self.pause = Duration::from_millis(millis).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
                None
            }
            SseItem::Comment => None,
        }
    }

    /// An empty id takes back those before it, and one that no header can hold is none.
    fn mark(&mut self, id: &str) {
        if id != self.text || self.id.is_none() {
            self.id = event_id(id);
            id.clone_into(&mut self.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&str>, data: &str) -> SseItem {
        let id = id.map(str::to_owned);
        SseItem::Event(SseReceived { id, event: "message".to_owned(), data: data.to_owned() })
    }

    #[tokio::test]
    async fn pauses_are_what_the_server_says_within_reason() {
        let mut cursor = StreamCursor::new();
        assert_eq!(cursor.pause(), USUAL_PAUSE);
        for (said, waited) in [(0, 10), (500, 500), (u64::MAX, 60_000)] {
            cursor.note(SseItem::Retry(said));
            assert_eq!(cursor.pause(), Duration::from_millis(waited));
        }
    }

    #[tokio::test]
    async fn pauses_grow_until_something_comes() {
        let mut cursor = StreamCursor::new();
        let pauses: Vec<_> = (0..8)
            .map(|_| {
                let pause = cursor.pause().as_secs();
                cursor.attempt();
                pause
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        cursor.note(SseItem::Primed { id: "a".to_owned() });
        assert_eq!((cursor.fruitless(), cursor.pause()), (0, USUAL_PAUSE));
        cursor.attempt();
        cursor.note(SseItem::Primed { id: "a".to_owned() });
        assert_eq!(cursor.fruitless(), 1, "the same id again is nothing new");
    }

    #[tokio::test]
    async fn what_was_given_is_not_given_again() {
        let mut cursor = StreamCursor::new();
        assert!(cursor.note(event(Some("1"), "x")).is_some());
        cursor.opened();
        assert!(cursor.note(event(Some("1"), "x")).is_none());
        assert!(cursor.note(event(Some("2"), "y")).is_some());
        assert_eq!(cursor.id().unwrap(), "2");
        assert!(cursor.note(event(Some("2"), "z")).is_some(), "an event without an id of its own");
    }

    #[tokio::test]
    async fn an_empty_id_takes_the_bookmark_back() {
        let mut cursor = StreamCursor::new();
        cursor.note(event(Some("1"), "x"));
        cursor.note(event(Some(""), "y"));
        assert_eq!(cursor.id(), None);
        cursor.note(event(None, "z"));
        assert_eq!(cursor.id(), None);
    }
}
