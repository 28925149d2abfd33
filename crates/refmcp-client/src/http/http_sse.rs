//! HTTP+SSE, the older transport: one stream for everything that comes, and an address that it names for everything
//! that goes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId, TransportError};
use refmcp_proto::frame::SseItem;
use refmcp_proto::jsonrpc::excerpt;
use tokio::time::timeout;

use super::address::{Address, Target, UrlError};
use super::events::{EventStream, StreamEnd};
use super::headers::{Content, HeaderError, add_extra};
use super::refusal::{check_encoding, refused, unexpected};
use super::requester::{HttpEndpoint, HttpRequester};
use super::settings::HttpSettings;
use super::tasks::{self, SendOrder, Turn};
use crate::transport::{BoxFuture, Connector, JsonObject, MessageSink, Transport};

/// How long what was told last may take to be acknowledged when everything ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// A server that is reached over HTTP+SSE.
#[derive(Debug, Clone)]
pub struct HttpSse {
    endpoint: HttpEndpoint,
}

impl HttpSse {
    /// The server whose stream is at a URL of scheme `http` or `https`; a fragment is dropped.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        Ok(Self::at(HttpEndpoint::new(url)?))
    }

    pub(super) fn at(endpoint: HttpEndpoint) -> Self {
        Self { endpoint }
    }

    /// A header that goes with every request, such as `Authorization`. It is never sent to another origin.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, HeaderError> {
        add_extra(&mut self.endpoint.extra, name, value)?;
        Ok(self)
    }

    /// How connections are made and used.
    #[must_use]
    pub fn settings(mut self, settings: HttpSettings) -> Self {
        self.endpoint.settings = settings;
        self
    }

    /// How to get in when the server wants to know who asks. An `Authorization` header that is set by
    /// [`header`](Self::header) goes before it.
    #[must_use]
    pub fn authorization(mut self, authorization: crate::auth::Authorization) -> Self {
        self.endpoint.authorization = Some(authorization);
        self
    }

    /// Where the server's stream is.
    pub fn address(&self) -> &Address {
        &self.endpoint.address
    }

    async fn open(&self, sink: Arc<dyn MessageSink>) -> Result<Arc<dyn Transport>, TransportError> {
        let requester = Arc::new(HttpRequester::new(&self.endpoint, sink));
        let headers = || requester.headers.get(None, None, None);
        let answer = requester.request(Method::GET, &requester.target, Bytes::new(), headers).await?;
        if !answer.status.is_success() {
            return Err(refused(answer, None).await);
        }
        check_encoding(&answer.headers)?;
        if answer.status != StatusCode::OK || Content::of(&answer.headers) != Content::EventStream {
            return Err(unexpected(answer, "a stream of events").await);
        }
        let mut events = EventStream::new(answer.body, requester.max_message);
        let patience = self.endpoint.settings.head_timeout;
        let endpoint = timeout(patience, endpoint(&requester, &mut events)).await.map_err(|_| {
            TransportError::Misbehaved(format!("the stream did not name an endpoint within {patience:?}"))
        })??;
        let listening = requester.clone();
        requester.tasks.open_get_stream(|_| listen(listening, events));
        Ok(Arc::new(HttpSseTransport { requester, endpoint }))
    }
}

impl Connector for HttpSse {
    fn connect(
        &self,
        sink: Arc<dyn MessageSink>,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
        Box::pin(self.open(sink))
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

/// The address that the stream names before anything else.
async fn endpoint(requester: &HttpRequester, events: &mut EventStream) -> Result<Target, TransportError> {
    loop {
        match events.next().await {
            Ok(SseItem::Event(event)) if event.event == "endpoint" => {
                let named = requester.address.join(event.data.trim());
                let target = named.and_then(|address| address.target().map_err(|fault| fault.to_string()));
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

/// Hands on everything that comes. Nobody can take up this stream again, so its end is that of everything.
async fn listen(requester: Arc<HttpRequester>, mut events: EventStream) {
    let why = loop {
        match events.next().await {
            Ok(SseItem::Event(event)) if event.event != "message" => {
                requester.sink.ignored_input(&format!("an event named {:?}", excerpt(&event.event)));
            }
            Ok(SseItem::Event(event)) if !event.data.is_empty() => {
                requester.sink.message(None, event.data.as_bytes());
            }
            Ok(_) => {}
            Err(StreamEnd::TooLong) => {
                requester.sink.too_long(None, requester.max_message);
                break TransportError::Misbehaved(format!(
                    "a message is longer than {} bytes",
                    requester.max_message
                ));
            }
            Err(StreamEnd::Broken(why)) => break TransportError::Broken(why),
        }
    };
    requester.sink.closed(why);
}

/// A way to a server over HTTP+SSE. MessageTasks hold the requester and not the transport, so they end with it.
#[derive(Debug)]
struct HttpSseTransport {
    requester: Arc<HttpRequester>,
    endpoint: Target,
}

impl Transport for HttpSseTransport {
    fn send(self: Arc<Self>, message: ClientMessage) {
        let exchange = message.exchange;
        let order = SendOrder::of(&message.kind);
        let (requester, endpoint) = (self.requester.clone(), self.endpoint.clone());
        let started = self.requester.tasks.start(exchange, order, move |turn| async move {
            post(&requester, &endpoint, turn, message).await;
            requester.tasks.done(exchange);
        });
        if !started {
            // Never from within this call: whoever calls may hold what the sink needs.
            let sink = self.requester.sink.clone();
            self.requester.tasks.spawn(async move { sink.ended(exchange, TransportError::Closed) });
        }
    }

    fn abandon(&self, exchange: ExchangeId) {
        self.requester.tasks.abandon(exchange);
    }

    fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let mut told = self.requester.tasks.wind_down().await;
            if timeout(FAREWELL, tasks::join(&mut told)).await.is_err() {
                tracing::debug!(server = %self.requester.address, "what was told last was not acknowledged");
            }
            tasks::end(told).await;
            self.requester.close_connections();
        })
    }
}

impl Drop for HttpSseTransport {
    fn drop(&mut self) {
        self.requester.tasks.abort();
        self.requester.close_connections();
    }
}

/// Sends a message; what answers it comes over the stream.
async fn post(requester: &HttpRequester, endpoint: &Target, turn: Turn, message: ClientMessage) {
    let ClientMessage { exchange, kind, json, rules } = message;
    let acknowledged = turn.wait().await;
    let headers = || requester.headers.post(&kind, rules, None);
    let sent = if matches!(kind, ClientMessageKind::Request { .. }) {
        let _slot = requester.slot().await;
        // Some acknowledge a request no earlier than they answer it.
        requester.request_within(None, Method::POST, endpoint, json.into(), headers).await
    } else {
        requester.request(Method::POST, endpoint, json.into(), headers).await
    };
    drop(acknowledged);
    match sent {
        Ok(answer) if answer.status.is_success() => answer.body.drain().await,
        Ok(answer) => requester.sink.ended(exchange, refused(answer, None).await),
        Err(why) => requester.sink.ended(exchange, why),
    }
}
