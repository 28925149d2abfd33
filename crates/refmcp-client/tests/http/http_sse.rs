//! HTTP+SSE, the older transport.

use std::sync::Arc;
use std::time::Duration;

use refmcp_client::http::{HttpSettings, HttpSse, StreamableHttp};
use refmcp_client::transport::{Connector, Transport};
use refmcp_proto::engine::client::TransportError;

use crate::messages::{notification, progress, request, result};
use crate::raw_server::{Peer, Server, in_time};
use crate::recording_sink::{RecordingSink, SinkEvent};

const BEGINNING: &str = "event: endpoint\ndata: /messages?id=7\n\n";

/// Connects to a server whose stream begins like this.
async fn connect_to(
    server: &Server,
    beginning: &str,
) -> (Result<Arc<dyn Transport>, TransportError>, RecordingSink, Peer) {
    let mut settings = HttpSettings::default();
    settings.head_timeout = Duration::from_millis(300);
    settings.max_message_size = 1000;
    let connector = HttpSse::new(&format!("{}/sse", server.origin())).unwrap().settings(settings);
    let (into, sink) = RecordingSink::new();
    let serving = async {
        let (mut peer, seen) = server.request().await;
        assert_eq!((seen.method.as_str(), seen.path.as_str()), ("GET", "/sse"));
        assert_eq!(seen.header("accept"), Some("text/event-stream"));
        peer.stream().await;
        peer.chunk(beginning).await;
        peer
    };
    let (transport, peer) = tokio::join!(connector.connect(into), serving);
    (transport, sink, peer)
}

async fn refused(beginning: &str) -> TransportError {
    let server = Server::start().await;
    let (transport, _sink, mut peer) = connect_to(&server, beginning).await;
    peer.gone().await;
    transport.unwrap_err()
}

#[tokio::test]
async fn messages_go_to_the_endpoint_and_come_over_the_stream() {
    let server = Server::start().await;
    let (transport, mut sink, mut stream) =
        connect_to(&server, &format!(": hi\n\n{BEGINNING}data: {}\n\n", progress(0))).await;
    let transport = transport.unwrap();
    assert_eq!(sink.message().await, (None, progress(0)), "what came along is not lost");
    transport.clone().send(request(1, "initialize", None));
    let (mut peer, seen) = server.request().await;
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/messages?id=7"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    peer.respond(202, "Content-Type: text/plain\r\n", "Accepted").await;
    stream.chunk(&format!("event: message\ndata: {}\n\n", result(1))).await;
    assert_eq!(sink.message().await, (None, result(1)));
    transport.clone().send(notification(2, "notifications/initialized", None));
    transport.clone().send(request(3, "tools/list", None));
    assert!(peer.request().await.body.contains("notifications/initialized"));
    peer.respond(200, "", "").await;
    assert!(peer.request().await.body.contains("tools/list"));
    peer.respond(202, "", "").await;
    assert!(sink.is_empty());
    in_time("the end", transport.close()).await;
    stream.gone().await;
    peer.gone().await;
}

#[tokio::test]
async fn the_fallback_has_the_same_url_and_headers() {
    let server = Server::start().await;
    let connector = StreamableHttp::new(&server.url()).unwrap().header("Authorization", "Bearer t").unwrap();
    let older = connector.fallback().unwrap();
    assert_eq!(older.name(), connector.name());
    assert!(older.fallback().is_none() && !older.probe_may_be_ignored() && !connector.probe_may_be_ignored());
    let (sink, _sink) = RecordingSink::new();
    let (transport, mut peer) = tokio::join!(older.connect(sink), async {
        let (mut peer, seen) = server.request().await;
        assert_eq!((seen.path.as_str(), seen.header("authorization")), ("/mcp", Some("Bearer t")));
        peer.stream().await;
        peer.chunk(BEGINNING).await;
        peer
    });
    drop(transport.unwrap());
    peer.gone().await;
}

#[tokio::test]
async fn the_endpoint_is_in_the_origin() {
    for foreign in [
        "http://evil.example/m",
        "//evil.example/m",
        "https://127.0.0.1/m",
        "http://127.0.0.1:1/m",
        "http://[",
    ] {
        let why = refused(&format!("event: endpoint\ndata: {foreign}\n\n")).await;
        assert!(
            matches!(&why, TransportError::Misbehaved(why) if why.contains("endpoint")),
            "{foreign}: {why:?}"
        );
    }
}

#[tokio::test]
async fn a_stream_begins_with_its_endpoint() {
    let why = refused(&format!("data: {}\n\n", progress(1))).await;
    assert!(
        matches!(&why, TransportError::Misbehaved(why) if why.contains("instead of an endpoint")),
        "{why:?}"
    );
    let why = refused(": nothing\n\n").await;
    assert!(matches!(&why, TransportError::Misbehaved(why) if why.contains("300ms")), "{why:?}");
    let why = refused(&format!("event: endpoint\ndata: /{}\n\n", "x".repeat(2000))).await;
    assert!(matches!(why, TransportError::Misbehaved(_)), "{why:?}");
}

#[tokio::test]
async fn a_place_without_a_stream() {
    for (response, wanted) in [
        ("HTTP/1.1 404 X\r\nContent-Length: 2\r\n\r\nno", "status 404"),
        ("HTTP/1.1 405 X\r\nContent-Length: 0\r\n\r\n", "status 405"),
        ("HTTP/1.1 401 X\r\nContent-Length: 0\r\n\r\n", "authorization"),
        ("HTTP/1.1 200 X\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>", "text/html"),
    ] {
        let server = Server::start().await;
        let connector = HttpSse::new(&server.url()).unwrap();
        let (sink, _sink) = RecordingSink::new();
        let (transport, ()) = tokio::join!(connector.connect(sink), async {
            server.request().await.0.write(response).await;
        });
        let why = transport.unwrap_err().to_string();
        assert!(why.contains(wanted), "{why}");
    }
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end() {
    let server = Server::start().await;
    let (_transport, mut sink, mut stream) = connect_to(&server, BEGINNING).await;
    stream.chunk("event: ping\ndata: x\n\n").await;
    assert!(matches!(sink.next().await, SinkEvent::IgnoredInput(_)));
    stream.end().await;
    assert_eq!(sink.next().await, SinkEvent::Closed(TransportError::Broken("the stream ended".to_owned())));
    let server = Server::start().await;
    let (_transport, mut sink, mut stream) = connect_to(&server, BEGINNING).await;
    stream.chunk(&format!("data: {}\n\n", "x".repeat(2000))).await;
    assert_eq!(sink.next().await, SinkEvent::TooLong(None, 1000));
    assert!(matches!(sink.next().await, SinkEvent::Closed(TransportError::Misbehaved(_))));
}

#[tokio::test]
async fn a_refused_message_is_told() {
    let server = Server::start().await;
    let (transport, mut sink, _stream) = connect_to(&server, BEGINNING).await;
    let transport = transport.unwrap();
    transport.clone().send(request(1, "ping", None));
    let (mut peer, _) = server.request().await;
    peer.respond(404, "", "no such session").await;
    let refused = TransportError::Refused {
        status: 404,
        error: None,
        body: "no such session".to_owned(),
        retry_after: None,
    };
    assert_eq!(sink.ended().await, (1, refused));
    transport.clone().send(request(2, "ping", None));
    peer.request().await;
    drop(peer);
    assert!(matches!(sink.ended().await, (2, TransportError::Broken(_))));
    transport.clone().close().await;
    transport.clone().send(request(3, "ping", None));
    assert_eq!(sink.ended().await, (3, TransportError::Closed));
}
