//! Streams that break and are resumed.

use std::sync::Arc;
use std::time::Duration;

use refmcp_client::transport::Transport;
use refmcp_proto::engine::client::{ExchangeId, TransportError};
use refmcp_proto::revision::Revision;
use refmcp_testkit::paused::PausedTime;

use crate::messages::{ALONE, SESSIONS, connect_to, event, progress, request, result};
use crate::raw_server::{Peer, Server};
use crate::recording_sink::RecordingSink;

async fn streaming(server: &Server, revision: Option<Revision>) -> (Arc<dyn Transport>, RecordingSink, Peer) {
    let (transport, sink) = connect_to(server).await;
    transport.clone().send(request(1, "tools/call", revision));
    let (mut peer, _) = server.request().await;
    peer.stream().await;
    (transport, sink, peer)
}

#[tokio::test]
async fn after_a_cut_every_event_comes_once() {
    for revision in [SESSIONS, Some(Revision::V2025_03_26), None] {
        let server = Server::start().await;
        let (_transport, mut sink, mut peer) = streaming(&server, revision).await;
        peer.chunk("retry: 20\n\n").await;
        peer.chunk(&event("1", &progress(1))).await;
        // The second event breaks off in the middle.
        peer.write(format!("fff\r\nid: 2\ndata: {}\n", progress(2))).await;
        drop(peer);
        let (mut peer, seen) = server.request().await;
        assert_eq!((seen.method.as_str(), seen.header("last-event-id")), ("GET", Some("1")));
        assert_eq!(seen.header("accept"), Some("text/event-stream"));
        peer.stream().await;
        peer.chunk(&event("2", &progress(2))).await;
        drop(peer);
        let (mut peer, seen) = server.request().await;
        assert_eq!(seen.header("last-event-id"), Some("2"));
        peer.stream().await;
        peer.chunk(&event("3", &result(1))).await;
        peer.end().await;
        for wanted in [progress(1), progress(2), result(1)] {
            assert_eq!(sink.message().await, (Some(1), wanted));
        }
        assert!(sink.is_empty());
    }
}

#[tokio::test]
async fn the_server_says_how_long_to_wait() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server, SESSIONS).await;
    let time = PausedTime::start();
    peer.chunk("id: 7\nretry: 500\ndata:\n\n").await;
    peer.end().await;
    time.advance(Duration::from_millis(499)).await;
    assert!(peer.is_left_alone(&time).await, "not before its time");
    time.advance(Duration::from_millis(2)).await;
    let seen = peer.request().await;
    assert_eq!(
        (seen.header("last-event-id"), seen.header("mcp-protocol-version")),
        (Some("7"), Some("2025-11-25"))
    );
    peer.stream().await;
    peer.chunk(&event("8", &result(1))).await;
    assert_eq!(sink.message().await, (Some(1), result(1)), "the priming event is no message");
}

#[tokio::test]
async fn a_server_may_be_polled_for_as_long_as_it_goes_on() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server, SESSIONS).await;
    peer.chunk("id: 0\nretry: 10\ndata:\n\n").await;
    peer.end().await;
    for round in 1..20 {
        assert_eq!(peer.request().await.header("last-event-id"), Some((round - 1).to_string().as_str()));
        peer.stream().await;
        peer.chunk(&format!("id: {round}\ndata:\n\n")).await;
        peer.end().await;
    }
    peer.request().await;
    peer.stream().await;
    peer.chunk(&event("20", &result(1))).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn a_replayed_event_is_received_once() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server, SESSIONS).await;
    peer.chunk("retry: 10\n\n").await;
    peer.chunk(&event("1", &progress(1))).await;
    peer.end().await;
    peer.request().await;
    peer.stream().await;
    peer.chunk(&event("1", &progress(1))).await;
    peer.chunk(&event("2", &result(1))).await;
    assert_eq!(sink.message().await, (Some(1), progress(1)));
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn passing_troubles_are_waited_out() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server, SESSIONS).await;
    peer.chunk("id: 1\nretry: 10\ndata:\n\n").await;
    peer.end().await;
    peer.request().await;
    peer.respond(503, "", "busy").await;
    peer.request().await;
    drop(peer);
    let (mut peer, seen) = server.request().await;
    assert_eq!(seen.header("last-event-id"), Some("1"));
    peer.stream().await;
    peer.chunk(&event("2", &result(1))).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn a_refusal_of_the_rest_is_the_end() {
    for (status, lost) in [(405, false), (400, false), (401, true)] {
        let server = Server::start().await;
        let (_transport, mut sink, mut peer) = streaming(&server, SESSIONS).await;
        peer.chunk("id: 1\nretry: 10\ndata:\n\n").await;
        peer.end().await;
        peer.request().await;
        peer.respond(status, "", "no").await;
        let (_, why) = sink.ended().await;
        match why {
            TransportError::Unauthorized { status: 401, .. } => assert!(lost),
            TransportError::Broken(why) => assert!(why.contains("cannot be resumed") && !lost, "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn the_rest_of_a_stream_is_no_page() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server, SESSIONS).await;
    peer.chunk("id: 1\nretry: 10\ndata:\n\n").await;
    peer.end().await;
    peer.request().await;
    peer.respond(200, "Content-Type: text/html\r\n", "<html>").await;
    assert!(matches!(sink.ended().await, (1, TransportError::Misbehaved(_))));
}

#[tokio::test]
async fn a_session_that_is_lost_meanwhile() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "initialize", None));
    let (mut peer, _) = server.request().await;
    peer.respond(200, "Content-Type: application/json\r\nMcp-Session-Id: s\r\n", &result(1)).await;
    sink.message().await;
    transport.clone().send(request(2, "tools/call", SESSIONS));
    peer.request().await;
    peer.stream().await;
    peer.chunk("id: 1\nretry: 10\ndata:\n\n").await;
    peer.end().await;
    assert_eq!(peer.request().await.header("mcp-session-id"), Some("s"));
    peer.respond(404, "", "").await;
    assert_eq!(sink.ended().await, (2, TransportError::SessionLost));
}

#[tokio::test]
async fn requests_that_stand_alone_are_never_taken_up() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server, ALONE).await;
    let time = PausedTime::start();
    peer.chunk("retry: 10\n\n").await;
    peer.chunk(&event("1", &progress(1))).await;
    peer.end().await;
    assert_eq!(sink.message().await, (Some(1), progress(1)));
    assert!(matches!(sink.ended().await, (1, TransportError::Broken(_))));
    time.advance(Duration::from_secs(120)).await;
    assert!(peer.is_left_alone(&time).await);
    drop(time);
    assert!(server.is_left_alone(Duration::ZERO).await);
}

#[tokio::test]
async fn an_abandoned_stream_is_not_resumed() {
    let server = Server::start().await;
    let (transport, mut sink, mut peer) = streaming(&server, SESSIONS).await;
    peer.chunk("id: 1\nretry: 50\ndata:\n\n").await;
    peer.chunk(&event("2", &progress(1))).await;
    sink.message().await;
    let time = PausedTime::start();
    peer.end().await;
    time.settle().await;
    transport.abandon(ExchangeId(1));
    time.advance(Duration::from_secs(120)).await;
    assert!(peer.is_left_alone(&time).await);
    drop(time);
    assert!(server.is_left_alone(Duration::ZERO).await);
    assert!(sink.is_empty());
}
