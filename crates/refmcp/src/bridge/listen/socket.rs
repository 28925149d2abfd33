//! WebSocket: one conversation for each socket.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use refmcp_transport::websocket::{Role, WebSocketSettings, derive_accept_key, pipe};

use super::reply::{Body, empty, refuse};
use super::{Common, full};
use crate::bridge::pipe::{self as passing, MAX_MESSAGE};

/// The subprotocol, for clients that offer one.
const PROTOCOL: &str = "mcp";

const SETTINGS: WebSocketSettings = WebSocketSettings {
    max_message: MAX_MESSAGE,
    ping_every: Duration::from_secs(15),
    first_within: Duration::from_secs(60),
};

/// Answers the handshake; what follows is a conversation of its own.
pub(super) fn upgrade(common: &Arc<Common>, mut request: Request<Incoming>) -> Response<Body> {
    let headers = request.headers();
    if !has(headers, &header::UPGRADE, "websocket") || !has(headers, &header::CONNECTION, "upgrade") {
        return *refuse(StatusCode::UPGRADE_REQUIRED, "a WebSocket is wanted here");
    }
    if !has(headers, &header::SEC_WEBSOCKET_VERSION, "13") {
        return *refuse(StatusCode::BAD_REQUEST, "Sec-WebSocket-Version must be 13");
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    let Some(Ok(accept)) = key.map(HeaderValue::try_from) else {
        return *refuse(StatusCode::BAD_REQUEST, "no Sec-WebSocket-Key header");
    };
    let protocol = has(headers, &header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL);
    let Ok(slot) = common.slots.clone().try_acquire_owned() else { return *full() };
    let (leaving, common) = (hyper::upgrade::on(&mut request), common.clone());
    tokio::spawn(async move {
        let _slot = slot;
        let stream = match leaving.await {
            Ok(stream) => TokioIo::new(stream),
            Err(fault) => return tracing::debug!(%fault, "a WebSocket that never was"),
        };
        let socket = pipe(stream, Role::Server, SETTINGS).await;
        if let Err(over) = passing::run(socket, common.to.clone(), common.patience, &common.stop).await {
            tracing::warn!(server = %common.to.name(), why = %over.why, "a conversation ended");
        }
    });
    let mut response = empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if protocol {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    }
    response
}

/// Whether a header lists a word.
fn has(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|listed| listed.trim().eq_ignore_ascii_case(word))
}
