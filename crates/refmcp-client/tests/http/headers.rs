//! What is said in front of messages, in both lifecycles.

use refmcp_client::http::StreamableHttp;
use refmcp_client::transport::Connector;
use refmcp_proto::engine::client::ClientMessageKind;
use refmcp_proto::revision::Revision;

use crate::messages::{ALONE, SESSIONS, connect, connect_to, notification, request, result};
use crate::raw_server::{Seen, Server};

#[tokio::test]
async fn sessions_name_their_revision_once_it_is_agreed() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "initialize", None));
    let (mut peer, seen) = server.request().await;
    assert_eq!(seen.header("mcp-protocol-version"), None);
    peer.json(&result(1)).await;
    sink.message().await;
    transport.clone().send(request(2, "tools/list", SESSIONS));
    let seen = peer.request().await;
    assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(seen.header("mcp-method"), None, "nothing is repeated in a session");
    peer.json(&result(2)).await;
    sink.message().await;
    transport.clone().send(request(3, "tools/list", Some(Revision::V2025_03_26)));
    assert_eq!(
        peer.request().await.header("mcp-protocol-version"),
        None,
        "that revision knows no such header"
    );
}

async fn headers_of(name: Option<&str>, mirrored: &[(&str, &str)]) -> Seen {
    let server = Server::start().await;
    let (transport, _sink) = connect_to(&server).await;
    let mut message = request(1, "tools/call", ALONE);
    let param_headers =
        mirrored.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    message.kind =
        ClientMessageKind::Request { method: "tools/call".into(), name: name.map(Into::into), param_headers };
    transport.clone().send(message);
    server.request().await.1
}

#[tokio::test]
async fn requests_that_stand_alone_repeat_what_they_are() {
    let seen = headers_of(Some("echo"), &[("Region", "us-west1"), ("Count", "42")]).await;
    assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(seen.header("mcp-method"), Some("tools/call"));
    assert_eq!(seen.header("mcp-name"), Some("echo"));
    assert_eq!(seen.header("mcp-param-region"), Some("us-west1"));
    assert_eq!(seen.header("mcp-param-count"), Some("42"));
}

#[tokio::test]
async fn values_that_no_header_can_hold_are_in_base64() {
    let seen = headers_of(
        Some("grüß\r\nEvil: yes"),
        &[("A", " edge "), ("B", "=?base64?eA==?="), ("C", "日本"), ("D", ""), ("bad name", "x")],
    )
    .await;
    assert_eq!(seen.header("mcp-name"), Some("=?base64?Z3LDvMOfDQpFdmlsOiB5ZXM=?="));
    assert_eq!(seen.header("mcp-param-a"), Some("=?base64?IGVkZ2Ug?="));
    assert_eq!(seen.header("mcp-param-b"), Some("=?base64?PT9iYXNlNjQ/ZUE9PT89?="));
    assert_eq!(seen.header("mcp-param-c"), Some("=?base64?5pel5pys?="));
    assert_eq!(seen.header("mcp-param-d"), Some(""));
    assert_eq!(seen.header("evil"), None);
}

#[tokio::test]
async fn a_lone_request_belongs_to_no_session() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(request(1, "server/discover", ALONE));
    let (mut peer, seen) = server.request().await;
    assert_eq!(seen.header("mcp-name"), None);
    peer.respond(200, "Content-Type: application/json\r\nMcp-Session-Id: stray\r\n", &result(1)).await;
    sink.message().await;
    transport.clone().send(request(2, "tools/list", ALONE));
    assert_eq!(peer.request().await.header("mcp-session-id"), None);
    peer.json(&result(2)).await;
    sink.message().await;
    transport.clone().send(notification(3, "notifications/x", ALONE));
    let seen = peer.request().await;
    assert_eq!(seen.header("mcp-method"), Some("notifications/x"));
    assert_eq!(seen.header("mcp-session-id"), None);
}

#[tokio::test]
async fn extra_headers_go_with_everything() {
    let server = Server::start().await;
    let connector = StreamableHttp::new(&format!("{}/mcp?key=k#part", server.origin())).unwrap();
    let connector = connector.header("Authorization", "Bearer token").unwrap().header("X-A", "b").unwrap();
    assert!(!format!("{connector:?} {}", connector.name()).contains("token"));
    assert!(!connector.name().contains("key"));
    assert!(connector.clone().header("Mcp-Session-Id", "x").is_err());
    let (transport, mut sink) = connect(&connector).await;
    transport.clone().send(request(1, "initialize", None));
    let (mut peer, seen) = server.request().await;
    assert_eq!(seen.path, "/mcp?key=k");
    peer.respond(200, "Content-Type: application/json\r\nMcp-Session-Id: s1\r\n", &result(1)).await;
    sink.message().await;
    transport.clone().opened(Revision::LATEST_SESSION.rules());
    let get = peer.request().await;
    assert_eq!(get.method, "GET");
    let closing = tokio::spawn(transport.close());
    let (mut last, delete) = server.request().await;
    assert_eq!(delete.method, "DELETE");
    last.accepted().await;
    closing.await.unwrap();
    for seen in [seen, get, delete] {
        assert_eq!(seen.header("authorization"), Some("Bearer token"), "{seen:?}");
        assert_eq!(seen.header("x-a"), Some("b"));
        assert!(seen.header("user-agent").unwrap().starts_with("refmcp/"));
    }
}
