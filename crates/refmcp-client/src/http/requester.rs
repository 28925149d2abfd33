//! What both transports share: requests of HTTP with everything that goes with them, and where they lead.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, StatusCode, header};
use parking_lot::Mutex;
use refmcp_proto::engine::client::{ClientMessageKind, TransportError};
use refmcp_proto::revision::{Lifecycle, Rules};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::address::{Address, Target, UrlError};
use super::dial::Dialer;
use super::headers::PROTOCOL_VERSION;
use super::headers::{HeaderTemplates, SESSION_ID, session_id, shown};
use super::pool::Pool;
use super::response::HttpResponse;
use super::settings::HttpSettings;
use super::tasks::MessageTasks;
use crate::auth::{Attempts, Authorization, LoginPolicy, ResponseAction, TokenManager};
use crate::transport::{BoxFuture, JsonObject, MessageSink};

/// Redirections within the origin that are followed.
const REDIRECTIONS: usize = 3;

/// What is spoken inside of TLS, the most wanted first.
const PROTOCOLS: &[&[u8]] = &[b"h2", b"http/1.1"];

/// A server, by everything that is needed to speak to it.
#[derive(Debug, Clone)]
pub(super) struct HttpEndpoint {
    pub(super) address: Address,
    pub(super) target: Target,
    pub(super) host: HeaderValue,
    pub(super) extra: HeaderMap,
    pub(super) settings: HttpSettings,
    pub(super) authorization: Option<Authorization>,
}

impl HttpEndpoint {
    pub(super) fn new(url: &str) -> Result<Self, UrlError> {
        let address = Address::http(url)?;
        let (target, host) = (address.target()?, address.host_header()?);
        Ok(Self {
            address,
            target,
            host,
            extra: HeaderMap::new(),
            settings: HttpSettings::default(),
            authorization: None,
        })
    }

    /// The token of this server, where there is one to be got. A header that was set by hand goes before it.
    pub(super) fn token_manager(&self) -> Option<Arc<TokenManager>> {
        Some(self.authorized()?.token_manager(&self.address, &self.settings))
    }

    fn authorized(&self) -> Option<&Authorization> {
        let by_hand = self.extra.contains_key(header::AUTHORIZATION);
        self.authorization.as_ref().filter(|_| !by_hand)
    }

    /// The extensions of the protocol that getting in takes.
    pub(super) fn extensions(&self) -> JsonObject {
        self.authorized().map(Authorization::extensions).unwrap_or_default()
    }

    /// Waits for a login that is under way.
    pub(super) fn pending_login(&self) -> Option<BoxFuture<'static, Result<(), TransportError>>> {
        Some(Box::pin(self.token_manager()?.login()?))
    }
}

/// A way to a server.
pub(super) struct HttpRequester {
    pub(super) sink: Arc<dyn MessageSink>,
    pub(super) headers: HeaderTemplates,
    pub(super) tasks: MessageTasks,
    pub(super) address: Address,
    pub(super) target: Target,
    pub(super) max_message: usize,
    head_timeout: Duration,
    pool: Pool,
    slots: Semaphore,
    session: Mutex<Session>,
    token_manager: Option<Arc<TokenManager>>,
}

/// What was agreed on.
#[derive(Debug, Default, Clone)]
pub(super) struct Session {
    pub(super) id: Option<HeaderValue>,
    pub(super) rules: Option<&'static Rules>,
}

impl HttpRequester {
    pub(super) fn new(endpoint: &HttpEndpoint, sink: Arc<dyn MessageSink>) -> Self {
        let settings = &endpoint.settings;
        Self {
            sink,
            headers: HeaderTemplates::new(endpoint.host.clone(), &endpoint.extra),
            tasks: MessageTasks::new(),
            address: endpoint.address.clone(),
            target: endpoint.target.clone(),
            max_message: settings.max_message,
            head_timeout: settings.head_timeout,
            slots: Semaphore::new(settings.max_requests.clamp(1, Semaphore::MAX_PERMITS)),
            pool: Pool::new(Dialer::new(endpoint.address.clone(), settings.clone(), PROTOCOLS)),
            session: Mutex::default(),
            token_manager: endpoint.token_manager(),
        }
    }

    pub(super) fn session(&self) -> Session {
        self.session.lock().clone()
    }

    pub(super) fn opened(&self, rules: &'static Rules) {
        self.session.lock().rules = Some(rules);
    }

    /// The session that a message belongs to.
    pub(super) fn session_of(
        &self,
        kind: &ClientMessageKind,
        rules: Option<&'static Rules>,
    ) -> Option<HeaderValue> {
        let opening = matches!(kind, ClientMessageKind::Request { method, .. } if &**method == "initialize");
        let alone = rules.is_some_and(|rules| rules.lifecycle == Lifecycle::PerRequest);
        if opening || alone { None } else { self.session.lock().id.clone() }
    }

