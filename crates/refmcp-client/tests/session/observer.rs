//! What an observer sees of a client over a pipe in memory.

use std::sync::Arc;

use refmcp_client::memory::Memory;
use refmcp_client::observer::Direction;
use refmcp_client::{Revision, VersionPolicy};
use refmcp_testkit::recording_observer::RecordingObserver;
use serde_json::json;

use crate::fixture::{Script, builder, server_builder};

#[tokio::test(start_paused = true)]
async fn messages_come_in_order_with_what_was_none_and_each_finding_with_its_message() {
    let observer = Arc::new(RecordingObserver::default());
    let (mut script, memory) = Script::new();
    let builder = builder().0.version_policy(VersionPolicy::Exactly(Revision::LATEST_SESSION));
    let builder = builder.observer(observer.clone());
    let misplaced = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","_meta":{}}"#;
    let serving = async {
        let request = script.next().await.unwrap();
        let result = json!({
            "protocolVersion": Revision::LATEST_SESSION.as_str(),
            "capabilities": {},
            "serverInfo": { "name": "scripted", "version": "1" },
        });
        script.say(json!({ "id": request["id"], "result": result })).await;
        assert_eq!(script.next().await.unwrap()["method"], "notifications/initialized");
        script.say_bytes(b"nonsense").await;
        script.say_bytes(misplaced.as_bytes()).await;
    };
    let (client, ()) = tokio::join!(builder.connect(memory), serving);
    let client = client.unwrap();
    let ping = tokio::spawn(async move {
        let pinged = client.ping().await;
        client.close().await;
        pinged
    });
    let request = script.next().await.unwrap();
    script.say(json!({ "id": request["id"], "result": {} })).await;
    ping.await.unwrap().unwrap();
    let lines = observer.lines();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let [opened, initialize, answer, initialized, invalid, malformed, misplaced_meta, finding, rest @ ..] =
        &lines[..]
    else {
        panic!("{lines:#?}")
    };
    assert_eq!(*opened, "opened memory a server in this process");
    assert!(initialize.starts_with(r#"sent {"jsonrpc":"2.0","id":1,"method":"initialize""#), "{initialize}");
    assert!(answer.starts_with("received {") && answer.contains("scripted"), "{answer}");
    assert_eq!(*initialized, r#"sent {"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(*invalid, r#"received invalid "nonsense": not JSON: expected null at byte 0"#);
    assert_eq!(*malformed, "finding STDIO-02 in nonsense");
    assert_eq!(*misplaced_meta, format!("received {misplaced}"));
    assert!(finding.starts_with("finding ") && finding.ends_with(misplaced), "{finding}");
    assert!(rest[0].contains(r#""method":"ping""#), "{rest:?}");
    assert!(rest[1].starts_with("received {"), "{rest:?}");
    assert_eq!(rest[2..], ["closed: the connection is closed"]);
    assert_eq!(observer.messages(Direction::Sent).len(), 3);
    let connections: Vec<u64> = observer.events().iter().map(|event| event.connection).collect();
    assert!(connections.iter().all(|connection| *connection == connections[0]));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_fails_is_closed_with_the_reason() {
    let observer = Arc::new(RecordingObserver::default());
    let (script, memory) = Script::new();
    drop(script);
    let failed = builder().0.observer(observer.clone()).connect(memory).await.unwrap_err();
    assert!(failed.to_string().contains("the server closed it"), "{failed}");
    let lines = observer.lines();
    assert_eq!(lines[0], "opened memory a server in this process");
    let ends: Vec<&String> = lines.iter().filter(|line| line.starts_with("closed: ")).collect();
    assert_eq!(ends, ["closed: the connection ended before the answer came: the server closed it"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_dropped_closes_its_connection() {
    let observer = Arc::new(RecordingObserver::default());
    let (mut script, memory) = Script::new();
    let builder = builder().0.version_policy(VersionPolicy::Exactly(Revision::LATEST));
    let observed = builder.observer(observer.clone());
    let serving = async {
        let request = script.next().await.unwrap();
        let result = json!({
            "resultType": "complete", "supportedVersions": [Revision::LATEST.as_str()], "capabilities": {},
            "serverInfo": { "name": "scripted", "version": "1" }, "ttlMs": 0, "cacheScope": "private",
        });
        script.say(json!({ "id": request["id"], "result": result })).await;
    };
    let (client, ()) = tokio::join!(observed.connect(memory), serving);
    drop(client.unwrap());
    observer.until("closed: ").await;
}

#[tokio::test(start_paused = true)]
async fn what_one_side_sends_the_other_receives() {
    let (ours, theirs) = (Arc::new(RecordingObserver::default()), Arc::new(RecordingObserver::default()));
    let server = server_builder().observer(theirs.clone()).build().unwrap();
    for revision in Revision::ALL {
        let builder = builder().0.version_policy(VersionPolicy::Exactly(revision)).observer(ours.clone());
        let client = builder.connect(Memory::new(server.in_memory())).await.unwrap();
        client.call_tool("steps", json!({ "steps": 2, "millis": 1 })).await.unwrap();
        client.call_tool("ask", json!({})).await.unwrap();
        client.close().await;
    }
    let sent = ours.messages(Direction::Sent);
    assert!(sent.len() > 20, "{sent:#?}");
    assert_eq!(sent, theirs.messages(Direction::Received));
    assert_eq!(theirs.messages(Direction::Sent), ours.messages(Direction::Received));
    let closed = |observer: &RecordingObserver| {
        observer.lines().iter().filter(|line| line.starts_with("closed: ")).count()
    };
    assert_eq!(closed(&ours), Revision::ALL.len());
}
