//! What has to wait for what.

use std::time::Duration;

use refmcp_proto::revision::Revision;

use crate::messages::{SESSIONS, answer, connect_to, connect_with, notification, request, result};
use crate::raw_server::Server;

#[tokio::test]
async fn nothing_goes_before_a_notification_is_acknowledged() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(notification(1, "notifications/initialized", SESSIONS));
    transport.clone().send(request(2, "tools/list", SESSIONS));
    let (mut peer, seen) = server.request().await;
    assert!(seen.body.contains("notifications/initialized"));
    assert!(server.is_left_alone(Duration::from_millis(100)).await, "the request waits");
    peer.accepted().await;
    let seen = peer.request().await;
    assert!(seen.body.contains("tools/list"));
    peer.json(&result(2)).await;
    assert_eq!(sink.message().await, (Some(2), result(2)));
}

#[tokio::test]
async fn notifications_keep_their_order() {
    let server = Server::start().await;
    let (transport, _sink) = connect_to(&server).await;
    for number in 0..20 {
        let message = if number % 2 == 0 {
            notification(number, "notifications/x", SESSIONS)
        } else {
            answer(number, SESSIONS)
        };
        transport.clone().send(message);
    }
    let (mut peer, seen) = server.request().await;
    assert!(seen.body.contains("notifications/x"));
    peer.accepted().await;
    for number in 1..20 {
        let seen = peer.request().await;
        let wanted = if number % 2 == 0 { "notifications/x".to_owned() } else { format!("\"s{number}\"") };
        assert!(seen.body.contains(&wanted), "{seen:?}");
        peer.accepted().await;
    }
}

#[tokio::test]
async fn a_failed_notification_does_not_delay_requests() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(notification(1, "notifications/initialized", SESSIONS));
    transport.clone().send(request(2, "ping", SESSIONS));
    let (peer, _) = server.request().await;
    drop(peer);
    let (mut peer, seen) = server.request().await;
    assert!(seen.body.contains("ping"));
    peer.json(&result(2)).await;
    assert_eq!(sink.ended().await.0, 1);
    assert_eq!(sink.message().await.0, Some(2));
}

#[tokio::test]
async fn answers_go_while_requests_take_all_room() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_with(&server, |settings| settings.max_requests = 1).await;
    transport.clone().send(request(1, "tools/call", SESSIONS));
    let (mut asking, _) = server.request().await;
    transport.clone().send(request(2, "tools/list", SESSIONS));
    transport.clone().send(answer(3, SESSIONS));
    let (mut peer, seen) = server.request().await;
    assert!(seen.body.contains("\"s3\""), "{seen:?}");
    peer.accepted().await;
    asking.json(&result(1)).await;
    assert_eq!(sink.message().await.0, Some(1));
    // Either connection will do.
    let seen = tokio::select! { seen = peer.request() => seen, seen = asking.request() => seen };
    assert!(seen.body.contains("tools/list"));
}

#[tokio::test]
async fn the_get_stream_waits_for_the_notification_before_it() {
    let server = Server::start().await;
    let (transport, _sink) = connect_to(&server).await;
    transport.clone().send(notification(1, "notifications/initialized", SESSIONS));
    transport.clone().opened(Revision::LATEST_SESSION.rules());
    let (mut peer, _) = server.request().await;
    assert!(server.is_left_alone(Duration::from_millis(50)).await);
    peer.accepted().await;
    assert_eq!(peer.request().await.method, "GET");
}
