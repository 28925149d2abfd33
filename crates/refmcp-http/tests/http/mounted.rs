//! The endpoint as a part of an axum application.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use refmcp_http::Endpoint;
use refmcp_proto::frame::SseItem;
use serde_json::json;
use tokio::net::TcpListener;

use crate::http_sse;
use crate::support::tools;
use crate::support::{LATEST_SESSION, STATELESS, Site, initialize_params, request, text_of, with_meta};
use crate::websocket::{hear, say};

impl Site {
    /// An application that the endpoint is a part of.
    async fn application(endpoint: &Endpoint, mount: impl FnOnce(Router, Router) -> Router) -> Self {
        let own = Router::new().route("/own", get(async || "own"));
        let app = mount(own, endpoint.router());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        let served = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self::served_by(address, served)
    }
}

/// An endpoint merged into an application, and one that is nested in it, with the path in front of each.
async fn applications() -> [(Site, Endpoint, &'static str); 2] {
    let make = || Endpoint::builder(tools::server().0).build();
    let (merged, nested) = (make(), make());
    let one = Site::application(&merged, |app, endpoint| app.merge(endpoint)).await;
    let two = Site::application(&nested, |app, endpoint| app.nest("/api", endpoint)).await;
    [(one, merged, ""), (two, nested, "/api")]
}

#[tokio::test]
async fn sessions_work_in_merged_and_nested_routers() {
    for (site, _endpoint, at) in applications().await {
        let path = format!("{at}/mcp");
        let post = async |headers: &[(&str, &str)], body: serde_json::Value| {
            site.send("POST", &path, headers, body.to_string().as_bytes()).await
        };
        let opened = post(&[], request("initialize", initialize_params(LATEST_SESSION))).await;
        assert_eq!(opened.status, 200, "{at}");
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let named = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", LATEST_SESSION)];
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(post(&named, ready).await.status, 202);
        let echo = json!({ "name": "echo", "arguments": { "message": "m" } });
        assert_eq!(text_of(&post(&named, request("tools/call", echo)).await.json().await), "m");
        let standing = site.send("GET", &path, &named, b"").await;
        assert_eq!((standing.status, standing.is_sse()), (200, true));
        let steps =
            json!({ "name": "steps", "arguments": { "n": 2, "ms": 1 }, "_meta": { "progressToken": 1 } });
        assert_eq!(post(&named, request("tools/call", steps)).await.events().await.len(), 3);
        assert_eq!(site.send("DELETE", &path, &named, b"").await.status, 204);
        assert_eq!(standing.events().await, []);
    }
}

#[tokio::test]
async fn http_sse_names_the_nested_path() {
    for (site, _endpoint, at) in applications().await {
        let mut stream = site.send("GET", &format!("{at}/sse"), &[], b"").await;
        let Some(SseItem::Event(event)) = stream.item().await else { panic!("no event") };
        assert!(event.data.starts_with(&format!("{at}/messages?sessionId=")), "{}", event.data);
        http_sse::post(&site, &event.data, &request("initialize", initialize_params("2024-11-05"))).await;
        assert_eq!(stream.event().await.unwrap().1["result"]["protocolVersion"], "2024-11-05");
    }
}

#[tokio::test]
async fn websockets_work_in_merged_and_nested_routers() {
    for (site, _endpoint, at) in applications().await {
        for path in ["/mcp", "/mcp/ws"] {
            let address = format!("ws://{}{at}{path}", site.address);
            let socket = tokio::net::TcpStream::connect(site.address).await.unwrap();
            let (mut socket, _) = tokio_tungstenite::client_async(address, socket).await.unwrap();
            say(&mut socket, &request("initialize", initialize_params(LATEST_SESSION))).await;
            assert_eq!(hear(&mut socket).await["result"]["protocolVersion"], LATEST_SESSION);
        }
    }
}

#[tokio::test]
async fn clients_of_unknown_address_are_not_local() {
    let endpoint = Endpoint::builder(tools::server().0).build();
    let known = Site::application(&endpoint, |app, endpoint| app.merge(endpoint)).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = endpoint.router();
    let unknown =
        Site::served_by(address, tokio::spawn(async move { axum::serve(listener, app).await.unwrap() }));
    for (site, near) in [(known, "true"), (unknown, "false")] {
        for claimed in ["127.0.0.1", "10.0.0.1"] {
            let call = json!({ "name": "near", "arguments": {} });
            let reply = site.stateless("tools/call", call, &[("X-Forwarded-For", claimed)]).await;
            assert_eq!(text_of(&reply.json().await), near, "{claimed}");
        }
    }
}

#[tokio::test]
async fn the_rest_of_the_application_is_its_own() {
    for (site, _endpoint, at) in applications().await {
        assert_eq!(site.send("GET", "/own", &[], b"").await.text().await, "own");
        assert_eq!(site.send("GET", "/own", &[("Host", "evil.com")], b"").await.status, 200);
        for route in Endpoint::routes() {
            let path = format!("{at}{}", route.path);
            let stranger = [("Host", "evil.com")];
            assert_eq!(site.send(route.methods[0], &path, &stranger, b"{}").await.status, 403, "{path}");
            assert_eq!(site.send("PUT", &path, &[], b"").await.status, 405, "{path}");
            assert_eq!(site.send("OPTIONS", &path, &[], b"").await.status, 204, "{path}");
        }
        assert_eq!(site.send("GET", "/nothing", &[], b"").await.status, 404);
    }
}

#[tokio::test]
async fn a_server_that_stops_takes_nothing_new() {
    for (site, endpoint, at) in applications().await {
        let path = |path: &str| format!("{at}{path}");
        assert_eq!(site.send("GET", &path("/readyz"), &[], b"").await.status, 200);
        let standing = site.send("GET", &path("/sse"), &[], b"").await;
        assert_eq!(standing.status, 200);
        let slow = json!({ "name": "slow", "arguments": { "ms": 500 } });
        let body = request("tools/call", with_meta(slow)).to_string();
        let headers =
            [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "tools/call"), ("Mcp-Name", "slow")];
        let (mcp, metrics) = (path("/mcp"), path("/metrics"));
        let call = site.send("POST", &mcp, &headers, body.as_bytes());
        let stopping = async {
            while !site
                .send("GET", &metrics, &[], b"")
                .await
                .text()
                .await
                .contains("refmcp_requests_in_flight 1\n")
            {}
            endpoint.shut_down();
            let initialize = request("initialize", initialize_params(LATEST_SESSION)).to_string();
            for (method, path, body) in
                [("GET", path("/readyz"), ""), ("POST", path("/mcp"), &initialize), ("GET", path("/sse"), "")]
            {
                let reply = site.send(method, &path, &[], body.as_bytes()).await;
                assert_eq!(reply.status, 503, "{method} {path}");
                assert!(reply.header("retry-after").is_some(), "{method} {path}");
            }
            assert_eq!(site.send("GET", &path("/healthz"), &[], b"").await.text().await, "alive\n");
        };
        let (answered, ()) = tokio::join!(call, stopping);
        assert_eq!(text_of(&answered.answer().await), "slow", "what runs may finish");
        assert_eq!(standing.text().await.matches("event: endpoint").count(), 1, "it ends");
    }
}
