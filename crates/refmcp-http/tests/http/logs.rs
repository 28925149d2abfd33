//! What is written into the log, at its most talkative: never what only the client may know, and never all that a
//! client likes to send.

use refmcp_testkit::log::Kept;
use serde_json::json;

use crate::legacy;
use crate::support::{Client, LATEST_SESSION, STATELESS, Site, opening, request};

/// The longest line and the longest response that a long input may lead to.
const LONG: usize = 10_000;
const SHORT: usize = 1000;

// Everything of this test runs on one thread, the server too, so the log is of nobody else.
#[tokio::test(flavor = "current_thread")]
async fn secrets_and_long_inputs_stay_out_of_it() {
    // Where there is only one, other threads decide by their own, which they do not have, what is logged at all.
    let _second = tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(Kept::default()).finish());
    let kept = Kept::default();
    let log = tracing_subscriber::fmt()
        .with_env_filter("refmcp=trace,refmcp_http=trace,refmcp_server=trace,refmcp_transport=trace");
    let _logging = tracing::subscriber::set_default(log.with_ansi(false).with_writer(kept.clone()).finish());
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    client.call(1, "echo", json!({ "message": "what-was-said" })).await.json().await;
    client.watch(2, "steps", json!({ "n": 1, "ms": 1, "note": "what-was-said" })).await.events().await;
    let (_stream, address) = legacy::open(&site).await;
    site.post(
        &[("Authorization", "Bearer the-token"), ("Cookie", "the-cookie")],
        &request("initialize", opening(LATEST_SESSION)),
    )
    .await;

    let long = "y".repeat(LONG);
    for header in [
        "Host",
        "Origin",
        "Accept",
        "Content-Type",
        "Content-Encoding",
        "MCP-Protocol-Version",
        "Mcp-Session-Id",
        "Last-Event-ID",
        "Sec-WebSocket-Key",
    ] {
        for method in ["POST", "GET", "DELETE"] {
            let another = Client::open(&site, LATEST_SESSION).await;
            let named = another.headers().into_iter().filter(|(name, _)| *name != header);
            let headers: Vec<_> = named.chain([(header, &*long)]).collect();
            let ping = request("ping", json!({})).to_string();
            let reply = site.send(method, "/mcp", &headers, ping.as_bytes()).await;
            if reply.status >= 400 {
                let said = reply.text().await;
                assert!(said.len() < SHORT, "{method} {header}: {} bytes", said.len());
            }
        }
    }
    for header in ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"] {
        let echo = json!({ "name": "echo", "arguments": { "message": "m" } });
        let reply = site.alone("tools/call", echo, &[(header, &long)]).await;
        assert_eq!(reply.status, 400, "{header}");
        let said = reply.text().await;
        assert!(said.len() < SHORT, "{header}: {} bytes", said.len());
    }
    site.send("GET", &format!("/{long}"), &[], b"").await;
    site.send("POST", &format!("/messages?sessionId={long}"), &[], b"{}").await;
    site.send("POST", "/mcp", &[("MCP-Protocol-Version", STATELESS)], long.as_bytes()).await;
    assert_eq!(client.delete().await, 204);

    let log = kept.text();
    assert!(log.contains("refused") && log.contains("answered"), "{log}");
    let legacy = address.rsplit_once('=').unwrap().1;
    for secret in [&*client.session, legacy, "the-token", "the-cookie", "what-was-said"] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
    for line in log.lines() {
        assert!(line.len() < SHORT, "{} bytes: {}", line.len(), &line[..300]);
    }
}
