//! What an observer sees over HTTP: heads, messages and other content, each with its stream.

use refmcp_client::http::{HttpSettings, HttpSse, StreamableHttp};
use refmcp_client::transport::Connector;
use refmcp_proto::revision::Revision;
use refmcp_testkit::recording_observer::RecordingObserver;

use crate::messages::{event, notification, progress, request, result};
use crate::raw_server::{Server, in_time};
use crate::recording_sink::{RecordingSink, SinkEvent};

const REVISION: Option<Revision> = Some(Revision::LATEST_SESSION);

/// The value of a field in the head with this line.
fn field(observer: &RecordingObserver, line: &str, name: &str) -> String {
    let events = observer.events();
    let head = events.iter().find(|event| event.line == line).expect("a head");
    head.fields.iter().find(|(found, _)| found == name).expect("a field").1.clone()
}

#[tokio::test]
async fn each_post_has_its_heads_and_messages() {
    let server = Server::start().await;
    let (sink, mut recorded, observer) = RecordingSink::observed();
    let transport = StreamableHttp::new(&server.url()).unwrap().connect(sink).await.unwrap();
    let asked = request(1, "tools/list", REVISION);
    let asked_json = String::from_utf8(asked.json.clone()).unwrap();
    transport.clone().send(asked);
    let (mut peer, _) = server.request().await;
    peer.respond(200, "Content-Type: application/json\r\nMcp-Session-Id: s1\r\n", &result(1)).await;
    recorded.message().await;
    // An answer as events, one of which is none of ours.
    transport.clone().send(request(2, "tools/list", REVISION));
    let seen = peer.request().await;
    assert_eq!(seen.header("mcp-session-id"), Some("s1"));
    peer.stream().await;
    peer.chunk(&format!("event: other\ndata: ?\n\n{}", event("a", &progress(1)))).await;
    peer.chunk(&event("b", &result(2))).await;
    peer.end().await;
    assert_eq!(recorded.next().await, SinkEvent::IgnoredInput("an event named \"other\"".to_owned()));
    recorded.message().await;
    recorded.message().await;
    // A refusal with a page.
    transport.clone().send(notification(3, "notifications/x", REVISION));
    peer.request().await;
    peer.respond(500, "Content-Type: text/html\r\n", "<h1>broken</h1>").await;
    recorded.ended().await;
    let lines = observer.lines();
    let find = |beginning: &str| lines.iter().find(|line| line.starts_with(beginning));
    assert_eq!(
        lines[1..6],
        [
            "#1 sent POST /mcp".to_owned(),
            format!("#1 sent {asked_json}"),
            "#1 received status 200".to_owned(),
            format!("#1 received {}", result(1)),
            "#1 received end".to_owned(),
        ]
    );
    assert_eq!(field(&observer, "#1 sent POST /mcp", "content-type"), "application/json");
    assert_eq!(field(&observer, "#1 received status 200", "mcp-session-id"), "s1");
    assert_eq!(field(&observer, "#2 sent POST /mcp", "mcp-session-id"), "s1");
    assert_eq!(
        lines[8..13],
        [
            "#2 received status 200".to_owned(),
            "#2 received event other \"?\"".to_owned(),
            format!("#2 received {}", progress(1)),
            format!("#2 received {}", result(2)),
            "#2 received end".to_owned(),
        ]
    );
    assert_eq!((&*observer.events()[10].event_id, &*observer.events()[11].event_id), ("a", "b"));
    assert!(find("#3 received status 500").is_some(), "{lines:#?}");
    assert!(find("#3 received invalid \"<h1>broken</h1>\": not JSON").is_some(), "{lines:#?}");
    assert!(find("#3 failed: the server refused with status 500").is_some(), "{lines:#?}");
    // The end of the session belongs to no stream.
    let closing = tokio::spawn(transport.close());
    let seen = peer.request().await;
    assert_eq!(seen.method, "DELETE");
    peer.respond(204, "", "").await;
    in_time("the end", closing).await.unwrap();
    assert_eq!(
        observer.lines()[lines.len()..],
        ["sent DELETE /mcp", "received status 204", "received end", "closed: finished"]
    );
}

