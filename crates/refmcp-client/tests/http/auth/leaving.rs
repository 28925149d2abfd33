//! Who waits for a login and who does not, and what becomes of it when nobody does.

use std::sync::Arc;
use std::time::Duration;

use refmcp_client::auth::{Authorization, MemoryTokenStore, Store, store_key};
use refmcp_client::transport::{Transport, TransportError};
use refmcp_testkit::paused::PausedTime;

use super::person::Person;
use super::world::{Desk, World};
use crate::raw_server::in_time;
use crate::sink::{ALONE, Ears, Heard, SESSIONS, connect, request, result};

/// Waits until as many tokens were asked for.
async fn asked_for(world: &World, tokens: usize) {
    let asked = async {
        while world.came_to("/token").len() < tokens {
            tokio::task::yield_now().await;
        }
    };
    in_time("a token to be asked for", asked).await;
}

/// What a store has for the server, once nobody works on it any more.
async fn kept(store: &MemoryTokenStore, world: &World) -> Option<String> {
    let name = store_key(&world.url().parse().unwrap());
    let _held = in_time("the store to be free", store.lock(&name)).await.unwrap();
    store.load(&name).await.unwrap().tokens.map(|grant| grant.token.reveal().to_owned())
}

#[tokio::test]
async fn a_token_that_is_on_its_way_is_kept_though_nobody_waits_for_it() {
    let world = World::start().await;
    let (store, person) = (MemoryTokenStore::new(), Person::new(&world));
    let authorization = Authorization::new(person).store(store.clone());
    let (transport, mut ears) = connect(&world.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    ears.message().await;
    world.revoke_all();
    world.state().desk = Desk::Waits;
    transport.clone().send(request(2, "tools/list", ALONE));
    asked_for(&world, 2).await;
    drop((transport, authorization));
    ears.deaf().await;
    world.let_desk_answer();
    assert_eq!(kept(&store, &world).await.as_deref(), Some("token-2"));
}

#[tokio::test]
async fn nobody_is_waited_for_when_nobody_waits() {
    let world = World::start().await;
    let (store, slow) = (MemoryTokenStore::new(), Person::slow(&world));
    let authorization = Authorization::new(slow.clone()).store(store.clone());
    let (transport, mut ears) = connect(&world.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    slow.is_asked().await;
    drop((transport, authorization));
    ears.deaf().await;
    assert_eq!(kept(&store, &world).await, None);
}

/// Somebody is asked to log in for more, and does not come back; the token there is has ended by our clock.
async fn amid_a_login(world: &World, login_timeout: Duration) -> (Arc<dyn Transport>, Ears, Authorization) {
    world.state().lifetime = Some(0);
    let person = Person::slow(world);
    person.agree_once();
    let authorization = Authorization::new(person.clone()).login_timeout(login_timeout);
    let (transport, mut ears) = connect(&world.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", SESSIONS));
    ears.message().await;
    person.is_asked().await;
    world.state().needs = Some("more");
    transport.clone().send(request(2, "tools/call", SESSIONS));
    person.is_asked().await;
    (transport, ears, authorization)
}

/// How often the end of the session was told.
fn farewells(world: &World) -> usize {
    world.came_to("/mcp").iter().filter(|came| came.method == hyper::Method::DELETE).count()
}

#[tokio::test]
async fn a_farewell_waits_for_nobody() {
    for is_refused in [false, true] {
        let world = World::start().await;
        let (transport, _ears, _authorization) = amid_a_login(&world, Duration::from_secs(60)).await;
        if is_refused {
            world.revoke_all();
        }
        // It is over without any time passing.
        let _time = PausedTime::start();
        transport.close().await;
        assert_eq!(farewells(&world), 1, "refused: {is_refused}");
    }
}

#[tokio::test]
async fn a_login_of_others_that_fails_does_not_end_a_request() {
    let world = World::start().await;
    let patience = Duration::from_secs(60);
    let (transport, mut ears, _authorization) = amid_a_login(&world, patience).await;
    transport.clone().send(request(3, "tools/list", SESSIONS));
    PausedTime::start().advance(patience).await;
    let mut heard = [ears.next().await, ears.next().await];
    heard.sort_by_key(|heard| matches!(heard, Heard::Message(..)));
    let [failed, answered] = heard;
    assert!(matches!(failed, Heard::Ended(2, TransportError::NotAuthorized { .. })), "{failed:?}");
    assert_eq!(answered, Heard::Message(Some(3), result(3)));
}
