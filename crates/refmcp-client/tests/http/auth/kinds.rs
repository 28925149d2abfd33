//! Every kind of request is sent again once there is a token.

use std::sync::Arc;

use hyper::Method;
use refmcp_client::auth::Authorization;
use refmcp_client::http::{HttpSse, StreamableHttp};
use refmcp_client::transport::{Connector, Transport, TransportError};
use refmcp_proto::revision::Revision;

use super::servers::{Came, TestServers};
use super::user::User;
use crate::messages::{ALONE, SESSIONS, connect, notification, request, result};
use crate::raw_server::Server;
use crate::recording_sink::{RecordingSink, SinkEvent};

async fn enter(servers: &TestServers) -> (User, Arc<dyn Transport>, RecordingSink) {
    let user = User::new(servers);
    let (transport, sink) = connect(&servers.server(&Authorization::new(user.clone()))).await;
    (user, transport, sink)
}

/// The tokens that requests to the server came with, in order.
fn tokens(servers: &TestServers, path: &str) -> Vec<Option<String>> {
    servers.came_to(path).iter().map(|came| came.header("authorization").map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_request() {
    let servers = TestServers::start().await;
    let (user, transport, mut sink) = enter(&servers).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    assert_eq!(sink.message().await, (Some(1), result(1)));
    assert_eq!(tokens(&servers, "/mcp"), [None, Some("Bearer token-1".to_owned())]);
    let came = servers.came_to("/mcp");
    assert_eq!(came[0].body, came[1].body, "the request is the same");
    assert_eq!(user.visits(), 1);
    transport.clone().send(request(2, "tools/list", ALONE));
    assert_eq!(sink.message().await, (Some(2), result(2)));
    assert_eq!((user.visits(), servers.grants()), (1, vec!["authorization_code".to_owned()]));
}

#[tokio::test]
async fn a_notification() {
    let servers = TestServers::start().await;
    let (user, transport, mut sink) = enter(&servers).await;
    transport.clone().send(notification(1, "notifications/x", SESSIONS));
    transport.clone().send(request(2, "ping", SESSIONS));
    assert_eq!(sink.message().await, (Some(2), result(2)));
    assert_eq!(user.visits(), 1);
    let bodies: Vec<bool> =
        servers.came_to("/mcp").iter().map(|came| came.body.contains("notifications/x")).collect();
    assert_eq!(bodies, [true, true, false], "the notification is told before the request");
}

#[tokio::test]
async fn the_stream_and_the_farewell_of_a_session() {
    let servers = TestServers::start().await;
    let (user, transport, mut sink) = enter(&servers).await;
    transport.clone().send(request(1, "initialize", None));
    assert_eq!(sink.message().await, (Some(1), result(1)));
    servers.revoke_all();
    transport.clone().opened(Revision::LATEST_SESSION.rules());
    assert!(sink.message().await.1.contains("notifications/hello"));
    servers.revoke_all();
    transport.close().await;
    let came = servers.came_to("/mcp");
    let seen = |came: &Came| (came.method.clone(), came.header("authorization").map(str::to_owned));
    let token = |number: u8| Some(format!("Bearer token-{number}"));
    assert_eq!(
        came.iter().skip(2).map(seen).collect::<Vec<_>>(),
        [
            (Method::GET, token(1)),
            (Method::GET, token(2)),
            (Method::DELETE, token(2)),
            (Method::DELETE, token(3)),
        ]
    );
    assert_eq!(user.visits(), 1, "what can be renewed is renewed");
}

#[tokio::test]
async fn the_end_of_a_session_asks_for_no_login() {
    let servers = TestServers::start().await;
    servers.state().refresh_tokens = false;
    let (user, transport, mut sink) = enter(&servers).await;
    transport.clone().send(request(1, "initialize", None));
    sink.message().await;
    servers.revoke_all();
    transport.close().await;
    assert_eq!((user.visits(), servers.came_to("/mcp").last().unwrap().method.clone()), (1, Method::DELETE));
}

#[tokio::test]
async fn taking_up_a_stream() {
    let servers = TestServers::start().await;
    let (user, transport, mut sink) = enter(&servers).await;
    servers.state().breaks_off = true;
    transport.clone().send(request(1, "tools/call", SESSIONS));
    assert_eq!(sink.message().await, (Some(1), result(1)));
    let came = servers.came_to("/mcp");
    let last: Vec<_> = came.iter().rev().take(2).collect();
    assert!(last.iter().all(|came| came.method == Method::GET && came.header("last-event-id") == Some("1")));
    assert_eq!(last[0].header("authorization"), Some("Bearer token-2"));
    assert_eq!(user.visits(), 1);
}

#[tokio::test]
async fn the_older_transport() {
    let servers = TestServers::start().await;
    servers.state().resource = format!("{}/sse", servers.origin);
    let user = User::new(&servers);
    let authorization = Authorization::new(user.clone());
    let server = HttpSse::new(&format!("{}/sse", servers.origin)).unwrap().authorization(authorization);
    let (transport, _sink) = connect(&server).await;
    assert_eq!(tokens(&servers, "/sse"), [None, Some("Bearer token-1".to_owned())]);
    servers.revoke_all();
    transport.clone().send(notification(1, "notifications/x", None));
    transport.close().await;
    assert_eq!(
        tokens(&servers, "/messages"),
        [Some("Bearer token-1".to_owned()), Some("Bearer token-2".to_owned())]
    );
    assert_eq!(user.visits(), 1);
}

#[tokio::test]
async fn a_header_that_was_set_by_hand_goes_before() {
    let servers = TestServers::start().await;
    let user = User::new(&servers);
    let authorization = Authorization::new(user.clone());
    let server = StreamableHttp::new(&servers.url()).unwrap().authorization(authorization);
    let (transport, mut sink) = connect(&server.header("Authorization", "Bearer mine").unwrap()).await;
    transport.clone().send(request(1, "ping", ALONE));
    let (_, why) = sink.ended().await;
    assert!(matches!(why, TransportError::Unauthorized { status: 401, challenge: Some(_), .. }), "{why:?}");
    assert_eq!((user.visits(), tokens(&servers, "/mcp")), (0, vec![Some("Bearer mine".to_owned())]));
}

#[tokio::test]
async fn refusals_that_are_not_about_tokens_are_told() {
    let (servers, server) = (TestServers::start().await, Server::start().await);
    let user = User::new(&servers);
    let connector = StreamableHttp::new(&server.url()).unwrap();
    let connector = connector.authorization(Authorization::new(user.clone()));
    let (into, mut sink) = RecordingSink::new();
    let transport = connector.connect(into).await.unwrap();
    for (number, status, challenge) in [
        (1, 401, "WWW-Authenticate: Basic realm=\"x\"\r\n"),
        (2, 403, ""),
        (3, 403, "WWW-Authenticate: Bearer\r\n"),
    ] {
        transport.clone().send(request(number, "ping", ALONE));
        let (mut peer, _) = server.request().await;
        peer.respond(status, &format!("{challenge}Connection: close\r\n"), "").await;
        match sink.next().await {
            SinkEvent::Ended(_, TransportError::Unauthorized { status: told, .. })
                if !challenge.is_empty() =>
            {
                assert_eq!(told, status);
            }
            // Without a challenge, 403 says nothing of authorization.
            SinkEvent::Ended(_, TransportError::Refused { status: told, .. }) if challenge.is_empty() => {
                assert_eq!(told, status);
            }
            other => panic!("{status} {challenge:?}: {other:?}"),
        }
    }
    assert_eq!(user.visits(), 0);
}
