//! WebSocket: text frames with one message each. MCP does not define it; it behaves as stdio does. The session ends with
//! the socket, and both end with the access token, where one is required.
//!
//! The token is in the `Authorization` header. A web page cannot set that header; it offers the token as a subprotocol:
//! `Sec-WebSocket-Protocol: mcp, mcp.bearer.TOKEN`. Only `mcp` is agreed on.

use std::io;
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper_util::rt::TokioIo;
use refmcp_auth::header_value::lists;
use refmcp_server::transport::websocket::{Role, WebSocketSettings, derive_accept_key, pipe};
use refmcp_server::transport::{ConnectionEnd, NoMemory};
use tokio_util::task::AbortOnDropHandle;

use crate::access::caller::Caller;
use crate::endpoint::EndpointState;
use crate::refusal::{Reason, Refusal};
use crate::request::headers;

/// The subprotocol, for clients that offer one.
const PROTOCOL: &str = "mcp";

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// What a WebSocket costs besides what is reserved for it: its two buffers, a session, its tasks.
const SOCKET_BYTES: usize = 48 << 10;

/// The registered close code of a socket whose token has expired.
const UNAUTHORIZED: u16 = 3000;

pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    lists(headers, &header::UPGRADE, "websocket")
}

/// Answers the handshake and serves the socket in a task.
pub(crate) fn upgrade(
    endpoint: &Arc<EndpointState>,
    caller: &Caller,
    head: Parts,
) -> Result<axum::response::Response, Refusal> {
    let response = websocket_handshake(head.version, &head.headers).map_err(|(status, why)| {
        let refusal = Refusal::new(status, Reason::Upgrade, why);
        if status == StatusCode::UPGRADE_REQUIRED {
            refusal.with_header(header::UPGRADE, WEBSOCKET)
        } else {
            refusal
        }
    })?;
    let full = || Refusal::unavailable(Reason::Connections, "too many WebSockets are open", 1);
    let counted = endpoint.metrics.sockets.enter(endpoint.options.max_connections).ok_or_else(full)?;
    let memory = caller.memory.open(SOCKET_BYTES).map_err(Refusal::no_memory)?;
    endpoint.check_running()?;
    let mut connection = caller.connection(endpoint.session_headers.keep(&head.headers));
    connection.transport = "websocket";
    connection.observed = caller.observed.open("websocket");
    // One token for all messages.
    connection.scopes = caller.scopes();
    let token = caller.token.clone();
    let settings = WebSocketSettings {
        max_message_size: endpoint.options.max_message_size,
        ping_every: endpoint.options.keep_alive,
        first_within: endpoint.options.initialize_within,
    };
    let client = caller.client;
    let path = endpoint.options.path.route(head.uri.path()).map(|route| route.target);
    let (upgrade, endpoint) = (hyper::upgrade::on(Request::from_parts(head, ())), endpoint.clone());
    tokio::spawn(async move {
        let (_counted, _memory) = (counted, memory);
        let socket = match upgrade.await {
            Ok(socket) => TokioIo::new(socket),
            Err(error) => return tracing::debug!(%error, "a WebSocket upgrade failed"),
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
        let changes = endpoint.notified.subscribe();
        let refusal = match endpoint.server.serve_with_changes(pipe, connection, changes, stop).await {
            // The client broke the rules of WebSocket, or sent no message in time; the text has nothing that it sent.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Refusal::bad_request(Reason::WebSocket, error.to_string())
            }
            Err(error) => return tracing::debug!(%error, "a WebSocket ended"),
            Ok(ConnectionEnd::NoMemory) => Refusal::no_memory(NoMemory::Share),
            Ok(_) => return,
        };
        let path = path.map(|target| endpoint.options.path.of(target));
        endpoint.refused(client, Some(&Method::GET), path, &refusal);
    });
    Ok(response)
}

/// The response that accepts a WebSocket handshake, with the subprotocol `mcp` if it is offered.
///
/// # Errors
/// The status and the reason for a request that is no valid handshake.
pub fn websocket_handshake<B: Default>(
    version: Version,
    headers: &HeaderMap,
) -> Result<Response<B>, (StatusCode, &'static str)> {
    let bad = |why| Err((StatusCode::BAD_REQUEST, why));
    if version != Version::HTTP_11 {
        return bad("a WebSocket begins with HTTP/1.1");
    }
    if !lists(headers, &header::CONNECTION, "upgrade") || !is_upgrade(headers) {
        return Err((StatusCode::UPGRADE_REQUIRED, "a WebSocket is wanted here"));
    }
    if !lists(headers, &header::SEC_WEBSOCKET_VERSION, "13") {
        return bad("Sec-WebSocket-Version must be 13");
    }
    let key = headers::value(headers, &header::SEC_WEBSOCKET_KEY).ok().flatten();
    let accept = key.map(|key| HeaderValue::try_from(derive_accept_key(key.as_bytes())));
    let Some(Ok(accept)) = accept else { return bad("no Sec-WebSocket-Key header") };
    let mut response = Response::new(B::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let sent = response.headers_mut();
    sent.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    sent.insert(header::UPGRADE, WEBSOCKET);
    sent.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if lists(headers, &header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL) {
        sent.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    }
    Ok(response)
}
