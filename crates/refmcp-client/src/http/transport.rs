//! The connected form of both HTTP transports.

use std::sync::Arc;

use hyper::Method;
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId};
use refmcp_proto::revision::{Lifecycle, Rules};

use super::connection::RequestTarget;
use super::http_sse;
use super::request::{HttpRequest, HttpRequester, post};
use super::stream::get_stream;
use crate::transport::{BoxFuture, Transport};

/// A connected server. Tasks hold the requester and not the transport, so dropping the transport ends them.
#[derive(Debug)]
pub(crate) struct HttpTransport {
    pub(crate) requester: Arc<HttpRequester>,
    pub(crate) kind: HttpKind,
}

#[derive(Debug)]
pub(crate) enum HttpKind {
    Streamable {
        /// Opens the GET stream of a session.
        get_stream: bool,
    },
    HttpSse {
        /// Where messages are posted.
        endpoint: RequestTarget,
    },
}

impl Transport for HttpTransport {
    fn send(self: Arc<Self>, message: ClientMessage) {
        match &self.kind {
            HttpKind::HttpSse { endpoint } => {
                let endpoint = endpoint.clone();
                self.requester.start(message, move |requester, order, message| async move {
                    http_sse::post(&requester, &endpoint, order, message).await;
                });
            }
            HttpKind::Streamable { .. } => {
                self.requester.start(message, |requester, order, message| async move {
                    if matches!(message.kind, ClientMessageKind::Request { .. }) {
                        post::send_request(&requester, order, message).await;
                    } else {
                        post::send_unanswered(&requester, order, message).await;
                    }
                });
            }
        }
    }

    fn abandon(&self, exchange: ExchangeId) {
        self.requester.tasks.abandon(exchange);
    }

    fn opened(self: Arc<Self>, rules: &'static Rules) {
        self.requester.opened(rules);
        if matches!(self.kind, HttpKind::Streamable { get_stream: true })
            && rules.lifecycle == Lifecycle::Handshake
        {
            let requester = self.requester.clone();
            self.requester.tasks.open_get_stream(|order| async move {
                let order = order.wait().await;
                get_stream::keep_open(requester, rules, order).await;
            });
        }
    }

    fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.requester.close(end_session(&self.requester)).await })
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.requester.abort();
    }
}

/// Tells the server that the session is over. HTTP+SSE has no session id, so nothing is sent.
async fn end_session(requester: &HttpRequester) {
    let session = requester.session();
    let Some(id) = session.id else { return };
    let headers = || requester.headers.delete(session.rules, id.clone());
    let delete = HttpRequest { method: Method::DELETE, ..requester.get(requester.observed.clone(), headers) };
    match requester.request(delete).await {
        Ok(response) => tracing::debug!(status = %response.status, "the session is over"),
        Err(error) => tracing::debug!(%error, "the server was not told that the session is over"),
    }
}
