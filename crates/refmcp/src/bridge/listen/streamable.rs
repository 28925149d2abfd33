//! Streamable HTTP: sessions, requests that stand for themselves, and the three methods.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use refmcp_proto::engine::server::missing_request_meta;
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::jsonrpc::encode::ResponseId;
use tokio::time::{sleep, timeout};

use super::feed::{Feed, Next};
use super::lane::Lanes;
use super::reply::{self, Body, Refusal, refuse, refuse_with};
use super::session::Session;
use super::{Common, body, full, headers};
use crate::bridge::crossing::blame;
use crate::bridge::glance::{Message, read};

/// How long an answer may take before the response turns into a stream.
const COMMIT_AFTER: Duration = Duration::from_millis(250);
/// How long a session may be silent.
const IDLE_AFTER: Duration = Duration::from_secs(30 * 60);
/// How often sessions are looked through for old ones.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

type Answered = Result<Response<Body>, Refusal>;

/// The endpoint.
#[derive(Debug)]
pub(super) struct Streamable {
    common: Arc<Common>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    lanes: Lanes,
}

/// How a response begins.
#[derive(Debug)]
pub(super) enum First {
    /// With the answer, which is also its end.
    Answer(Box<str>),
    /// With events.
    Stream(Vec<u8>),
}

/// Waits for the answer a little; what takes longer is a stream.
pub(super) async fn first(feed: &Feed) -> First {
    match timeout(COMMIT_AFTER, feed.next()).await {
        Ok(Next::Last(json)) => First::Answer(json),
        Ok(Next::Message(json)) => First::Stream(reply::message(&json)),
        Ok(Next::End) | Err(_) => First::Stream(Vec::new()),
    }
}

impl Streamable {
    pub(super) fn new(common: Arc<Common>) -> Arc<Self> {
        let lanes = Lanes::new(common.clone());
        let streamable = Arc::new(Self { common, sessions: Mutex::default(), lanes });
        let weak = Arc::downgrade(&streamable);
        tokio::spawn(async move {
            loop {
                sleep(SWEEP_EVERY).await;
                let Some(streamable) = weak.upgrade() else { return };
                streamable.sweep().await;
            }
        });
        streamable
    }

    /// Ends sessions that are idle or whose server has ended.
    async fn sweep(&self) {
        let old: Vec<_> = self
            .sessions
            .lock()
            .extract_if(|_, session| session.is_over() || session.is_idle(IDLE_AFTER))
            .collect();
        join_all(old.iter().map(|(_, session)| session.crossing.close())).await;
    }

    /// Ends the streams that would not end by themselves.
    pub(super) fn wind_down(&self) {
        for session in self.sessions.lock().values() {
            session.wind_down();
        }
    }

    /// Ends everything.
    pub(super) async fn close(&self) {
        let sessions = std::mem::take(&mut *self.sessions.lock());
        join_all(sessions.values().map(|session| session.crossing.close())).await;
        self.lanes.close().await;
    }

