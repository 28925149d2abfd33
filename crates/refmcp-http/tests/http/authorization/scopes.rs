//! Scopes: a valid token that does not cover the request.

use refmcp_proto::frame::SseItem;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::{Guarded, challenge, in_session};
use crate::support::http1::Reply;
use crate::support::{initialize_params, request, text_of};
use crate::websocket::{Socket, hear, say};

fn call(tool: &str) -> Value {
    json!({ "name": tool, "arguments": {} })
}

fn lacks(guarded: &Guarded, reply: &Reply, scopes: &str, document: &str) {
    assert_eq!(reply.status, 403);
    let challenge = challenge(reply);
    assert!(challenge.is("Bearer"));
    assert_eq!(challenge.get("error"), Some("insufficient_scope"));
    assert_eq!(challenge.get("scope"), Some(scopes), "all that it takes, at once");
    assert_eq!(challenge.get("resource_metadata"), Some(&*guarded.document(document)));
}

#[tokio::test]
async fn insufficient_scope_names_all_needed_scopes() {
    let guarded = Guarded::open().await;
    let half = guarded.bearer(json!({ "scope": "dear:read" }));
    let whole = guarded.bearer(json!({ "scope": "x dear:write dear:read" }));
    let reply = guarded.site.stateless("tools/call", call("dear"), &[("Authorization", &half)]).await;
    lacks(&guarded, &reply, "dear:read dear:write", "/mcp");
    assert_eq!(reply.json().await["id"], 1, "the body says whose call it was");
    let reply = guarded.site.stateless("tools/call", call("dear"), &[("Authorization", &whole)]).await;
    assert_eq!(text_of(&reply.json().await), "dear");

    // In a session, what counts is the token of the request and not the one that opened it.
    let session = guarded.session(&half).await;
    let asked = request("tools/call", call("dear"));
    lacks(
        &guarded,
        &guarded.site.post(&in_session(&half, &session), &asked).await,
        "dear:read dear:write",
        "/mcp",
    );
    let reply = guarded.site.post(&in_session(&whole, &session), &asked).await;
    assert_eq!(text_of(&reply.json().await), "dear");
    lacks(
        &guarded,
        &guarded.site.post(&in_session(&half, &session), &asked).await,
        "dear:read dear:write",
        "/mcp",
    );
    let free = request("tools/call", json!({ "name": "echo", "arguments": { "message": "m" } }));
    assert_eq!(guarded.site.post(&in_session(&half, &session), &free).await.status, 200);
    assert_eq!(guarded.metric("refmcp_rejections_total{reason=\"forbidden\"}").await, 3.0);
}

#[tokio::test]
async fn a_tool_of_a_session_has_its_own_scopes() {
    let guarded = Guarded::open().await;
    let bearer = guarded.bearer(json!({}));
    let session = guarded.session(&bearer).await;
    let post = async |bearer: &str, tool: &str| {
        guarded.site.post(&in_session(bearer, &session), &request("tools/call", call(tool))).await
    };
    assert_eq!(post(&bearer, "grow").await.status, 200);
    lacks(&guarded, &post(&bearer, "own").await, "own", "/mcp");
    let owner = guarded.bearer(json!({ "scope": "own" }));
    assert_eq!(text_of(&post(&owner, "own").await.json().await), "own");
    // A tool of the same name in a session does not open that of the server.
    let named = [("Authorization", &*bearer), ("Mcp-Session-Id", &*session)];
    let alone = guarded.site.stateless("tools/call", call("dear"), &named).await;
    lacks(&guarded, &alone, "dear:read dear:write", "/mcp");
    lacks(&guarded, &post(&bearer, "dear").await, "dear:read dear:write", "/mcp");
}

#[tokio::test]
async fn a_batch_is_refused_as_a_whole() {
    let guarded = Guarded::open().await;
    let bearer = guarded.bearer(json!({ "scope": "dear:read" }));
    let authorized = [("Authorization", &*bearer)];
    let reply = guarded.site.post(&authorized, &request("initialize", initialize_params("2025-03-26"))).await;
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    let headers = [("Authorization", &*bearer), ("Mcp-Session-Id", &*session)];
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(guarded.site.post(&headers, &told).await.status, 202);
    let numbered = |id: u32, tool: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call(tool) });
    let batch =
        json!([numbered(1, "whoami"), numbered(2, "dear"), numbered(3, "dearer"), numbered(4, "dear")]);
    lacks(&guarded, &guarded.site.post(&headers, &batch).await, "dear:read dear:write dearer", "/mcp");
    assert_eq!(guarded.site.post(&headers, &json!([numbered(1, "whoami")])).await.status, 200);
}

#[tokio::test]
async fn http_sse_refuses_messages_without_the_scopes() {
    let guarded = Guarded::open().await;
    let bearer = guarded.bearer(json!({}));
    let authorized = [("Authorization", &*bearer)];
    let mut stream = guarded.site.send("GET", "/sse", &authorized, b"").await;
    let Some(SseItem::Event(told)) = stream.item().await else { panic!("no event") };
    let post = async |body: Value| {
        guarded.site.send("POST", &told.data, &authorized, body.to_string().as_bytes()).await
    };
    assert_eq!(post(request("initialize", initialize_params("2024-11-05"))).await.status, 202);
    stream.event().await.unwrap();
    lacks(&guarded, &post(request("tools/call", call("dear"))).await, "dear:read dear:write", "/sse");
}

async fn exchange(socket: &mut Socket, body: Value) -> Value {
    say(socket, &body).await;
    hear(socket).await
}

#[tokio::test]
async fn a_websocket_answers_insufficient_scope_with_an_error() {
    let guarded = Guarded::open().await;
    let token = guarded.token(json!({ "scope": "dear:read" }));
    let mut asked = format!("ws://{}/mcp/ws", guarded.site.address).into_client_request().unwrap();
    // As a web page does it, which can send no header of its own.
    let offered = format!("mcp, mcp.bearer.{token}");
    asked.headers_mut().insert("sec-websocket-protocol", offered.parse().unwrap());
    let stream = TcpStream::connect(guarded.site.address).await.unwrap();
    let (mut socket, response) = client_async(asked, stream).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "mcp", "a token is never said again");
    exchange(&mut socket, request("initialize", initialize_params(crate::support::LATEST_SESSION))).await;
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    say(&mut socket, &told).await;
    let refused = exchange(&mut socket, request("tools/call", call("dear"))).await;
    assert_eq!(refused["error"]["code"], refmcp_server::INSUFFICIENT_SCOPE, "{refused}");
    assert_eq!(refused["error"]["data"]["scope"], "dear:read dear:write");
    let known = exchange(&mut socket, request("tools/call", call("whoami"))).await;
    assert_eq!(text_of(&known), r#"["https://issuer.example","me","client"]"#);
}
