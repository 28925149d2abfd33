//! HTTP+SSE, the older transport: one stream for all messages of the server, which names the URL to post messages to.

use std::sync::Arc;

use hyper::StatusCode;
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, TransportError};
use refmcp_proto::frame::SseItem;
use refmcp_proto::jsonrpc::excerpt;
use refmcp_transport::observer::StreamId;
use tokio::time::timeout;

use super::connection::{Address, RequestTarget, UrlError};
use super::endpoint::{HttpEndpoint, endpoint_options};
use super::request::error_response::{check_encoding, refused, unexpected};
use super::request::{ContentType, HttpRequester, SendOrder, is_reserved};
use super::stream::{EventStream, StreamEnd};
use super::transport::{HttpKind, HttpTransport};
use crate::transport::{BoxFuture, Connecting, Connector, JsonObject, MessageSink, Transport};

/// A server that is reached over HTTP+SSE.
#[derive(Debug, Clone)]
pub struct HttpSse {
    pub(super) endpoint: HttpEndpoint,
}

endpoint_options!(HttpSse, is_reserved);

impl HttpSse {
    /// The server whose stream is at a URL of scheme `http` or `https`; a fragment is dropped.
    ///
    /// # Errors
    /// The text is no such URL.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        Ok(Self { endpoint: HttpEndpoint::new(Address::http(url)?)? })
    }

    async fn open(&self, sink: Arc<dyn MessageSink>) -> Result<Arc<dyn Transport>, TransportError> {
        let requester = Arc::new(HttpRequester::new(&self.endpoint, sink));
        let headers = || requester.headers.get(None, None, None);
        let request = requester.get(requester.observed.stream(StreamId::GET), headers);
        let response = requester.request(request).await?;
        if !response.status.is_success() {
            return Err(refused(response, None).await);
        }
        check_encoding(&response.headers)?;
        if response.status != StatusCode::OK
            || ContentType::from_headers(&response.headers) != ContentType::EventStream
        {
            return Err(unexpected(response, "a stream of events").await);
        }
        let mut events = EventStream::new(response, requester.max_message_size);
        let patience = self.endpoint.settings.head_timeout;
        let endpoint = timeout(patience, read_endpoint(&requester, &mut events)).await.map_err(|_| {
            TransportError::Misbehaved(format!("the stream did not name an endpoint within {patience:?}"))
        })??;
        let listening = requester.clone();
        requester.tasks.open_get_stream(|_| listen(listening, events));
        Ok(Arc::new(HttpTransport { requester, kind: HttpKind::HttpSse { endpoint } }))
    }
}

impl Connector for HttpSse {
    fn connect(&self, sink: Arc<dyn MessageSink>) -> Connecting<'_> {
        Box::pin(self.open(sink))
    }

    fn transport(&self) -> &'static str {
        "http+sse"
    }

    fn name(&self) -> String {
        self.endpoint.address.to_string()
    }

    fn sessions_only(&self) -> bool {
        true
    }

    fn probe_may_be_ignored(&self) -> bool {
        false
    }

    fn pending_login(&self) -> Option<BoxFuture<'_, Result<(), TransportError>>> {
        self.endpoint.pending_login()
    }

    fn extensions(&self) -> JsonObject {
        self.endpoint.extensions()
    }
}

/// The URL for messages, which the first event of the stream names.
async fn read_endpoint(
    requester: &HttpRequester,
    events: &mut EventStream,
) -> Result<RequestTarget, TransportError> {
    loop {
        match events.next().await {
            Ok(SseItem::Event(event)) if event.event == "endpoint" => {
                let named = requester.address.join(event.data.trim());
                let target = named.and_then(|address| address.target().map_err(|error| error.to_string()));
                return target.map_err(|why| {
                    TransportError::Misbehaved(format!("an endpoint that is not taken: {why}"))
                });
            }
            Ok(SseItem::Event(event)) => {
                let why =
                    format!("the stream began with an event named {:?} instead of an endpoint", event.event);
                return Err(TransportError::Misbehaved(excerpt(&why)));
            }
            Ok(_) => {}
            Err(StreamEnd::TooLong) => return Err(TransportError::Misbehaved("an endless event".to_owned())),
            Err(StreamEnd::Broken(why)) => return Err(TransportError::Broken(why)),
        }
    }
}

/// Hands on all messages of the stream. It cannot be resumed, so the transport ends with it.
async fn listen(requester: Arc<HttpRequester>, mut events: EventStream) {
    let why = loop {
        match events.next().await {
            Ok(SseItem::Event(event)) if event.event != "message" => requester.ignored_event(&event),
            Ok(SseItem::Event(event)) if !event.data.is_empty() => {
                requester.sink.message(None, event.data.as_bytes());
            }
            Ok(_) => {}
            Err(StreamEnd::TooLong) => {
                requester.observed.stream(StreamId::GET).too_long(requester.max_message_size);
                requester.sink.too_long(None, requester.max_message_size);
                break TransportError::Misbehaved(format!(
                    "a message is longer than {} bytes",
                    requester.max_message_size
                ));
            }
            Err(StreamEnd::Broken(why)) => break TransportError::Broken(why),
        }
    };
    events.release();
    requester.sink.closed(why);
}

/// Posts a message; its answer comes over the stream.
pub(super) async fn post(
    requester: &HttpRequester,
    endpoint: &RequestTarget,
    order: SendOrder,
    message: ClientMessage,
) {
    let ClientMessage { exchange, kind, json, rules } = message;
    let guard = order.wait().await;
    let headers = || requester.headers.post(&kind, rules, None);
    let request = requester.post(exchange, endpoint, json.into(), headers);
    let sent = if matches!(kind, ClientMessageKind::Request { .. }) {
        let _slot = requester.slot().await;
        // Some servers acknowledge a request only when they answer it.
        requester.request_within(None, request).await
    } else {
        requester.request(request).await
    };
    drop(guard);
    match sent {
        Ok(response) if response.status.is_success() => response.discard().await,
        Ok(response) => requester.ended(exchange, refused(response, None).await),
        Err(why) => requester.ended(exchange, why),
    }
}
