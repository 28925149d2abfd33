//! One token for all who wait, got once.

use std::time::Duration;

use refmcp_client::auth::{Authorization, Browser, BrowserError, MemoryTokenStore, store_key};
use refmcp_client::transport::{BoxFuture, TransportError};
use refmcp_client::{CallError, Client, Error, VersionPolicy};
use refmcp_testkit::paused::PausedTime;
use serde_json::json;
use url::Url;

use super::person::Person;
use super::world::{Desk, World};
use crate::raw_server::{PATIENCE, in_time};
use crate::sink::{ALONE, Ears, Heard, connect, request};

/// Hears the answers to as many requests.
async fn answers(ears: &mut Ears, count: usize) {
    for _ in 0..count {
        ears.message().await;
    }
}

#[tokio::test]
async fn twenty_requests_at_once_lead_to_one_login() {
    let world = World::start().await;
    let person = Person::slow(&world);
    let authorization = Authorization::new(person.clone());
    let (transport, mut ears) = connect(&world.server(&authorization)).await;
    let (other, mut others) = connect(&world.server(&authorization)).await;
    for number in 0..10 {
        transport.clone().send(request(number, "tools/list", ALONE));
        other.clone().send(request(number, "tools/list", ALONE));
    }
    person.is_asked().await;
    let all_refused = async {
        while world.came_to("/mcp").len() < 20 {
            tokio::task::yield_now().await;
        }
    };
    in_time("all requests to be refused", all_refused).await;
    person.agree();
    answers(&mut ears, 10).await;
    answers(&mut others, 10).await;
    assert_eq!((person.visits(), world.grants().len(), world.came_to("/register").len()), (1, 1, 1));
    assert_eq!(world.came_to("/mcp").len(), 40);
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_for_all() {
    let world = World::start().await;
    let person = Person::new(&world);
    let (transport, mut ears) = connect(&world.server(&Authorization::new(person.clone()))).await;
    transport.clone().send(request(0, "tools/list", ALONE));
    answers(&mut ears, 1).await;
    world.revoke_all();
    for number in 1..21 {
        transport.clone().send(request(number, "tools/list", ALONE));
    }
    answers(&mut ears, 20).await;
    assert_eq!(
        (person.visits(), world.grants()),
        (1, vec!["authorization_code".into(), "refresh_token".to_owned()])
    );
}

#[tokio::test]
async fn a_token_that_ends_is_renewed_before_it_is_used() {
    let world = World::start().await;
    // It is over at once by our clock, which counts whole seconds.
    world.state().lifetime = Some(0);
    let person = Person::new(&world);
    let (transport, mut ears) = connect(&world.server(&Authorization::new(person.clone()))).await;
    transport.clone().send(request(0, "tools/list", ALONE));
    answers(&mut ears, 1).await;
    world.state().lifetime = Some(3600);
    let refused = world.came_to("/mcp").len();
    for number in 1..21 {
        transport.clone().send(request(number, "tools/list", ALONE));
    }
    answers(&mut ears, 20).await;
    assert_eq!(person.visits(), 1);
    let renewals = world.grants().iter().filter(|grant| *grant == "refresh_token").count();
    assert!((1..=2).contains(&renewals), "{:?}", world.grants());
    let came = world.came_to("/mcp").split_off(refused);
    assert_eq!(came.len(), 20, "none was refused");
}

#[tokio::test]
async fn a_renewal_that_fails_leaves_the_token_to_the_server() {
    let world = World::start().await;
    world.state().lifetime = Some(0);
    let person = Person::new(&world);
    let (transport, mut ears) = connect(&world.server(&Authorization::new(person.clone()))).await;
    transport.clone().send(request(0, "tools/list", ALONE));
    answers(&mut ears, 1).await;
    let before = world.grants().len();
    world.state().desk = Desk::Fails;
    for number in 1..4 {
        transport.clone().send(request(number, "tools/list", ALONE));
        answers(&mut ears, 1).await;
    }
    assert_eq!(world.grants().len(), before + 1, "what failed is not tried again at once");
}

#[tokio::test]
async fn what_cannot_be_renewed_any_more_leads_to_a_login() {
    let world = World::start().await;
    let person = Person::new(&world);
    let (transport, mut ears) = connect(&world.server(&Authorization::new(person.clone()))).await;
    transport.clone().send(request(0, "tools/list", ALONE));
    answers(&mut ears, 1).await;
    world.state().desk = Desk::NoRenewal;
    world.revoke_all();
    transport.clone().send(request(1, "tools/list", ALONE));
    answers(&mut ears, 1).await;
    assert_eq!((person.visits(), world.came_to("/register").len()), (2, 1));
}

#[tokio::test]
async fn a_request_that_is_dropped_leaves_the_login_to_others() {
    let world = World::start().await;
    let person = Person::slow(&world);
    let (transport, mut ears) = connect(&world.server(&Authorization::new(person.clone()))).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    person.is_asked().await;
    transport.clone().send(request(2, "tools/list", ALONE));
    transport.abandon(refmcp_client::transport::ExchangeId(1));
    person.agree();
    assert_eq!(ears.message().await.0, Some(2));
    assert_eq!((person.visits(), world.grants().len()), (1, 1));
    transport.clone().send(request(3, "tools/list", ALONE));
    assert_eq!(ears.message().await.0, Some(3));
    assert_eq!(world.came_to("/mcp").iter().filter(|came| came.body.contains("\"id\":1,")).count(), 1);
}

#[tokio::test]
async fn a_login_that_all_have_left_still_serves_the_next() {
    let world = World::start().await;
    let person = Person::slow(&world);
    let authorization = Authorization::new(person.clone());
    let (transport, ears) = connect(&world.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    person.is_asked().await;
    drop((transport, ears));
    person.agree();
    let (transport, mut ears) = connect(&world.server(&authorization)).await;
    transport.clone().send(request(2, "tools/list", ALONE));
    assert_eq!(ears.message().await.0, Some(2));
    assert_eq!(person.visits(), 1);
}

#[tokio::test]
async fn two_clients_with_one_store_log_in_once() {
    let world = World::start().await;
    let store = MemoryTokenStore::new();
    let (one, two) = (Person::slow(&world), Person::slow(&world));
    let (first, mut hears_first) =
        connect(&world.server(&Authorization::new(one.clone()).store(store.clone()))).await;
    let (second, mut hears_second) =
        connect(&world.server(&Authorization::new(two.clone()).store(store.clone()))).await;
    first.clone().send(request(1, "tools/list", ALONE));
    one.is_asked().await;
    second.clone().send(request(1, "tools/list", ALONE));
    one.agree();
    answers(&mut hears_first, 1).await;
    answers(&mut hears_second, 1).await;
    assert_eq!((one.visits(), two.visits()), (1, 0));
    // And a renewal by one serves the other, whose refresh token is spent by then.
    world.revoke_all();
    first.clone().send(request(2, "tools/list", ALONE));
    answers(&mut hears_first, 1).await;
    second.clone().send(request(2, "tools/list", ALONE));
    answers(&mut hears_second, 1).await;
    assert_eq!(world.grants(), ["authorization_code", "refresh_token"]);
    let (third, mut hears_third) =
        connect(&world.server(&Authorization::without_browser().store(store))).await;
    third.clone().send(request(3, "tools/list", ALONE));
    answers(&mut hears_third, 1).await;
}

#[tokio::test]
async fn a_login_takes_longer_than_the_opening_may() {
    let world = World::start().await;
    let person = Person::slow(&world);
    let server = world.server(&Authorization::new(person.clone()));
    let builder = Client::builder("test", "1")
        .version_policy(VersionPolicy::Legacy)
        .open_timeout(Duration::from_secs(1));
    let time = PausedTime::start();
    let (connected, ()) = tokio::join!(builder.connect(server), async {
        person.is_asked().await;
        time.advance(Duration::from_secs(3)).await;
        person.agree();
    });
    assert!(connected.is_ok(), "{connected:?}");
    assert_eq!(person.visits(), 1);
}

#[tokio::test]
async fn a_call_ends_at_its_deadline_and_the_login_goes_on() {
    let world = World::start().await;
    world.state().refresh_tokens = false;
    let person = Person::slow(&world);
    let server = world.server(&Authorization::new(person.clone()));
    let builder =
        Client::builder("test", "1").version_policy(VersionPolicy::Legacy).timeout(Duration::from_secs(1));
    let time = PausedTime::start();
    let (client, ()) = tokio::join!(builder.connect(server), async {
        person.agree_once();
        person.is_asked().await;
    });
    let client = client.unwrap();
    world.revoke_all();
    let (late, ()) = tokio::join!(client.call_tool("x", json!({})).into_future(), async {
        person.is_asked().await;
        time.advance(Duration::from_millis(1001)).await;
    });
    drop(time);
    let late = late.unwrap_err();
    assert!(matches!(late, Error::Call(CallError::TimedOut { .. })), "{late}");
    assert_eq!(person.visits(), 2);
    person.agree();
    let request = client.call_tool("x", json!({})).timeout(PATIENCE).await;
    assert!(matches!(request, Err(Error::Unreadable { .. })), "it was answered: {request:?}");
    assert_eq!(person.visits(), 2);
}

#[tokio::test]
async fn a_login_that_takes_too_long_is_given_up() {
    let world = World::start().await;
    let person = Person::slow(&world);
    let authorization = Authorization::new(person.clone()).login_timeout(Duration::from_millis(50));
    let (transport, mut ears) = connect(&world.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    let Heard::Ended(1, TransportError::NotAuthorized { why }) = ears.next().await else {
        panic!("it goes on")
    };
    assert!(why.contains("in time"), "{why}");
}

#[tokio::test]
async fn a_login_that_somebody_ended_is_not_renewed() {
    let world = World::start().await;
    let store = MemoryTokenStore::new();
    let person = Person::new(&world);
    let authorization = Authorization::new(person.clone()).store(store.clone());
    let (transport, mut ears) = connect(&world.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    answers(&mut ears, 1).await;
    store.forget(&store_key(&world.url().parse().unwrap()));
    world.revoke_all();
    transport.clone().send(request(2, "tools/list", ALONE));
    answers(&mut ears, 1).await;
    // Before the second login it is asked whether the client is still known.
    assert_eq!((world.grants(), person.visits()), (vec!["authorization_code".to_owned(); 3], 2));
}

/// Somebody whose browser falls apart at first.
#[derive(Debug)]
struct Clumsy(Person, std::sync::atomic::AtomicBool);

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
    let world = World::start().await;
    let clumsy = Clumsy(Person::new(&world), std::sync::atomic::AtomicBool::new(false));
    let (transport, mut ears) = connect(&world.server(&Authorization::new(clumsy))).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    let (_, why) = ears.ended().await;
    assert!(matches!(&why, TransportError::NotAuthorized { why } if why.contains("broken off")), "{why:?}");
    transport.clone().send(request(2, "tools/list", ALONE));
    answers(&mut ears, 1).await;
}
