//! HTTP+SSE, the older transport: a stream that carries everything the server says, and the same address with the
//! stream's name to post to.

use std::collections::HashMap;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use refmcp_proto::jsonrpc::encode::ResponseId;
use tokio::sync::OwnedSemaphorePermit;

use super::feed::Feed;
use super::reply::{self, Body, Refusal, refuse};
use super::{Common, body, full, headers};
use crate::bridge::crossing::{Crossing, Heard, Near, Over};
use crate::bridge::glance::read;
use crate::bridge::words;

/// The streams that are open, each a conversation.
#[derive(Debug)]
pub(super) struct Older {
    common: Arc<Common>,
    open: Mutex<HashMap<String, Arc<Stream>>>,
}

#[derive(Debug)]
struct Stream {
    crossing: Arc<Crossing>,
    feed: Arc<Feed>,
}

struct Listener(Arc<Feed>);

impl Near for Listener {
    fn hear(&self, heard: Heard<'_>) {
        if !self.0.push(heard.json) {
            tracing::warn!("a client does not read what the server says");
            self.0.end();
        }
    }

    fn over(&self, over: Over) {
        tracing::warn!(why = %over.why, "a conversation ended");
        self.0.end();
    }
}

/// A conversation lasts as long as its stream is read.
struct Ends {
    older: Arc<Older>,
    id: String,
    slot: Option<OwnedSemaphorePermit>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        let stream = self.older.open.lock().remove(&self.id);
        let slot = self.slot.take();
        if let Some(stream) = stream {
            tokio::spawn(async move {
                let _slot = slot;
                stream.crossing.close().await;
            });
        }
    }
}

impl Older {
    pub(super) fn new(common: Arc<Common>) -> Self {
        Self { common, open: Mutex::default() }
    }

    pub(super) async fn answer(self: &Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let answered = match *request.method() {
            Method::GET => self.listen(&request).await,
            Method::POST => self.take(request).await,
            _ => Err(headers::not_allowed("GET, POST")),
        };
        answered.unwrap_or_else(|refusal| *refusal)
    }

    /// Opens a conversation: the first event says where to post.
    async fn listen(self: &Arc<Self>, request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
        headers::check_takes_events(request.headers())?;
        let slot = self.common.slots.clone().try_acquire_owned().map_err(|_| full())?;
        let feed = Feed::new();
        let crossing = Crossing::open(self.common.to.clone(), Arc::new(Listener(feed.clone()))).await;
        let crossing =
            crossing.map_err(|why| refuse(StatusCode::BAD_GATEWAY, format_args!("refmcp bridge: {why}")))?;
        let id = headers::new_id()?;
        let endpoint = format!("{}?sessionId={id}", request.uri().path());
        self.open.lock().insert(id.clone(), Arc::new(Stream { crossing, feed: feed.clone() }));
        let ends = Ends { older: self.clone(), id, slot: Some(slot) };
        Ok(reply::events(reply::event("endpoint", &endpoint), feed, ends))
    }

    /// Ends all streams.
    pub(super) fn wind_down(&self) {
        for stream in self.open.lock().values() {
            stream.feed.end();
        }
    }

    /// Takes a message; whatever is to be said to it goes to the stream.
    async fn take(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        headers::check_is_json(request.headers())?;
        let query = request.uri().query().unwrap_or_default();
        let id = query.split('&').find_map(|pair| pair.strip_prefix("sessionId=")).unwrap_or_default();
        let stream = self.open.lock().get(id).cloned();
        let Some(stream) = stream else {
            return Err(refuse(
                StatusCode::NOT_FOUND,
                "there is no such stream; GET opens one and says where to post",
            ));
        };
        let bytes = body(request).await?;
        match read(&bytes) {
            Ok(messages) => {
                for message in &messages {
                    stream.crossing.ready().await;
                    stream.crossing.pass(stream.crossing.number(), message);
                }
            }
            Err(error) => {
                stream.feed.push(&words::error(ResponseId::Null, &error));
            }
        }
        Ok(reply::empty(StatusCode::ACCEPTED))
    }
}
