//! Responses: JSON or SSE (`application/json` if the JSON-RPC response is the first message, else `text/event-stream`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use refmcp_proto::engine::{ExchangeId, MessageKind};
use refmcp_proto::http::{self, ResponseMode};
use refmcp_proto::jsonrpc::encode::{self, ResponseId};
use refmcp_proto::jsonrpc::{RequestId, RpcError, error_instead};
use refmcp_proto::revision::Lifecycle;
use refmcp_server::backplane::{OpenStreamOutcome, ReadFrom};
use refmcp_server::transport::MemoryAccount;

use crate::access::caller::Caller;
use crate::endpoint::EndpointState;
use crate::ops::refusal_log;
use crate::refusal::{Reason, Refusal};
use crate::session::driver::SessionDriver;
use crate::stream::message::Message;
use crate::stream::response_stream::ResponseStream;
use crate::stream::sse::{self, EventSource, SseFormat};

/// Bytes of a response for which no memory is reserved.
const SHORT: usize = 8 << 10;

pub(crate) struct Exchange {
    pub(crate) driver: SessionDriver,
    pub(crate) stream: Arc<ResponseStream>,
    pub(crate) request: Option<RequestId>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) format: SseFormat,
    pub(crate) mode: ResponseMode,
    pub(crate) guard: Option<CancelOnDrop>,
}

impl Exchange {
    /// Waits for the first message and responds with JSON if it is the answer, else with a stream. A request that cannot
    /// be answered is cancelled.
    pub(crate) async fn response(
        self,
        endpoint: &Arc<EndpointState>,
        caller: &Caller,
    ) -> Result<Response, Refusal> {
        let (driver, exchange) = (self.driver.clone(), self.stream.exchange);
        let response = self.json_or_sse(endpoint, caller).await;
        if response.is_err() {
            driver.cancel_exchange(exchange);
        }
        response
    }

    async fn json_or_sse(self, endpoint: &Arc<EndpointState>, caller: &Caller) -> Result<Response, Refusal> {
        let observed = caller.observed.stream();
        let Self { driver, stream, request, lifecycle, format, mode, guard } = self;
        let answer = match mode {
            ResponseMode::Stream => stream.try_first_response(),
            ResponseMode::StreamOnMessage => stream.first_response().await,
            ResponseMode::StreamAfterDelay => {
                let delay = endpoint.options.stream_after;
                tokio::time::timeout(delay, stream.first_response()).await.ok().flatten()
            }
        };
        if let Some(answer) = answer {
            return Ok(endpoint.json_response(&caller.memory, lifecycle, answer));
        }
        if stream.is_over() {
            // The request was cancelled.
            return Ok(sse::whole(Vec::new()));
        }
        let guards = (endpoint.acquire_stream()?, driver.add_reader(), guard);
        let number = match driver.attach_log(&stream, request).await? {
            Some(OpenStreamOutcome::Opened(number)) => number,
            Some(OpenStreamOutcome::Full) => {
                return Err(Refusal::too_many(Reason::Streams, "too many streams in this session", 1));
            }
            Some(OpenStreamOutcome::Unknown) => {
                return Err(Refusal::unknown_session("the session has ended"));
            }
            None => {
                let source = EventSource::Stream(stream.attach());
                return Ok(sse::response(endpoint, source, format, Vec::new(), guards, observed));
            }
        };
        let beginning = sse::priming_event(number, format);
        if stream.is_detached() {
            return Ok(sse::whole(beginning));
        }
        match driver.read(number, ReadFrom::After(0)).await? {
            Some(Ok(reading)) => {
                Ok(sse::response(endpoint, EventSource::Log(reading), format, beginning, guards, observed))
            }
            _ if stream.is_over() => Ok(sse::whole(Vec::new())),
            _ => Err(Refusal::internal("the stream cannot be read")),
        }
    }
}

/// A client disconnect cancels the request, where it is stateless. After the response this has no effect.
pub(crate) struct CancelOnDrop {
    pub(crate) driver: SessionDriver,
    pub(crate) exchange: ExchangeId,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.driver.close_exchange(self.exchange);
    }
}

impl EndpointState {
    /// A message as the whole response.
    pub(crate) fn json(&self, status: StatusCode, body: Bytes) -> Response {
        self.metrics.sent.fetch_add(body.len() as u64, Ordering::Relaxed);
        json(status, body)
    }

    /// A JSON-RPC response as the whole HTTP response. It is held in memory until the client has read it; where there is
    /// no memory for that, it becomes an error.
    pub(crate) fn json_response(
        &self,
        memory: &MemoryAccount,
        lifecycle: Lifecycle,
        mut answer: Message,
    ) -> Response {
        // A short response is counted with its connection.
        if answer.json.len() > SHORT {
            answer.json = match memory.hold(answer.json.clone()) {
                Ok(held) => held,
                Err(error) => {
                    let error = RpcError::internal(format!("the request was executed, but {error}"));
                    answer.kind = MessageKind::Response { error: Some(error.code) };
                    refusal_log::rpc_error_found(&error);
                    error_instead(&answer.json, &error).into()
                }
            };
        }
        self.json(status(lifecycle, &answer), answer.json)
    }
}

/// The status of a JSON-RPC response.
pub(crate) fn status(lifecycle: Lifecycle, answer: &Message) -> StatusCode {
    let status = http::status_of_response(lifecycle, answer.error_code());
    StatusCode::from_u16(status).unwrap_or(StatusCode::OK)
}

pub(crate) fn json(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An error that was found before an engine received the message. Its id is null where none could be read, as JSON-RPC
/// requires.
pub(crate) fn encode_error(id: Option<&RequestId>, error: &RpcError) -> Bytes {
    let mut body = Vec::new();
    let to = id.map_or(ResponseId::Null, ResponseId::Id);
    if encode::error(&mut body, to, error).is_err() {
        body.clear();
    }
    body.into()
}
