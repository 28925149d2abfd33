//! The body of a response as a stream of events.

use std::collections::VecDeque;
use std::time::Duration;

use refmcp_proto::frame::{SseDecoder, SseItem};
use tokio::time::timeout;

use super::response::Body;
use crate::transport::MessageSink;

/// How long the end of a stream is waited for once the answer has come: its connection can then be used again.
const LINGER: Duration = Duration::from_millis(500);

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// By a message over the limit.
    TooLong,
    /// In any other way; this is how.
    Broken(String),
}

/// A stream of events.
#[derive(Debug)]
pub(super) struct EventStream {
    body: Body,
    decoder: SseDecoder,
    read: VecDeque<SseItem>,
    end: Option<StreamEnd>,
}

impl EventStream {
    pub(super) fn new(body: Body, max_message: usize) -> Self {
        Self { body, decoder: SseDecoder::new(max_message), read: VecDeque::new(), end: None }
    }

    /// What comes next.
    pub(super) async fn next(&mut self) -> Result<SseItem, StreamEnd> {
        loop {
            if let Some(item) = self.read.pop_front() {
                return Ok(item);
            }
            if let Some(end) = &self.end {
                return Err(end.clone());
            }
            match self.body.chunk().await {
                Ok(Some(bytes)) => {
                    // The only thing that can be wrong with a stream is an event that is too long.
                    if self.decoder.feed(&bytes, &mut self.read).is_err() {
                        self.end = Some(StreamEnd::TooLong);
                    }
                }
                Ok(None) => self.end = Some(StreamEnd::Broken("the stream ended".to_owned())),
                Err(why) => self.end = Some(StreamEnd::Broken(why)),
            }
        }
    }

    /// Nothing more is read. When it has come to its end, the connection is free for others.
    pub(super) fn release(self) {
        self.body.finish();
    }

    /// Everything that was wanted has come. What still comes is noise, and when nothing does the connection is free.
    pub(super) async fn finish(mut self, sink: &dyn MessageSink) {
        let rest = async {
            loop {
                match self.next().await {
                    Ok(SseItem::Event(event)) if !event.data.is_empty() => break true,
                    Ok(_) => {}
                    Err(_) => break false,
                }
            }
        };
        match timeout(LINGER, rest).await {
            Ok(true) => sink.ignored_input("data on a stream after the final answer"),
            Ok(false) => self.body.finish(),
            Err(_) => {}
        }
    }
}
