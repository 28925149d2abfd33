//! How a conversation is opened, and how it fails to.

use std::sync::Arc;
use std::time::Duration;

use refmcp_client::memory::Memory;
use refmcp_client::transport::{BoxFuture, Connector, JsonObject, MessageSink, Transport};
use refmcp_client::{OpenError, Revision, TransportError, VersionPolicy};
use serde_json::json;
use tokio::time::Instant;

use crate::fixture::{Script, builder, client_of, server};

#[tokio::test(start_paused = true)]
async fn every_revision_can_be_asked_for() {
    let server = server();
    for revision in Revision::ALL {
        let (client, _) = client_of(&server, revision).await;
        let facts = client.server();
        assert_eq!(facts.revision, revision);
        assert_eq!(facts.info.as_ref().unwrap().name, "everything");
        assert!(facts.capabilities.tools.is_some());
        client.ping().await.unwrap();
        client.close().await;
        let late = client.ping().await.unwrap_err().to_string();
        assert_eq!(late, "the conversation is not open: the connection is closed");
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_is_spoken_unless_told_otherwise() {
    let server = server();
    for (era, revision) in [
        (VersionPolicy::Auto, Revision::LATEST),
        (VersionPolicy::Modern, Revision::LATEST),
        (VersionPolicy::Legacy, Revision::LATEST_SESSION),
    ] {
        let memory = Memory::new(server.in_memory());
        let client = builder().0.version_policy(era).connect(memory).await.unwrap();
        assert_eq!(client.server().revision, revision);
    }
}

/// A way to a server that takes something beyond the protocol.
#[derive(Debug)]
struct Extended(Memory);

impl Connector for Extended {
    fn connect(
        &self,
        sink: Arc<dyn MessageSink>,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
        self.0.connect(sink)
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn extensions(&self) -> JsonObject {
        JsonObject::from_iter([("com.example/way".to_owned(), json!({ "a": 1 }))])
    }
}

#[tokio::test(start_paused = true)]
async fn extensions_of_the_way_are_told_where_the_revision_has_a_place_for_them() {
    let (mut script, memory) = Script::new();
    let (builder, _) = builder();
    let serving = async {
        let asked = script.next().await.unwrap();
        let told = &asked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        let extensions = json!({ "com.example/way": { "a": 1 }, "io.modelcontextprotocol/tasks": {} });
        assert_eq!(told["extensions"], extensions);
        assert!(told["sampling"].is_object(), "what the application can do is told as well: {told}");
        let asked = script.next().await.unwrap();
        assert_eq!(asked["method"], "initialize");
        assert_eq!(asked["params"]["capabilities"].get("extensions"), None);
        assert!(asked["params"]["capabilities"]["sampling"].is_object());
    };
    tokio::select! {
        _ = builder.connect(Extended(memory)) => panic!("there was no answer"),
        () = serving => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_what_it_does_not_know_costs_the_probe_and_no_more() {
    let (mut script, memory) = Script::new();
    let begun = Instant::now();
    let (builder, _) = builder();
    let serving = async {
        assert_eq!(script.next().await.unwrap()["method"], "server/discover");
        script.open("2024-11-05").await;
    };
    let (client, ()) = tokio::join!(builder.connect(memory), serving);
    assert_eq!(client.unwrap().server().revision, Revision::V2024_11_05);
    assert_eq!(begun.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_revision_of_a_server_is_known_until_it_fails() {
    let (builder, _) = builder();
    for asked in [true, false] {
        let (mut script, memory) = Script::new();
        let serving = async {
            if asked {
                let probe = script.next().await.unwrap();
                assert_eq!(probe["method"], "server/discover");
                script
                    .say(json!({ "id": probe["id"], "error": { "code": -32601, "message": "what?" } }))
                    .await;
            }
            script.open("2025-06-18").await;
        };
        let (client, ()) = tokio::join!(builder.connect(memory), serving);
        assert_eq!(client.unwrap().server().revision, Revision::V2025_06_18);
    }
    let memory = refmcp_client::memory::Memory::new(server().in_memory());
    let known = builder.clone().known_revision("a server in this process", Revision::LATEST);
    assert_eq!(known.connect(memory).await.unwrap().server().revision, Revision::LATEST);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_left() {
    let (mut script, memory) = Script::new();
    let (builder, _) = builder();
    let begun = Instant::now();
    let builder = builder.open_timeout(Duration::from_secs(20));
    let serving = async { while script.next().await.is_some() {} };
    let (client, ()) = tokio::join!(builder.connect(memory), serving);
    assert_eq!(
        client.unwrap_err().to_string(),
        "a server in this process: the server did not answer within 20 s"
    );
    assert_eq!(begun.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_failed_negotiation_names_both_sides() {
    let (mut script, memory) = Script::new();
    let (builder, _) = builder();
    let serving = async {
        let info = json!({ "name": "s", "version": "1" });
        let result = json!({ "protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": info });
        script.answer("initialize", result).await;
        assert_eq!(script.next().await, None, "the client has left");
    };
    let builder = builder.version_policy(VersionPolicy::Exactly(Revision::V2025_06_18));
    let (client, ()) = tokio::join!(builder.connect(memory), serving);
    let error = client.unwrap_err().to_string();
    assert!(error.ends_with("no common revision: we speak 2025-06-18, the server 1999-01-01"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_connect_leaves_nothing_behind() {
    let (mut script, memory) = Script::new();
    let (builder, _) = builder();
    let connecting = tokio::time::timeout(Duration::from_secs(1), builder.connect(memory)).await;
    assert!(connecting.is_err());
    assert_eq!(script.next().await.unwrap()["method"], "server/discover");
    assert_eq!(script.next().await, None, "the pipe is closed");
}

/// A way to a server that never comes about.
#[derive(Debug)]
struct Endless;

impl Connector for Endless {
    fn connect(&self, _: Arc<dyn MessageSink>) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
        Box::pin(std::future::pending())
    }

    fn name(&self) -> String {
        "endless".to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_for_the_opening_is_for_all_of_it() {
    let began = Instant::now();
    let impatient = || builder().0.open_timeout(Duration::from_secs(4));
    let error = impatient().connect(Endless).await.unwrap_err();
    assert!(matches!(error.why(), OpenError::TimedOut { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5));
    // The question which revisions it speaks and the session have the time together.
    let (_script, silent) = Script::new();
    let error = impatient().connect(silent).await.unwrap_err();
    assert!(error.to_string().contains("within"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}