#[tokio::test]
async fn bodies_of_refusals_are_seen() {
    let server = Server::start().await;
    let (sink, mut recorded, observer) = RecordingSink::observed();
    let transport = StreamableHttp::new(&server.url()).unwrap().connect(sink).await.unwrap();
    transport.clone().send(request(1, "initialize", REVISION));
    let (mut peer, _) = server.request().await;
    peer.respond(200, "Content-Type: application/json\r\nMcp-Session-Id: s1\r\n", &result(1)).await;
    recorded.message().await;
    let challenge = "WWW-Authenticate: Bearer\r\n";
    for (id, status, headers) in [(2, 401, challenge), (3, 403, challenge), (4, 403, ""), (5, 404, "")] {
        transport.clone().send(request(id, "tools/list", REVISION));
        peer.request().await;
        peer.respond(status, headers, &format!("why {status}")).await;
        recorded.ended().await;
        let lines = observer.lines();
        let head = lines.iter().position(|line| *line == format!("#{id} received status {status}"));
        let body = &lines[head.expect("a head") + 1];
        assert!(body.starts_with(&format!("#{id} received invalid \"why {status}\": ")), "{lines:#?}");
    }
}

#[tokio::test]
async fn content_of_another_type_is_no_message() {
    let server = Server::start().await;
    let (sink, mut recorded, observer) = RecordingSink::observed();
    let transport = StreamableHttp::new(&server.url()).unwrap().connect(sink).await.unwrap();
    transport.clone().send(request(1, "tools/list", REVISION));
    let (mut peer, _) = server.request().await;
    peer.respond(200, "Content-Type: text/html\r\n", "<p>hi</p>").await;
    recorded.ended().await;
    let lines = observer.lines();
    assert!(
        lines.contains(&"#1 received invalid \"<p>hi</p>\": content of type text/html".to_owned()),
        "{lines:#?}"
    );
}

#[tokio::test]
async fn the_get_stream_has_a_number_of_its_own() {
    let server = Server::start().await;
    let (sink, mut recorded, observer) = RecordingSink::observed();
    let transport = StreamableHttp::new(&server.url()).unwrap().connect(sink).await.unwrap();
    transport.clone().opened(Revision::LATEST_SESSION.rules());
    let (mut peer, seen) = server.request().await;
    assert_eq!(seen.method, "GET");
    peer.stream().await;
    peer.chunk(&event("a", &progress(1))).await;
    recorded.message().await;
    assert_eq!(
        observer.lines()[1..],
        [
            "#0 sent GET /mcp".to_owned(),
            "#0 received status 200".to_owned(),
            format!("#0 received {}", progress(1)),
        ]
    );
}

#[tokio::test]
async fn http_sse_has_its_stream_and_its_posts() {
    let server = Server::start().await;
    let mut settings = HttpSettings::default();
    settings.max_message_size = 1000;
    let connector = HttpSse::new(&format!("{}/sse", server.origin())).unwrap().settings(settings);
    let (sink, mut recorded, observer) = RecordingSink::observed();
    let serving = async {
        let (mut peer, _) = server.request().await;
        peer.stream().await;
        peer.chunk("event: endpoint\ndata: /messages?id=7\n\n").await;
        peer
    };
    let (transport, mut stream) = tokio::join!(connector.connect(sink), serving);
    let asked = request(1, "initialize", None);
    let asked_json = String::from_utf8(asked.json.clone()).unwrap();
    transport.as_ref().unwrap().clone().send(asked);
    let (mut peer, _) = server.request().await;
    peer.accepted().await;
    observer.until("#1 received end").await;
    stream.chunk(&format!("event: message\ndata: {}\n\n", result(1))).await;
    recorded.message().await;
    assert_eq!(
        observer.lines()[1..],
        [
            "#0 sent GET /sse".to_owned(),
            "#0 received status 200".to_owned(),
            "#0 received event endpoint \"/messages?id=7\"".to_owned(),
            "#1 sent POST /messages?id=7".to_owned(),
            format!("#1 sent {asked_json}"),
            "#1 received status 202".to_owned(),
            "#1 received end".to_owned(),
            format!("#0 received {}", result(1)),
        ]
    );
    stream.chunk(&format!("data: {}\n\n", "x".repeat(2000))).await;
    assert_eq!(recorded.next().await, SinkEvent::TooLong(None, 1000));
    let lines = observer.until("closed: ").await;
    assert!(lines.contains(&"#0 received invalid \"\": longer than 1000 bytes".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"#0 sent end".to_owned()), "the reader has left: {lines:#?}");
}
