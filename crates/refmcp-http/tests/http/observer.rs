//! What an observer sees of each request: heads, messages, events, refusals, and the session that they belong to.

use std::sync::Arc;

use refmcp_http::{Endpoint, Options};
use refmcp_server::transport::observer::{Direction, Side};
use refmcp_server::{Call, NoArguments, Server, Tool};
use refmcp_testkit::recording_observer::{RecordedEvent, RecordingObserver};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::{Client, LATEST_SESSION, SHUTDOWN_TIMEOUT, STATELESS, Site, request, with_meta};
use crate::websocket;

async fn observed() -> (Site, Arc<RecordingObserver>) {
    let observer = Arc::new(RecordingObserver::default());
    let step = Tool::new("step", "Takes a step", |call: Call, _: NoArguments| async move {
        call.progress(1.0, Some(1.0), "on the way").await;
        Ok("there")
    });
    let server = Server::builder("observed", "1").tool(step).observer(observer.clone()).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let endpoint = Endpoint::builder(server).options(Options::default()).build();
    let stop = CancellationToken::new();
    let served = tokio::spawn(async move { endpoint.serve(listener, stop, SHUTDOWN_TIMEOUT).await });
    (Site::served_by(address, served), observer)
}

/// The events of the connection that this line is of, without the numbers of streams.
fn of_connection(observer: &RecordingObserver, line: &str) -> Vec<RecordedEvent> {
    let events = observer.events();
    let found =
        events.iter().find(|event| event.line.contains(line)).unwrap_or_else(|| panic!("{events:#?}"));
    let connection = found.connection;
    events.into_iter().filter(|event| event.connection == connection).collect()
}

fn beginnings(events: &[RecordedEvent]) -> Vec<String> {
    let short = |event: &RecordedEvent| {
        let line = event.line.split_once(' ').filter(|_| event.line.starts_with('#'));
        let line = line.map_or(event.line.as_str(), |(_, line)| line);
        line.split(['{', '"']).next().unwrap().trim_end().to_owned()
    };
    events.iter().map(short).collect()
}

#[tokio::test]
async fn a_session_is_one_connection_with_a_stream_for_each_request() {
    let (site, observer) = observed().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let events = client.call_with_progress(7, "step", json!({})).await.events().await;
    assert!(events.len() >= 2, "{events:?}");
    assert_eq!(client.delete().await, 204);
    observer.until("closed: ").await;
    let events = of_connection(&observer, "\"initialize\"");
    let lines = beginnings(&events);
    let expected = [
        "opened http 127.0.0.1",
        // initialize
        "received POST /mcp",
        "received",
        "sent status 200",
        "sent",
        "sent end",
        // initialized
        "received POST /mcp",
        "received",
        "sent status 202",
        "sent end",
        // the call, with progress and the answer
        "received POST /mcp",
        "received",
        "sent status 200",
        "sent event retry 1000",
        "sent event id 1.0",
        "sent",
        "sent",
        "sent end",
        "received DELETE /mcp",
        "sent status 204",
        "sent end",
        "closed: the client ended the session",
    ];
    assert_eq!(lines, expected, "{events:#?}");
    assert!(events.iter().all(|event| event.side == Side::Server));
    let stream = |index: usize| events[index].line.split(' ').next().unwrap().to_owned();
    assert!(stream(10).starts_with('#') && (11..18).all(|index| stream(index) == stream(10)), "{events:#?}");
    assert_ne!(stream(6), stream(10));
    assert!(events[15].line.contains("notifications/progress") && events[16].line.contains("there"));
    assert_eq!((&*events[15].event_id, &*events[16].event_id), ("1.1", "1.2"));
    let session = events[3].fields.iter().find(|(name, _)| name == "mcp-session-id");
    assert!(session.is_some(), "the head of the response is whole: {events:#?}");
}

#[tokio::test]
async fn a_request_without_a_session_is_a_connection_of_its_own() {
    let (site, observer) = observed().await;
    for _ in 0..2 {
        let reply = site.stateless("tools/list", json!({}), &[]).await;
        assert_eq!(reply.json().await["result"]["tools"][0]["name"], "step");
    }
    observer.until("closed: ").await;
    let opened: Vec<String> =
        observer.lines().into_iter().filter(|line| line.starts_with("opened")).collect();
    assert_eq!(opened.len(), 2);
    let events = of_connection(&observer, "tools/list");
    let expected = ["opened http 127.0.0.1", "received POST /mcp", "received", "sent status 200", "sent"];
    assert_eq!(beginnings(&events)[..5], expected);
    assert_eq!(beginnings(&events)[5..], ["sent end", "closed: finished"]);
}

