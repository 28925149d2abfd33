//! Streams and WebSockets end with their token.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use refmcp_auth::Secret;
use refmcp_auth::resource::Introspection;
use refmcp_http::ResourceServerOptions;
use refmcp_proto::frame::SseItem;
use refmcp_testkit::paused::PausedTime;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::fake_issuers::now;
use super::{Guarded, in_session};
use crate::support::{request, with_meta};

/// Reached only by a test that hangs.
const SOON: Duration = Duration::from_secs(50);

/// How long the tokens of these tests are valid.
const VALID: u64 = 60;

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// Waits for something that needs time, which is moved by hand.
async fn while_time_passes<T>(time: &PausedTime, waiting: impl Future<Output = T>) -> T {
    let passing = async {
        loop {
            time.advance(seconds(4)).await;
        }
    };
    tokio::select! {
        done = waiting => done,
        () = passing => unreachable!("it never ends"),
    }
}

async fn without_skew() -> Guarded {
    Guarded::with(ResourceServerOptions { clock_skew: Duration::ZERO, ..ResourceServerOptions::default() })
        .await
}

#[tokio::test]
async fn streams_and_sockets_end_with_the_token() {
    let time = PausedTime::start();
    let guarded = without_skew().await;
    let bearer = guarded.bearer(json!({ "exp": now() + VALID }));
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
    let open = async || guarded.metric("refmcp_streams").await;
    time.advance(seconds(VALID - 5)).await;
    assert_eq!(open().await, 3.0, "the token is valid");
    time.advance(seconds(6)).await;
    drop(time);
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
    let time = PausedTime::start();
    let guarded = without_skew().await;
    let bearer = guarded.bearer(json!({ "exp": now() + 10 }));
    let session = guarded.session(&bearer).await;
    let params =
        json!({ "name": "steps", "arguments": { "n": 5, "ms": 4000 }, "_meta": { "progressToken": 1 } });
    let mut watched = guarded.site.post(&in_session(&bearer, &session), &request("tools/call", params)).await;
    let mut last = None;
    let reading = async {
        while let Some(item) = watched.item().await {
            if let SseItem::Event(event) = item {
                last = event.id.map(|id| id.to_string()).or(last.take());
            }
        }
    };
    while_time_passes(&time, timeout(SOON, reading)).await.expect("it ends");
    let newer = guarded.bearer(json!({}));
    let mut headers = in_session(&newer, &session).to_vec();
    let last = last.unwrap();
    headers.push(("Last-Event-ID", &last));
    let rest = guarded.site.send("GET", "/mcp", &headers, b"").await;
    let rest = while_time_passes(&time, rest.events()).await;
    assert_eq!(rest.last().unwrap().1["result"]["content"][0]["text"], "5 steps ");
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams_and_sockets() {
    let asker = Introspection { client_id: "rs".into(), client_secret: Secret::new("hush") };
    let guarded = Guarded::with(ResourceServerOptions {
        introspection: Some(asker),
        recheck_every: seconds(30),
        ..ResourceServerOptions::default()
    })
    .await;
    let time = PausedTime::start();
    let bearer = format!("Bearer opaque~{}", guarded.resource().replace(':', "~"));
    let stream = guarded.site.send("GET", "/sse", &[("Authorization", &bearer)], b"").await;
    assert_eq!(stream.status, 200);
    // An unreachable issuer leaves the token valid.
    guarded.issuers.down.store(true, Ordering::SeqCst);
    let asked = guarded.issuers.fetches("introspect");
    time.advance(seconds(31)).await;
    assert_eq!(guarded.issuers.fetches("introspect"), asked + 1);
    guarded.issuers.down.store(false, Ordering::SeqCst);
    let known = [("Authorization", &*bearer)];
    assert_eq!(guarded.site.metric_with("refmcp_streams", &known).await, 1.0);
    guarded.issuers.revoked.store(true, Ordering::SeqCst);
    time.advance(seconds(31)).await;
    timeout(SOON, stream.text()).await.expect("it ends");
    assert_eq!(guarded.ask(&[("Authorization", &bearer)]).await.status, 401);
}

#[tokio::test]
async fn introspection_pauses_between_requests() {
    let time = PausedTime::start();
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
    let asked = || guarded.issuers.fetches("introspect");
    let first = asked();
    for rechecks in 1..3 {
        time.advance(Duration::from_millis(500)).await;
        assert_eq!(asked(), first + rechecks - 1, "at most once a second");
        time.advance(Duration::from_millis(600)).await;
        assert_eq!(asked(), first + rechecks);
    }
}
