//! The issuer's keys: fetched once for all requests, kept while it is down, and fetched again after a rotation.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use refmcp_auth::jose::{Jwk, PrivateKey};
use refmcp_auth::resource::Introspection;
use refmcp_http::ResourceServerOptions;
use serde_json::json;

use super::Guarded;

async fn status(guarded: &Guarded, bearer: &str) -> u16 {
    guarded.ask(&[("Authorization", bearer)]).await.status
}

#[tokio::test]
async fn many_requests_fetch_the_keys_once() {
    let guarded = Guarded::open().await;
    let bearers: Vec<String> =
        (0..50).map(|number| guarded.bearer(json!({ "jti": number.to_string() }))).collect();
    let statuses = join_all(bearers.iter().map(|bearer| status(&guarded, bearer))).await;
    assert_eq!(statuses, [200; 50]);
    assert_eq!(guarded.issuers.fetches("jwks"), 1);
}

#[tokio::test]
async fn an_issuer_that_is_down_leaves_tokens_undecided() {
    let guarded = Guarded::open().await;
    guarded.issuers.down.store(true, Ordering::SeqCst);
    let bearer = guarded.bearer(json!({}));
    let reply = guarded.ask(&[("Authorization", &bearer)]).await;
    assert_eq!(reply.status, 503, "undecided");
    assert!(reply.header("retry-after").is_some() && reply.header("www-authenticate").is_none());
    let before = guarded.issuers.fetches("");
    for _ in 0..20 {
        assert_eq!(status(&guarded, &bearer).await, 503);
    }
    assert_eq!(guarded.issuers.fetches(""), before, "it is not asked all the time");
}

#[tokio::test]
async fn keys_stay_valid_while_their_issuer_is_down() {
    let guarded = Guarded::open().await;
    assert_eq!(status(&guarded, &guarded.bearer(json!({}))).await, 200);
    guarded.issuers.down.store(true, Ordering::SeqCst);
    assert_eq!(status(&guarded, &guarded.bearer(json!({ "jti": "2" }))).await, 200);
}

#[tokio::test]
async fn of_ten_thousand_keys_some_are_kept() {
    let guarded = Guarded::open().await;
    let stranger = PrivateKey::generate().unwrap();
    let more = (0..10_000).map(|number| Jwk { kid: Some(format!("k{number}")), ..stranger.public() });
    *guarded.issuers.more.lock() = more.map(|key| serde_json::to_value(key).unwrap()).collect();
    assert_eq!(status(&guarded, &guarded.bearer(json!({}))).await, 200);
}

#[tokio::test]
async fn a_rotated_key_is_fetched() {
    let guarded = Guarded::open().await;
    assert_eq!(status(&guarded, &guarded.bearer(json!({}))).await, 200);
    guarded.issuers.rotate("two");
    // The keys were fetched just now, and made-up key ids must not cause fetches without end: it takes a moment.
    let bearer = guarded.bearer(json!({}));
    while status(&guarded, &bearer).await != 200 {
        assert_eq!(guarded.issuers.fetches("jwks"), 1);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(guarded.issuers.fetches("jwks"), 2);
}

fn asker() -> Introspection {
    Introspection { client_id: "rs".into(), client_secret: refmcp_auth::Secret::new("hush") }
}

#[tokio::test]
async fn opaque_tokens_are_introspected() {
    let guarded = Guarded::with(ResourceServerOptions {
        introspection: Some(asker()),
        ..ResourceServerOptions::default()
    })
    .await;
    let bearer = format!("Bearer opaque~{}", guarded.resource().replace(':', "~"));
    let statuses = join_all((0..50).map(|_| status(&guarded, &bearer))).await;
    assert_eq!(statuses, [200; 50]);
    assert_eq!(guarded.issuers.fetches("introspect"), 1, "once for all");
    for _ in 0..5 {
        assert_eq!(status(&guarded, "Bearer unknown").await, 401);
    }
    assert_eq!(guarded.issuers.fetches("introspect"), 2, "what is bad is remembered too");
    let elsewhere = "Bearer opaque~https~//elsewhere.example/mcp";
    assert_eq!(status(&guarded, elsewhere).await, 401, "for another audience");
    // A JWT must be known to its issuer, too.
    assert_eq!(status(&guarded, &guarded.bearer(json!({}))).await, 401);
    guarded.issuers.down.store(true, Ordering::SeqCst);
    let before = guarded.issuers.fetches("introspect");
    let statuses = join_all((0..50).map(|_| status(&guarded, "Bearer another"))).await;
    assert_eq!(statuses, [503; 50]);
    let asked = guarded.issuers.fetches("introspect") - before;
    assert!(asked < 10, "one asks for all who wait, not each in its turn: {asked}");
}
