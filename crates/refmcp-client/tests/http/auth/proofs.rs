//! Tokens that are bound to a key.

use std::collections::HashSet;

use refmcp_auth::dpop::token_digest;
use refmcp_client::auth::{Authorization, MemoryTokenStore};
use refmcp_client::transport::TransportError;

use super::servers::{TestServers, proof};
use super::user::User;
use crate::messages::{ALONE, connect, request, result};
use crate::recording_sink::SinkEvent;

#[tokio::test]
async fn every_request_has_a_proof_of_its_own() {
    let servers = TestServers::start().await;
    servers.state().dpop = true;
    let user = User::new(&servers);
    let store = MemoryTokenStore::new();
    let authorization = Authorization::new(user.clone()).dpop(true).store(store.clone());
    let (transport, mut sink) = connect(&servers.server(&authorization)).await;
    for number in 1..4 {
        transport.clone().send(request(number, "tools/list", ALONE));
        assert_eq!(sink.message().await, (Some(number), result(number)));
    }
    let came = servers.came_to("/mcp");
    assert_eq!((came.len(), came[0].header("dpop")), (4, None));
    let mut ids = HashSet::new();
    for came in &came[1..] {
        assert_eq!(came.header("authorization"), Some("DPoP token-1"));
        let proof = proof(came);
        assert_eq!((proof["htm"].as_str(), proof["htu"].as_str()), (Some("POST"), Some(&*servers.url())));
        assert_eq!(proof["ath"].as_str(), Some(&*token_digest("token-1")));
        assert!(ids.insert(proof["jti"].to_string()));
    }
    assert!(proof(&servers.came_to("/token")[0]).get("ath").is_none());
    // Another client finds the key beside the token.
    let later = Authorization::without_browser().store(store);
    let (transport, mut sink) = connect(&servers.server(&later)).await;
    transport.clone().send(request(9, "tools/list", ALONE));
    assert_eq!(sink.message().await, (Some(9), result(9)));
    assert_eq!(user.visits(), 1);
}

#[tokio::test]
async fn a_server_that_takes_only_bound_tokens_gets_them() {
    let servers = TestServers::start().await;
    servers.state().dpop = true;
    let user = User::new(&servers);
    let (transport, mut sink) = connect(&servers.server(&Authorization::new(user.clone()))).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    assert_eq!(sink.message().await, (Some(1), result(1)));
    assert!(proof(servers.came_to("/mcp").last().unwrap())["ath"].is_string());
}

#[tokio::test]
async fn arguments_are_repeated_in_headers() {
    let servers = TestServers::start().await;
    servers.state().dpop = true;
    servers.state().nonce = Some("n-1");
    let user = User::new(&servers);
    let authorization = Authorization::new(user.clone()).dpop(true);
    let (transport, mut sink) = connect(&servers.server(&authorization)).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    assert_eq!(sink.message().await, (Some(1), result(1)));
    transport.clone().send(request(2, "tools/list", ALONE));
    assert_eq!(sink.message().await, (Some(2), result(2)));
    let nonces = |servers: &TestServers| -> Vec<String> {
        servers.came_to("/mcp").iter().map(|came| proof(came)["nonce"].to_string()).collect()
    };
    assert_eq!(nonces(&servers), ["null", "null", "\"n-1\"", "\"n-1\""]);
    // A new one is taken over, at the cost of one request.
    servers.state().nonce = Some("n-2");
    transport.clone().send(request(3, "tools/list", ALONE));
    assert_eq!(sink.message().await, (Some(3), result(3)));
    assert_eq!(nonces(&servers)[4..], ["\"n-1\"", "\"n-2\""]);
    assert_eq!((user.visits(), servers.grants().len()), (1, 1));
}

/// Logs in, then sends one more request to a server that finds this many of the next proofs stale.
async fn with_stale_proofs(stale: usize) -> (TestServers, User, SinkEvent) {
    let servers = TestServers::start().await;
    servers.state().dpop = true;
    servers.state().nonce = Some("n-1");
    let user = User::new(&servers);
    let (transport, mut sink) = connect(&servers.server(&Authorization::new(user.clone()).dpop(true))).await;
    transport.clone().send(request(1, "tools/list", ALONE));
    assert_eq!(sink.message().await, (Some(1), result(1)));
    servers.state().came.clear();
    servers.state().stale_proofs = stale;
    transport.clone().send(request(2, "tools/list", ALONE));
    let event = sink.next().await;
    (servers, user, event)
}

#[tokio::test]
async fn stale_proofs_are_made_again_a_few_times_and_lead_to_no_login() {
    let (servers, user, event) = with_stale_proofs(3).await;
    assert_eq!(event, SinkEvent::Message(Some(2), result(2)));
    assert_eq!((servers.came_to("/mcp").len(), servers.grants().len(), user.visits()), (4, 0, 1));
    let (servers, user, event) = with_stale_proofs(usize::MAX).await;
    assert!(
        matches!(event, SinkEvent::Ended(2, TransportError::Unauthorized { status: 401, .. })),
        "{event:?}"
    );
    assert_eq!((servers.came_to("/mcp").len(), servers.grants().len(), user.visits()), (4, 0, 1));
}
