//! What a session keeps for itself, and what it can tell its client beside calls.

use std::sync::atomic::{AtomicU64, Ordering};

use refmcp_server::model::LogLevel;
use refmcp_server::{Call, CallError, LogMessage, NoArguments, Revision, Server, Tool};
use refmcp_testkit::client::{Pair, TestClient};
use serde_json::{Value, json};

use crate::support::{BOTH, SESSION, STATELESS, server};

#[derive(Default)]
struct Counter(AtomicU64);

impl Counter {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

async fn count(call: Call, _: NoArguments) -> Result<String, CallError> {
    let own = call.session().map(|session| session.value::<Counter>().next());
    Ok(format!("{own:?} {}", call.server().value::<Counter>().next()))
}

#[tokio::test]
async fn a_session_has_values_of_its_own() {
    let server = server([Tool::new("count", "Counts", count)]);
    let mut first = TestClient::open(&server, SESSION).await;
    let mut second = TestClient::open(&server, SESSION).await;
    let mut none = TestClient::open(&server, STATELESS).await;
    let mut counted = Vec::new();
    for client in [&mut first, &mut second, &mut none] {
        for _ in 0..2 {
            counted.push(client.tool_text("count", json!({})).await);
        }
    }
    assert_eq!(counted, ["Some(1) 1", "Some(2) 2", "Some(1) 3", "Some(2) 4", "None 5", "None 6"]);
}

async fn about(call: Call, _: NoArguments) -> Result<String, CallError> {
    let told = json!({
        "revision": call.peer().revision.as_str(),
        "client": call.peer().info.as_ref().map(|info| &info.name),
        "principal": call.principal(),
        "transport": call.connection().transport,
        "id": call.request_id().to_string(),
        "colour": call.meta("example.com/colour"),
        "roots changes": call.session().map(|session| session.roots_changes()),
    });
    Ok(told.to_string())
}

#[tokio::test]
async fn a_handler_knows_who_asks() {
    let server = server([Tool::new("about", "Who asks", about)]);
    for revision in Revision::ALL {
        let mut client = Pair::of(&server, "alice").start(revision).await.client;
        client.notify("notifications/roots/list_changed", json!({})).await;
        client.meta("example.com/colour", json!("red"));
        let id = client.start_tool("about", json!({})).await;
        let told = client.answer(id).await["result"]["content"][0]["text"].take();
        let told: Value = serde_json::from_str(told.as_str().unwrap()).unwrap();
        let expected = json!({
            "revision": revision.as_str(),
            "client": "testkit",
            "principal": "alice",
            "transport": "memory",
            "id": id.to_string(),
            "colour": "red",
            "roots changes": if revision == STATELESS { Value::Null } else { json!(1) },
        });
        assert_eq!(told, expected);
    }
}

/// Says something to the session that belongs to no call.
async fn announce(call: Call, _: NoArguments) -> Result<String, CallError> {
    if let Some(session) = call.session() {
        for level in [LogLevel::Debug, LogLevel::Warning] {
            session.log(LogMessage { level, logger: None, data: json!(level.to_string()) }).await;
        }
    }
    Ok("announced".to_owned())
}

#[tokio::test]
async fn a_session_hears_what_its_level_lets_through() {
    let server =
        Server::builder("test", "1").tool(Tool::new("announce", "Announces", announce)).build().unwrap();
    for (level, heard) in [(None, 1), (Some("debug"), 2), (Some("error"), 0)] {
        let mut client = TestClient::open(&server, SESSION).await;
        if let Some(level) = level {
            client.result("logging/setLevel", json!({ "level": level })).await;
        }
        client.tool("announce", json!({})).await;
        assert_eq!(client.take_notifications("notifications/message").len(), heard, "{level:?}");
    }
}

#[tokio::test]
async fn a_server_can_be_watched_without_being_kept() {
    let server = server([Tool::new("count", "Counts", count)]);
    let weak = server.downgrade();
    for revision in BOTH {
        assert!(weak.upgrade().is_some());
        TestClient::open(&server, revision).await.tool("count", json!({})).await;
    }
    drop(server);
    // The connections end with their clients, and the last of them lets the server go.
    while weak.upgrade().is_some() {
        tokio::task::yield_now().await;
    }
}
