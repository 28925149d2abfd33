//! Streams and WebSockets end with their token.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use refmcp_auth::Secret;
use refmcp_auth::resource::Introspection;
use refmcp_http::ResourceServerOptions;
use refmcp_proto::frame::SseItem;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::fake_issuers::now;
use super::{Guarded, in_session};
use crate::support::{request, with_meta};

/// Longer than any of these tests should take.
const SOON: Duration = Duration::from_secs(10);

async fn without_skew() -> Guarded {
    Guarded::with(ResourceServerOptions { clock_skew: Duration::ZERO, ..ResourceServerOptions::default() })
        .await
}

#[tokio::test]
async fn streams_and_sockets_end_with_the_token() {
    let guarded = without_skew().await;
    let bearer = guarded.bearer(json!({ "exp": now() + 3 }));
    let authorized = [("Authorization", &*bearer)];
    let session = guarded.session(&bearer).await;
    let get_stream = guarded.site.send("GET", "/mcp", &in_session(&bearer, &session), b"").await;
    let older = guarded.site.send("GET", "/sse", &authorized, b"").await;
    let listen = request("subscriptions/listen", with_meta(json!({ "notifications": {} }))).to_string();
    let headers = [
        ("Authorization", &*bearer),
        ("MCP-Protocol-Version", crate::support::STATELESS),
        ("Mcp-Method", "subscriptions/listen"),
    ];
    let listening = guarded.site.send("POST", "/mcp", &headers, listen.as_bytes()).await;
    let mut asked = format!("ws://{}/mcp", guarded.site.address).into_client_request().unwrap();
    asked.headers_mut().insert("authorization", bearer.parse().unwrap());
    let stream = TcpStream::connect(guarded.site.address).await.unwrap();
    let (mut socket, _) = client_async(asked, stream).await.unwrap();
    for (what, stream) in [("GET", &get_stream), ("older", &older), ("listening", &listening)] {
        assert_eq!((stream.status, stream.is_sse()), (200, true), "{what}");
    }
    timeout(SOON, get_stream.text()).await.expect("the GET stream ends");
    timeout(SOON, older.text()).await.expect("the older stream ends");
    timeout(SOON, listening.text()).await.expect("the one that listens ends");
    let closed = async { while let Some(Ok(_)) = socket.next().await {} };
    timeout(SOON, closed).await.expect("the socket ends");
    guarded.until_quiet().await;
    // The session is still there for a newer token.
    let newer = guarded.bearer(json!({}));
    let ping = request("ping", json!({}));
    assert_eq!(guarded.site.post(&in_session(&newer, &session), &ping).await.status, 200);
    assert_eq!(guarded.site.post(&in_session(&bearer, &session), &ping).await.status, 401);
}

#[tokio::test]
async fn a_call_that_outlives_its_token_is_resumed_with_the_next() {
    let guarded = without_skew().await;
    let bearer = guarded.bearer(json!({ "exp": now() + 2 }));
    let session = guarded.session(&bearer).await;
    let params =
        json!({ "name": "steps", "arguments": { "n": 50, "ms": 60 }, "_meta": { "progressToken": 1 } });
    let mut watched = guarded.site.post(&in_session(&bearer, &session), &request("tools/call", params)).await;
    let mut last = None;
    let reading = async {
        while let Some(item) = watched.item().await {
            if let SseItem::Event(event) = item {
                last = event.id.map(|id| id.to_string()).or(last.take());
            }
        }
    };
    timeout(SOON, reading).await.expect("it ends");
    let newer = guarded.bearer(json!({}));
    let mut headers = in_session(&newer, &session).to_vec();
    let last = last.unwrap();
    headers.push(("Last-Event-ID", &last));
    let rest = guarded.site.send("GET", "/mcp", &headers, b"").await.events().await;
    assert_eq!(rest.last().unwrap().1["result"]["content"][0]["text"], "50 steps ");
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams_and_sockets() {
    let asker = Introspection { client_id: "rs".into(), client_secret: Secret::new("hush") };
    let guarded = Guarded::with(ResourceServerOptions {
        introspection: Some(asker),
        recheck_every: Duration::from_secs(1),
        ..ResourceServerOptions::default()
    })
    .await;
    let bearer = format!("Bearer opaque~{}", guarded.resource().replace(':', "~"));
    let stream = guarded.site.send("GET", "/sse", &[("Authorization", &bearer)], b"").await;
    assert_eq!(stream.status, 200);
    // An unreachable issuer leaves the token valid.
    guarded.issuers.down.store(true, Ordering::SeqCst);
    let asked = guarded.issuers.fetches("introspect");
    while guarded.issuers.fetches("introspect") == asked {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    guarded.issuers.down.store(false, Ordering::SeqCst);
    let known = [("Authorization", &*bearer)];
    assert_eq!(guarded.site.metric_with("refmcp_streams", &known).await, 1.0);
    guarded.issuers.revoked.store(true, Ordering::SeqCst);
    timeout(SOON, stream.text()).await.expect("it ends");
    assert_eq!(guarded.ask(&[("Authorization", &bearer)]).await.status, 401);
}

#[tokio::test]
async fn introspection_pauses_between_requests() {
    let asker = Introspection { client_id: "rs".into(), client_secret: Secret::new("hush") };
    let guarded = Guarded::with(ResourceServerOptions {
        introspection: Some(asker),
        recheck_every: Duration::ZERO,
        ..ResourceServerOptions::default()
    })
    .await;
    let bearer = format!("Bearer opaque~{}", guarded.resource().replace(':', "~"));
    let stream = guarded.site.send("GET", "/sse", &[("Authorization", &bearer)], b"").await;
    assert_eq!(stream.status, 200);
    let (began, asked) = (Instant::now(), guarded.issuers.fetches("introspect"));
    let asked_again = async {
        while guarded.issuers.fetches("introspect") < asked + 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, asked_again).await.expect("it is asked again");
    // The first pause began with the stream, which was before its answer came.
    assert!(began.elapsed() > Duration::from_millis(1500), "{:?}", began.elapsed());
}
