//! Sends HTTP requests for both transports, with the session, a token, and redirections within the origin.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, StatusCode, header};
use parking_lot::Mutex;
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId, TransportError};
use refmcp_proto::frame::SseReceived;
use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::revision::{self, Lifecycle, Rules};
use refmcp_transport::observer::{Direction, Observed, StartLine, StreamId};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::error_response::with_reason;
use super::headers::{HeaderTemplates, PROTOCOL_VERSION, SESSION_ID, session_id, shown};
use super::tasks::{self, MessageTasks, NotStarted, SendOrder};
use crate::auth::{Attempts, LoginPolicy, TokenManager};
use crate::http::connection::{Address, Dialer, HttpResponse, Pool, RequestTarget};
use crate::http::endpoint::HttpEndpoint;
use crate::transport::MessageSink;

/// How long `tasks/cancel` has one of the slots for requests: no caller may wait for its answer, and give it up.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the last messages and the end of the session may take when the transport closes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Redirections within the origin that are followed.
const MAX_REDIRECTIONS: usize = 3;

/// The HTTP versions offered inside of TLS (ALPN), the preferred one first.
const PROTOCOLS: &[&[u8]] = &[b"h2", b"http/1.1"];

/// The connected side of an endpoint.
pub(crate) struct HttpRequester {
    pub(crate) sink: Arc<dyn MessageSink>,
    pub(crate) observed: Observed,
    pub(crate) headers: HeaderTemplates,
    pub(crate) tasks: MessageTasks,
    pub(crate) address: Address,
    pub(crate) target: RequestTarget,
    pub(crate) max_message_size: usize,
    head_timeout: Duration,
    pool: Pool,
    slots: Semaphore,
    session: Mutex<HttpSession>,
    token_manager: Option<Arc<TokenManager>>,
}

/// An HTTP request, which may be sent several times: after a login, after a redirection.
pub(crate) struct HttpRequest<'a, H> {
    pub(crate) method: Method,
    pub(crate) target: &'a RequestTarget,
    pub(crate) body: Bytes,
    /// Makes the headers.
    pub(crate) headers: H,
    pub(crate) observed: Observed,
}

/// What was agreed on with the server.
#[derive(Debug, Default, Clone)]
pub(crate) struct HttpSession {
    pub(crate) id: Option<HeaderValue>,
    pub(crate) rules: Option<&'static Rules>,
}

impl HttpRequester {
    pub(crate) fn new(endpoint: &HttpEndpoint, sink: Arc<dyn MessageSink>) -> Self {
        let settings = &endpoint.settings;
        Self {
            observed: sink.observed(),
            sink,
            headers: HeaderTemplates::new(endpoint.host.clone(), &endpoint.headers),
            tasks: MessageTasks::new(),
            address: endpoint.address.clone(),
            target: endpoint.target.clone(),
            max_message_size: settings.max_message_size,
            head_timeout: settings.head_timeout,
            slots: Semaphore::new(settings.max_requests.clamp(1, Semaphore::MAX_PERMITS)),
            pool: Pool::new(Dialer::new(endpoint.address.clone(), settings.clone(), PROTOCOLS)),
            session: Mutex::default(),
            token_manager: endpoint.token_manager(),
        }
    }

    pub(crate) fn session(&self) -> HttpSession {
        self.session.lock().clone()
    }

    pub(crate) fn opened(&self, rules: &'static Rules) {
        self.session.lock().rules = Some(rules);
    }

    /// The session id that is sent with a message.
    pub(crate) fn session_of(
        &self,
        kind: &ClientMessageKind,
        rules: Option<&'static Rules>,
    ) -> Option<HeaderValue> {
        let opening = matches!(kind, ClientMessageKind::Request { method, .. } if **method == *revision::Method::Initialize.name());
        let alone = rules.is_some_and(|rules| rules.lifecycle == Lifecycle::PerRequest);
        if opening || alone { None } else { self.session.lock().id.clone() }
    }

    /// Takes over the session id of a response, unless it is the one that was sent.
    pub(crate) fn join_session(
        &self,
        headers: &HeaderMap,
        sent: Option<&HeaderValue>,
    ) -> Result<(), TransportError> {
        if sent.is_some() && headers.get(SESSION_ID) == sent {
            return Ok(());
        }
        match session_id(headers) {
            Ok(None) => {}
            Ok(given) => {
                let id = given.as_ref().and_then(|id| id.to_str().ok());
                self.observed.set_session(id.unwrap_or_default());
                self.session.lock().id = given;
            }
            Err(why) => return Err(TransportError::Misbehaved(why.to_owned())),
        }
        Ok(())
    }

