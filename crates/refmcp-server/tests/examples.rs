//! The examples as programs: each is started, spoken to over its standard input and output, and ends with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use refmcp_server::Revision;
use refmcp_server::transport::pipe::{LineReader, LineWriter};
use refmcp_testkit::client::{TestClient, accept_all, all_capabilities, text};
use serde_json::json;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

type Client = TestClient<LineReader<ChildStdout>, LineWriter<ChildStdin>>;

/// A program that is running, and a client that speaks to it.
struct Example {
    program: Child,
    client: Client,
}

impl Example {
    /// Starts an example. `cargo test` builds them beside the folder of the tests, unless it is told to build less.
    async fn start(name: &str, revision: Revision) -> Self {
        let tests = std::env::current_exe().unwrap();
        let target = tests.ancestors().nth(2).unwrap();
        let path: PathBuf = target.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        let mut program = Command::new(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{}: {error}; `cargo test` without `--test` builds it", path.display())
            });
        let (input, output) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
        let mut client = TestClient::over((LineReader::new(output, 1 << 20), LineWriter::new(input)));
        client.start(revision, all_capabilities()).await;
        Self { program, client }
    }

    /// Closes its input; it must end well.
    async fn end(mut self) {
        drop(self.client);
        let status = self.program.wait().await.unwrap();
        assert!(status.success(), "{status}");
    }
}

const BOTH: [Revision; 2] = [Revision::LATEST_SESSION, Revision::LATEST];

#[tokio::test]
async fn greeter() {
    for revision in BOTH {
        let mut example = Example::start("greeter", revision).await;
        assert_eq!(example.client.tool_text("greet", json!({ "name": "Ada" })).await, "Hello, Ada!");
        example.end().await;
    }
}

#[tokio::test]
async fn ask_user_in_a_session() {
    let mut example = Example::start("ask_user", Revision::LATEST_SESSION).await;
    let client = &mut example.client;
    client.meta("progressToken", json!("p"));
    let id = client.start_tool("deploy", json!({ "service": "shop" })).await;
    for _ in 0..2 {
        let question = client.question().await;
        client.reply(&question, accept_all(&question)).await;
    }
    assert_eq!(text(&client.answer(id).await["result"]), "Build 4 of shop runs in test.");
    let progress = client.take_notifications("notifications/progress");
    let progress: Vec<_> = progress.iter().map(|told| told["params"]["progress"].as_u64().unwrap()).collect();
    assert_eq!(progress, [1, 2, 3]);
    example.end().await;
}

#[tokio::test]
async fn ask_user_without_one() {
    let mut example = Example::start("ask_user", Revision::LATEST).await;
    let mut params = json!({ "name": "deploy", "arguments": { "service": "shop" } });
    let asked = example.client.result("tools/call", params.clone()).await;
    let questions = asked["inputRequests"].as_object().unwrap();
    let mut answers: serde_json::Map<_, _> =
        questions.iter().map(|(key, question)| (key.clone(), accept_all(question))).collect();
    answers.insert("sure".to_owned(), json!({ "action": "decline" }));
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = answers.into();
    assert_eq!(text(&example.client.result("tools/call", params).await), "Nothing was deployed.");
    example.end().await;
}

#[tokio::test]
async fn changing_in_a_session() {
    let mut example = Example::start("changing", Revision::LATEST_SESSION).await;
    let client = &mut example.client;
    assert_eq!(client.tool_text("write", json!({ "name": "a", "text": "1" })).await, "a is new.");
    client.notification("notifications/resources/list_changed").await;
    client.result("resources/subscribe", json!({ "uri": "note:///a" })).await;
    assert_eq!(client.tool_text("write", json!({ "name": "a", "text": "2" })).await, "a was rewritten.");
    assert_eq!(client.notification("notifications/resources/updated").await["params"]["uri"], "note:///a");
    let read = client.result("resources/read", json!({ "uri": "note:///a" })).await;
    assert_eq!(read["contents"][0]["text"], "2");
    assert_eq!(client.tool_text("throw_away", json!({ "name": "a" })).await, "a is gone.");
    client.notification("notifications/resources/list_changed").await;
    assert_eq!(client.tool("throw_away", json!({ "name": "a" })).await["isError"], true);
    example.end().await;
}

#[tokio::test]
async fn changing_without_one() {
    let mut example = Example::start("changing", Revision::LATEST).await;
    let client = &mut example.client;
    let wanted = json!({ "resourcesListChanged": true, "resourceSubscriptions": ["note:///welcome"] });
    client.request("subscriptions/listen", json!({ "notifications": wanted })).await;
    client.notification("notifications/subscriptions/acknowledged").await;
    client.tool("write", json!({ "name": "welcome", "text": "Welcome back." })).await;
    client.notification("notifications/resources/updated").await;
    client.tool("write", json!({ "name": "b", "text": "3" })).await;
    client.notification("notifications/resources/list_changed").await;
    assert_eq!(client.list("resources").await.len(), 2);
    example.end().await;
}

#[tokio::test]
async fn computing_answers_while_every_thread_of_its_handlers_computes() {
    for revision in BOTH {
        let mut example = Example::start("computing", revision).await;
        let client = &mut example.client;
        // For ages, on its only thread.
        let id = client.start_tool("primes", json!({ "up_to": u64::MAX })).await;
        assert_eq!(client.tool_text("hello", json!({})).await, "Hello!");
        assert_eq!(client.list("tools").await.len(), 2);
        client.cancel(id).await;
        // The thread is free again, since the handler looks for a cancellation.
        assert_eq!(client.tool_text("primes", json!({ "up_to": 10 })).await, "4 primes");
        client.start_tool("primes", json!({ "up_to": u64::MAX })).await;
        example.end().await;
    }
}

#[test]
fn the_server_in_the_readme_is_the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (_, rest) = readme.split_once("```rust\n").expect("the README has Rust in it");
    let (shown, _) = rest.split_once("```").unwrap();
    let example = include_str!("../examples/greeter.rs");
    let (_, code) = example.split_once("\n\n").expect("the example has a first line of its own");
    assert_eq!(shown, code);
}