    /// Takes over the session id of a response, unless it is the one that was sent.
    pub(super) fn join_session(
        &self,
        headers: &HeaderMap,
        sent: Option<&HeaderValue>,
    ) -> Result<(), TransportError> {
        if sent.is_some() && headers.get(SESSION_ID) == sent {
            return Ok(());
        }
        match session_id(headers) {
            Ok(None) => {}
            Ok(given) => self.session.lock().id = given,
            Err(why) => return Err(TransportError::Misbehaved(why.to_owned())),
        }
        Ok(())
    }

    /// The server does not know this session any more.
    pub(super) fn leave_session(&self, lost: &HeaderValue) {
        let mut session = self.session.lock();
        // Meanwhile there may be a new one.
        if session.id.as_ref() == Some(lost) {
            session.id = None;
            drop(session);
            self.tasks.close_get_stream();
        }
    }

    /// Waits until there may be one more request in flight. What is told does not wait: what is in flight may depend
    /// on it.
    pub(super) async fn slot(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.slots.acquire().await.ok()
    }

    /// Sends a request of HTTP and waits for the head of the response, wherever that is within the origin.
    pub(super) async fn request(
        &self,
        method: Method,
        target: &Target,
        body: Bytes,
        headers: impl Fn() -> HeaderMap,
    ) -> Result<HttpResponse, TransportError> {
        self.request_within(Some(self.head_timeout), method, target, body, headers).await
    }

    /// The same, for no longer than this.
    pub(super) async fn request_within(
        &self,
        patience: Option<Duration>,
        method: Method,
        target: &Target,
        body: Bytes,
        headers: impl Fn() -> HeaderMap,
    ) -> Result<HttpResponse, TransportError> {
        if let Some(token_manager) = &self.token_manager {
            return Box::pin(self.request_as(token_manager, patience, method, target, body, headers)).await;
        }
        self.send(patience, method, target, body, |_| Ok(headers())).await
    }

    /// The same, with a token of ours, as soon as there is one that the server takes.
    async fn request_as(
        &self,
        token_manager: &Arc<TokenManager>,
        patience: Option<Duration>,
        method: Method,
        target: &Target,
        body: Bytes,
        headers: impl Fn() -> HeaderMap,
    ) -> Result<HttpResponse, TransportError> {
        let mut attempts = Attempts::default();
        let policy = if method == Method::DELETE { LoginPolicy::Forbid } else { LoginPolicy::Allow };
        loop {
            let token = token_manager.token(policy).await?;
            let with_token = |target: &Target| {
                let mut headers = headers();
                if let Some(token) = &token {
                    token_manager.apply(token, &mut headers, &method, &target.absolute)?;
                }
                Ok(headers)
            };
            let answer = self.send(patience, method.clone(), target, body.clone(), with_token).await?;
            match token_manager.classify(
                answer.status,
                &answer.headers,
                answer.scope,
                token.as_deref(),
                &mut attempts,
            ) {
                ResponseAction::Accept => return Ok(answer),
                ResponseAction::Retry => answer.body.drain().await,
                ResponseAction::Authorize(refusal) => {
                    let version = headers().remove(PROTOCOL_VERSION);
                    let got = token_manager
                        .authorize(refusal, token.as_deref(), &mut attempts, policy, version)
                        .await?;
                    if !got {
                        return Ok(answer);
                    }
                    answer.body.drain().await;
                }
            }
        }
    }

    /// Sends a request and follows where it leads within the origin.
    async fn send(
        &self,
        patience: Option<Duration>,
        method: Method,
        target: &Target,
        body: Bytes,
        headers: impl Fn(&Target) -> Result<HeaderMap, TransportError>,
    ) -> Result<HttpResponse, TransportError> {
        let mut answer =
            self.pool.send(method.clone(), target, headers(target)?, body.clone(), patience).await?;
        let mut followed = 0;
        while answer.status.is_redirection() && answer.status != StatusCode::NOT_MODIFIED {
            let status = answer.status;
            let to = shown(&answer.headers, &header::LOCATION).unwrap_or_else(|| "nowhere".to_owned());
            let refused = |why: &str| TransportError::Refused {
                status: status.as_u16(),
                error: None,
                body: format!("a redirection to {to}, which is not followed: {why}"),
            };
            if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
                return Err(refused("only 307 and 308 keep the request as it is"));
            }
            if followed == REDIRECTIONS {
                return Err(refused("there were too many"));
            }
            followed += 1;
            let location = answer.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
            let next = location.ok_or_else(|| "it says not where".to_owned());
            let next = next.and_then(|location| self.address.join(location));
            let next = next.and_then(|address| address.target().map_err(|fault| fault.to_string()));
            let next = next.map_err(|why| refused(&why))?;
            answer.body.drain().await;
            answer = self.pool.send(method.clone(), &next, headers(&next)?, body.clone(), patience).await?;
        }
        Ok(answer)
    }

    /// Ends every connection that is not in use.
    pub(super) fn close_connections(&self) {
        self.pool.close();
    }
}

impl fmt::Debug for HttpRequester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequester").field("address", &self.address).finish_non_exhaustive()
    }
}