#[tokio::test]
async fn refusals_and_what_is_no_json_are_seen_with_their_reason() {
    let (site, observer) = observed().await;
    let unknown = [("Mcp-Session-Id", "nowhere"), ("MCP-Protocol-Version", LATEST_SESSION)];
    assert_eq!(site.post(&unknown, &request("ping", json!({}))).await.status, 404);
    let lines = beginnings(&of_connection(&observer, "\"ping\""));
    assert_eq!(lines[1..3], ["received POST /mcp", "received"]);
    assert!(lines[3].starts_with("refused 404 session: "), "{lines:?}");
    assert_eq!(lines[4..6], ["sent status 404", "sent"]);
    let client = Client::open(&site, LATEST_SESSION).await;
    assert_eq!(site.send("POST", "/mcp", &client.headers(), b"{junk").await.status, 400);
    let events = of_connection(&observer, "\"initialize\"");
    let junk = events.iter().position(|event| event.line.contains("received invalid \"{junk\": not JSON"));
    let rest = &events[junk.expect("it is in its session")..];
    assert_eq!(rest[1].line, "finding RPC-01 in {junk");
    assert!(rest[2].line.contains("refused 400 message: not JSON"), "{rest:#?}");
    // A path that is none, and a page that may not come here.
    assert_eq!(site.send("GET", "/nothing?key=1", &[], b"").await.status, 404);
    let lines = beginnings(&of_connection(&observer, "GET /nothing"));
    assert!(lines[2].starts_with("refused 404 path: "), "{lines:?}");
    let evil = [("Origin", "https://evil.example")];
    assert_eq!(site.post(&evil, &request("ping", json!({}))).await.status, 403);
    assert!(observer.lines().iter().any(|line| line.contains("refused 403 origin: ")));
}

#[tokio::test]
async fn findings_outside_of_sessions_come_with_their_message() {
    let (site, observer) = observed().await;
    let note = json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": with_meta(json!({})) });
    assert_eq!(site.post(&[("MCP-Protocol-Version", STATELESS)], &note).await.status, 202);
    let lines = observer.lines();
    let finding = lines.iter().find(|line| line.contains("finding CANC-04 in {")).expect("a finding");
    assert!(finding.contains("$/cancelRequest"), "{finding}");
}

#[tokio::test]
async fn health_and_metrics_are_not_seen() {
    let (site, observer) = observed().await;
    assert_eq!(site.send("GET", "/healthz", &[], b"").await.status, 200);
    site.metric("refmcp_streams").await;
    assert_eq!(observer.lines(), [""; 0]);
}

#[tokio::test]
async fn http_sse_is_a_connection_with_the_get_stream() {
    let (site, observer) = observed().await;
    let mut stream = site.send("GET", "/sse", &[("Accept", "text/event-stream")], b"").await;
    let refmcp_proto::frame::SseItem::Event(endpoint) = stream.item().await.unwrap() else {
        panic!("no event")
    };
    let ping = request("ping", json!({}));
    assert_eq!(site.send("POST", &endpoint.data, &[], ping.to_string().as_bytes()).await.status, 202);
    stream.event().await.expect("an answer");
    drop(stream);
    observer.until("closed: ").await;
    let events = of_connection(&observer, "GET /sse");
    let lines: Vec<&str> = events.iter().map(|event| event.line.as_str()).collect();
    assert_eq!(lines[..3], ["opened http+sse 127.0.0.1", "#0 received GET /sse", "#0 sent status 200"]);
    assert!(lines[3].starts_with("#0 sent event endpoint \"/messages?sessionId="), "{lines:#?}");
    assert!(lines.contains(&"#0 received end"), "the reader has left: {lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("#0 sent {")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("received {") && !line.starts_with("#0 ")), "{lines:#?}");
    assert!(lines.contains(&"closed: the stream of the session ended"), "{lines:#?}");
}

#[tokio::test]
async fn a_websocket_is_one_connection_with_its_handshake() {
    let (site, observer) = observed().await;
    let mut socket = websocket::open(&site, "/mcp/ws").await;
    websocket::say(&mut socket, &request("ping", json!({}))).await;
    websocket::hear(&mut socket).await;
    socket.close(None).await.unwrap();
    let lines = observer.until("closed: ").await;
    assert_eq!(lines[..3], ["opened websocket 127.0.0.1", "received GET /mcp/ws", "sent status 101"]);
    let (received, sent) = (observer.messages(Direction::Received), observer.messages(Direction::Sent));
    assert_eq!((received.len(), sent.len()), (3, 2), "{lines:#?}");
    assert_eq!(lines.last().unwrap(), "closed: the peer closed it");
}
