//! Servers over WebSocket: text frames, one message each. The specification does not define it; it behaves as a pipe.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::{self, HeaderName};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use refmcp_auth::header_value::lists;
use refmcp_proto::engine::client::TransportError;
use refmcp_transport::Observed;
use refmcp_transport::websocket::{Role, WebSocketSettings, derive_accept_key, pipe};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::auth::{Attempts, Authorization, LoginPolicy, TokenManager};
use crate::http::connection::{Dialer, Stream};
use crate::http::endpoint::{HttpEndpoint, endpoint_options};
use crate::http::request::error_response::{add_reason, refusal};
use crate::http::request::{USER_AGENT, observe_request, observe_response};
use crate::http::{Address, AddressScope, UrlError};
use crate::pipe::PipeTransport;
use crate::transport::{Connecting, Connector, JsonObject, MessageSink, Transport};

/// The subprotocol that is offered.
const PROTOCOL: &str = "mcp";

/// How often a server is pinged, unless it is set otherwise.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// A server may be silent for as long as it answers pings: requests have timeouts of their own.
const NO_PINGS: Duration = Duration::from_secs(365 * 24 * 3600);

/// Bytes of an error's body that are read.
const MAX_ERROR_BODY: usize = 4 << 10;

type Socket = TokioIo<hyper::upgrade::Upgraded>;

/// Why the handshake failed, with the head of the response and the scope of the server.
struct HandshakeError {
    why: TransportError,
    head: Option<Box<(StatusCode, HeaderMap, AddressScope)>>,
}

impl From<TransportError> for HandshakeError {
    fn from(why: TransportError) -> Self {
        Self { why, head: None }
    }
}

/// A server that is reached over WebSocket.
#[derive(Debug, Clone)]
pub struct WebSocket {
    endpoint: HttpEndpoint,
    ping_every: Duration,
}

endpoint_options!(WebSocket, is_reserved);

impl WebSocket {
    /// The server at a URL of scheme `ws` or `wss`; `http` and `https` are taken for these.
    ///
    /// # Errors
    /// The text is no such URL.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        let address = match url.trim_start().split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
                Address::websocket(&format!("ws://{rest}"))
            }
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => {
                Address::websocket(&format!("wss://{rest}"))
            }
            _ => Address::websocket(url),
        }?;
        Ok(Self { endpoint: HttpEndpoint::new(address)?, ping_every: PING_INTERVAL })
    }

    /// How often the server is pinged. If nothing comes from it for twice as long, the connection ends.
    #[must_use]
    pub fn ping_every(mut self, period: Duration) -> Self {
        self.ping_every = period;
        self
    }

    async fn open(&self, sink: Arc<dyn MessageSink>) -> Result<Arc<dyn Transport>, TransportError> {
        let socket = self.socket(&sink.observed()).await?;
        let max_message_size = self.endpoint.settings.max_message_size;
        let settings =
            WebSocketSettings { max_message_size, ping_every: self.ping_every, first_within: NO_PINGS };
        let pipe = pipe(socket, Role::Client, settings).await;
        Ok(PipeTransport::start(pipe, sink, max_message_size))
    }

    /// An open socket, with a token where the server wants one.
    async fn socket(&self, observed: &Observed) -> Result<Socket, TransportError> {
        let dialer =
            Dialer::new(self.endpoint.address.clone(), self.endpoint.settings.clone(), &[b"http/1.1"]);
        if let Some(token_manager) = self.endpoint.token_manager() {
            return Box::pin(self.socket_with_token(&dialer, &token_manager, observed)).await;
        }
        self.attempt(&dialer, HeaderMap::new(), observed).await.map_err(|error| error.why)
    }

    async fn socket_with_token(
        &self,
        dialer: &Dialer,
        token_manager: &Arc<TokenManager>,
        observed: &Observed,
    ) -> Result<Socket, TransportError> {
        let unfit = |error: hyper::http::uri::InvalidUri| TransportError::Unreachable(error.to_string());
        let uri = hyper::Uri::try_from(self.endpoint.address.as_http().as_str()).map_err(unfit)?;
        let mut attempts = Attempts::default();
        loop {
            let token = token_manager.token(LoginPolicy::Allow).await?;
            let mut headers = HeaderMap::new();
            if let Some(token) = &token {
                token_manager.apply(token, &mut headers, &hyper::Method::GET, &uri)?;
            }
            let error = match self.attempt(dialer, headers, observed).await {
                Ok(socket) => return Ok(socket),
                Err(error) => error,
            };
            let Some((status, headers, scope)) = error.head.as_deref() else { return Err(error.why) };
            let (head, token, policy) = ((*status, headers, *scope), token.as_deref(), LoginPolicy::Allow);
            match token_manager.should_retry(head, token, &mut attempts, policy, || None).await {
                Ok(true) => {}
                Ok(false) => return Err(error.why),
                Err(why) => {
                    return Err(match error.why {
                        TransportError::Unauthorized { reason, .. } => add_reason(why, reason),
                        _ => why,
                    });
                }
            }
        }
    }

    async fn attempt(
        &self,
        dialer: &Dialer,
        more: HeaderMap,
        observed: &Observed,
    ) -> Result<Socket, HandshakeError> {
        let stream = dialer.dial().await.map_err(|error| TransportError::Unreachable(error.to_string()))?;
        let within = self.endpoint.settings.head_timeout;
        timeout(within, self.handshake(stream, more, observed)).await.unwrap_or_else(|_| {
            let why = format!("the server did not open the WebSocket within {within:?}");
            Err(TransportError::Unreachable(why).into())
        })
    }

    /// The opening handshake of WebSocket.
    async fn handshake(
        &self,
        stream: Stream,
        more: HeaderMap,
        observed: &Observed,
    ) -> Result<Socket, HandshakeError> {
        let (mut request, key) = self.request()?;
        request.headers_mut().extend(more);
        observe_request(observed, request.method(), &self.endpoint.target, request.headers());
        let scope = stream.scope;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream.io))
            .await
            .map_err(|error| connection_error(&error))?;
        // The task ends with this function.
        let _driving = AbortOnDropHandle::new(tokio::spawn(connection.with_upgrades()));
        let response = sender.send_request(request).await.map_err(|error| connection_error(&error))?;
        observe_response(observed, response.status(), response.headers());
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let head = Some(Box::new((response.status(), response.headers().clone(), scope)));
            return Err(HandshakeError { why: refused(response, observed).await, head });
        }
        check(response.headers(), &key).map_err(|why| TransportError::Misbehaved(why.to_owned()))?;
        let socket = hyper::upgrade::on(response).await.map_err(|error| connection_error(&error))?;
        Ok(TokioIo::new(socket))
    }

    /// The request of the handshake, and its key, which only a WebSocket server can answer.
    fn request(&self) -> Result<(Request<Empty<Bytes>>, String), TransportError> {
        let mut random = [0; 16];
        let unfit = |why: String| TransportError::Unreachable(format!("the request cannot be made: {why}"));
        getrandom::fill(&mut random).map_err(|error| unfit(error.to_string()))?;
        let key = STANDARD.encode(random);
        let mut request = Request::get(self.endpoint.target.origin_form.clone())
            .header(header::HOST, self.endpoint.host.clone())
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, &key)
            .header(header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL)
            .header(header::USER_AGENT, USER_AGENT)
            .body(Empty::new())
            .map_err(|error| unfit(error.to_string()))?;
        request.headers_mut().extend(self.endpoint.headers.clone());
        Ok((request, key))
    }
}