    /// Forgets a session that the server no longer knows.
    pub(crate) fn leave_session(&self, lost: &HeaderValue) {
        let mut session = self.session.lock();
        // There may be a new one by now.
        if session.id.as_ref() == Some(lost) {
            session.id = None;
            drop(session);
            self.tasks.close_get_stream();
        }
    }

    /// Waits for one of the slots for requests. Notifications and responses need none: requests in flight may depend on
    /// them.
    pub(crate) async fn slot(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.slots.acquire().await.ok()
    }

    /// Sends an HTTP request and waits for the head of the response, following redirections within the origin.
    pub(crate) async fn request<H: Fn() -> HeaderMap>(
        &self,
        request: HttpRequest<'_, H>,
    ) -> Result<HttpResponse, TransportError> {
        self.request_within(Some(self.head_timeout), request).await
    }

    /// The same, with a time of its own for the head of the response.
    pub(crate) async fn request_within<H: Fn() -> HeaderMap>(
        &self,
        patience: Option<Duration>,
        request: HttpRequest<'_, H>,
    ) -> Result<HttpResponse, TransportError> {
        if let Some(token_manager) = &self.token_manager {
            return Box::pin(self.request_with_token(token_manager, patience, request)).await;
        }
        self.send(patience, &request, |_| Ok((request.headers)())).await
    }

    /// The same, with a token: logs in, refreshes and retries until the server accepts or refuses for good.
    async fn request_with_token<H: Fn() -> HeaderMap>(
        &self,
        token_manager: &Arc<TokenManager>,
        patience: Option<Duration>,
        request: HttpRequest<'_, H>,
    ) -> Result<HttpResponse, TransportError> {
        let mut attempts = Attempts::default();
        let policy = if request.method == Method::DELETE { LoginPolicy::Forbid } else { LoginPolicy::Allow };
        loop {
            let token = token_manager.token(policy).await?;
            let with_token = |target: &RequestTarget| {
                let mut headers = (request.headers)();
                if let Some(token) = &token {
                    token_manager.apply(token, &mut headers, &request.method, &target.absolute)?;
                }
                Ok(headers)
            };
            let response = self.send(patience, &request, with_token).await?;
            let head = (response.status, &response.headers, response.scope);
            let version = || (request.headers)().remove(PROTOCOL_VERSION);
            match token_manager.should_retry(head, token.as_deref(), &mut attempts, policy, version).await {
                Ok(true) => response.discard().await,
                Ok(false) => return Ok(response),
                Err(why) => return Err(with_reason(why, response).await),
            }
        }
    }

