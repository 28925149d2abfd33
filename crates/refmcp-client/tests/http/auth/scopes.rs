//! Tokens that are good, and not good enough.

use refmcp_auth::Scopes;
use refmcp_client::auth::Authorization;
use refmcp_client::transport::TransportError;

use super::servers::TestServers;
use super::user::User;
use crate::messages::{ALONE, connect, request, result};

#[tokio::test]
async fn more_is_asked_for_and_nothing_is_lost() {
    let servers = TestServers::start().await;
    servers.state().needs = Some("tools:call");
    let user = User::new(&servers);
    let authorization = Authorization::new(user.clone()).scopes(Scopes::parse("first").unwrap());
    let (transport, mut sink) = connect(&servers.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    assert_eq!(sink.message().await, (Some(1), result(1)));
    assert_eq!(servers.state().good["token-1"], "first");
    transport.clone().send(request(2, "tools/call", ALONE));
    assert_eq!(sink.message().await, (Some(2), result(2)));
    let granted = servers.state().good["token-2"].clone();
    let granted = Scopes::parse(&granted).unwrap();
    assert!(granted.contains("first") && granted.contains("tools:call"), "{granted}");
    assert_eq!(user.visits(), 2);
    assert_eq!(servers.grants(), ["authorization_code", "authorization_code"]);
}

#[tokio::test]
async fn several_calls_that_need_more_ask_once() {
    let servers = TestServers::start().await;
    servers.state().needs = Some("tools:call");
    let user = User::slow(&servers);
    let (transport, mut sink) = connect(&servers.server(&Authorization::new(user.clone()))).await;
    for number in 0..10 {
        transport.clone().send(request(number, "tools/call", ALONE));
    }
    user.agree();
    for _ in 0..10 {
        sink.message().await;
    }
    assert_eq!(user.visits(), 2);
}

#[tokio::test]
async fn what_is_not_granted_is_not_asked_for_again_and_again() {
    let servers = TestServers::start().await;
    servers.state().needs = Some("tools:call");
    servers.state().grants = Some("little");
    let user = User::new(&servers);
    let (transport, mut sink) = connect(&servers.server(&Authorization::new(user.clone()))).await;
    transport.clone().send(request(1, "tools/call", ALONE));
    let (_, why) = sink.ended().await;
    let TransportError::Unauthorized { status: 403, challenge: Some(challenge), .. } = why else {
        panic!("{why:?}")
    };
    assert!(challenge.contains("tools:call"));
    assert_eq!(user.visits(), 2, "once to come in, once for more");
}

#[tokio::test]
async fn a_server_that_refuses_every_token_is_left_after_three() {
    let servers = TestServers::start().await;
    let user = User::new(&servers);
    let forgetful = servers.clone();
    // Every token is revoked before it is used.
    let authorization = Authorization::new(user.clone()).on_step(move |_| forgetful.revoke_all());
    let (transport, mut sink) = connect(&servers.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    let (_, why) = sink.ended().await;
    assert!(matches!(why, TransportError::Unauthorized { status: 401, challenge: Some(_), .. }), "{why:?}");
    // Before each login but the first it is asked whether the client is still known.
    assert_eq!((servers.came_to("/mcp").len(), servers.grants().len(), user.visits()), (4, 5, 3));
}
