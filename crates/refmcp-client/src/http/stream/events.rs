//! The body of a response as a stream of SSE events.

use std::collections::VecDeque;
use std::time::Duration;

use refmcp_proto::frame::{SseDecoder, SseItem};
use refmcp_transport::observer::{Direction, Observed};
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::http::connection::{Body, HttpResponse};
use crate::transport::MessageSink;

/// How long to wait for the end of a stream after the answer, so that its connection can be used again.
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// Bytes after which a stream lets the runtime's timers and signals run, as it does after some events: a server that sends
/// faster than it is read never leaves the stream waiting, and the budget of tokio counts reads and not their size.
const YIELD_AFTER: usize = 64 << 10;

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// An event was over the limit.
    TooLong,
    /// The stream or the connection ended.
    Broken(String),
}

/// A stream of events.
#[derive(Debug)]
pub(crate) struct EventStream {
    body: Body,
    decoder: SseDecoder,
    read: VecDeque<SseItem>,
    /// Bytes since the last yield.
    since_yield: usize,
    end: Option<StreamEnd>,
    observed: Observed,
}

impl EventStream {
    pub(crate) fn new(response: HttpResponse, max_message_size: usize) -> Self {
        let (body, observed, decoder) = (response.body, response.observed, SseDecoder::new(max_message_size));
        Self { body, decoder, read: VecDeque::new(), since_yield: 0, end: None, observed }
    }

    /// The next item, which an observer sees.
    pub(crate) async fn next(&mut self) -> Result<SseItem, StreamEnd> {
        loop {
            if !self.read.is_empty() {
                // Before an item is taken: the caller may stop waiting.
                consume_budget().await;
            }
            if let Some(item) = self.read.pop_front() {
                self.observed.sse_item(Direction::Received, &item);
                return Ok(item);
            }
            if let Some(end) = &self.end {
                return Err(end.clone());
            }
            if self.since_yield >= YIELD_AFTER {
                self.since_yield = 0;
                yield_now().await;
            }
            match self.body.chunk().await {
                Ok(Some(bytes)) => {
                    self.since_yield += bytes.len();
                    // The only error of a decoder is an event that is too long.
                    if self.decoder.feed(&bytes, &mut self.read).is_err() {
                        self.end = Some(StreamEnd::TooLong);
                    }
                }
                Ok(None) => self.end = Some(StreamEnd::Broken("the stream ended".to_owned())),
                Err(why) => self.end = Some(StreamEnd::Broken(why)),
            }
        }
    }

    /// Stops reading. The connection is freed if the stream has ended.
    pub(crate) fn release(self) {
        self.body.finish();
    }

    /// The answer has come. Data after it is ignored input; if the stream ends soon, the connection is freed.
    pub(crate) async fn finish(mut self, sink: &dyn MessageSink) {
        let rest = async {
            loop {
                match self.next().await {
                    Ok(SseItem::Event(event)) if !event.data.is_empty() => break true,
                    Ok(_) => {}
                    Err(_) => break false,
                }
            }
        };
        match timeout(END_TIMEOUT, rest).await {
            Ok(true) => sink.ignored_input("data on a stream after the final answer"),
            Ok(false) => self.body.finish(),
            Err(_) => {}
        }
    }
}
