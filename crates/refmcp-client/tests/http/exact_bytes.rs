//! Bytes cut anywhere, much of them, and more of them than belong there.

use std::fmt::Write as _;

use refmcp_proto::engine::client::TransportError;

use crate::messages::{ALONE, SESSIONS, connect_to, request, result};
use crate::raw_server::Server;
use crate::recording_sink::SinkEvent;

/// All events of a request whose response breaks off.
async fn events_of(response: &str) -> Vec<SinkEvent> {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "ping", ALONE));
    let (mut peer, _) = server.request().await;
    peer.write(response).await;
    drop(peer);
    let mut events = vec![sink.next().await];
    transport.clone().send(request(2, "ping", ALONE));
    let (mut peer, _) = server.request().await;
    peer.json(&result(2)).await;
    loop {
        match sink.next().await {
            SinkEvent::Message(Some(2), _) => return events,
            other => events.push(other),
        }
    }
}

#[tokio::test]
async fn a_response_cut_anywhere_ends_once() {
    let body = result(1);
    let json = format!(
        "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for cut in 0..json.len() {
        let events = events_of(&json[..cut]).await;
        assert!(matches!(&events[..], [SinkEvent::Ended(1, TransportError::Broken(_))]), "{cut}: {events:?}");
    }
    assert_eq!(events_of(&json).await, [SinkEvent::Message(Some(1), body)]);
}

#[tokio::test]
async fn a_stream_cut_anywhere_ends_once() {
    let event = format!("data: {}\n\n", result(1));
    let head = "HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let text = format!("{head}{:x}\r\n{event}\r\n0\r\n\r\n", event.len());
    let whole = text.find("\n\n\r\n").unwrap() + 2;
    for cut in 0..text.len() {
        let events = events_of(&text[..cut]).await;
        match &events[..] {
            [SinkEvent::Ended(1, TransportError::Broken(_))] if cut < whole => {}
            [SinkEvent::Message(Some(1), _)] if cut >= whole => {}
            other => panic!("{cut}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn much_goes_both_ways() {
    const MUCH: usize = 8 << 20;
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    let mut message = request(1, "tools/call", SESSIONS);
    let filling = "x".repeat(MUCH);
    message.json =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"x":"{filling}"}}}}"#).into();
    let sent = String::from_utf8(message.json.clone()).unwrap();
    transport.clone().send(message);
    let (mut peer, seen) = server.request().await;
    assert!(seen.body == sent);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{filling}"}}"#);
    peer.json(&answer).await;
    assert!(sink.message().await == (Some(1), answer.clone()));
    transport.clone().send(request(2, "tools/call", SESSIONS));
    peer.request().await;
    let answer = answer.replacen(":1,", ":2,", 1);
    peer.stream().await;
    peer.chunk(&format!("data: {answer}\n\n")).await;
    peer.end().await;
    assert!(sink.message().await == (Some(2), answer));
    assert!(sink.is_empty());
}

#[tokio::test]
async fn an_answer_before_the_request_is_read() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    let mut message = request(1, "tools/call", SESSIONS);
    message.json.resize(32 << 20, b' ');
    transport.clone().send(message);
    let mut peer = server.accept().await;
    peer.respond(413, "Connection: close\r\n", "too much").await;
    let (_, why) = sink.ended().await;
    assert_eq!(
        why,
        TransportError::Refused { status: 413, error: None, body: "too much".to_owned(), retry_after: None }
    );
}

#[tokio::test]
async fn more_than_belongs_to_a_response_is_not_taken_for_the_next() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut peer, _) = server.request().await;
    let mut twice = String::new();
    for number in [1, 2] {
        let body = result(number);
        let length = body.len();
        write!(
            twice,
            "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
    }
    peer.write(twice).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
    transport.clone().send(request(2, "ping", SESSIONS));
    let (mut other, _) = server.request().await;
    other.json(r#"{"jsonrpc":"2.0","id":2,"result":"true"}"#).await;
    assert_eq!(sink.message().await.1, r#"{"jsonrpc":"2.0","id":2,"result":"true"}"#);
    peer.gone().await;
}

#[tokio::test]
async fn hints_before_the_response_are_passed_over() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n").await;
    peer.json(&result(1)).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn a_flood_of_headers_is_refused() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.write("HTTP/1.1 200 OK\r\n").await;
    peer.write_for_ever(b"X-Flood: water\r\n").await;
    assert!(matches!(sink.ended().await, (1, TransportError::Broken(_))));
}