    /// Sends a request and follows redirections.
    async fn send<H>(
        &self,
        patience: Option<Duration>,
        request: &HttpRequest<'_, H>,
        headers: impl Fn(&RequestTarget) -> Result<HeaderMap, TransportError>,
    ) -> Result<HttpResponse, TransportError> {
        let target = request.target;
        let mut response = self.send_once(patience, request, target, headers(target)?).await?;
        let mut followed = 0;
        while response.status.is_redirection() && response.status != StatusCode::NOT_MODIFIED {
            let status = response.status;
            let to = shown(&response.headers, &header::LOCATION).unwrap_or_else(|| "nowhere".to_owned());
            let refused = |why: &str| TransportError::Refused {
                status: status.as_u16(),
                error: None,
                body: format!("a redirection to {to}, which is not followed: {why}"),
                retry_after: None,
            };
            if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
                return Err(refused("only 307 and 308 keep the request as it is"));
            }
            if followed == MAX_REDIRECTIONS {
                return Err(refused("there were too many"));
            }
            followed += 1;
            let location = response.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
            let next = location.ok_or_else(|| "it has no location".to_owned());
            let next = next.and_then(|location| self.address.join(location));
            let next = next.and_then(|address| address.target().map_err(|error| error.to_string()));
            let next = next.map_err(|why| refused(&why))?;
            response.discard().await;
            response = self.send_once(patience, request, &next, headers(&next)?).await?;
        }
        Ok(response)
    }

    async fn send_once<H>(
        &self,
        patience: Option<Duration>,
        request: &HttpRequest<'_, H>,
        target: &RequestTarget,
        headers: HeaderMap,
    ) -> Result<HttpResponse, TransportError> {
        let HttpRequest { observed, method, body, .. } = request;
        observe_request(observed, method, target, &headers);
        if !body.is_empty() {
            observed.sent(body);
        }
        let response = self.pool.send(method.clone(), target, headers, body.clone(), patience).await?;
        observe_response(observed, response.status, &response.headers);
        Ok(response.observed_by(observed))
    }

    /// A request that posts a message.
    pub(crate) fn post<'a, H>(
        &self,
        exchange: ExchangeId,
        target: &'a RequestTarget,
        body: Bytes,
        headers: H,
    ) -> HttpRequest<'a, H> {
        HttpRequest { method: Method::POST, target, body, headers, observed: self.observed(exchange) }
    }

    /// A request for a stream.
    pub(crate) fn get<H>(&self, observed: Observed, headers: H) -> HttpRequest<'_, H> {
        HttpRequest { method: Method::GET, target: &self.target, body: Bytes::new(), headers, observed }
    }

    /// An SSE event of another name than `message` is ignored.
    pub(crate) fn ignored_event(&self, event: &SseReceived) {
        self.sink.ignored_input(&format!("an event named {:?}", excerpt(&event.event)));
    }

    /// What observes a request and its response.
    pub(crate) fn observed(&self, exchange: ExchangeId) -> Observed {
        self.observed.stream(exchange)
    }

    /// Nothing more comes for an exchange.
    pub(crate) fn ended(&self, exchange: ExchangeId, why: TransportError) {
        self.observed(exchange).stream_failed(&why);
        self.sink.ended(exchange, why);
    }

    /// The GET stream cannot be opened, or opened again.
    pub(crate) fn stream_lost(&self, why: TransportError) {
        self.observed.stream(StreamId::GET).stream_failed(&why);
        self.sink.stream_lost(why);
    }

    /// Starts the task that sends a message. Once the requester is closed the exchange just ends.
    pub(crate) fn start<F>(
        self: &Arc<Self>,
        message: ClientMessage,
        send: impl FnOnce(Arc<Self>, SendOrder, ClientMessage) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let exchange = message.exchange;
        let started = self.tasks.start(message, |order, message| {
            let limit = tasks::cancels_task(&message.kind).then_some(CANCEL_TIMEOUT);
            let (requester, sending) = (self.clone(), send(self.clone(), order, message));
            async move {
                match limit {
                    None => sending.await,
                    Some(limit) => {
                        if timeout(limit, sending).await.is_err() {
                            tracing::debug!("tasks/cancel was not answered");
                        }
                    }
                }
                requester.tasks.done(exchange);
            }
        });
        if let Err(why) = started {
            // Not within this call: the caller may hold a lock that the sink needs.
            let requester = self.clone();
            self.tasks.spawn(async move {
                match why {
                    NotStarted::Closed => requester.sink.ended(exchange, why.into()),
                    NotStarted::TooMany => {
                        requester.sink.closed(why.into());
                        requester.tasks.abort();
                    }
                }
            });
        }
    }

    /// Ends in order: the last notifications and responses, then the farewell, then the connections.
    pub(crate) async fn close(&self, farewell: impl Future<Output = ()>) {
        let mut unanswered = self.tasks.close().await;
        let last = async {
            tasks::join(&mut unanswered).await;
            farewell.await;
        };
        if timeout(CLOSE_TIMEOUT, last).await.is_err() {
            tracing::debug!(server = %self.address, "the end of the session was not acknowledged");
        }
        tasks::abort(unanswered).await;
        self.pool.close();
    }

    /// Ends everything at once.
    pub(crate) fn abort(&self) {
        self.tasks.abort();
        self.pool.close();
    }
}

/// Reports the head of a request.
pub(crate) fn observe_request(
    observed: &Observed,
    method: &Method,
    target: &RequestTarget,
    headers: &HeaderMap,
) {
    let target = target.origin_form.path_and_query().map_or("/", |target| target.as_str());
    let start = StartLine::Request { method: method.as_str(), target };
    observed.head(Direction::Sent, start, fields(headers));
}

/// Reports the head of a response.
pub(crate) fn observe_response(observed: &Observed, status: StatusCode, headers: &HeaderMap) {
    observed.head(Direction::Received, StartLine::Response { status: status.as_u16() }, fields(headers));
}

fn fields(headers: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
}

impl fmt::Debug for HttpRequester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequester").field("address", &self.address).finish_non_exhaustive()
    }
}
