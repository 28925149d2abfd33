//! What must not arrive anywhere else than at the server.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use refmcp_client::auth::Authorization;
use refmcp_client::http::{HttpSettings, StreamableHttp};
use refmcp_client::transport::TransportError;

use super::person::Person;
use super::world::World;
use crate::raw_server::Server;
use crate::sink::{SESSIONS, connect, request, result};

#[tokio::test]
async fn nothing_follows_a_redirection_to_another_origin() {
    for status in [301, 302, 303, 307, 308] {
        let (world, server, elsewhere) = (World::start().await, Server::start().await, Server::start().await);
        world.state().resource = server.url();
        let connector = StreamableHttp::new(&server.url()).unwrap();
        let connector = connector.authorization(Authorization::new(Person::new(&world)));
        let (transport, mut ears) = connect(&connector.header("X-Api-Key", "mine").unwrap()).await;
        transport.clone().send(request(1, "tools/list", SESSIONS));
        let (mut peer, _) = server.request().await;
        let about = format!("{}/.well-known/oauth-protected-resource/mcp", world.origin);
        peer.respond(401, &format!("WWW-Authenticate: Bearer resource_metadata=\"{about}\"\r\n"), "").await;
        let seen = peer.request().await;
        assert_eq!(seen.header("authorization"), Some("Bearer token-1"));
        peer.respond(200, "Content-Type: application/json\r\nMcp-Session-Id: s1\r\n", &result(1)).await;
        ears.message().await;
        transport.clone().send(request(2, "tools/list", SESSIONS));
        let seen = peer.request().await;
        assert_eq!((seen.header("mcp-session-id"), seen.header("x-api-key")), (Some("s1"), Some("mine")));
        peer.respond(status, &format!("Location: {}\r\n", elsewhere.url()), "").await;
        let (_, why) = ears.ended().await;
        assert!(matches!(why, TransportError::Refused { status: told, .. } if told == status), "{why:?}");
        assert!(elsewhere.is_left_alone(Duration::from_millis(20)).await);
        let fetched = world.state().came.clone();
        assert!(fetched.iter().all(|came| came.header("authorization").is_none()));
        assert!(fetched.iter().all(|came| came.header("x-api-key").is_none()), "it is for the server alone");
    }
}

