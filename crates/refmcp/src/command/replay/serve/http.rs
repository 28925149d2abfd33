//! A mock over HTTP: streamable HTTP at any path but those of HTTP+SSE (`/sse`, `/messages`), and WebSocket where a client wants
//! to change to it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use refmcp_audit::replay::{Mock, MockMessage};
use refmcp_client::observer::{Direction, Observed, Observer, StartLine, StreamId};
use refmcp_http::{guard, websocket_handshake};
use refmcp_transport::websocket::{Role, WebSocketSettings, pipe};
use serde_json::Value;
use tokio::time::timeout;

use super::body::{Body, Source, events, refusal, whole, with_header};
use super::pipe;
use super::session::Session;
use super::{MAX_MESSAGE, opened};

/// Sessions that are kept; the oldest makes room.
const MAX_SESSIONS: usize = 256;
/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a WebSocket is asked whether its client is still there, and how long its first message may take.
const PING_EVERY: Duration = Duration::from_secs(30);
/// The header with the id of a session.
const SESSION: &str = "mcp-session-id";

/// A mock and its clients.
pub(super) struct Server {
    mock: Mock,
    hosts: Vec<String>,
    origins: Vec<String>,
    observer: Option<Arc<dyn Observer>>,
    /// Clients without sessions.
    stateless: Arc<Session>,
    /// Sessions by their ids.
    sessions: Mutex<VecDeque<(String, Arc<Session>)>>,
    requests: AtomicU64,
}

impl Server {
    pub(super) fn new(
        mock: Mock,
        hosts: Vec<String>,
        origins: Vec<String>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        let stateless = Arc::new(Session::new(mock.session(), opened(observer.as_ref(), "http", "clients")));
        let (sessions, requests) = (Mutex::default(), AtomicU64::new(1));
        Self { mock, hosts, origins, observer, stateless, sessions, requests }
    }

