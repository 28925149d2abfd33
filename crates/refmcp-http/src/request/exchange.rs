//! A request that waits for its answer: one JSON object when the answer comes first, else a stream of events.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use refmcp_proto::revision::Lifecycle;
use refmcp_server::backplane::{OpenStreamOutcome, ReadFrom};

use crate::endpoint::Inner;
use crate::refusal::{Reason, Refusal};
use crate::request::get::unavailable;
use crate::request::response;
use crate::session::driver::SessionDriver;
use crate::stream::response_stream::{Message, ResponseStream};
use crate::stream::sse::{self, EventSource, SseFormat};

/// A request that the engine has taken in.
pub(crate) struct Exchange {
    pub(crate) conversation: Arc<SessionDriver>,
    pub(crate) outlet: Arc<ResponseStream>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) style: SseFormat,
    pub(crate) commit: ResponseMode,
    pub(crate) guard: Option<CancelOnDrop>,
}

/// When an exchange becomes a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseMode {
    /// Now: there will be messages before the answer.
    AtOnce,
    /// With the first message that is not the answer, or when the answer takes long.
    InTime,
    /// With the first message that is not the answer, however long that takes.
    OnMessage,
}

impl Inner {
    /// A message as the whole response.
    pub(crate) fn json(&self, status: StatusCode, json: Bytes) -> Response {
        self.metrics.sent.fetch_add(json.len() as u64, Ordering::Relaxed);
        response::json(status, json)
    }

    /// An answer as the whole response.
    pub(crate) fn answer_alone(&self, lifecycle: Lifecycle, answer: Message) -> Response {
        self.json(response::of_answer(lifecycle, answer.answer().flatten()), answer.json)
    }
}

impl Exchange {
    /// The response, when the answer is there already and nothing was said before it.
    pub(crate) fn at_once(&self, endpoint: &Inner) -> Option<Response> {
        self.outlet.try_answer().map(|answer| endpoint.answer_alone(self.lifecycle, answer))
    }

    /// Waits for what comes first, and answers with JSON when it is the answer, else with a stream. What cannot be
    /// answered is not done, either.
    pub(crate) async fn response(self, endpoint: &Arc<Inner>) -> Result<Response, Refusal> {
        let (conversation, channel) = (self.conversation.clone(), self.outlet.number);
        let response = self.first_or_stream(endpoint).await;
        if response.is_err() {
            conversation.refuse(channel);
        }
        response
    }

    async fn first_or_stream(self, endpoint: &Arc<Inner>) -> Result<Response, Refusal> {
        let Self { conversation, outlet, lifecycle, style, commit, guard } = self;
        let answer = match commit {
            ResponseMode::AtOnce => outlet.try_answer(),
            ResponseMode::OnMessage => outlet.answer().await,
            ResponseMode::InTime => {
                let patience = endpoint.options.stream_after;
                tokio::time::timeout(patience, outlet.answer()).await.ok().flatten()
            }
        };
        if let Some(answer) = answer {
            return Ok(endpoint.answer_alone(lifecycle, answer));
        }
        if outlet.is_over() {
            return Ok(sse::nothing());
        }
        let held = (endpoint.reads()?, conversation.add_reader(), guard);
        let number = match conversation.log(&outlet).await.map_err(|fault| unavailable(&fault))? {
            Some(OpenStreamOutcome::Opened(number, _)) => number,
            Some(OpenStreamOutcome::Full) => {
                return Err(Refusal::too_many(Reason::Streams, "too many streams in this session", 1));
            }
            Some(OpenStreamOutcome::Unknown) => {
                return Err(Refusal::new(StatusCode::NOT_FOUND, Reason::Session, "the session has ended"));
            }
            None => {
                let source = EventSource::ResponseStream(outlet.attach());
                return Ok(sse::response(endpoint, source, style, Vec::new(), sse::held(held)));
            }
        };
        if outlet.is_detached() {
            return Ok(sse::come_back(number, style));
        }
        let reading =
            conversation.read(number, ReadFrom::After(0)).await.map_err(|fault| unavailable(&fault))?;
        let Some(Ok(reading)) = reading else {
            let over = outlet.is_over();
            return if over { Ok(sse::nothing()) } else { Err(Refusal::fault("the stream cannot be read")) };
        };
        let mut beginning = Vec::new();
        sse::prime(&mut beginning, number, style);
        Ok(sse::response(endpoint, EventSource::Log(reading), style, beginning, sse::held(held)))
    }
}

/// Whoever breaks off an exchange that stands for itself wants no answer; after the answer this does no harm.
pub(crate) struct CancelOnDrop {
    pub(crate) conversation: Arc<SessionDriver>,
    pub(crate) channel: u64,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.conversation.close_channel(self.channel);
    }
}
