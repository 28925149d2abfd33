//! The stream that belongs to no request.

use std::sync::Arc;
use std::time::Duration;

use refmcp_client::transport::Transport;
use refmcp_proto::engine::client::TransportError;
use refmcp_proto::revision::Revision;
use tokio::time::Instant;

use crate::messages::{SESSIONS, connect_with, event, progress, request, result};
use crate::raw_server::{Peer, Server};
use crate::recording_sink::{RecordingSink, SinkEvent};

async fn listening(server: &Server) -> (Arc<dyn Transport>, RecordingSink, Peer) {
    let (transport, sink) = connect_with(server, |settings| settings.max_message_size = 1000).await;
    transport.clone().opened(Revision::LATEST_SESSION.rules());
    let (peer, seen) = server.request().await;
    assert_eq!((seen.method.as_str(), seen.header("accept")), ("GET", Some("text/event-stream")));
    assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(seen.header("last-event-id"), None);
    (transport, sink, peer)
}

#[tokio::test]
async fn it_is_read_and_taken_up_where_it_broke() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = listening(&server).await;
    peer.stream().await;
    peer.chunk("retry: 20\n\n: hello\n\n").await;
    peer.chunk(&event("1", &progress(1))).await;
    assert_eq!(sink.message().await, (None, progress(1)));
    drop(peer);
    let (mut peer, seen) = server.request().await;
    assert_eq!(seen.header("last-event-id"), Some("1"));
    peer.stream().await;
    peer.chunk(&event("2", &progress(2))).await;
    assert_eq!(sink.message().await, (None, progress(2)));
}

#[tokio::test]
async fn requests_wait_for_it() {
    let server = Server::start().await;
    let (transport, mut sink, mut peer) = listening(&server).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let early = tokio::time::timeout(Duration::from_millis(50), server.request()).await;
    assert!(early.is_err(), "a request went before the stream was open");
    peer.stream().await;
    let (mut other, _) = server.request().await;
    other.json(&result(1)).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn requests_do_not_wait_for_one_that_opens_with_its_first_event() {
    let server = Server::start().await;
    let (transport, mut sink, _peer) = listening(&server).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut other, seen) = server.request().await;
    assert_eq!(seen.method, "POST");
    other.json(&result(1)).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn a_server_need_not_have_one() {
    for status in [405, 404, 400, 401] {
        let server = Server::start().await;
        let (transport, mut sink, mut peer) = listening(&server).await;
        peer.respond(status, "", "none").await;
        transport.clone().send(request(1, "ping", SESSIONS));
        // The same connection, or another: the refusal is read beside the request.
        let (mut peer, seen) = tokio::select! {
            seen = peer.request() => (peer, seen),
            (other, seen) = server.request() => (other, seen),
        };
        assert_eq!(seen.method, "POST");
        peer.json(&result(1)).await;
        assert_eq!(sink.message().await, (Some(1), result(1)));
        assert!(sink.is_empty());
    }
}

#[tokio::test]
async fn an_application_can_do_without_one() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_with(&server, |settings| settings.get_stream = false).await;
    transport.clone().opened(Revision::LATEST_SESSION.rules());
    assert!(server.is_left_alone(Duration::from_millis(50)).await);
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut peer, seen) = server.request().await;
    assert_eq!(seen.method, "POST");
    peer.json(&result(1)).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn one_that_closes_at_once_is_asked_less_and_less() {
    let server = Server::start().await;
    let (_transport, _sink, mut peer) = listening(&server).await;
    peer.respond(200, "Content-Type: text/event-stream\r\n", "retry: 20\n\n").await;
    let mut times = vec![Instant::now()];
    for _ in 0..5 {
        peer.request().await;
        times.push(Instant::now());
        peer.respond(200, "Content-Type: text/event-stream\r\n", "").await;
    }
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (pause, least) in pauses.iter().zip([20, 40, 80, 160, 320]) {
        assert!(*pause >= Duration::from_millis(least), "{pauses:?}");
    }
}

