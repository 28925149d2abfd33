//! Answers as they should be, and connections that are used again.

use std::time::Duration;

use crate::messages::{ALONE, SESSIONS, answer, connect_to, event, notification, progress, request, result};
use crate::raw_server::Server;
use crate::recording_sink::SinkEvent;

#[tokio::test]
async fn json_answers_come_over_one_connection() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    let (mut peer, seen) = server.request().await;
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/mcp"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(Some(seen.header("host").unwrap()), server.origin().strip_prefix("http://"));
    assert!(seen.body.contains("tools/list"));
    peer.json(&result(1)).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
    for number in 2..20 {
        transport.clone().send(request(number, "ping", SESSIONS));
        peer.request().await;
        peer.respond(200, "Content-Type: Application/JSON; charset=utf-8\r\n", &result(number)).await;
        assert_eq!(sink.message().await, (Some(number), result(number)));
    }
    assert!(sink.is_empty(), "an answer that came whole is all there is to hear");
}

#[tokio::test]
async fn requests_do_not_wait_for_each_other() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    let mut peers = Vec::new();
    for number in 0..10 {
        transport.clone().send(request(number, "ping", SESSIONS));
        peers.push(server.request().await.0);
    }
    for (number, peer) in peers.iter_mut().enumerate().rev() {
        let number = number as u64;
        peer.json(&result(number)).await;
        assert_eq!(sink.message().await, (Some(number), result(number)));
    }
}

#[tokio::test]
async fn a_body_in_pieces_is_one_message() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    for byte in result(1).chars() {
        peer.chunk(&byte.to_string()).await;
        tokio::task::yield_now().await;
    }
    peer.end().await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
    transport.clone().send(request(2, "ping", SESSIONS));
    peer.request().await;
}

#[tokio::test]
async fn a_batch_is_handed_on_as_it_is() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut peer, _) = server.request().await;
    let batch = format!("[{},{}]", progress(1), result(1));
    peer.json(&batch).await;
    assert_eq!(sink.message().await, (Some(1), batch));
}

#[tokio::test]
async fn events_come_before_the_answer_and_the_connection_goes_on() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    let mut peer = None;
    for round in 0..3_u64 {
        transport.clone().send(request(round, "tools/call", ALONE));
        if peer.is_none() {
            peer = Some(server.accept().await);
        }
        let peer = peer.as_mut().unwrap();
        peer.request().await;
        peer.stream().await;
        peer.chunk(": hello\n\n").await;
        peer.chunk(&format!("data: {}\n\n", progress(1))).await;
        assert_eq!(sink.message().await, (Some(round), progress(1)));
        let rest = format!("data: {}\n\ndata: {}\n\n", progress(2), result(round));
        peer.write(format!("{:x}\r\n{rest}\r\n0\r\n\r\n", rest.len())).await;
        assert_eq!(sink.message().await, (Some(round), progress(2)));
        assert_eq!(sink.message().await, (Some(round), result(round)));
    }
    assert!(sink.is_empty());
}

#[tokio::test]
async fn the_response_to_a_notification_needs_no_body() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(notification(1, "notifications/initialized", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.accepted().await;
    transport.clone().send(answer(2, SESSIONS));
    peer.request().await;
    peer.write("HTTP/1.1 204 No Content\r\n\r\n").await;
    transport.clone().send(notification(3, "notifications/cancelled", SESSIONS));
    peer.request().await;
    peer.respond(200, "Content-Type: text/plain\r\n", "Accepted").await;
    transport.clone().send(request(4, "ping", SESSIONS));
    peer.request().await;
    peer.json(&result(4)).await;
    assert_eq!(sink.message().await, (Some(4), result(4)));
    assert!(sink.is_empty());
}

#[tokio::test]
async fn a_body_without_the_answer_ends_the_exchange() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.json(&result(2)).await;
    assert_eq!(sink.message().await, (Some(1), result(2)));
    assert_eq!(sink.ended().await.0, 1);
}

#[tokio::test]
async fn a_connection_that_ended_while_it_waited_is_replaced() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.json(&result(1)).await;
    sink.message().await;
    drop(peer);
    assert!(server.is_left_alone(Duration::from_millis(20)).await, "no connection before it is needed");
    transport.clone().send(request(2, "ping", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.json(&result(2)).await;
    assert_eq!(sink.next().await, SinkEvent::Message(Some(2), result(2)));
}

#[tokio::test]
async fn unknown_events_are_ignored_input() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.stream().await;
    peer.chunk("event: ping\ndata: x\n\n").await;
    assert!(matches!(sink.next().await, SinkEvent::IgnoredInput(what) if what.contains("ping")));
    peer.chunk(&event("1", &result(1))).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}