impl Connector for WebSocket {
    fn connect(&self, sink: Arc<dyn MessageSink>) -> Connecting<'_> {
        Box::pin(self.open(sink))
    }

    fn transport(&self) -> &'static str {
        "websocket"
    }

    fn name(&self) -> String {
        self.endpoint.address.to_string()
    }

    fn logs_in_first(&self) -> bool {
        self.endpoint.login().is_some_and(Authorization::asks_a_person)
    }

    fn extensions(&self) -> JsonObject {
        self.endpoint.extensions()
    }
}

/// True for headers that the handshake sets itself.
fn is_reserved(name: &HeaderName) -> bool {
    let ours = [
        header::HOST,
        header::CONNECTION,
        header::UPGRADE,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::EXPECT,
    ];
    ours.contains(name) || name.as_str().starts_with("sec-websocket-")
}

/// Checks the head of the server's handshake.
fn check(headers: &HeaderMap, key: &str) -> Result<(), &'static str> {
    if !lists(headers, &header::UPGRADE, "websocket") || !lists(headers, &header::CONNECTION, "upgrade") {
        return Err("it switches to another protocol than WebSocket");
    }
    let accepted = headers
        .get(header::SEC_WEBSOCKET_ACCEPT)
        .is_some_and(|value| value.as_bytes().trim_ascii() == derive_accept_key(key.as_bytes()).as_bytes());
    if !accepted {
        return Err("its answer to the key of the WebSocket is wrong");
    }
    // Many servers choose none, which is fine.
    if headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL)
        && !lists(headers, &header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL)
    {
        return Err("it chose a subprotocol that was not offered");
    }
    if headers.contains_key(header::SEC_WEBSOCKET_EXTENSIONS) {
        return Err("it chose an extension that was not offered");
    }
    Ok(())
}

/// The error of a server that refuses the handshake.
async fn refused(mut response: Response<Incoming>, observed: &Observed) -> TransportError {
    let mut body = Vec::new();
    // An error while reading the error's body is not reported.
    while let Some(Ok(frame)) = response.frame().await {
        body.extend_from_slice(&frame.into_data().unwrap_or_default());
        if body.len() >= MAX_ERROR_BODY {
            break;
        }
    }
    if !body.is_empty() {
        observed.received(&body);
    }
    refusal(response.status(), response.headers(), &body)
}

fn connection_error(error: &hyper::Error) -> TransportError {
    if error.is_parse() {
        TransportError::Misbehaved(format!("its answer is not HTTP: {error}"))
    } else {
        TransportError::Unreachable(format!("the connection ended before the WebSocket was open: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HeaderError;

    #[test]
    fn urls_of_http_are_taken_for_those_of_websocket() {
        for (url, name) in [
            ("ws://h/mcp", "ws://h/mcp"),
            ("wss://h", "wss://h/"),
            ("http://h:1/mcp?key=hush", "ws://h:1/mcp"),
            ("HTTPS://h/", "wss://h/"),
        ] {
            assert_eq!(WebSocket::new(url).unwrap().name(), name);
        }
        assert!(matches!(WebSocket::new("ftp://h"), Err(UrlError::Scheme(..))));
        assert_eq!(WebSocket::new("ws://me:hush@h").unwrap_err(), UrlError::UserInfo);
        assert!(matches!(WebSocket::new("nowhere"), Err(UrlError::NotAUrl(_))));
    }

    #[test]
    fn headers_are_checked_and_not_shown() {
        let socket = || WebSocket::new("ws://h").unwrap();
        assert!(matches!(socket().header("a b", "x"), Err(HeaderError::Name(_))));
        assert!(matches!(socket().header("a", "x\r\ny"), Err(HeaderError::Value(_))));
        assert!(matches!(socket().header("Sec-WebSocket-Key", "x"), Err(HeaderError::Reserved(_))));
        let shown = format!("{:?}", socket().header("Authorization", "hush").unwrap());
        assert!(shown.contains("authorization") && !shown.contains("hush"), "{shown}");
    }
}
