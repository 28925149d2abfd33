//! What ends when: connections, tasks, and transports.

use std::time::Duration;

use refmcp_proto::engine::client::{ExchangeId, TransportError};
use refmcp_proto::revision::Revision;

use crate::messages::{ALONE, SESSIONS, connect_to, connect_with, notification, request, result};
use crate::raw_server::{Server, in_time};

#[tokio::test]
async fn an_abandoned_request_ends_its_connection_and_no_other() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "tools/call", ALONE));
    let (mut first, _) = server.request().await;
    transport.clone().send(request(2, "tools/call", ALONE));
    let (mut second, _) = server.request().await;
    first.stream().await;
    transport.abandon(ExchangeId(1));
    first.gone().await;
    second.json(&result(2)).await;
    assert_eq!(sink.message().await, (Some(2), result(2)));
    transport.abandon(ExchangeId(2));
    transport.abandon(ExchangeId(77));
    assert!(sink.is_empty(), "an abandoned exchange has no events");
}

#[tokio::test]
async fn a_request_can_be_abandoned_before_its_head_comes() {
    let server = Server::start().await;
    let (transport, _sink) = connect_to(&server).await;
    transport.clone().send(request(1, "tools/call", ALONE));
    let (mut peer, _) = server.request().await;
    transport.abandon(ExchangeId(1));
    peer.gone().await;
}

#[tokio::test]
async fn a_dropped_transport_leaves_nothing() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut idle, _) = server.request().await;
    idle.json(&result(1)).await;
    sink.message().await;
    transport.clone().opened(Revision::LATEST_SESSION.rules());
    idle.request().await;
    idle.stream().await;
    transport.clone().send(request(2, "tools/call", SESSIONS));
    let (mut asking, _) = server.request().await;
    asking.stream().await;
    transport.clone().send(notification(3, "notifications/x", SESSIONS));
    let (mut telling, _) = server.request().await;
    drop(transport);
    idle.gone().await;
    asking.gone().await;
    telling.gone().await;
    // Every task held the sink; none does.
    sink.dropped().await;
}

#[tokio::test]
async fn a_closed_transport_leaves_nothing_and_says_so() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut idle, _) = server.request().await;
    idle.json(&result(1)).await;
    sink.message().await;
    transport.clone().send(request(2, "tools/call", SESSIONS));
    idle.request().await;
    idle.stream().await;
    in_time("the end", transport.clone().close()).await;
    idle.gone().await;
    transport.clone().send(request(3, "ping", SESSIONS));
    assert_eq!(sink.ended().await, (3, TransportError::Closed));
    transport.clone().opened(Revision::LATEST_SESSION.rules());
    assert!(server.is_left_alone(Duration::from_millis(20)).await);
    drop(transport);
    sink.dropped().await;
}

#[tokio::test]
async fn connections_do_not_wait_for_ever() {
    let server = Server::start().await;
    let (transport, mut sink) =
        connect_with(&server, |settings| settings.idle_timeout = Duration::from_millis(50)).await;
    transport.clone().send(request(1, "ping", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.json(&result(1)).await;
    sink.message().await;
    peer.gone().await;
    transport.clone().send(request(2, "ping", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.json(&result(2)).await;
    assert_eq!(sink.message().await.0, Some(2));
}

#[tokio::test]
async fn a_server_that_ends_each_connection_gets_a_new_one_for_each_request() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    for number in 0..5 {
        transport.clone().send(request(number, "ping", SESSIONS));
        let (mut peer, _) = server.request().await;
        peer.respond(200, "Content-Type: application/json\r\nConnection: close\r\n", &result(number)).await;
        assert_eq!(sink.message().await, (Some(number), result(number)));
        peer.gone().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_requests_at_once_all_come_back() {
    const MANY: u64 = 500;
    let server = Server::start().await;
    let (transport, mut sink) = connect_with(&server, |settings| settings.max_requests = 8).await;
    tokio::spawn(async move {
        loop {
            let mut peer = server.accept().await;
            tokio::spawn(async move {
                loop {
                    let seen = peer.request().await;
                    let id = seen.body.split("\"id\":").nth(1).unwrap().split(',').next().unwrap();
                    peer.json(&result(id.parse().unwrap())).await;
                }
            });
        }
    });
    for number in 0..MANY {
        transport.clone().send(request(number, "ping", SESSIONS));
    }
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..MANY {
        let (exchange, text) = sink.message().await;
        assert_eq!(text, result(exchange.unwrap()));
        assert!(seen.insert(exchange));
    }
    assert!(sink.is_empty());
}
