//! Tokens that are bound to a key.

use std::collections::HashSet;

use refmcp_auth::dpop::token_digest;
use refmcp_client::auth::{Authorization, MemoryTokenStore};
use refmcp_client::transport::TransportError;

use super::person::Person;
use super::world::{World, proof};
use crate::sink::{ALONE, Heard, connect, request, result};

#[tokio::test]
async fn every_request_has_a_proof_of_its_own() {
    let world = World::start().await;
    world.state().dpop = true;
    let person = Person::new(&world);
    let store = MemoryTokenStore::new();
    let authorization = Authorization::new(person.clone()).dpop(true).store(store.clone());
    let (transport, mut ears) = connect(&world.server(&authorization)).await;
    for number in 1..4 {
        transport.clone().send(request(number, "tools/list", ALONE));
        assert_eq!(ears.message().await, (Some(number), result(number)));
    }
    let came = world.came_to("/mcp");
    assert_eq!((came.len(), came[0].header("dpop")), (4, None));
    let mut ids = HashSet::new();
    for came in &came[1..] {
        assert_eq!(came.header("authorization"), Some("DPoP token-1"));
        let proof = proof(came);
        assert_eq!((proof["htm"].as_str(), proof["htu"].as_str()), (Some("POST"), Some(&*world.url())));
        assert_eq!(proof["ath"].as_str(), Some(&*token_digest("token-1")));
        assert!(ids.insert(proof["jti"].to_string()));
    }
    assert!(proof(&world.came_to("/token")[0]).get("ath").is_none());
    // Another client finds the key beside the token.
    let later = Authorization::without_browser().store(store);
    let (transport, mut ears) = connect(&world.server(&later)).await;
    transport.clone().send(request(9, "tools/list", ALONE));
    assert_eq!(ears.message().await, (Some(9), result(9)));
    assert_eq!(person.visits(), 1);
}

#[tokio::test]
async fn a_server_that_takes_only_bound_tokens_gets_them() {
    let world = World::start().await;
    world.state().dpop = true;
    let person = Person::new(&world);
    let (transport, mut ears) = connect(&world.server(&Authorization::new(person.clone()))).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    assert_eq!(ears.message().await, (Some(1), result(1)));
    assert!(proof(world.came_to("/mcp").last().unwrap())["ath"].is_string());
}

#[tokio::test]
async fn what_the_server_wants_repeated_is_repeated() {
    let world = World::start().await;
    world.state().dpop = true;
    world.state().nonce = Some("n-1");
    let person = Person::new(&world);
    let authorization = Authorization::new(person.clone()).dpop(true);
    let (transport, mut ears) = connect(&world.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    assert_eq!(ears.message().await, (Some(1), result(1)));
    transport.clone().send(request(2, "tools/list", ALONE));
    assert_eq!(ears.message().await, (Some(2), result(2)));
    let nonces = |world: &World| -> Vec<String> {
        world.came_to("/mcp").iter().map(|came| proof(came)["nonce"].to_string()).collect()
    };
    assert_eq!(nonces(&world), ["null", "null", "\"n-1\"", "\"n-1\""]);
    // A new one is taken over, at the cost of one request.
    world.state().nonce = Some("n-2");
    transport.clone().send(request(3, "tools/list", ALONE));
    assert_eq!(ears.message().await, (Some(3), result(3)));
    assert_eq!(nonces(&world)[4..], ["\"n-1\"", "\"n-2\""]);
    assert_eq!((person.visits(), world.grants().len()), (1, 1));
}

/// Logs in, then sends one more request to a server that finds this many of the next proofs stale.
async fn with_stale_proofs(stale: usize) -> (World, Person, Heard) {
    let world = World::start().await;
    world.state().dpop = true;
    world.state().nonce = Some("n-1");
    let person = Person::new(&world);
    let (transport, mut ears) = connect(&world.server(&Authorization::new(person.clone()).dpop(true))).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    assert_eq!(ears.message().await, (Some(1), result(1)));
    world.state().came.clear();
    world.state().stale_proofs = stale;
    transport.clone().send(request(2, "tools/list", ALONE));
    let heard = ears.next().await;
    (world, person, heard)
}

#[tokio::test]
async fn stale_proofs_are_made_again_a_few_times_and_lead_to_no_login() {
    let (world, person, heard) = with_stale_proofs(3).await;
    assert_eq!(heard, Heard::Message(Some(2), result(2)));
    assert_eq!((world.came_to("/mcp").len(), world.grants().len(), person.visits()), (4, 0, 1));
    let (world, person, heard) = with_stale_proofs(usize::MAX).await;
    assert!(matches!(heard, Heard::Ended(2, TransportError::Unauthorized { status: 401, .. })), "{heard:?}");
    assert_eq!((world.came_to("/mcp").len(), world.grants().len(), person.visits()), (4, 0, 1));
}