    pub(super) async fn answer(self: &Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let answered = match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET | Method::DELETE if headers::names_stateless(request.headers()) => {
                Err(headers::not_allowed("POST"))
            }
            Method::GET => self.get(request.headers()),
            Method::DELETE => self.delete(request.headers()).await,
            _ => Err(headers::not_allowed("POST, GET, DELETE")),
        };
        answered.unwrap_or_else(|refusal| *refusal)
    }

    async fn post(self: &Arc<Self>, request: Request<Incoming>) -> Answered {
        headers::check_is_json(request.headers())?;
        headers::check_takes_answers(request.headers())?;
        let headers = request.headers().clone();
        let bytes = body(request).await?;
        let messages = read(&bytes).map_err(|error| bad(ResponseId::Null, &error))?;
        match messages.as_slice() {
            [message] if message.method.is_some() && message.meta.revision.is_some() => {
                Box::pin(self.lanes.post(&headers, message)).await
            }
            [message] if headers::names_stateless(&headers) => match message.asks() {
                Some(id) => Err(bad(ResponseId::Id(id), &missing_request_meta())),
                None => Ok(reply::empty(StatusCode::ACCEPTED)),
            },
            [message] if message.is("initialize") => self.open(message).await,
            messages => {
                let session = self.find(&headers)?;
                Ok(respond(&session, messages).await)
            }
        }
    }

    /// Opens a session.
    async fn open(self: &Arc<Self>, message: &Message<'_>) -> Answered {
        let slot = self.common.slots.clone().try_acquire_owned().map_err(|_| full())?;
        let session = Session::open(&self.common, slot).await.map_err(|why| {
            let to = message.asks().map_or(ResponseId::Null, ResponseId::Id);
            refuse_with(StatusCode::BAD_GATEWAY, to, &blame(why))
        })?;
        let id = headers::new_id()?;
        self.sessions.lock().insert(id.clone(), session.clone());
        let ends = EndsUnopened { streamable: self.clone(), id: Some(id.clone()) };
        let Some(reading) = session.pass(std::slice::from_ref(message)).await else {
            return Ok(reply::empty(StatusCode::ACCEPTED));
        };
        let feed = reading.feed.clone();
        let mut response = match first(&feed).await {
            First::Answer(json)
                if read(json.as_bytes()).is_ok_and(|read| read.iter().any(|one| one.error.is_some())) =>
            {
                return Ok(reply::json(StatusCode::OK, json.into_string()));
            }
            First::Answer(json) => reply::json(StatusCode::OK, json.into_string()),
            First::Stream(beginning) => reply::events(beginning, feed, reading),
        };
        ends.opened();
        let id = HeaderValue::try_from(id)
            .map_err(|_| refuse(StatusCode::INTERNAL_SERVER_ERROR, "no session id"))?;
        response.headers_mut().insert(headers::SESSION_ID, id);
        Ok(response)
    }

    /// The session that a request belongs to.
    fn find(&self, headers: &HeaderMap) -> Result<Arc<Session>, Refusal> {
        let id = headers::session(headers).ok_or_else(|| {
            refuse(StatusCode::BAD_REQUEST, "no Mcp-Session-Id header; initialize opens a session")
        })?;
        let session = self.sessions.lock().get(id).cloned().filter(|session| !session.is_over());
        session.ok_or_else(|| refuse(StatusCode::NOT_FOUND, "there is no such session"))
    }

    fn get(&self, headers: &HeaderMap) -> Answered {
        headers::check_takes_events(headers)?;
        let reading = self.find(headers)?.stand();
        Ok(reply::events(Vec::new(), reading.feed.clone(), reading))
    }

    async fn delete(&self, headers: &HeaderMap) -> Answered {
        let session = self.find(headers)?;
        self.sessions.lock().retain(|_, other| !Arc::ptr_eq(other, &session));
        session.wind_down();
        session.crossing.close().await;
        Ok(reply::empty(StatusCode::NO_CONTENT))
    }
}

/// Passes messages of a session on and answers with what comes back.
async fn respond(session: &Arc<Session>, messages: &[Message<'_>]) -> Response<Body> {
    let Some(reading) = session.pass(messages).await else { return reply::empty(StatusCode::ACCEPTED) };
    let feed = reading.feed.clone();
    match first(&feed).await {
        First::Answer(json) => reply::json(StatusCode::OK, json.into_string()),
        First::Stream(beginning) => reply::events(beginning, feed, reading),
    }
}

fn bad(to: ResponseId<'_>, error: &RpcError) -> Refusal {
    refuse_with(StatusCode::BAD_REQUEST, to, error)
}

/// A session whose client was not welcomed, or has gone before it was, is none.
struct EndsUnopened {
    streamable: Arc<Streamable>,
    id: Option<String>,
}

impl EndsUnopened {
    fn opened(mut self) {
        self.id = None;
    }
}

impl Drop for EndsUnopened {
    fn drop(&mut self) {
        let session = self.id.take().and_then(|id| self.streamable.sessions.lock().remove(&id));
        if let Some(session) = session {
            tokio::spawn(async move { session.crossing.close().await });
        }
    }
}
