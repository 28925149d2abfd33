//! Every kind of request is sent again once there is a token.

use std::sync::Arc;

use hyper::Method;
use refmcp_client::auth::Authorization;
use refmcp_client::http::{HttpSse, StreamableHttp};
use refmcp_client::transport::{Connector, Transport, TransportError};
use refmcp_proto::revision::Revision;

use super::person::Person;
use super::world::{Came, World};
use crate::raw_server::Server;
use crate::sink::{ALONE, Ears, Heard, SESSIONS, connect, notification, request, result};

async fn enter(world: &World) -> (Person, Arc<dyn Transport>, Ears) {
    let person = Person::new(world);
    let (transport, ears) = connect(&world.server(&Authorization::new(person.clone()))).await;
    (person, transport, ears)
}

/// The tokens that requests to the server came with, in order.
fn tokens(world: &World, path: &str) -> Vec<Option<String>> {
    world.came_to(path).iter().map(|came| came.header("authorization").map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_request() {
    let world = World::start().await;
    let (person, transport, mut ears) = enter(&world).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    assert_eq!(ears.message().await, (Some(1), result(1)));
    assert_eq!(tokens(&world, "/mcp"), [None, Some("Bearer token-1".to_owned())]);
    let came = world.came_to("/mcp");
    assert_eq!(came[0].body, came[1].body, "the request is the same");
    assert_eq!(person.visits(), 1);
    transport.clone().send(request(2, "tools/list", ALONE));
    assert_eq!(ears.message().await, (Some(2), result(2)));
    assert_eq!((person.visits(), world.grants()), (1, vec!["authorization_code".to_owned()]));
}

#[tokio::test]
async fn a_notification() {
    let world = World::start().await;
    let (person, transport, mut ears) = enter(&world).await;
    transport.clone().send(notification(1, "notifications/x", SESSIONS));
    transport.clone().send(request(2, "ping", SESSIONS));
    assert_eq!(ears.message().await, (Some(2), result(2)));
    assert_eq!(person.visits(), 1);
    let bodies: Vec<bool> =
        world.came_to("/mcp").iter().map(|came| came.body.contains("notifications/x")).collect();
    assert_eq!(bodies, [true, true, false], "the notification is told before the request");
}

#[tokio::test]
async fn the_stream_and_the_farewell_of_a_session() {
    let world = World::start().await;
    let (person, transport, mut ears) = enter(&world).await;
    transport.clone().send(request(1, "initialize", None));
    assert_eq!(ears.message().await, (Some(1), result(1)));
    world.revoke_all();
    transport.clone().opened(Revision::LATEST_SESSION.rules());
    assert!(ears.message().await.1.contains("notifications/hello"));
    world.revoke_all();
    transport.close().await;
    let came = world.came_to("/mcp");
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
    assert_eq!(person.visits(), 1, "what can be renewed is renewed");
}

#[tokio::test]
async fn a_farewell_bothers_nobody() {
    let world = World::start().await;
    world.state().refresh_tokens = false;
    let (person, transport, mut ears) = enter(&world).await;
    transport.clone().send(request(1, "initialize", None));
    ears.message().await;
    world.revoke_all();
    transport.close().await;
    assert_eq!((person.visits(), world.came_to("/mcp").last().unwrap().method.clone()), (1, Method::DELETE));
}

#[tokio::test]
async fn taking_up_a_stream() {
    let world = World::start().await;
    let (person, transport, mut ears) = enter(&world).await;
    world.state().breaks_off = true;
    transport.clone().send(request(1, "tools/call", SESSIONS));
    assert_eq!(ears.message().await, (Some(1), result(1)));
    let came = world.came_to("/mcp");
    let last: Vec<_> = came.iter().rev().take(2).collect();
    assert!(last.iter().all(|came| came.method == Method::GET && came.header("last-event-id") == Some("1")));
    assert_eq!(last[0].header("authorization"), Some("Bearer token-2"));
    assert_eq!(person.visits(), 1);
}

#[tokio::test]
async fn the_older_transport() {
    let world = World::start().await;
    world.state().resource = format!("{}/sse", world.origin);
    let person = Person::new(&world);
    let authorization = Authorization::new(person.clone());
    let server = HttpSse::new(&format!("{}/sse", world.origin)).unwrap().authorization(authorization);
    let (transport, _ears) = connect(&server).await;
    assert_eq!(tokens(&world, "/sse"), [None, Some("Bearer token-1".to_owned())]);
    world.revoke_all();
    transport.clone().send(notification(1, "notifications/x", None));
    transport.close().await;
    assert_eq!(
        tokens(&world, "/messages"),
        [Some("Bearer token-1".to_owned()), Some("Bearer token-2".to_owned())]
    );
    assert_eq!(person.visits(), 1);
}

#[tokio::test]
async fn a_header_that_was_set_by_hand_goes_before() {
    let world = World::start().await;
    let person = Person::new(&world);
    let authorization = Authorization::new(person.clone());
    let server = StreamableHttp::new(&world.url()).unwrap().authorization(authorization);
    let (transport, mut ears) = connect(&server.header("Authorization", "Bearer mine").unwrap()).await;
    transport.clone().send(request(1, "ping", ALONE));
    let (_, why) = ears.ended().await;
    assert!(matches!(why, TransportError::Unauthorized { status: 401, challenge: Some(_) }), "{why:?}");
    assert_eq!((person.visits(), tokens(&world, "/mcp")), (0, vec![Some("Bearer mine".to_owned())]));
}

#[tokio::test]
async fn refusals_that_are_not_about_tokens_are_told() {
    let (world, server) = (World::start().await, Server::start().await);
    let person = Person::new(&world);
    let connector = StreamableHttp::new(&server.url()).unwrap();
    let connector = connector.authorization(Authorization::new(person.clone()));
    let (sink, mut ears) = Ears::new();
    let transport = connector.connect(sink).await.unwrap();
    for (number, status, challenge) in [
        (1, 401, "WWW-Authenticate: Basic realm=\"x\"\r\n"),
        (2, 403, ""),
        (3, 403, "WWW-Authenticate: Bearer\r\n"),
    ] {
        transport.clone().send(request(number, "ping", ALONE));
        let (mut peer, _) = server.request().await;
        peer.respond(status, &format!("{challenge}Connection: close\r\n"), "").await;
        let Heard::Ended(_, TransportError::Unauthorized { status: told, .. }) = ears.next().await else {
            panic!("not told")
        };
        assert_eq!(told, status);
    }
    assert_eq!(person.visits(), 0);
}
