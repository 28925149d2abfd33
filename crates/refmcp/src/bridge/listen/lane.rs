//! Requests that stand for themselves, over streamable HTTP. They belong to no session, so all of them share one
//! connection to the server; and because two clients may use the same id at once, ids and progress tokens are numbers
//! of the bridge's own on their way, and the client's again in everything that comes back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};
use parking_lot::Mutex;
use refmcp_client::TransportError;
use refmcp_proto::engine::client::ExchangeId;
use refmcp_proto::jsonrpc::encode::ResponseId;
use refmcp_proto::jsonrpc::{RpcError, code};
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit};

use super::feed::Feed;
use super::reply::{self, Body, Refusal, refuse_with};
use super::streamable::{First, first};
use super::{Common, full, headers};
use crate::bridge::crossing::{Crossing, Heard, Near, Over, blame};
use crate::bridge::glance::{Message, exchanged, read};

/// The connections to the server.
#[derive(Debug)]
pub(super) struct Lanes {
    common: Arc<Common>,
    shared: AsyncMutex<Option<Arc<Lane>>>,
}

/// A connection to the server, and whose requests are on it.
#[derive(Debug)]
struct Lane {
    crossing: Arc<Crossing>,
    guests: Arc<Guests>,
    _slot: OwnedSemaphorePermit,
}

#[derive(Debug, Default)]
struct Guests {
    open: Mutex<BTreeMap<ExchangeId, Guest>>,
    over: AtomicBool,
    /// Whether there is only one, so that everything is for it.
    single: bool,
}

/// A request whose answer is waited for, and the client's own names for it.
#[derive(Debug)]
struct Guest {
    feed: Arc<Feed>,
    id: String,
    token: Option<String>,
}

impl Guest {
    /// What the server says, with the names that the client knows.
    fn restored(&self, json: &str) -> String {
        let Some(message) = read(json.as_bytes()).ok().and_then(|mut read| read.pop()) else {
            return json.to_owned();
        };
        let mut parts: Vec<(&str, String)> = Vec::new();
        let called_off = message.params.request().filter(|_| message.is("notifications/cancelled"));
        let id = message.id.clone().filter(|_| message.is_answer());
        for named in [id, called_off, message.meta.subscription.clone()].into_iter().flatten() {
            parts.push((named.text, self.id.clone()));
        }
        let token = message.params.token().filter(|_| message.is("notifications/progress"));
        if let (Some(named), Some(token)) = (token, &self.token) {
            parts.push((named.text, token.clone()));
        }
        exchanged(json, parts)
    }
}

impl Near for Guests {
    fn hear(&self, heard: Heard<'_>) {
        let mut open = self.open.lock();
        let only = || open.keys().next().copied().filter(|_| self.single);
        let Some(exchange) = heard.belongs_to.or_else(only) else {
            // It may be meant for one client, and the others must not see it.
            return tracing::debug!("the server said something that belongs to no request");
        };
        let read = if heard.is_answer {
            open.remove(&exchange).is_none_or(|guest| guest.feed.finish(&guest.restored(heard.json)))
        } else {
            open.get(&exchange).is_none_or(|guest| guest.feed.push(&guest.restored(heard.json)))
        };
        if !read {
            tracing::warn!("a client does not read what the server says");
        }
    }

    fn over(&self, over: Over) {
        tracing::warn!(why = %over.why, "the connection to the server ended");
        self.over.store(true, Ordering::Relaxed);
        for guest in std::mem::take(&mut *self.open.lock()).into_values() {
            guest.feed.end();
        }
    }
}

impl Lane {
    async fn open(
        common: &Common,
        slot: OwnedSemaphorePermit,
        single: bool,
    ) -> Result<Arc<Self>, TransportError> {
        let guests = Arc::new(Guests { single, ..Guests::default() });
        let crossing = Crossing::open(common.to.clone(), guests.clone()).await?;
        Ok(Arc::new(Self { crossing, guests, _slot: slot }))
    }
}

impl Lanes {
    pub(super) fn new(common: Arc<Common>) -> Self {
        Self { common, shared: AsyncMutex::default() }
    }

    /// A connection for a request.
    async fn lane(&self, message: &Message<'_>) -> Result<Arc<Lane>, Refusal> {
        let unreachable = |why: TransportError| {
            let id = message.id.as_ref().map_or(ResponseId::Null, |named| ResponseId::Id(&named.id));
            refuse_with(StatusCode::BAD_GATEWAY, id, &blame(why))
        };
        let slot = || self.common.slots.clone().try_acquire_owned().map_err(|_| full());
        // What is logged over a pipe does not say for which request, so a request that wants logs has one alone.
        if message.meta.logs && self.common.to.probe_may_be_ignored() {
            return Lane::open(&self.common, slot()?, true).await.map_err(unreachable);
        }
        let mut shared = self.shared.lock().await;
        if let Some(lane) = shared.as_ref().filter(|lane| !lane.guests.over.load(Ordering::Relaxed)) {
            return Ok(lane.clone());
        }
        let lane = Lane::open(&self.common, slot()?, false).await.map_err(unreachable)?;
        *shared = Some(lane.clone());
        Ok(lane)
    }