#[tokio::test]
async fn within_the_origin_the_token_goes_on() {
    let (world, server) = (World::start().await, Server::start().await);
    world.state().resource = server.url();
    let connector = StreamableHttp::new(&server.url()).unwrap();
    let (transport, mut ears) =
        connect(&connector.authorization(Authorization::new(Person::new(&world)))).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    let (mut peer, _) = server.request().await;
    let about = format!("{}/.well-known/oauth-protected-resource/mcp", world.origin);
    peer.respond(307, "Location: /mcp/\r\n", "").await;
    assert_eq!(peer.request().await.path, "/mcp/");
    peer.respond(401, &format!("WWW-Authenticate: Bearer resource_metadata=\"{about}\"\r\n"), "").await;
    assert_eq!(peer.request().await.header("authorization"), Some("Bearer token-1"));
    peer.respond(307, "Location: /mcp/\r\n", "").await;
    let seen = peer.request().await;
    assert_eq!((seen.path.as_str(), seen.header("authorization")), ("/mcp/", Some("Bearer token-1")));
    peer.json(&result(1)).await;
    assert_eq!(ears.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn a_test_fails_whose_secrets_are_logged() {
    let world = World::start().await;
    let (transport, mut ears) = connect(&world.server(&Authorization::new(Person::new(&world)))).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    ears.message().await;
    assert!(world.log().contains("a step of the login"), "a login is logged where it is looked for");
    let origin = world.origin.clone();
    // A code, its verifier, a token and what renews it.
    assert!(world.state().secrets.len() >= 4, "{:?}", world.state().secrets);
    world.state().secrets.add(&origin);
    let ended = catch_unwind(AssertUnwindSafe(|| drop(world)));
    let told = *ended.unwrap_err().downcast::<String>().unwrap();
    assert!(told.contains(&format!("»{origin}")), "{told}");
}

#[tokio::test]
async fn nothing_secret_is_shown() {
    let world = World::start().await;
    let authorization = Authorization::new(Person::new(&world));
    let connector = world.server(&authorization);
    let (transport, mut ears) = connect(&connector).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    ears.message().await;
    let shown = format!("{authorization:?} {connector:?} {transport:?}");
    assert!(!shown.contains("token-1") && !shown.contains("refresh-1"), "{shown}");
}

/// A server by a name that means one address at first and another from then on. Numbers mean what they are.
fn flipping(server: &Server, first: &str, then: &str) -> StreamableHttp {
    let port: u16 = server.origin().rsplit(':').next().unwrap().parse().unwrap();
    let [first, then] = [first, then].map(|text| SocketAddr::new(text.parse().unwrap(), port));
    let looked_up = AtomicBool::new(false);
    let mut settings = HttpSettings::default();
    settings.resolver = Some(Arc::new(move |host, port| match host.parse() {
        Ok(address) => Ok(vec![SocketAddr::new(address, port)]),
        Err(_) if looked_up.swap(true, Ordering::SeqCst) => Ok(vec![then]),
        Err(_) => Ok(vec![first]),
    }));
    StreamableHttp::new(&format!("http://flips.localhost:{port}/mcp")).unwrap().settings(settings)
}

#[tokio::test]
async fn who_is_not_near_cannot_send_us_to_what_is() {
    let (world, server) = (World::start().await, Server::start().await);
    // This machine by an address that never counts as near, and later by one that does.
    let connector = flipping(&server, "::ffff:127.0.0.1", "127.0.0.1");
    let person = Person::new(&world);
    let (transport, mut ears) = connect(&connector.authorization(Authorization::new(person.clone()))).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    let (mut peer, _) = server.request().await;
    let about = format!("{}/.well-known/oauth-protected-resource/mcp", world.origin);
    peer.respond(401, &format!("WWW-Authenticate: Bearer resource_metadata=\"{about}\"\r\n"), "").await;
    let (_, why) = ears.ended().await;
    assert!(matches!(&why, TransportError::NotAuthorized { why } if why.contains("strangers")), "{why:?}");
    assert_eq!((world.state().came.len(), person.visits()), (0, 0));
}

#[tokio::test]
async fn a_server_is_where_its_connection_leads() {
    let (world, server) = (World::start().await, Server::start().await);
    let connector = flipping(&server, "127.0.0.1", "8.8.8.8");
    world.state().resource = connector.address().to_string();
    let (transport, mut ears) =
        connect(&connector.authorization(Authorization::new(Person::new(&world)))).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    let (mut peer, _) = server.request().await;
    let about = format!("{}/.well-known/oauth-protected-resource/mcp", world.origin);
    peer.respond(401, &format!("WWW-Authenticate: Bearer resource_metadata=\"{about}\"\r\n"), "").await;
    assert_eq!(peer.request().await.header("authorization"), Some("Bearer token-1"));
    peer.json(&result(1)).await;
    assert_eq!(ears.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn what_follows_a_question_mark_is_not_told_to_anybody_else() {
    let world = World::start().await;
    let steps = Arc::new(Mutex::new(String::new()));
    let heard = steps.clone();
    let authorization = Authorization::new(Person::new(&world))
        .on_step(move |step| heard.lock().unwrap().push_str(&format!("{step} {step:?}")));
    let server = StreamableHttp::new(&format!("{}?key=hush", world.url())).unwrap();
    let (transport, mut ears) = connect(&server.authorization(authorization)).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    assert_eq!(ears.message().await, (Some(1), result(1)));
    assert!(!steps.lock().unwrap().contains("hush"));
    let elsewhere = world.state().came.clone().into_iter().filter(|came| came.path != "/mcp");
    assert!(elsewhere.into_iter().all(|came| !came.body.contains("hush")));
}
