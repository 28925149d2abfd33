//! What must not arrive anywhere else than at the server.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use refmcp_client::auth::Authorization;
use refmcp_client::http::{HttpSettings, StreamableHttp};
use refmcp_client::transport::TransportError;

use super::servers::TestServers;
use super::user::User;
use crate::messages::{SESSIONS, connect, request, result};
use crate::raw_server::Server;

#[tokio::test]
async fn nothing_follows_a_redirection_to_another_origin() {
    for status in [301, 302, 303, 307, 308] {
        let (servers, server, elsewhere) =
            (TestServers::start().await, Server::start().await, Server::start().await);
        servers.state().resource = server.url();
        let connector = StreamableHttp::new(&server.url()).unwrap();
        let connector = connector.authorization(Authorization::new(User::new(&servers)));
        let (transport, mut sink) = connect(&connector.header("X-Api-Key", "mine").unwrap()).await;
        transport.clone().send(request(1, "tools/list", SESSIONS));
        let (mut peer, _) = server.request().await;
        let about = format!("{}/.well-known/oauth-protected-resource/mcp", servers.origin);
        peer.respond(401, &format!("WWW-Authenticate: Bearer resource_metadata=\"{about}\"\r\n"), "").await;
        let seen = peer.request().await;
        assert_eq!(seen.header("authorization"), Some("Bearer token-1"));
        peer.respond(200, "Content-Type: application/json\r\nMcp-Session-Id: s1\r\n", &result(1)).await;
        sink.message().await;
        transport.clone().send(request(2, "tools/list", SESSIONS));
        let seen = peer.request().await;
        assert_eq!((seen.header("mcp-session-id"), seen.header("x-api-key")), (Some("s1"), Some("mine")));
        peer.respond(status, &format!("Location: {}\r\n", elsewhere.url()), "").await;
        let (_, why) = sink.ended().await;
        assert!(matches!(why, TransportError::Refused { status: told, .. } if told == status), "{why:?}");
        assert!(elsewhere.is_left_alone(Duration::from_millis(20)).await);
        let fetched = servers.state().came.clone();
        assert!(fetched.iter().all(|came| came.header("authorization").is_none()));
        assert!(fetched.iter().all(|came| came.header("x-api-key").is_none()), "it is for the server alone");
    }
}

#[tokio::test]
async fn within_the_origin_the_token_goes_on() {
    let (servers, server) = (TestServers::start().await, Server::start().await);
    servers.state().resource = server.url();
    let connector = StreamableHttp::new(&server.url()).unwrap();
    let (transport, mut sink) =
        connect(&connector.authorization(Authorization::new(User::new(&servers)))).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    let (mut peer, _) = server.request().await;
    let about = format!("{}/.well-known/oauth-protected-resource/mcp", servers.origin);
    peer.respond(307, "Location: /mcp/\r\n", "").await;
    assert_eq!(peer.request().await.path, "/mcp/");
    peer.respond(401, &format!("WWW-Authenticate: Bearer resource_metadata=\"{about}\"\r\n"), "").await;
    assert_eq!(peer.request().await.header("authorization"), Some("Bearer token-1"));
    peer.respond(307, "Location: /mcp/\r\n", "").await;
    let seen = peer.request().await;
    assert_eq!((seen.path.as_str(), seen.header("authorization")), ("/mcp/", Some("Bearer token-1")));
    peer.json(&result(1)).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn a_test_fails_whose_secrets_are_logged() {
    let servers = TestServers::start().await;
    let (transport, mut sink) = connect(&servers.server(&Authorization::new(User::new(&servers)))).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    sink.message().await;
    assert!(servers.log().contains("a step of the login"), "a login is logged where it is looked for");
    let origin = servers.origin.clone();
    // A code, its verifier, a token and what renews it.
    assert!(servers.state().secrets.len() >= 4, "{:?}", servers.state().secrets);
    servers.state().secrets.add(&origin);
    let ended = catch_unwind(AssertUnwindSafe(|| drop(servers)));
    let told = *ended.unwrap_err().downcast::<String>().unwrap();
    assert!(told.contains(&format!("»{origin}")), "{told}");
}

#[tokio::test]
async fn nothing_secret_is_shown() {
    let servers = TestServers::start().await;
    let authorization = Authorization::new(User::new(&servers));
    let connector = servers.server(&authorization);
    let (transport, mut sink) = connect(&connector).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    sink.message().await;
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
async fn remote_parties_cannot_name_local_addresses() {
    let (servers, server) = (TestServers::start().await, Server::start().await);
    // This machine by an address that never counts as near, and later by one that does.
    let connector = flipping(&server, "::ffff:127.0.0.1", "127.0.0.1");
    let user = User::new(&servers);
    let (transport, mut sink) = connect(&connector.authorization(Authorization::new(user.clone()))).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    let (mut peer, _) = server.request().await;
    let about = format!("{}/.well-known/oauth-protected-resource/mcp", servers.origin);
    peer.respond(401, &format!("WWW-Authenticate: Bearer resource_metadata=\"{about}\"\r\n"), "").await;
    let (_, why) = sink.ended().await;
    assert!(matches!(&why, TransportError::NotAuthorized { why } if why.contains("strangers")), "{why:?}");
    assert_eq!((servers.state().came.len(), user.visits()), (0, 0));
}

#[tokio::test]
async fn a_server_is_where_its_connection_leads() {
    let (servers, server) = (TestServers::start().await, Server::start().await);
    let connector = flipping(&server, "127.0.0.1", "8.8.8.8");
    servers.state().resource = connector.address().to_string();
    let (transport, mut sink) =
        connect(&connector.authorization(Authorization::new(User::new(&servers)))).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    let (mut peer, _) = server.request().await;
    let about = format!("{}/.well-known/oauth-protected-resource/mcp", servers.origin);
    peer.respond(401, &format!("WWW-Authenticate: Bearer resource_metadata=\"{about}\"\r\n"), "").await;
    assert_eq!(peer.request().await.header("authorization"), Some("Bearer token-1"));
    peer.json(&result(1)).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn the_query_of_a_url_is_not_sent_to_other_servers() {
    let servers = TestServers::start().await;
    let steps = Arc::new(Mutex::new(String::new()));
    let events = steps.clone();
    let authorization = Authorization::new(User::new(&servers))
        .on_step(move |step| events.lock().unwrap().push_str(&format!("{step} {step:?}")));
    let server = StreamableHttp::new(&format!("{}?key=hush", servers.url())).unwrap();
    let (transport, mut sink) = connect(&server.authorization(authorization)).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    assert_eq!(sink.message().await, (Some(1), result(1)));
    assert!(!steps.lock().unwrap().contains("hush"));
    let elsewhere = servers.state().came.clone().into_iter().filter(|came| came.path != "/mcp");
    assert!(elsewhere.into_iter().all(|came| !came.body.contains("hush")));
}
