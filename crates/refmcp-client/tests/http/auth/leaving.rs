//! Which requests wait for a login, and logins that no request waits for.

use std::sync::Arc;
use std::time::Duration;

use refmcp_client::auth::{Authorization, MemoryTokenStore, TokenStore, store_key};
use refmcp_client::transport::{Transport, TransportError};
use refmcp_testkit::paused::PausedTime;

use super::servers::{Desk, TestServers};
use super::user::User;
use crate::messages::{ALONE, SESSIONS, connect, request, result};
use crate::raw_server::in_time;
use crate::recording_sink::{RecordingSink, SinkEvent};

/// Waits until as many tokens were asked for.
async fn asked_for(servers: &TestServers, tokens: usize) {
    let asked = async {
        while servers.came_to("/token").len() < tokens {
            tokio::task::yield_now().await;
        }
    };
    in_time("a token to be asked for", asked).await;
}

/// What a store has for the server, once it is not in use.
async fn kept(store: &MemoryTokenStore, servers: &TestServers) -> Option<String> {
    let name = store_key(&servers.url().parse().unwrap());
    let _held = in_time("the store to be free", store.lock(&name)).await.unwrap();
    store.load(&name).await.unwrap().tokens.map(|grant| grant.token.reveal().to_owned())
}

#[tokio::test]
async fn a_token_response_is_stored_though_no_request_waits() {
    let servers = TestServers::start().await;
    let (store, user) = (MemoryTokenStore::new(), User::new(&servers));
    let authorization = Authorization::new(user).store(store.clone());
    let (transport, mut sink) = connect(&servers.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    sink.message().await;
    servers.revoke_all();
    servers.state().desk = Desk::Waits;
    transport.clone().send(request(2, "tools/list", ALONE));
    asked_for(&servers, 2).await;
    drop((transport, authorization));
    sink.dropped().await;
    servers.let_desk_answer();
    assert_eq!(kept(&store, &servers).await.as_deref(), Some("token-2"));
}

#[tokio::test]
async fn a_login_without_waiting_requests_is_not_waited_for() {
    let servers = TestServers::start().await;
    let (store, slow) = (MemoryTokenStore::new(), User::slow(&servers));
    let authorization = Authorization::new(slow.clone()).store(store.clone());
    let (transport, mut sink) = connect(&servers.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    slow.is_asked().await;
    drop((transport, authorization));
    sink.dropped().await;
    assert_eq!(kept(&store, &servers).await, None);
}

/// The user is asked to log in for more scopes, and does not come back; the token has expired by our clock.
async fn amid_a_login(
    servers: &TestServers,
    login_timeout: Duration,
) -> (Arc<dyn Transport>, RecordingSink, Authorization) {
    servers.state().lifetime = Some(0);
    let user = User::slow(servers);
    user.agree_once();
    let authorization = Authorization::new(user.clone()).login_timeout(login_timeout);
    let (transport, mut sink) = connect(&servers.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    sink.message().await;
    user.is_asked().await;
    servers.state().needs = Some("more");
    transport.clone().send(request(2, "tools/call", SESSIONS));
    user.is_asked().await;
    (transport, sink, authorization)
}

/// How often the end of the session was told.
fn farewells(servers: &TestServers) -> usize {
    servers.came_to("/mcp").iter().filter(|came| came.method == hyper::Method::DELETE).count()
}

#[tokio::test]
async fn the_end_of_a_session_waits_for_no_login() {
    for is_refused in [false, true] {
        let servers = TestServers::start().await;
        let (transport, _sink, _authorization) = amid_a_login(&servers, Duration::from_secs(60)).await;
        if is_refused {
            servers.revoke_all();
        }
        // It is over without any time passing.
        let _time = PausedTime::start();
        transport.close().await;
        assert_eq!(farewells(&servers), 1, "refused: {is_refused}");
    }
}

#[tokio::test]
async fn a_login_of_others_that_fails_does_not_end_a_request() {
    let servers = TestServers::start().await;
    let patience = Duration::from_secs(60);
    let (transport, mut sink, _authorization) = amid_a_login(&servers, patience).await;
    transport.clone().send(request(3, "tools/list", SESSIONS));
    PausedTime::start().advance(patience).await;
    let mut events = [sink.next().await, sink.next().await];
    events.sort_by_key(|events| matches!(events, SinkEvent::Message(..)));
    let [failed, answered] = events;
    assert!(matches!(failed, SinkEvent::Ended(2, TransportError::NotAuthorized { .. })), "{failed:?}");
    assert_eq!(answered, SinkEvent::Message(Some(3), result(3)));
}