    /// Passes a request on and answers with what comes back.
    pub(super) async fn post(
        &self,
        headers: &HeaderMap,
        message: &Message<'_>,
    ) -> Result<Response<Body>, Refusal> {
        let Some(id) = message.id.as_ref().filter(|_| message.method.is_some()) else {
            // There is nothing to pass on: a request is cancelled by closing its stream.
            return Ok(reply::empty(StatusCode::ACCEPTED));
        };
        headers::check_mirrored(headers, message)
            .map_err(|error| refuse_with(StatusCode::BAD_REQUEST, ResponseId::Id(&id.id), &error))?;
        let lane = self.lane(message).await?;
        let (feed, exchange) = (Feed::new(), lane.crossing.number());
        let token = message.meta.token.as_ref();
        let number = exchange.0.to_string();
        let parts =
            [Some(id), token].into_iter().flatten().map(|named| (named.text, number.clone())).collect();
        let text = exchanged(message.text, parts);
        let guest = Guest {
            feed: feed.clone(),
            id: id.text.to_owned(),
            token: token.map(|token| token.text.to_owned()),
        };
        lane.guests.open.lock().insert(exchange, guest);
        let leaves = Leaves { lane: lane.clone(), exchange };
        lane.crossing.ready().await;
        for mut renamed in read(text.as_bytes()).unwrap_or_default() {
            renamed.repeated = Some(headers::repeated(headers));
            lane.crossing.pass(exchange, &renamed);
        }
        drop(text);
        Ok(match first(&feed).await {
            First::Answer(json) => reply::json(status_of(&json), json.into_string()),
            First::Stream(beginning) => reply::events(beginning, feed, leaves),
        })
    }

    /// Ends the connection that all share.
    pub(super) async fn close(&self) {
        let shared = self.shared.lock().await.take();
        if let Some(lane) = shared {
            lane.crossing.close().await;
        }
    }
}

/// Cancels the request when its response is dropped.
#[derive(Debug)]
struct Leaves {
    lane: Arc<Lane>,
    exchange: ExchangeId,
}

impl Drop for Leaves {
    fn drop(&mut self) {
        let unanswered = self.lane.guests.open.lock().remove(&self.exchange).is_some();
        if unanswered {
            self.lane.crossing.call_off(self.exchange, "the client has closed the connection");
        }
        if self.lane.guests.single {
            let lane = self.lane.clone();
            tokio::spawn(async move { lane.crossing.close().await });
        }
    }
}

/// The status of an answer: some errors have one of their own, so that HTTP intermediaries understand them too.
fn status_of(answer: &str) -> StatusCode {
    let error = read(answer.as_bytes()).ok().and_then(|read| read.first().and_then(|first| first.error));
    let error: Option<RpcError> = error.and_then(|text| serde_json::from_str(text).ok());
    match error.map(|error| error.code) {
        Some(code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(
            code::PARSE_ERROR
            | code::INVALID_REQUEST
            | code::HEADER_MISMATCH
            | code::MISSING_CAPABILITY
            | code::UNSUPPORTED_VERSION,
        ) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::words;

    #[test]
    fn clients_hear_their_own_names() {
        let guest = Guest { feed: Feed::new(), id: "\"a\"".to_owned(), token: Some("7".to_owned()) };
        for (said, heard) in [
            (r#"{"id":12,"result":{}}"#, r#"{"id":"a","result":{}}"#),
            (
                r#"{"id":12,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":12}}}"#,
                r#"{"id":"a","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}}}"#,
            ),
            (
                r#"{"method":"notifications/progress","params":{"progressToken":12,"progress":12}}"#,
                r#"{"method":"notifications/progress","params":{"progressToken":7,"progress":12}}"#,
            ),
            (
                r#"{"method":"notifications/cancelled","params":{"requestId":12}}"#,
                r#"{"method":"notifications/cancelled","params":{"requestId":"a"}}"#,
            ),
            (
                r#"{"method":"notifications/message","params":{"data":12}}"#,
                r#"{"method":"notifications/message","params":{"data":12}}"#,
            ),
        ] {
            assert_eq!(guest.restored(said), heard);
        }
    }

    #[test]
    fn errors_that_matter_to_intermediaries_have_a_status() {
        let status = |code: i64| status_of(&words::error(ResponseId::Null, &RpcError::new(code, "x")));
        assert_eq!(status(code::METHOD_NOT_FOUND), StatusCode::NOT_FOUND);
        assert_eq!(status(code::UNSUPPORTED_VERSION), StatusCode::BAD_REQUEST);
        assert_eq!(status(code::INTERNAL_ERROR), StatusCode::OK);
        assert_eq!(status_of(r#"{"id":1,"result":{}}"#), StatusCode::OK);
    }
}
