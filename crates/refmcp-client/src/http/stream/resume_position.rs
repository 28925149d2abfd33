//! The resume position of an SSE stream: last event id and retry delay, with exponential backoff.

use std::time::Duration;

use hyper::header::HeaderValue;
use refmcp_proto::frame::{SseItem, SseReceived};
use tokio::time::Instant;

use crate::http::request::event_id;

const DEFAULT_DELAY: Duration = Duration::from_secs(1);
const MIN_DELAY: Duration = Duration::from_millis(10);
const MAX_DELAY: Duration = Duration::from_secs(60);
/// A stream that was open for so long counts as a success even if nothing came: some intermediaries end every stream
/// after a while.
const HELD_OPEN: Duration = Duration::from_secs(5);

/// Where and when to resume a stream.
#[derive(Debug)]
pub(crate) struct ResumePosition {
    id: Option<HeaderValue>,
    last_id: String,
    delay: Duration,
    failed_attempts: u32,
    since: Instant,
    /// The id that was sent with the last attempt, until an event came.
    resumed_after: Option<String>,
}

impl ResumePosition {
    pub(crate) fn new() -> Self {
        Self {
            id: None,
            last_id: String::new(),
            delay: DEFAULT_DELAY,
            failed_attempts: 0,
            since: Instant::now(),
            resumed_after: None,
        }
    }

    /// The last event id, if there is one to resume after.
    pub(crate) fn id(&self) -> Option<&HeaderValue> {
        self.id.as_ref()
    }

    /// Attempts in a row that brought nothing.
    pub(crate) fn failed_attempts(&self) -> u32 {
        self.failed_attempts
    }

    /// How long to wait before the next attempt.
    pub(crate) fn delay(&self) -> Duration {
        self.delay.saturating_mul(1 << self.failed_attempts.min(16)).min(MAX_DELAY)
    }

    /// Another attempt is made.
    pub(crate) fn attempt(&mut self) {
        self.failed_attempts = self.failed_attempts.saturating_add(1);
    }

    /// A stream was opened.
    pub(crate) fn opened(&mut self) {
        self.since = Instant::now();
        self.resumed_after = self.id.is_some().then(|| self.last_id.clone());
    }

    /// A stream has ended.
    pub(crate) fn ended(&mut self) {
        if self.since.elapsed() >= HELD_OPEN {
            self.failed_attempts = 0;
        }
    }

    /// Moves past an item; returns an event with data, unless it was returned before.
    pub(crate) fn advance(&mut self, item: SseItem) -> Option<SseReceived> {
        match item {
            SseItem::Event(event) => {
                let replayed = self.resumed_after.take().filter(|_| event.id.is_some());
                if replayed.is_some() && replayed == event.id {
                    return None;
                }
                if let Some(id) = &event.id {
                    self.set_id(id);
                }
                if event.data.is_empty() {
                    return None;
                }
                self.failed_attempts = 0;
                Some(event)
            }
            SseItem::Primed { id } => {
                if id != self.last_id {
                    self.set_id(&id);
                    self.failed_attempts = 0;
                }
                None
            }
            SseItem::Retry(millis) => {
                self.delay = Duration::from_millis(millis).clamp(MIN_DELAY, MAX_DELAY);
                None
            }
            SseItem::Comment => None,
        }
    }

    /// An empty id clears the last one; one that no header can hold counts as empty.
    fn set_id(&mut self, id: &str) {
        if id != self.last_id || self.id.is_none() {
            self.id = event_id(id);
            id.clone_into(&mut self.last_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&str>, data: &str) -> SseItem {
        let id = id.map(str::to_owned);
        SseItem::Event(SseReceived {
            has_own_id: id.is_some(),
            id,
            event: "message".to_owned(),
            data: data.to_owned(),
        })
    }

    #[tokio::test]
    async fn retry_delays_of_the_server_are_bounded() {
        let mut position = ResumePosition::new();
        assert_eq!(position.delay(), DEFAULT_DELAY);
        for (said, waited) in [(0, 10), (500, 500), (u64::MAX, 60_000)] {
            position.advance(SseItem::Retry(said));
            assert_eq!(position.delay(), Duration::from_millis(waited));
        }
    }

    #[tokio::test]
    async fn delays_grow_until_an_event_comes() {
        let mut position = ResumePosition::new();
        let pauses: Vec<_> = (0..8)
            .map(|_| {
                let pause = position.delay().as_secs();
                position.attempt();
                pause
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        position.advance(SseItem::Primed { id: "a".to_owned() });
        assert_eq!((position.failed_attempts(), position.delay()), (0, DEFAULT_DELAY));
        position.attempt();
        position.advance(SseItem::Primed { id: "a".to_owned() });
        assert_eq!(position.failed_attempts(), 1, "the same id again is nothing new");
    }

    #[tokio::test]
    async fn an_event_that_is_replayed_is_not_returned_again() {
        let mut position = ResumePosition::new();
        assert!(position.advance(event(Some("1"), "x")).is_some());
        position.opened();
        assert!(position.advance(event(Some("1"), "x")).is_none());
        assert!(position.advance(event(Some("2"), "y")).is_some());
        assert_eq!(position.id().unwrap(), "2");
        assert!(position.advance(event(Some("2"), "z")).is_some(), "an event without an id of its own");
    }

    #[tokio::test]
    async fn an_empty_id_clears_the_position() {
        let mut position = ResumePosition::new();
        position.advance(event(Some("1"), "x"));
        position.advance(event(Some(""), "y"));
        assert_eq!(position.id(), None);
        position.advance(event(None, "z"));
        assert_eq!(position.id(), None);
    }
}
