//! A server of every feature, a scripted one of none, and clients of both.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use refmcp_client::memory::Memory;
use refmcp_client::model::{CreateMessageResult, ElicitResult, LogLevel, ResourceContents, Root};
use refmcp_client::{Client, ClientBuilder, Event, Host, Revision, VersionPolicy};
use refmcp_testkit::audit::{Role, fatal_audit};
use refmcp_testkit::refmcp_server::transport::memory::{MemoryPipe, pair};
use refmcp_testkit::refmcp_server::transport::pipe::{Frame, FrameReader, FrameWriter};
use refmcp_testkit::refmcp_server::{Call, NoArguments, Resource, Server, ServerBuilder, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Steps {
    steps: u32,
    millis: u64,
}

/// A server with one of everything.
pub(crate) fn server() -> Server {
    server_builder().build().unwrap()
}

pub(crate) fn server_builder() -> ServerBuilder {
    let echo =
        Tool::new(
            "echo",
            "Says it again",
            |_: Call, Message { message }: Message| async move { Ok(message) },
        );
    let steps = Tool::new("steps", "Takes steps", |call: Call, Steps { steps, millis }: Steps| async move {
        for step in 1..=steps {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            call.progress(f64::from(step), Some(f64::from(steps)), "on the way").await;
        }
        Ok(steps.to_string())
    });
    let ask = Tool::new("ask", "Asks for everything", |call: Call, _: NoArguments| async move {
        let sure = call.confirm("sure", "Sure?");
        let roots = call.list_roots("roots");
        let said = call.sample("said", "Say something", 10);
        let (sure, roots, said) = (sure?, roots?, said?);
        Ok(format!("{sure} {} {said:?}", roots.len()))
    });
    let talk = Tool::new("talk", "Logs", |call: Call, _: NoArguments| async move {
        call.log(LogLevel::Info, "talk", "hello").await;
        Ok("talked")
    });
    let note =
        Resource::new("note:///a", "a", |_: Call| async { Ok(ResourceContents::text("note:///a", "text")) });
    let mut server = Server::builder("everything", "1")
        .page_size(3)
        .tool(echo)
        .tool(steps)
        .tool(ask)
        .tool(talk)
        .resource(note);
    for number in 0..5 {
        let name = format!("filler{number}");
        server = server.tool(Tool::new(name, "Fills a page", |_: Call, _: NoArguments| async { Ok("") }));
    }
    server
}

/// The events of a client.
pub(crate) type Events = Arc<Mutex<Vec<Event>>>;

/// A client that can do everything, and what it hears.
pub(crate) fn builder() -> (ClientBuilder, Events) {
    let events = Events::default();
    let listener = events.clone();
    let host = Host::new()
        .elicitation(|params| async move {
            let mut content = params.requested_schema.defaults();
            for (name, _) in &params.requested_schema.properties {
                content.entry(name.clone()).or_insert(json!(true));
            }
            Ok(ElicitResult::accept(content))
        })
        .sampling(|_| async { Ok(CreateMessageResult::text("a model", "something")) })
        .roots([Root::new("file:///one"), Root::new("file:///two")])
        .on_event(move |event| listener.lock().unwrap().push(event.clone()));
    (Client::builder("test", "1").host(host).observer(fatal_audit(Role::Client)), events)
}

/// A client of a server of ours, in this revision.
pub(crate) async fn client_of(server: &Server, revision: Revision) -> (Client, Events) {
    let (builder, events) = builder();
    let client = builder
        .version_policy(VersionPolicy::Exactly(revision))
        .connect(Memory::new(server.in_memory()))
        .await
        .unwrap();
    (client, events)
}

/// A server that says what a test tells it to.
pub(crate) struct Script {
    end: MemoryPipe,
}

impl Script {
    /// The script, and what a client connects to.
    pub(crate) fn new() -> (Self, Memory) {
        let (near, far) = pair(64 << 20);
        (Self { end: far }, Memory::new(near))
    }

    /// The next message of the client; `None` when it has left.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        self.next_text().await.map(|text| serde_json::from_str(&text).unwrap())
    }

    /// The same, as it was written.
    pub(crate) async fn next_text(&mut self) -> Option<String> {
        loop {
            match self.end.0.next_frame() {
                Some(Frame::Message(bytes)) => return Some(String::from_utf8(bytes.to_vec()).unwrap()),
                Some(Frame::TooLong) => panic!("a message over the limit"),
                None => {
                    if !self.end.0.fill().await.unwrap() {
                        return None;
                    }
                }
            }
        }
    }

    pub(crate) async fn say(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.say_bytes(message.to_string().as_bytes()).await;
    }

    pub(crate) async fn say_bytes(&mut self, bytes: &[u8]) {
        self.end.1.push(bytes);
        while self.end.1.pending() > 0 {
            self.end.1.flush().await.unwrap();
        }
    }

    /// Answers the next request, which must be this one.
    pub(crate) async fn answer(&mut self, method: &str, result: Value) -> Value {
        let request = self.next().await.unwrap();
        assert_eq!(request["method"], method);
        self.say(json!({ "id": request["id"], "result": result })).await;
        request
    }

    /// Opens a session in this revision.
    pub(crate) async fn open(&mut self, revision: &str) {
        let server = json!({ "name": "script", "version": "1" });
        let capabilities = json!({ "tools": {}, "resources": { "subscribe": true } });
        let result =
            json!({ "protocolVersion": revision, "capabilities": capabilities, "serverInfo": server });
        self.answer("initialize", result).await;
        assert_eq!(self.next().await.unwrap()["method"], "notifications/initialized");
    }
}

/// A client of a script, after the handshake.
pub(crate) async fn client_of_script() -> (Client, Script, Events) {
    let (mut script, memory) = Script::new();
    let (builder, events) = builder();
    let builder = builder.version_policy(VersionPolicy::Legacy);
    let (client, ()) = tokio::join!(builder.connect(memory), script.open("2025-11-25"));
    (client.unwrap(), script, events)
}
