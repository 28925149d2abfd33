//! A WebSocket is opened again once there is a token.

use futures_util::{SinkExt, StreamExt};
use refmcp_client::auth::Authorization;
use refmcp_client::transport::{Connector, TransportError};
use refmcp_client::websocket::WebSocket;
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

use super::servers::TestServers;
use super::user::User;
use crate::messages::{ALONE, connect, request, result};
use crate::raw_server::Server;
use crate::recording_sink::RecordingSink;

#[tokio::test]
#[allow(clippy::result_large_err, reason = "the library for WebSockets wants it so")]
async fn a_websocket() {
    let servers = TestServers::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    servers.state().resource = format!("http://{at}/mcp");
    let about = format!("{}/.well-known/oauth-protected-resource/mcp", servers.origin);
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut peer = Server::peer(stream);
        assert_eq!(peer.request().await.header("authorization"), None);
        let challenge = format!("WWW-Authenticate: Bearer resource_metadata=\"{about}\"\r\n");
        peer.respond(401, &challenge, "").await;
        let (stream, _) = listener.accept().await.unwrap();
        let check = |request: &Request, mut response: Response| {
            assert_eq!(request.headers()["authorization"], "Bearer token-1");
            response.headers_mut().insert("sec-websocket-protocol", "mcp".parse().unwrap());
            Ok(response)
        };
        let mut socket = tokio_tungstenite::accept_hdr_async(stream, check).await.unwrap();
        socket.next().await.unwrap().unwrap();
        socket.send(Message::text(result(1))).await.unwrap();
        socket
    });
    let user = User::new(&servers);
    let server =
        WebSocket::new(&format!("ws://{at}/mcp")).unwrap().authorization(Authorization::new(user.clone()));
    let (transport, mut sink) = connect(&server).await;
    transport.clone().send(request(1, "ping", ALONE));
    assert_eq!(sink.message().await.1, result(1));
    assert_eq!(user.visits(), 1);
    drop(serving.await.unwrap());
}

#[tokio::test]
async fn a_header_that_was_set_by_hand_goes_before() {
    let (servers, server) = (TestServers::start().await, Server::start().await);
    let user = User::new(&servers);
    let socket = WebSocket::new(&server.url()).unwrap().authorization(Authorization::new(user.clone()));
    let socket = socket.header("Authorization", "Bearer mine").unwrap();
    let (connected, ()) = tokio::join!(socket.connect(RecordingSink::new().0), async {
        let (mut peer, seen) = server.request().await;
        assert_eq!(seen.header("authorization"), Some("Bearer mine"));
        peer.respond(401, "WWW-Authenticate: Bearer\r\n", "").await;
    });
    let why = connected.unwrap_err();
    assert!(matches!(why, TransportError::Unauthorized { status: 401, .. }), "{why:?}");
    assert_eq!(user.visits(), 0);
}