    /// The response to a request.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        local: Option<IpAddr>,
        peer: SocketAddr,
    ) -> Result<Response<Body>, Infallible> {
        let (head, body) = request.into_parts();
        if let Err(refused) = guard::check(&self.hosts, &self.origins, local, &head.uri, &head.headers) {
            return Ok(refusal(StatusCode::FORBIDDEN, &refused.to_string()));
        }
        let path = head.uri.path();
        Ok(match (&head.method, path) {
            (&Method::GET, _) if head.headers.contains_key("upgrade") => self.web_socket(head, body, peer),
            (&Method::GET, "/sse") => self.open_sse(&head, peer),
            (&Method::GET, _) => self.open_stream(&head),
            (&Method::DELETE, _) => self.delete(&head),
            (&Method::POST, _) => match read(body).await {
                Ok(text) if path == "/messages" => self.post_sse(&head, &text),
                Ok(text) => self.post(&head, &text, peer),
                Err((status, why)) => refusal(status, &why),
            },
            _ => refusal(StatusCode::METHOD_NOT_ALLOWED, "a mock answers GET, POST and DELETE"),
        })
    }

    fn post(&self, head: &Parts, text: &str, peer: SocketAddr) -> Response<Body> {
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            return refusal(StatusCode::BAD_REQUEST, "the body is no JSON");
        };
        let messages = value.as_array().map_or(std::slice::from_ref(&value), Vec::as_slice);
        let is_initialize = messages.iter().any(|it| it.get("method").is_some_and(|it| it == "initialize"));
        let has_session = self.mock.session().http_answer(text).has_session;
        let found = if is_initialize && has_session {
            self.new_session("http", peer).map(|(id, session)| (Some(id), session))
        } else {
            self.session_of(&head.headers).map(|session| (None, session))
        };
        let (id, session) = match found {
            Ok(found) => found,
            Err(refused) => return *refused,
        };
        let observed = self.told(&session, head, Some(text));
        let requests =
            messages.iter().filter(|it| it.get("method").is_some() && it.get("id").is_some()).count();
        let (answer, reader) = session.receive(text, requests > 0);
        let Some(mut reader) = reader else { return whole(&observed, 202, "") };
        let status = answer.status.unwrap_or(200);
        let first = reader.messages.try_recv().ok();
        let response = match first {
            Some(MockMessage { is_response: true, text, .. }) if requests == 1 && !answer.is_stream => {
                whole(&observed, status, &text)
            }
            first => events(observed, status, Source::Calls { reader, first, left: requests }),
        };
        match id {
            Some(id) => with_header(response, SESSION, &id),
            None => response,
        }
    }

    /// The session of a request, where it is not to open one.
    fn session_of(&self, headers: &HeaderMap) -> Result<Arc<Session>, Box<Response<Body>>> {
        let Some(id) = headers.get(SESSION) else { return Ok(self.stateless.clone()) };
        let known = self.known(id.to_str().unwrap_or_default());
        known.ok_or_else(|| Box::new(refusal(StatusCode::NOT_FOUND, "no session has this id")))
    }

    fn known(&self, id: &str) -> Option<Arc<Session>> {
        let sessions = self.sessions.lock();
        sessions.iter().find(|(known, _)| known == id).map(|(_, session)| session.clone())
    }

    fn new_session(
        &self,
        transport: &'static str,
        peer: SocketAddr,
    ) -> Result<(String, Arc<Session>), Box<Response<Body>>> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|error| Box::new(refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())))?;
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let observed = opened(self.observer.as_ref(), transport, &peer.ip().to_string());
        let session = Arc::new(Session::new(self.mock.session(), observed));
        let mut sessions = self.sessions.lock();
        sessions.push_back((id.clone(), session.clone()));
        if sessions.len() > MAX_SESSIONS
            && let Some((_, oldest)) = sessions.pop_front()
        {
            oldest.close("there are too many sessions");
        }
        Ok((id, session))
    }

    /// The stream of a session, for what belongs to no request.
    fn open_stream(&self, head: &Parts) -> Response<Body> {
        // A recording without sessions has no such stream.
        if !self.mock.has_request("initialize") {
            return refusal(StatusCode::METHOD_NOT_ALLOWED, "the recorded server has no sessions");
        }
        match self.session_of(&head.headers) {
            Ok(session) => {
                let observed = session.observed.stream(StreamId::GET);
                tell_head(&observed, head);
                events(observed, 200, Source::General { messages: session.open(), endpoint: None })
            }
            Err(refused) => *refused,
        }
    }

    fn delete(&self, head: &Parts) -> Response<Body> {
        let id = head.headers.get(SESSION).and_then(|id| id.to_str().ok()).unwrap_or_default();
        let mut sessions = self.sessions.lock();
        let Some(at) = sessions.iter().position(|(known, _)| known == id) else {
            return refusal(StatusCode::NOT_FOUND, "no session has this id");
        };
        let Some((_, session)) = sessions.remove(at) else {
            return refusal(StatusCode::NOT_FOUND, "no session has this id");
        };
        let response = whole(&self.told(&session, head, None), 200, "");
        session.close("the client ended the session");
        response
    }

    /// The stream of a client over HTTP+SSE, which says where to post.
    fn open_sse(&self, head: &Parts, peer: SocketAddr) -> Response<Body> {
        match self.new_session("http+sse", peer) {
            Ok((id, session)) => {
                let observed = session.observed.stream(StreamId::GET);
                tell_head(&observed, head);
                let endpoint = Some(format!("/messages?sessionId={id}"));
                events(observed, 200, Source::General { messages: session.open(), endpoint })
            }
            Err(refused) => *refused,
        }
    }

    fn post_sse(&self, head: &Parts, text: &str) -> Response<Body> {
        let query = head.uri.query().unwrap_or_default();
        let id = query.split('&').find_map(|pair| pair.strip_prefix("sessionId="));
        let Some(session) = self.known(id.unwrap_or_default()) else {
            return refusal(StatusCode::NOT_FOUND, "no stream of HTTP+SSE has this session id");
        };
        let observed = self.told(&session, head, Some(text));
        session.receive(text, false);
        whole(&observed, 202, "")
    }

    fn web_socket(&self, head: Parts, body: Incoming, peer: SocketAddr) -> Response<Body> {
        let response = match websocket_handshake::<Body>(head.version, &head.headers) {
            Ok(response) => response,
            Err((status, why)) => return refusal(status, why),
        };
        let observed = opened(self.observer.as_ref(), "websocket", &peer.ip().to_string());
        let session = self.mock.session();
        let mut request = Request::from_parts(head, body);
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let socket = match upgrade.await {
                Ok(socket) => TokioIo::new(socket),
                Err(error) => return tracing::debug!(%error, "a WebSocket upgrade failed"),
            };
            let settings = WebSocketSettings {
                max_message_size: MAX_MESSAGE,
                ping_every: PING_EVERY,
                first_within: PING_EVERY,
            };
            let pipe = pipe(socket, Role::Server, settings).await;
            if let Err(error) = pipe::serve(pipe, session, observed).await {
                tracing::debug!(%error, "a WebSocket ended");
            }
        });
        response
    }

    /// Tells the recording of the mock what came.
    fn told(&self, session: &Session, head: &Parts, text: Option<&str>) -> Observed {
        let observed = session.observed.stream(StreamId(self.requests.fetch_add(1, Ordering::Relaxed)));
        tell_head(&observed, head);
        if let Some(text) = text {
            observed.received(text.as_bytes());
        }
        observed
    }
}

fn tell_head(observed: &Observed, head: &Parts) {
    let target = head.uri.path_and_query().map_or("", |target| target.as_str());
    let fields = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    observed.head(Direction::Received, StartLine::Request { method: head.method.as_str(), target }, fields);
}

/// The text of a body.
async fn read(body: Incoming) -> Result<String, (StatusCode, String)> {
    let bytes = match timeout(BODY_TIMEOUT, Limited::new(body, MAX_MESSAGE).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            return Err((
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("a message of more than {MAX_MESSAGE} bytes"),
            ));
        }
        Ok(Err(error)) => return Err((StatusCode::BAD_REQUEST, error.to_string())),
        Err(_) => return Err((StatusCode::REQUEST_TIMEOUT, "the body did not come in time".to_owned())),
    };
    String::from_utf8(bytes.to_vec())
        .map_err(|_| (StatusCode::BAD_REQUEST, "the body is no UTF-8".to_owned()))
}
