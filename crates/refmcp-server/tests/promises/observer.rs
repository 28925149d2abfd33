//! An observer sees each message of a pipe with exact bytes and in order, what is no message, findings and the end.

use std::sync::Arc;

use refmcp_server::transport::observer::{Direction, Side};
use refmcp_server::{Call, Limits, NoArguments, Server, Tool};
use refmcp_testkit::client::TestClient;
use refmcp_testkit::recording_observer::RecordingObserver;
use serde_json::json;

fn server(observer: &Arc<RecordingObserver>) -> Server {
    Server::builder("observed", "1")
        .tool(Tool::new("greet", "Greets", |_: Call, _: NoArguments| async { Ok("hello") }))
        .limits(Limits { max_message_size: 1000, ..Limits::default() })
        .observer(observer.clone())
        .build()
        .unwrap()
}

#[tokio::test]
async fn messages_and_what_is_none_are_seen_with_findings_and_the_end() {
    let observer = Arc::new(RecordingObserver::default());
    let mut client = TestClient::over(server(&observer).in_memory());
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping","_meta":{}}"#;
    client.send_text("junk").await;
    client.send_text(&"x".repeat(2000)).await;
    client.send_text(ping).await;
    client.answer(1).await;
    drop(client);
    let lines = observer.until("closed: ").await;
    assert_eq!(lines[0], "opened memory ");
    assert!(lines[1].starts_with("received invalid \"junk\": not JSON"), "{lines:#?}");
    assert_eq!(lines[2], "finding RPC-01 in junk");
    let position = |wanted: &str| lines.iter().position(|line| line.starts_with(wanted)).expect(wanted);
    let (too_long, pinged) =
        (position("received invalid \"\": longer than"), position(&format!("received {ping}")));
    assert!(too_long < pinged, "{lines:#?}");
    assert!(lines[pinged + 1].starts_with("finding ") && lines[pinged + 1].ends_with(ping), "{lines:#?}");
    assert_eq!(lines.last().unwrap(), "closed: the peer closed it");
    let events = observer.events();
    assert!(
        events.iter().all(|event| event.side == Side::Server && event.connection == events[0].connection)
    );
}

#[tokio::test]
async fn each_connection_has_its_own_number_and_its_messages_in_order() {
    let observer = Arc::new(RecordingObserver::default());
    let server = server(&observer);
    for _ in 0..2 {
        let mut client = TestClient::open(&server, refmcp_server::Revision::LATEST_SESSION).await;
        assert_eq!(client.tool_text("greet", json!({})).await, "hello");
        assert_eq!(client.tool_text("greet", json!({})).await, "hello");
    }
    let (sent, received) = (observer.messages(Direction::Sent), observer.messages(Direction::Received));
    assert_eq!(received.iter().filter(|message| message.contains("tools/call")).count(), 4);
    assert_eq!(sent.len() + 2, received.len(), "`initialized` is not answered");
    let mut connections: Vec<u64> = observer.events().iter().map(|event| event.connection).collect();
    connections.sort_unstable();
    connections.dedup();
    assert_eq!(connections.len(), 2);
}
