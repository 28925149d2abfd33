//! Credentials are in no log, at its most verbose level, and in no response.

use std::panic::{AssertUnwindSafe, catch_unwind};

use refmcp_auth::dpop;
use refmcp_auth::jose::PrivateKey;
use refmcp_testkit::log::LogBuffer;
use serde_json::json;
use url::Url;

use super::fake_issuers::now;
use super::{Guarded, UPGRADE, in_session};
use crate::support::request;

#[tokio::test]
async fn the_leak_watch_finds_logged_secrets() {
    let guarded = Guarded::open().await;
    let resource = guarded.resource();
    guarded.ask(&[]).await;
    assert!(guarded.watch.log().contains("a token is needed here"), "the server logs where it is looked for");
    tracing::trace!("{resource} is told of");
    guarded.watch.sees(&resource);
    let Guarded { watch, .. } = guarded;
    let ended = catch_unwind(AssertUnwindSafe(|| drop(watch)));
    let told = *ended.unwrap_err().downcast::<String>().unwrap();
    assert!(told.contains(&format!("»{resource} is told of")), "{told}");
}

// Everything of this test runs on one thread, the server too, so the log is this test's alone.
#[tokio::test(flavor = "current_thread")]
async fn tokens_and_proofs_are_not_logged() {
    // With a single subscriber, other threads would decide by their own, which they do not have, what is enabled.
    let _second =
        tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(LogBuffer::default()).finish());
    let kept = LogBuffer::default();
    let log = tracing_subscriber::fmt().with_env_filter("trace");
    let _logging = tracing::subscriber::set_default(log.with_ansi(false).with_writer(kept.clone()).finish());
    let guarded = Guarded::open().await;
    let key = PrivateKey::generate().unwrap();
    let jkt = key.public().thumbprint().unwrap();
    let bound = guarded.token(json!({ "cnf": { "jkt": jkt } }));
    let url = Url::parse(&guarded.resource()).unwrap();
    let proof = dpop::prove(&key, "POST", &url, Some(&bound), None, now()).unwrap();
    let tokens = [
        guarded.token(json!({})),
        guarded.token(json!({ "exp": 1 })),
        guarded.token(json!({ "aud": "https://elsewhere.example" })),
        guarded.token(json!({ "iss": "https://evil.example" })),
        "opaque-and-unknown-to-all".to_owned(),
    ];
    let mut said = String::new();
    for token in &tokens {
        let bearer = format!("Bearer {token}");
        said += &guarded.ask(&[("Authorization", &bearer)]).await.text().await;
        said += &guarded.ask(&[("Authorization", &bearer), ("Authorization", &bearer)]).await.text().await;
        said +=
            &guarded.site.send("POST", &format!("/mcp?access_token={token}"), &[], b"{}").await.text().await;
        let offered = format!("mcp, mcp.bearer.{token}");
        let mut upgrade = UPGRADE.to_vec();
        upgrade.push(("Sec-WebSocket-Protocol", &offered));
        guarded.site.send("GET", "/mcp/ws", &upgrade, b"").await;
    }
    let authorization = format!("DPoP {bound}");
    for _ in 0..2 {
        said += &guarded.ask(&[("Authorization", &authorization), ("DPoP", &proof)]).await.text().await;
    }
    let bearer = format!("Bearer {}", tokens[0]);
    let session = guarded.session(&bearer).await;
    said +=
        &guarded.site.post(&in_session(&bearer, &session), &request("ping", json!({}))).await.text().await;

    let log = kept.text();
    assert!(log.contains("refused") && log.contains("answered"), "{log}");
    for secret in tokens.iter().chain([&bound, &proof, &session]) {
        // The secret part; the rest alone is of no use.
        let secret = secret.rsplit('.').next().unwrap();
        assert!(!log.contains(secret), "{secret} is in {log}");
        assert!(!said.contains(secret), "{secret} is in {said}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn failed_authorization_is_a_warning_and_a_first_request_is_not() {
    // See above.
    let _second =
        tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(LogBuffer::default()).finish());
    let kept = LogBuffer::default();
    let log = tracing_subscriber::fmt().with_env_filter("info").with_ansi(false);
    let _logging = tracing::subscriber::set_default(log.with_writer(kept.clone()).finish());
    let guarded = Guarded::open().await;
    guarded.ask(&[]).await;
    let line = |reason: &str| {
        let log = kept.text();
        let line = log.lines().find(|line| line.contains(": refused ") && line.contains(reason));
        line.unwrap_or_else(|| panic!("no {reason} in {log}")).to_owned()
    };
    let first = line("a token is needed here");
    assert!(first.contains("INFO") && first.contains("address=127.0.0.1"), "{first}");
    let expired = guarded.bearer(json!({ "exp": 1 }));
    assert_eq!(guarded.ask(&[("Authorization", &expired)]).await.status, 401);
    assert_eq!(guarded.site.send("GET", "/metrics", &[("Authorization", &expired)], b"").await.status, 401);
    assert_eq!(guarded.ask(&[("Authorization", "Basic bm9ib2R5OnNlY3JldA==")]).await.status, 401);
    assert!(line("credentials of this scheme").contains("WARN"));
    assert!(!kept.text().contains("bm9ib2R5OnNlY3JldA"), "{}", kept.text());
    assert_eq!(
        kept.text().matches("WARN refmcp::http: refused address=127.0.0.1").count(),
        3,
        "{}",
        kept.text()
    );
    let warned = kept.text().lines().filter(|line| line.contains("path=\"/metrics\"")).count();
    assert_eq!(warned, 1);
    // Clients that have only begun to log in hide no warning, although the reason is the same.
    for _ in 0..40 {
        guarded.ask(&[]).await;
    }
    let begun = || kept.text().matches("a token is needed here").count();
    assert!(begun() < 40, "their lines are limited");
    assert_eq!(guarded.ask(&[("Authorization", &expired)]).await.status, 401);
    assert_eq!(
        kept.text().matches("WARN refmcp::http: refused address=127.0.0.1").count(),
        4,
        "{}",
        kept.text()
    );
}
