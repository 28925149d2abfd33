//! Streamable HTTP: every message is a request of HTTP, and what answers it comes in the response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use refmcp_proto::engine::client::{ClientMessage, ExchangeId, TransportError};
use refmcp_proto::revision::{Lifecycle, Rules};
use tokio::time::timeout;

use super::address::{Address, UrlError};
use super::headers::{HeaderError, add_extra};
use super::http_sse::HttpSse;
use super::requester::{HttpEndpoint, HttpRequester};
use super::settings::HttpSettings;
use super::tasks::{self, SendOrder, Turn};
use super::{get_stream, post};
use crate::transport::{BoxFuture, Connector, JsonObject, MessageSink, Transport};

/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// A server that is reached over streamable HTTP.
#[derive(Debug, Clone)]
pub struct StreamableHttp {
    endpoint: HttpEndpoint,
}

impl StreamableHttp {
    /// The server at a URL of scheme `http` or `https`; a fragment is dropped.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        Ok(Self { endpoint: HttpEndpoint::new(url)? })
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

    /// Where the server is.
    pub fn address(&self) -> &Address {
        &self.endpoint.address
    }
}

impl Connector for StreamableHttp {
    fn connect(
        &self,
        sink: Arc<dyn MessageSink>,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
        // There is nothing to connect before there is something to say.
        Box::pin(
            async move { Ok(Arc::new(StreamableTransport::new(&self.endpoint, sink)) as Arc<dyn Transport>) },
        )
    }

    fn name(&self) -> String {
        self.endpoint.address.to_string()
    }

    fn fallback(&self) -> Option<Arc<dyn Connector>> {
        Some(Arc::new(HttpSse::at(self.endpoint.clone())))
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

/// A way to a server over streamable HTTP. MessageTasks hold the requester and not the transport, so they end with it.
#[derive(Debug)]
struct StreamableTransport {
    requester: Arc<HttpRequester>,
    get_stream: bool,
}

impl StreamableTransport {
    fn new(endpoint: &HttpEndpoint, sink: Arc<dyn MessageSink>) -> Self {
        Self {
            requester: Arc::new(HttpRequester::new(endpoint, sink)),
            get_stream: endpoint.settings.get_stream,
        }
    }
}

impl Transport for StreamableTransport {
    fn send(self: Arc<Self>, message: ClientMessage) {
        let exchange = message.exchange;
        let order = SendOrder::of(&message.kind);
        let requester = self.requester.clone();
        let started = self.requester.tasks.start(exchange, order, move |turn| async move {
            if order == SendOrder::Request {
                turn.wait().await;
                post::ask(&requester, message).await;
            } else {
                tell(&requester, turn, message).await;
            }
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

    fn opened(self: Arc<Self>, rules: &'static Rules) {
        self.requester.opened(rules);
        if self.get_stream && rules.lifecycle == Lifecycle::Handshake {
            let requester = self.requester.clone();
            self.requester.tasks.open_get_stream(|turn| async move {
                turn.wait().await;
                get_stream::listen(requester, rules).await;
            });
        }
    }

    fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let requester = &self.requester;
            let mut told = requester.tasks.wind_down().await;
            let farewell = async {
                tasks::join(&mut told).await;
                end_session(requester).await;
            };
            if timeout(FAREWELL, farewell).await.is_err() {
                tracing::debug!(server = %requester.address, "the end of the session was not acknowledged");
            }
            tasks::end(told).await;
            requester.close_connections();
        })
    }
}

impl Drop for StreamableTransport {
    fn drop(&mut self) {
        self.requester.tasks.abort();
        self.requester.close_connections();
    }
}

/// Sends a message that wants no answer; the next goes once this one is acknowledged.
async fn tell(requester: &HttpRequester, turn: Turn, message: ClientMessage) {
    let exchange = message.exchange;
    let acknowledged = turn.wait().await;
    match post::tell(requester, message).await {
        // The connection is free before the next message looks for one.
        Ok(answer) if answer.body.is_over() => answer.body.finish(),
        Ok(answer) => {
            drop(acknowledged);
            answer.body.drain().await;
        }
        Err(why) => requester.sink.ended(exchange, why),
    }
}

/// Tells the server that the session is over, where there is one.
async fn end_session(requester: &HttpRequester) {
    let session = requester.session();
    let Some(id) = session.id else { return };
    let headers = || requester.headers.delete(session.rules, id.clone());
    match requester.request(Method::DELETE, &requester.target, Bytes::new(), headers).await {
        Ok(answer) => tracing::debug!(status = %answer.status, "the session is over"),
        Err(fault) => tracing::debug!(%fault, "the server was not told that the session is over"),
    }
}
