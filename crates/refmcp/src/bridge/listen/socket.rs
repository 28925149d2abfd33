//! WebSocket: one conversation for each socket.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use refmcp_http::websocket_handshake;
use refmcp_transport::websocket::{Role, WebSocketSettings, pipe};

use super::reply::{Body, refuse};
use super::{Common, full};
use crate::bridge::pipe::{self as passing, MAX_MESSAGE_SIZE};

const SETTINGS: WebSocketSettings = WebSocketSettings {
    max_message_size: MAX_MESSAGE_SIZE,
    ping_every: Duration::from_secs(15),
    first_within: Duration::from_secs(60),
};

/// Answers the handshake; what follows is a conversation of its own.
pub(super) fn upgrade(common: &Arc<Common>, mut request: Request<Incoming>) -> Response<Body> {
    let response = match websocket_handshake(request.version(), request.headers()) {
        Ok(response) => response,
        Err((status, why)) => return *refuse(status, why),
    };
    let Ok(slot) = common.slots.clone().try_acquire_owned() else { return *full() };
    let (leaving, common) = (hyper::upgrade::on(&mut request), common.clone());
    tokio::spawn(async move {
        let _slot = slot;
        let stream = match leaving.await {
            Ok(stream) => TokioIo::new(stream),
            Err(fault) => return tracing::debug!(%fault, "a WebSocket upgrade failed"),
        };
        let socket = pipe(stream, Role::Server, SETTINGS).await;
        if let Err(over) = passing::run(socket, common.to.clone(), common.patience, &common.stop).await {
            tracing::warn!(server = %common.to.name(), why = %over.why, "a conversation ended");
        }
    });
    response
}
