//! WebSocket: text frames with one message each. MCP does not define it; it behaves as stdio does. The session ends with
//! the socket, and both end with the access token, where one is required.
//!
//! The token is in the `Authorization` header. A web page cannot set that header; it offers the token as a subprotocol:
//! `Sec-WebSocket-Protocol: mcp, mcp.bearer.TOKEN`. Only `mcp` is agreed on.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, Version, header};
use axum::response::Response;
use hyper_util::rt::TokioIo;
use refmcp_server::transport::websocket::{Role, WebSocketSettings, derive_accept_key, pipe};
use tokio_util::task::AbortOnDropHandle;

use crate::access::caller::Caller;
use crate::endpoint::Inner;
use crate::refusal::{Reason, Refusal};
use crate::request::headers;

/// The subprotocol, for clients that offer one.
const PROTOCOL: &str = "mcp";

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// The registered close code of a socket whose token has expired.
const UNAUTHORIZED: u16 = 3000;

/// Whether the client wants to upgrade.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    lists(headers, &header::UPGRADE, "websocket")
}

/// Answers the handshake and serves the socket in a task.
pub(crate) fn upgrade(endpoint: &Arc<Inner>, caller: &Caller, head: Parts) -> Result<Response, Refusal> {
    let accept = accept_key(&head)?;
    let full = || Refusal::unavailable(Reason::Connections, "too many WebSockets are open", 1);
    let counted = endpoint.metrics.sockets.enter(endpoint.options.max_connections).ok_or_else(full)?;
    endpoint.check_running()?;
    let protocol = lists(&head.headers, &header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL);
    let mut connection = caller.connection(headers::of_session(&head.headers));
    connection.transport = "websocket";
    // One token for all messages.
    connection.scopes = caller.scopes();
    let token = caller.token.clone();
    let settings = WebSocketSettings {
        max_message: endpoint.options.body_bytes,
        ping_every: endpoint.options.keep_alive,
        first_within: endpoint.options.initialize_within,
    };
    let (upgrade, endpoint) = (hyper::upgrade::on(Request::from_parts(head, ())), endpoint.clone());
    tokio::spawn(async move {
        let _counted = counted;
        let socket = match upgrade.await {
            Ok(socket) => TokioIo::new(socket),
            Err(fault) => return tracing::debug!(%fault, "a WebSocket upgrade failed"),
        };
        let pipe = pipe(socket, Role::Server, settings).await;
        let stop = endpoint.stop.child_token();
        let resource_server = endpoint.options.resource_server.clone();
        // Ends with the socket, or ends it.
        let _watch = resource_server.zip(token).map(|(resource_server, token)| {
            let (stop, reason) = (stop.clone(), pipe.1.stop_reason());
            AbortOnDropHandle::new(tokio::spawn(async move {
                resource_server.until_expired(token).await;
                reason.set(UNAUTHORIZED, "the token is over");
                stop.cancel();
            }))
        });
        if let Err(fault) = endpoint.server.serve(pipe, connection, stop).await {
            tracing::debug!(%fault, "a WebSocket ended");
        }
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, WEBSOCKET);
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if protocol {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    }
    Ok(response)
}

/// The `Sec-WebSocket-Accept` of a valid handshake.
fn accept_key(head: &Parts) -> Result<HeaderValue, Refusal> {
    let bad = |why: &'static str| Refusal::bad_request(Reason::Upgrade, why);
    let headers = &head.headers;
    if head.version != Version::HTTP_11 {
        return Err(bad("a WebSocket begins with HTTP/1.1"));
    }
    if !lists(headers, &header::CONNECTION, "upgrade") || !is_upgrade(headers) {
        let why = "a WebSocket is wanted here";
        let refusal = Refusal::new(StatusCode::UPGRADE_REQUIRED, Reason::Upgrade, why);
        return Err(refusal.with_header(header::UPGRADE, WEBSOCKET));
    }
    if !lists(headers, &header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(bad("Sec-WebSocket-Version must be 13"));
    }
    let key = headers::value(headers, &header::SEC_WEBSOCKET_KEY).ok().flatten();
    let key = key.ok_or_else(|| bad("no Sec-WebSocket-Key header"))?;
    HeaderValue::try_from(derive_accept_key(key.as_bytes())).map_err(|_| bad("a strange Sec-WebSocket-Key"))
}

/// Whether a header lists a token.
fn lists(headers: &HeaderMap, name: &axum::http::HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|listed| listed.trim().eq_ignore_ascii_case(word))
}
