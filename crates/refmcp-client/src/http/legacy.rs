//! HTTP+SSE, the older transport: one stream for everything that comes, and an address that it names for everything
//! that goes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use refmcp_proto::engine::client::{Exchange, Outgoing, OutgoingKind, WireError};
use refmcp_proto::frame::SseItem;
use refmcp_proto::jsonrpc::excerpt;
use tokio::time::timeout;

use super::address::{Address, BadUrl, Target};
use super::events::{End, Events};
use super::headers::{BadHeader, Content, add_extra};
use super::line::{Line, Place};
use super::refusal::{check_encoding, refused, unexpected};
use super::settings::HttpSettings;
use super::tasks::{self, Order, Turn};
use crate::wire::{BoxFuture, Connector, Ear, JsonObject, Wire};

/// How long what was told last may take to be acknowledged when everything ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// A server that is reached over HTTP+SSE.
#[derive(Debug, Clone)]
pub struct HttpSse {
    place: Place,
}

impl HttpSse {
    /// The server whose stream is at a URL of scheme `http` or `https`; a fragment is dropped.
    pub fn new(url: &str) -> Result<Self, BadUrl> {
        Ok(Self::at(Place::new(url)?))
    }

    pub(super) fn at(place: Place) -> Self {
        Self { place }
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

    /// Where the server's stream is.
    pub fn address(&self) -> &Address {
        &self.place.address
    }

    async fn open(&self, ear: Arc<dyn Ear>) -> Result<Arc<dyn Wire>, WireError> {
        let line = Arc::new(Line::new(&self.place, ear));
        let headers = || line.headers.get(None, None, None);
        let answer = line.request(Method::GET, &line.target, Bytes::new(), headers).await?;
        if !answer.status.is_success() {
            return Err(refused(answer, None).await);
        }
        check_encoding(&answer.headers)?;
        if answer.status != StatusCode::OK || Content::of(&answer.headers) != Content::Events {
            return Err(unexpected(answer, "a stream of events").await);
        }
        let mut events = Events::new(answer.body, line.max_message);
        let patience = self.place.settings.head_timeout;
        let endpoint = timeout(patience, endpoint(&line, &mut events)).await.map_err(|_| {
            WireError::Misbehaved(format!("the stream did not name an endpoint within {patience:?}"))
        })??;
        let listening = line.clone();
        line.tasks.stand(|_| listen(listening, events));
        Ok(Arc::new(SseWire { line, endpoint }))
    }
}

impl Connector for HttpSse {
    fn connect(&self, ear: Arc<dyn Ear>) -> BoxFuture<'_, Result<Arc<dyn Wire>, WireError>> {
        Box::pin(self.open(ear))
    }

    fn name(&self) -> String {
        self.place.address.to_string()
    }

    fn sessions_only(&self) -> bool {
        true
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

/// The address that the stream names before anything else.
async fn endpoint(line: &Line, events: &mut Events) -> Result<Target, WireError> {
    loop {
        match events.next().await {
            Ok(SseItem::Event(event)) if event.event == "endpoint" => {
                let named = line.address.join(event.data.trim());
                let target = named.and_then(|address| address.target().map_err(|fault| fault.to_string()));
                return target
                    .map_err(|why| WireError::Misbehaved(format!("an endpoint that is not taken: {why}")));
            }
            Ok(SseItem::Event(event)) => {
                let why =
                    format!("the stream began with an event named {:?} instead of an endpoint", event.event);
                return Err(WireError::Misbehaved(excerpt(&why)));
            }
            Ok(_) => {}
            Err(End::TooLong) => return Err(WireError::Misbehaved("an endless event".to_owned())),
            Err(End::Broken(why)) => return Err(WireError::Broken(why)),
        }
    }
}

/// Hands on everything that comes. Nobody can take up this stream again, so its end is that of everything.
async fn listen(line: Arc<Line>, mut events: Events) {
    let why = loop {
        match events.next().await {
            Ok(SseItem::Event(event)) if event.event != "message" => {
                line.ear.noise(&format!("an event named {:?}", excerpt(&event.event)));
            }
            Ok(SseItem::Event(event)) if !event.data.is_empty() => {
                line.ear.message(None, event.data.as_bytes());
            }
            Ok(_) => {}
            Err(End::TooLong) => {
                line.ear.too_long(None, line.max_message);
                break WireError::Misbehaved(format!("a message is longer than {} bytes", line.max_message));
            }
            Err(End::Broken(why)) => break WireError::Broken(why),
        }
    };
    line.ear.closed(why);
}

/// A way to a server over HTTP+SSE. Tasks hold the line and not the wire, so they end with it.
#[derive(Debug)]
struct SseWire {
    line: Arc<Line>,
    endpoint: Target,
}

impl Wire for SseWire {
    fn send(self: Arc<Self>, message: Outgoing) {
        let exchange = message.exchange;
        let order = Order::of(&message.kind);
        let (line, endpoint) = (self.line.clone(), self.endpoint.clone());
        let started = self.line.tasks.start(exchange, order, move |turn| async move {
            post(&line, &endpoint, turn, message).await;
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

    fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let mut told = self.line.tasks.wind_down().await;
            if timeout(FAREWELL, tasks::join(&mut told)).await.is_err() {
                tracing::debug!(server = %self.line.address, "what was told last was not acknowledged");
            }
            tasks::end(told).await;
            self.line.hang_up();
        })
    }
}

impl Drop for SseWire {
    fn drop(&mut self) {
        self.line.tasks.abort();
        self.line.hang_up();
    }
}

/// Sends a message; what answers it comes over the stream.
async fn post(line: &Line, endpoint: &Target, turn: Turn, message: Outgoing) {
    let Outgoing { exchange, kind, json, rules } = message;
    let acknowledged = turn.wait().await;
    let headers = || line.headers.post(&kind, rules, None);
    let sent = if matches!(kind, OutgoingKind::Request { .. }) {
        let _slot = line.slot().await;
        // Some acknowledge a request no earlier than they answer it.
        line.request_within(None, Method::POST, endpoint, json.into(), headers).await
    } else {
        line.request(Method::POST, endpoint, json.into(), headers).await
    };
    drop(acknowledged);
    match sent {
        Ok(answer) if answer.status.is_success() => answer.body.drain().await,
        Ok(answer) => line.ear.ended(exchange, refused(answer, None).await),
        Err(why) => line.ear.ended(exchange, why),
    }
}
