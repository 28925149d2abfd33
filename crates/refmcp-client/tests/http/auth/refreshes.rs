//! One token for all who wait, got once.

use std::time::Duration;

use refmcp_client::auth::{Authorization, Browser, BrowserError, MemoryTokenStore, store_key};
use refmcp_client::transport::{BoxFuture, TransportError};
use refmcp_client::{CallError, Client, Error, VersionPolicy};
use refmcp_testkit::paused::PausedTime;
use serde_json::json;
use url::Url;

use super::servers::{Desk, TestServers};
use super::user::User;
use crate::messages::{ALONE, connect, request};
use crate::raw_server::{TEST_TIMEOUT, in_time};
use crate::recording_sink::{RecordingSink, SinkEvent};

/// Hears the answers to as many requests.
async fn answers(sink: &mut RecordingSink, count: usize) {
    for _ in 0..count {
        sink.message().await;
    }
}

#[tokio::test]
async fn twenty_requests_at_once_lead_to_one_login() {
    let servers = TestServers::start().await;
    let user = User::slow(&servers);
    let authorization = Authorization::new(user.clone());
    let (transport, mut sink) = connect(&servers.server(&authorization)).await;
    let (other, mut others) = connect(&servers.server(&authorization)).await;
    for number in 0..10 {
        transport.clone().send(request(number, "tools/list", ALONE));
        other.clone().send(request(number, "tools/list", ALONE));
    }
    user.is_asked().await;
    let all_refused = async {
        while servers.came_to("/mcp").len() < 20 {
            tokio::task::yield_now().await;
        }
    };
    in_time("all requests to be refused", all_refused).await;
    user.agree();
    answers(&mut sink, 10).await;
    answers(&mut others, 10).await;
    assert_eq!((user.visits(), servers.grants().len(), servers.came_to("/register").len()), (1, 1, 1));
    assert_eq!(servers.came_to("/mcp").len(), 40);
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_for_all() {
    let servers = TestServers::start().await;
    let user = User::new(&servers);
    let (transport, mut sink) = connect(&servers.server(&Authorization::new(user.clone()))).await;
    transport.clone().send(request(0, "tools/list", ALONE));
    answers(&mut sink, 1).await;
    servers.revoke_all();
    for number in 1..21 {
        transport.clone().send(request(number, "tools/list", ALONE));
    }
    answers(&mut sink, 20).await;
    assert_eq!(
        (user.visits(), servers.grants()),
        (1, vec!["authorization_code".into(), "refresh_token".to_owned()])
    );
}

#[tokio::test]
async fn a_token_that_ends_is_renewed_before_it_is_used() {
    let servers = TestServers::start().await;
    // It is over at once by our clock, which counts whole seconds.
    servers.state().lifetime = Some(0);
    let user = User::new(&servers);
    let (transport, mut sink) = connect(&servers.server(&Authorization::new(user.clone()))).await;
    transport.clone().send(request(0, "tools/list", ALONE));
    answers(&mut sink, 1).await;
    servers.state().lifetime = Some(3600);
    let refused = servers.came_to("/mcp").len();
    for number in 1..21 {
        transport.clone().send(request(number, "tools/list", ALONE));
    }
    answers(&mut sink, 20).await;
    assert_eq!(user.visits(), 1);
    let renewals = servers.grants().iter().filter(|grant| *grant == "refresh_token").count();
    assert!((1..=2).contains(&renewals), "{:?}", servers.grants());
    let came = servers.came_to("/mcp").split_off(refused);
    assert_eq!(came.len(), 20, "none was refused");
}

#[tokio::test]
async fn a_renewal_that_fails_leaves_the_token_to_the_server() {
    let servers = TestServers::start().await;
    servers.state().lifetime = Some(0);
    let user = User::new(&servers);
    let (transport, mut sink) = connect(&servers.server(&Authorization::new(user.clone()))).await;
    transport.clone().send(request(0, "tools/list", ALONE));
    answers(&mut sink, 1).await;
    let before = servers.grants().len();
    servers.state().desk = Desk::Fails;
    for number in 1..4 {
        transport.clone().send(request(number, "tools/list", ALONE));
        answers(&mut sink, 1).await;
    }
    assert_eq!(servers.grants().len(), before + 1, "what failed is not tried again at once");
}

#[tokio::test]
async fn what_cannot_be_renewed_any_more_leads_to_a_login() {
    let servers = TestServers::start().await;
    let user = User::new(&servers);
    let (transport, mut sink) = connect(&servers.server(&Authorization::new(user.clone()))).await;
    transport.clone().send(request(0, "tools/list", ALONE));
    answers(&mut sink, 1).await;
    servers.state().desk = Desk::NoRenewal;
    servers.revoke_all();
    transport.clone().send(request(1, "tools/list", ALONE));
    answers(&mut sink, 1).await;
    assert_eq!((user.visits(), servers.came_to("/register").len()), (2, 1));
}

#[tokio::test]
async fn a_request_that_is_dropped_leaves_the_login_to_others() {
    let servers = TestServers::start().await;
    let user = User::slow(&servers);
    let (transport, mut sink) = connect(&servers.server(&Authorization::new(user.clone()))).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    user.is_asked().await;
    transport.clone().send(request(2, "tools/list", ALONE));
    transport.abandon(refmcp_client::transport::ExchangeId(1));
    user.agree();
    assert_eq!(sink.message().await.0, Some(2));
    assert_eq!((user.visits(), servers.grants().len()), (1, 1));
    transport.clone().send(request(3, "tools/list", ALONE));
    assert_eq!(sink.message().await.0, Some(3));
    assert_eq!(servers.came_to("/mcp").iter().filter(|came| came.body.contains("\"id\":1,")).count(), 1);
}

#[tokio::test]
async fn a_login_that_all_have_left_still_serves_the_next() {
    let servers = TestServers::start().await;
    let user = User::slow(&servers);
    let authorization = Authorization::new(user.clone());
    let (transport, sink) = connect(&servers.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    user.is_asked().await;
    drop((transport, sink));
    user.agree();
    let (transport, mut sink) = connect(&servers.server(&authorization)).await;
    transport.clone().send(request(2, "tools/list", ALONE));
    assert_eq!(sink.message().await.0, Some(2));
    assert_eq!(user.visits(), 1);
}

#[tokio::test]
async fn two_clients_with_one_store_log_in_once() {
    let servers = TestServers::start().await;
    let store = MemoryTokenStore::new();
    let (one, two) = (User::slow(&servers), User::slow(&servers));
    let (first, mut hears_first) =
        connect(&servers.server(&Authorization::new(one.clone()).store(store.clone()))).await;
    let (second, mut hears_second) =
        connect(&servers.server(&Authorization::new(two.clone()).store(store.clone()))).await;
    first.clone().send(request(1, "tools/list", ALONE));
    one.is_asked().await;
    second.clone().send(request(1, "tools/list", ALONE));
    one.agree();
    answers(&mut hears_first, 1).await;
    answers(&mut hears_second, 1).await;
    assert_eq!((one.visits(), two.visits()), (1, 0));
    // And a renewal by one serves the other, whose refresh token is spent by then.
    servers.revoke_all();
    first.clone().send(request(2, "tools/list", ALONE));
    answers(&mut hears_first, 1).await;
    second.clone().send(request(2, "tools/list", ALONE));
    answers(&mut hears_second, 1).await;
    assert_eq!(servers.grants(), ["authorization_code", "refresh_token"]);
    let (third, mut hears_third) =
        connect(&servers.server(&Authorization::without_browser().store(store))).await;
    third.clone().send(request(3, "tools/list", ALONE));
    answers(&mut hears_third, 1).await;
}

#[tokio::test]
async fn a_login_takes_longer_than_the_opening_may() {
    let servers = TestServers::start().await;
    let user = User::slow(&servers);
    let server = servers.server(&Authorization::new(user.clone()));
    let builder = Client::builder("test", "1")
        .version_policy(VersionPolicy::Legacy)
        .open_timeout(Duration::from_secs(1));
    let time = PausedTime::start();
    let (connected, ()) = tokio::join!(builder.connect(server), async {
        user.is_asked().await;
        time.advance(Duration::from_secs(3)).await;
        user.agree();
    });
    assert!(connected.is_ok(), "{connected:?}");
    assert_eq!(user.visits(), 1);
}

#[tokio::test]
async fn a_call_ends_at_its_deadline_and_the_login_goes_on() {
    let servers = TestServers::start().await;
    servers.state().refresh_tokens = false;
    let user = User::slow(&servers);
    let server = servers.server(&Authorization::new(user.clone()));
    let builder =
        Client::builder("test", "1").version_policy(VersionPolicy::Legacy).timeout(Duration::from_secs(1));
    let time = PausedTime::start();
    let (client, ()) = tokio::join!(builder.connect(server), async {
        user.agree_once();
        user.is_asked().await;
    });
    let client = client.unwrap();
    servers.revoke_all();
    let (late, ()) = tokio::join!(client.call_tool("x", json!({})).into_future(), async {
        user.is_asked().await;
        time.advance(Duration::from_millis(1001)).await;
    });
    drop(time);
    let late = late.unwrap_err();
    assert!(matches!(late, Error::Call(CallError::TimedOut { .. })), "{late}");
    assert_eq!(user.visits(), 2);
    user.agree();
    let request = client.call_tool("x", json!({})).timeout(TEST_TIMEOUT).await;
    assert!(matches!(request, Err(Error::Unreadable { .. })), "it was answered: {request:?}");
    assert_eq!(user.visits(), 2);
}

#[tokio::test]
async fn a_login_that_takes_too_long_is_given_up() {
    let servers = TestServers::start().await;
    let user = User::slow(&servers);
    let authorization = Authorization::new(user.clone()).login_timeout(Duration::from_millis(50));
    let (transport, mut sink) = connect(&servers.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    let SinkEvent::Ended(1, TransportError::NotAuthorized { why }) = sink.next().await else {
        panic!("it goes on")
    };
    assert!(why.contains("in time"), "{why}");
}

#[tokio::test]
async fn a_login_that_was_logged_out_is_not_renewed() {
    let servers = TestServers::start().await;
    let store = MemoryTokenStore::new();
    let user = User::new(&servers);
    let authorization = Authorization::new(user.clone()).store(store.clone());
    let (transport, mut sink) = connect(&servers.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    answers(&mut sink, 1).await;
    store.forget(&store_key(&servers.url().parse().unwrap()));
    servers.revoke_all();
    transport.clone().send(request(2, "tools/list", ALONE));
    answers(&mut sink, 1).await;
    // Before the second login it is asked whether the client is still known.
    assert_eq!((servers.grants(), user.visits()), (vec!["authorization_code".to_owned(); 3], 2));
}

/// A user whose browser fails at first.
#[derive(Debug)]
struct Clumsy(User, std::sync::atomic::AtomicBool);

impl Browser for Clumsy {
    fn redirect_uri(&self) -> BoxFuture<'_, Result<Url, BrowserError>> {
        self.0.redirect_uri()
    }

    fn visit(&self, url: Url) -> BoxFuture<'_, Result<Url, BrowserError>> {
        assert!(self.1.swap(true, std::sync::atomic::Ordering::SeqCst), "a panic that a test wants");
        self.0.visit(url)
    }
}

#[tokio::test]
async fn a_browser_that_panics_ends_one_login_and_not_all() {
    let servers = TestServers::start().await;
    let clumsy = Clumsy(User::new(&servers), std::sync::atomic::AtomicBool::new(false));
    let (transport, mut sink) = connect(&servers.server(&Authorization::new(clumsy))).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    let (_, why) = sink.ended().await;
    assert!(matches!(&why, TransportError::NotAuthorized { why } if why.contains("broken off")), "{why:?}");
    transport.clone().send(request(2, "tools/list", ALONE));
    answers(&mut sink, 1).await;
}
