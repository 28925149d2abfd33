//! An endpoint at another path: everything that names a path follows it.

use refmcp_http::{Endpoint, Options};
use serde_json::json;

use crate::http_sse;
use crate::support::{LATEST_SESSION, Site, initialize_params, request};

const UPGRADE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

fn at(path: &str) -> Options {
    Options { path: path.parse().unwrap(), ..Options::default() }
}

#[tokio::test]
async fn endpoint_and_websocket_have_the_configured_path() {
    for path in ["/", "/api/v1/tools", "/messages/mcp"] {
        let site = Site::open(at(path)).await;
        let opened = request("initialize", initialize_params(LATEST_SESSION)).to_string();
        let reply = site.send("POST", path, &[], opened.as_bytes()).await;
        assert_eq!(reply.status, 200, "{path}");
        let socket = format!("{}/ws", path.trim_end_matches('/'));
        for place in [path, &socket] {
            assert_eq!(site.send("GET", place, &UPGRADE, b"").await.status, 101, "{place}");
        }
        for gone in ["/mcp", "/mcp/ws"] {
            assert_eq!(site.send("POST", gone, &[], opened.as_bytes()).await.status, 404, "{gone}");
        }
        // HTTP+SSE has a fixed path.
        let (_stream, address) = http_sse::open(&site).await;
        assert!(address.starts_with("/messages?sessionId="), "{address}");
        let count = format!("refmcp_responses_total{{route=\"{path}\",status=\"2xx\"}}");
        assert_eq!(site.metric(&count).await, 1.0);
    }
}

#[tokio::test]
async fn a_nested_endpoint_keeps_its_configured_path() {
    let endpoint = Endpoint::builder(crate::support::tools::server().0).options(at("/tools")).build();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = axum::Router::new().nest("/api", endpoint.router());
    let site =
        Site::served_by(address, tokio::spawn(async move { axum::serve(listener, app).await.unwrap() }));
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    assert_eq!(site.send("POST", "/api/tools", &[], ping.as_bytes()).await.status, 400);
    assert_eq!(site.send("GET", "/api/tools/ws", &[], b"").await.status, 426);
    assert_eq!(site.send("POST", "/api/mcp", &[], ping.as_bytes()).await.status, 404);
}
