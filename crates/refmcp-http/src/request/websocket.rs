//! WebSocket: leaving HTTP for a pipe of text frames, one message each. The protocol does not define it; it behaves as
//! standard input and output do, and the session ends with the socket, and both with the token, where one is needed.
//!
//! The token comes in the header `Authorization`, as everywhere. A web page can send no header of its own; there, the
//! token is offered as a subprotocol beside ours: `Sec-WebSocket-Protocol: mcp, mcp.bearer.TOKEN`. Only `mcp` is agreed on.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Version, header};
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

/// The code of a socket that closes because whoever opened it is not let in any more, as registered for WebSocket.
const UNAUTHORIZED: u16 = 3000;

/// Whether the client wants to leave HTTP.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    has(headers, &header::UPGRADE, "websocket")
}

/// Answers the handshake; what follows is a conversation of its own.
pub(crate) fn upgrade(
    endpoint: &Arc<Inner>,
    caller: &Caller,
    mut request: Request,
) -> Result<Response, Refusal> {
    let accept = accept_key(&request)?;
    let most = endpoint.options.max_connections;
    let full = || Refusal::full(Reason::Connections, "too many WebSockets are open", 1);
    let counted = endpoint.metrics.sockets.enter(most).ok_or_else(full)?;
    if endpoint.stop.is_cancelled() {
        return Err(Refusal::full(Reason::Stopping, "the server stops", 10));
    }
    let protocol = has(request.headers(), &header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL);
    let mut connection = caller.connection(headers::of_session(request.headers()));
    connection.transport = "websocket";
    // One token for all that is said here.
    connection.scopes = caller.scopes();
    let grant = caller.grant.clone();
    let settings = WebSocketSettings {
        max_message: endpoint.options.body_bytes,
        ping_every: endpoint.options.keep_alive,
        first_within: endpoint.options.initialize_within,
    };
    let (leaving, endpoint) = (hyper::upgrade::on(&mut request), endpoint.clone());
    tokio::spawn(async move {
        let _counted = counted;
        let socket = match leaving.await {
            Ok(socket) => TokioIo::new(socket),
            Err(fault) => return tracing::debug!(%fault, "a WebSocket that never was"),
        };
        let pipe = pipe(socket, Role::Server, settings).await;
        let stop = endpoint.stop.child_token();
        let _watch = endpoint.options.resource_server.clone().zip(grant).map(|(resource_server, grant)| {
            let (stop, reason) = (stop.clone(), pipe.1.stop_reason());
            // Ends with the socket, or ends it.
            AbortOnDropHandle::new(tokio::spawn(async move {
                resource_server.over(grant).await;
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
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if protocol {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    }
    Ok(response)
}

/// What a proper handshake is answered with.
fn accept_key(request: &Request) -> Result<HeaderValue, Refusal> {
    let bad = |why: &'static str| Refusal::bad(Reason::Upgrade, why);
    let headers = request.headers();
    if request.version() != Version::HTTP_11 {
        return Err(bad("a WebSocket begins with HTTP/1.1"));
    }
    if !has(headers, &header::CONNECTION, "upgrade") || !is_upgrade(headers) {
        let refusal =
            Refusal::new(StatusCode::UPGRADE_REQUIRED, Reason::Upgrade, "a WebSocket is wanted here");
        return Err(refusal);
    }
    if !has(headers, &header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(bad("Sec-WebSocket-Version must be 13"));
    }
    let key = headers::value(headers, &header::SEC_WEBSOCKET_KEY).ok().flatten();
    let key = key.ok_or_else(|| bad("no Sec-WebSocket-Key header"))?;
    HeaderValue::try_from(derive_accept_key(key.as_bytes())).map_err(|_| bad("a strange Sec-WebSocket-Key"))
}

/// Whether a header lists a word.
fn has(headers: &HeaderMap, name: &axum::http::HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|listed| listed.trim().eq_ignore_ascii_case(word))
}
