//! Session ids: taken over, repeated, lost, and given back.

use std::sync::Arc;

use refmcp_client::transport::Transport;
use refmcp_proto::engine::client::TransportError;
use refmcp_proto::revision::Revision;

use crate::messages::{ALONE, SESSIONS, connect_to, notification, request, result};
use crate::raw_server::{Peer, Server};
use crate::recording_sink::RecordingSink;

async fn opened(server: &Server) -> (Arc<dyn Transport>, RecordingSink, Peer) {
    let (transport, mut sink) = connect_to(server).await;
    transport.clone().send(request(1, "initialize", None));
    let (mut peer, seen) = server.request().await;
    assert_eq!(seen.header("mcp-session-id"), None);
    peer.respond(200, "Content-Type: application/json\r\nMCP-Session-Id: abc-1\r\n", &result(1)).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
    (transport, sink, peer)
}

#[tokio::test]
async fn the_id_goes_with_every_later_message() {
    let server = Server::start().await;
    let (transport, mut sink, mut peer) = opened(&server).await;
    transport.clone().send(notification(2, "notifications/initialized", SESSIONS));
    assert_eq!(peer.request().await.header("mcp-session-id"), Some("abc-1"));
    peer.accepted().await;
    transport.clone().send(request(3, "ping", SESSIONS));
    assert_eq!(peer.request().await.header("mcp-session-id"), Some("abc-1"));
    peer.json(&result(3)).await;
    sink.message().await;
    transport.clone().send(request(4, "initialize", None));
    assert_eq!(peer.request().await.header("mcp-session-id"), None, "a new session begins without the old");
}

#[tokio::test]
async fn a_lost_session_is_forgotten() {
    let server = Server::start().await;
    let (transport, mut sink, mut peer) = opened(&server).await;
    transport.clone().send(request(2, "ping", SESSIONS));
    peer.request().await;
    peer.respond(404, "", "gone").await;
    assert_eq!(sink.ended().await, (2, TransportError::SessionLost));
    transport.clone().send(request(3, "ping", SESSIONS));
    assert_eq!(peer.request().await.header("mcp-session-id"), None);
    peer.respond(404, "", "who?").await;
    let (_, why) = sink.ended().await;
    assert_eq!(
        why,
        TransportError::Refused { status: 404, error: None, body: "who?".to_owned(), retry_after: None }
    );
}

#[tokio::test]
async fn without_a_session_404_is_a_refusal() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "tools/fly", ALONE));
    let (mut peer, _) = server.request().await;
    let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}"#;
    peer.respond(404, "Content-Type: application/json\r\n", body).await;
    let (_, why) = sink.ended().await;
    let TransportError::Refused { status: 404, error: Some(error), .. } = why else { panic!("{why:?}") };
    assert_eq!(error.code, -32601);
}

#[tokio::test]
async fn the_end_of_a_session_is_told() {
    let server = Server::start().await;
    let (transport, _sink, mut peer) = opened(&server).await;
    transport.clone().send(notification(2, "notifications/cancelled", SESSIONS));
    let closing = tokio::spawn(transport.close());
    assert!(peer.request().await.body.contains("notifications/cancelled"), "what was told goes first");
    peer.accepted().await;
    let seen = peer.request().await;
    assert_eq!((seen.method.as_str(), seen.header("mcp-session-id")), ("DELETE", Some("abc-1")));
    peer.respond(405, "", "").await;
    closing.await.unwrap();
    peer.gone().await;
}

#[tokio::test]
async fn an_unacknowledged_delete_does_not_hang() {
    let server = Server::start().await;
    let (transport, _sink, mut peer) = opened(&server).await;
    let closing = tokio::spawn(transport.close());
    peer.request().await;
    crate::raw_server::in_time("the end", closing).await.unwrap();
    peer.gone().await;
}

#[tokio::test]
async fn without_a_session_nothing_is_said_at_the_end() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "ping", ALONE));
    let (mut peer, _) = server.request().await;
    peer.json(&result(1)).await;
    sink.message().await;
    transport.clone().opened(Revision::LATEST.rules());
    transport.close().await;
    peer.gone().await;
}

#[tokio::test]
async fn ids_that_no_session_can_have_are_refused() {
    let long = "x".repeat(5000);
    for id in ["", "a b", "caf\u{e9}", &long] {
        let server = Server::start().await;
        let (transport, mut sink) = connect_to(&server).await;
        transport.clone().send(request(1, "initialize", None));
        let (mut peer, _) = server.request().await;
        let header = format!("Content-Type: application/json\r\nMcp-Session-Id: {id}\r\n");
        peer.respond(200, &header, &result(1)).await;
        let (_, why) = sink.ended().await;
        assert!(matches!(&why, TransportError::Misbehaved(why) if why.contains("session id")), "{why:?}");
    }
}