#[tokio::test]
async fn a_lost_get_stream_is_reported_once_and_opened_again() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = listening(&server).await;
    peer.stream().await;
    peer.chunk("retry: 10\n\n").await;
    peer.end().await;
    for _ in 0..3 {
        peer.request().await;
        peer.respond(503, "", "").await;
    }
    let lost = sink.next().await;
    assert!(matches!(&lost, SinkEvent::StreamLost(why) if why.to_string().contains("503")), "{lost:?}");
    peer.request().await;
    peer.stream().await;
    peer.chunk(&event("1", &progress(1))).await;
    assert_eq!(sink.next().await, SinkEvent::StreamRestored);
    assert_eq!(sink.message().await, (None, progress(1)));
    // The end of a stream is no loss where another can be opened; the end of the session is.
    peer.end().await;
    peer.request().await;
    peer.stream().await;
    peer.chunk(&event("2", &progress(2))).await;
    assert_eq!(sink.message().await, (None, progress(2)));
    peer.end().await;
    peer.request().await;
    peer.respond(404, "", "").await;
    let lost = sink.next().await;
    assert!(matches!(&lost, SinkEvent::StreamLost(why) if why.to_string().contains("404")), "{lost:?}");
}

#[tokio::test]
async fn a_message_over_the_limit_is_told() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = listening(&server).await;
    peer.stream().await;
    peer.chunk("retry: 10\n\n").await;
    peer.chunk(&event("1", &"x".repeat(2000))).await;
    assert_eq!(sink.next().await, SinkEvent::TooLong(None, 1000));
    peer.gone().await;
    let (mut peer, seen) = server.request().await;
    assert_eq!(seen.header("last-event-id"), None, "an event that was not read is not resumed after");
    peer.stream().await;
    peer.chunk(&event("2", &progress(2))).await;
    assert_eq!(sink.message().await, (None, progress(2)));
}

#[tokio::test]
async fn a_page_is_no_stream() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = listening(&server).await;
    peer.respond(200, "Content-Type: text/html\r\n", "<html>").await;
    assert!(matches!(sink.next().await, SinkEvent::IgnoredInput(_)));
}

#[tokio::test]
async fn it_ends_with_the_session() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_with(&server, |_| {}).await;
    transport.clone().send(request(1, "initialize", None));
    let (mut peer, _) = server.request().await;
    peer.respond(200, "Content-Type: application/json\r\nMcp-Session-Id: s\r\n", &result(1)).await;
    sink.message().await;
    transport.clone().opened(Revision::LATEST_SESSION.rules());
    let seen = peer.request().await;
    assert_eq!((seen.method.as_str(), seen.header("mcp-session-id")), ("GET", Some("s")));
    peer.stream().await;
    transport.clone().send(request(2, "ping", SESSIONS));
    let (mut other, _) = server.request().await;
    other.respond(404, "", "").await;
    sink.ended().await;
    peer.gone().await;
}

#[tokio::test]
async fn status_404_after_it_was_open_says_that_the_session_has_ended() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_with(&server, |_| {}).await;
    transport.clone().send(request(1, "initialize", None));
    let (mut peer, _) = server.request().await;
    peer.respond(200, "Content-Type: application/json\r\nMcp-Session-Id: s\r\n", &result(1)).await;
    sink.message().await;
    transport.clone().opened(Revision::LATEST_SESSION.rules());
    peer.request().await;
    peer.stream().await;
    peer.chunk("retry: 10\n\n").await;
    peer.end().await;
    assert_eq!(peer.request().await.header("mcp-session-id"), Some("s"));
    peer.respond(404, "", "").await;
    assert_eq!(sink.next().await, SinkEvent::StreamLost(TransportError::SessionLost));
}

#[tokio::test]
async fn requests_that_stand_alone_have_none() {
    let server = Server::start().await;
    let (transport, _sink) = connect_with(&server, |_| {}).await;
    transport.clone().opened(Revision::LATEST.rules());
    assert!(server.is_left_alone(Duration::from_millis(50)).await);
}
