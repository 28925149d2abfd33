//! Streamable HTTP: every message is a request of HTTP, and what answers it comes in the response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use refmcp_proto::engine::client::{Exchange, Outgoing, WireError};
use refmcp_proto::revision::{Lifecycle, Rules};
use tokio::time::timeout;

use super::address::{Address, BadUrl};
use super::headers::{BadHeader, add_extra};
use super::legacy::HttpSse;
use super::line::{Line, Place};
use super::settings::HttpSettings;
use super::tasks::{self, Order, Turn};
use super::{reply, standing};
use crate::wire::{BoxFuture, Connector, Ear, JsonObject, Wire};

/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// A server that is reached over streamable HTTP.
#[derive(Debug, Clone)]
pub struct StreamableHttp {
    place: Place,
}

impl StreamableHttp {
    /// The server at a URL of scheme `http` or `https`; a fragment is dropped.
    pub fn new(url: &str) -> Result<Self, BadUrl> {
        Ok(Self { place: Place::new(url)? })
    }

    /// A header that goes with every request, such as `Authorization`. It is never sent to another origin.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, BadHeader> {
        add_extra(&mut self.place.extra, name, value)?;
        Ok(self)
    }

    /// How connections are made and used.
    #[must_use]
    pub fn settings(mut self, settings: HttpSettings) -> Self {
        self.place.settings = settings;
        self
    }

    /// How to get in when the server wants to know who asks. An `Authorization` header that is set by
    /// [`header`](Self::header) goes before it.
    #[must_use]
    pub fn authorization(mut self, authorization: crate::auth::Authorization) -> Self {
        self.place.authorization = Some(authorization);
        self
    }

    /// Where the server is.
    pub fn address(&self) -> &Address {
        &self.place.address
    }
}

impl Connector for StreamableHttp {
    fn connect(&self, ear: Arc<dyn Ear>) -> BoxFuture<'_, Result<Arc<dyn Wire>, WireError>> {
        // There is nothing to connect before there is something to say.
        Box::pin(async move { Ok(Arc::new(StreamableWire::new(&self.place, ear)) as Arc<dyn Wire>) })
    }

    fn name(&self) -> String {
        self.place.address.to_string()
    }

    fn older(&self) -> Option<Arc<dyn Connector>> {
        Some(Arc::new(HttpSse::at(self.place.clone())))
    }

    fn probe_may_be_ignored(&self) -> bool {
        false
    }

    fn held_up(&self) -> Option<BoxFuture<'_, Result<(), WireError>>> {
        self.place.held_up()
    }

    fn extensions(&self) -> JsonObject {
        self.place.extensions()
    }
}

/// A way to a server over streamable HTTP. Tasks hold the line and not the wire, so they end with it.
#[derive(Debug)]
struct StreamableWire {
    line: Arc<Line>,
    standing_stream: bool,
}

impl StreamableWire {
    fn new(place: &Place, ear: Arc<dyn Ear>) -> Self {
        Self { line: Arc::new(Line::new(place, ear)), standing_stream: place.settings.standing_stream }
    }
}

impl Wire for StreamableWire {
    fn send(self: Arc<Self>, message: Outgoing) {
        let exchange = message.exchange;
        let order = Order::of(&message.kind);
        let line = self.line.clone();
        let started = self.line.tasks.start(exchange, order, move |turn| async move {
            if order == Order::Request {
                turn.wait().await;
                reply::ask(&line, message).await;
            } else {
                tell(&line, turn, message).await;
            }
            line.tasks.done(exchange);
        });
        if !started {
            // Never from within this call: whoever calls may hold what the ear needs.
            let ear = self.line.ear.clone();
            self.line.tasks.spawn(async move { ear.ended(exchange, WireError::Closed) });
        }
    }

    fn abandon(&self, exchange: Exchange) {
        self.line.tasks.abandon(exchange);
    }

    fn opened(self: Arc<Self>, rules: &'static Rules) {
        self.line.opened(rules);
        if self.standing_stream && rules.lifecycle == Lifecycle::Handshake {
            let line = self.line.clone();
            self.line.tasks.stand(|turn| async move {
                turn.wait().await;
                standing::listen(line, rules).await;
            });
        }
    }

    fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let line = &self.line;
            let mut told = line.tasks.wind_down().await;
            let farewell = async {
                tasks::join(&mut told).await;
                end_session(line).await;
            };
            if timeout(FAREWELL, farewell).await.is_err() {
                tracing::debug!(server = %line.address, "the end of the session was not acknowledged");
            }
            tasks::end(told).await;
            line.hang_up();
        })
    }
}

impl Drop for StreamableWire {
    fn drop(&mut self) {
        self.line.tasks.abort();
        self.line.hang_up();
    }
}

/// Sends a message that wants no answer; the next goes once this one is acknowledged.
async fn tell(line: &Line, turn: Turn, message: Outgoing) {
    let exchange = message.exchange;
    let acknowledged = turn.wait().await;
    match reply::tell(line, message).await {
        // The connection is free before the next message looks for one.
        Ok(answer) if answer.body.is_over() => answer.body.finish(),
        Ok(answer) => {
            drop(acknowledged);
            answer.body.drain().await;
        }
        Err(why) => line.ear.ended(exchange, why),
    }
}

/// Tells the server that the session is over, where there is one.
async fn end_session(line: &Line) {
    let session = line.session();
    let Some(id) = session.id else { return };
    let headers = || line.headers.delete(session.rules, id.clone());
    match line.request(Method::DELETE, &line.target, Bytes::new(), headers).await {
        Ok(answer) => tracing::debug!(status = %answer.status, "the session is over"),
        Err(fault) => tracing::debug!(%fault, "the server was not told that the session is over"),
    }
}
