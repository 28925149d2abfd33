//! Streamable HTTP: every message is a POST request, and its answer comes in the response.

use std::sync::Arc;

use refmcp_proto::engine::client::TransportError;

use super::connection::{Address, UrlError};
use super::endpoint::{HttpEndpoint, endpoint_options};
use super::http_sse::HttpSse;
use super::request::{HttpRequester, is_reserved};
use super::transport::{HttpKind, HttpTransport};
use crate::transport::{BoxFuture, Connecting, Connector, JsonObject, MessageSink, Transport};

/// A server that is reached over streamable HTTP.
#[derive(Debug, Clone)]
pub struct StreamableHttp {
    endpoint: HttpEndpoint,
}

impl StreamableHttp {
    /// The server at a URL of scheme `http` or `https`; a fragment is dropped.
    ///
    /// # Errors
    /// The text is no such URL.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        Ok(Self { endpoint: HttpEndpoint::new(Address::http(url)?)? })
    }
}

endpoint_options!(StreamableHttp, is_reserved);

impl Connector for StreamableHttp {
    fn connect(&self, sink: Arc<dyn MessageSink>) -> Connecting<'_> {
        // Nothing is connected before the first message.
        let kind = HttpKind::Streamable { get_stream: self.endpoint.settings.get_stream };
        let requester = Arc::new(HttpRequester::new(&self.endpoint, sink));
        Box::pin(async { Ok(Arc::new(HttpTransport { requester, kind }) as Arc<dyn Transport>) })
    }

    fn transport(&self) -> &'static str {
        "http"
    }

    fn name(&self) -> String {
        self.endpoint.address.to_string()
    }

    fn fallback(&self) -> Option<Arc<dyn Connector>> {
        Some(Arc::new(HttpSse { endpoint: self.endpoint.clone() }))
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
