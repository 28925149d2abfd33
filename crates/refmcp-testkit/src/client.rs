//! A client of a real server: it sends what it is told to, remembers what it hears, and never waits for ever.
//!
//! ```
//! use refmcp_server::{Call, NoArguments, Revision, Server, Tool};
//! use refmcp_testkit::client::TestClient;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let greet = Tool::new("greet", "Greets", |_: Call, _: NoArguments| async { Ok("Hello!") });
//! let server = Server::builder("greeter", "1").tool(greet).build().unwrap();
//! for revision in Revision::ALL {
//!     let mut client = TestClient::open(&server, revision).await;
//!     assert_eq!(client.tool_text("greet", json!({})).await, "Hello!");
//! }
//! # }
//! ```
//!
//! Under tokio's paused clock nothing waits: time jumps to the next timer whenever all tasks are idle.

mod accept;
mod pair;

use std::collections::VecDeque;
use std::time::Duration;

use refmcp_proto::revision::{Lifecycle, Revision};
use refmcp_server::Server;
use refmcp_server::transport::observer::Direction;
use refmcp_server::transport::pipe::{Frame, FrameReader, FrameWriter, LineReader, LineWriter};
use serde_json::{Map, Value, json};
use tokio::io::{DuplexStream, ReadHalf, WriteHalf};
use tokio::time::timeout;

use crate::audit::PipeAudit;
use crate::messages::{initialize_params, request_meta};

pub use accept::{accept_all, all_capabilities};
pub use pair::Pair;

/// The client's end of a pipe in memory, for reading.
pub type MemoryReader = LineReader<ReadHalf<DuplexStream>>;
/// The client's end of a pipe in memory, for writing.
pub type MemoryWriter = LineWriter<WriteHalf<DuplexStream>>;

/// A client of one server, over a pipe in memory unless said otherwise. It judges the server by the rules of the specification:
/// dropping the client panics if the server broke one that is demanded.
#[derive(Debug)]
pub struct TestClient<R = MemoryReader, W = MemoryWriter> {
    reader: R,
    writer: W,
    next_id: u64,
    stateless: bool,
    meta: Map<String, Value>,
    answers: Vec<Value>,
    /// Notifications, in order, until a test takes them.
    pub notifications: Vec<Value>,
    /// Requests of the server, in order, until a test takes them. Pings are answered at once and not kept.
    pub requests: VecDeque<Value>,
    /// How long the server may say nothing while something is expected of it. Under a paused clock it has to be
    /// longer than the timers of the server that a test waits for.
    pub patience: Duration,
    audit: PipeAudit,
}

impl TestClient {
    /// A client of this revision that can be asked everything.
    pub async fn open(server: &Server, revision: Revision) -> Self {
        Self::open_with(server, revision, all_capabilities()).await
    }

    /// A client of this revision with these capabilities.
    pub async fn open_with(server: &Server, revision: Revision, capabilities: Value) -> Self {
        let mut client = Self::over(server.in_memory());
        client.start(revision, capabilities).await;
        client
    }
}

impl<R: FrameReader, W: FrameWriter> TestClient<R, W> {
    /// A client over any pipe that has not said anything yet.
    pub fn over((reader, writer): (R, W)) -> Self {
        Self {
            reader,
            writer,
            next_id: 0,
            stateless: false,
            meta: Map::new(),
            answers: Vec::new(),
            notifications: Vec::new(),
            requests: VecDeque::new(),
            patience: Duration::from_secs(20),
            audit: PipeAudit::new(),
        }
    }

    /// Opens a session, or, where the revision has none, describes the client in every request from now on.
    pub async fn start(&mut self, revision: Revision, capabilities: Value) -> Value {
        self.stateless = revision.lifecycle() == Lifecycle::PerRequest;
        if self.stateless {
            let meta = request_meta("testkit", revision.as_str(), capabilities);
            self.meta.extend(meta.as_object().cloned().unwrap_or_default());
            return Value::Null;
        }
        let params = initialize_params("testkit", revision.as_str(), capabilities);
        let opened = self.result("initialize", params).await;
        assert_eq!(opened["protocolVersion"], revision.as_str(), "another revision was agreed on");
        self.notify("notifications/initialized", json!({})).await;
        opened
    }

    /// Puts a member into the `_meta` of every request from now on.
    pub fn meta(&mut self, key: &str, value: Value) {
        self.meta.insert(key.to_owned(), value);
    }

    /// Sends a text as it is.
    pub async fn send_text(&mut self, text: &str) {
        self.audit.passed(Direction::Sent, text.as_bytes());
        self.writer.push(text.as_bytes());
        while self.writer.pending() > 0 {
            let written = timeout(self.patience, self.writer.flush()).await;
            written.expect("the server does not read").expect("the server closed the pipe");
        }
    }

    /// Sends a message; `"jsonrpc": "2.0"` is added.
    pub async fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.send_text(&message.to_string()).await;
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "method": method, "params": params })).await;
    }

    /// Sends a request, gives its id, and does not wait.
    pub async fn request(&mut self, method: &str, mut params: Value) -> u64 {
        self.next_id += 1;
        if !self.meta.is_empty() {
            let mut meta = self.meta.clone();
            if let Some(Value::Object(own)) = params.get("_meta") {
                meta.extend(own.clone());
            }
            params["_meta"] = Value::Object(meta);
        }
        self.send(json!({ "id": self.next_id, "method": method, "params": params })).await;
        self.next_id
    }

    /// Answers a request of the server.
    pub async fn reply(&mut self, question: &Value, result: Value) {
        self.send(json!({ "id": question["id"], "result": result })).await;
    }

    /// Answers a request of the server with an error.
    pub async fn refuse(&mut self, question: &Value, code: i64, message: &str) {
        self.send(json!({ "id": question["id"], "error": { "code": code, "message": message } })).await;
    }

    /// Cancels a request of ours.
    pub async fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", json!({ "requestId": id })).await;
    }

    /// Waits for the answer to a request; the whole message.
    pub async fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(at) = self.answers.iter().position(|answer| answer["id"] == id) {
                return self.answers.remove(at);
            }
            self.take_one().await;
        }
    }

    /// The answer to a request, if it has been read already.
    pub fn answered(&mut self, id: u64) -> Option<Value> {
        let at = self.answers.iter().position(|answer| answer["id"] == id)?;
        Some(self.answers.remove(at))
    }

    /// Waits for the next request of the server.
    pub async fn question(&mut self) -> Value {
        loop {
            if let Some(question) = self.requests.pop_front() {
                return question;
            }
            self.take_one().await;
        }
    }

    /// Waits for the answer to a request or for a question of the server, whatever comes first.
    pub async fn answer_or_question(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            if let Some(question) = self.requests.pop_front() {
                return Err(question);
            }
            if let Some(answer) = self.answered(id) {
                return Ok(answer);
            }
            self.take_one().await;
        }
    }

    /// Waits for a notification and takes it from what was heard.
    pub async fn notification(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.notifications.iter().position(|heard| heard["method"] == method) {
                return self.notifications.remove(at);
            }
            self.take_one().await;
        }
    }

    /// Takes the notifications of one kind that were heard so far.
    pub fn take_notifications(&mut self, method: &str) -> Vec<Value> {
        let (wanted, rest) =
            std::mem::take(&mut self.notifications).into_iter().partition(|heard| heard["method"] == method);
        self.notifications = rest;
        wanted
    }

    /// Sends a request and waits for its answer: the whole message.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer(id).await
    }

    /// The result of a request.
    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// The error that a request ends with.
    pub async fn error(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params).await;
        assert!(answer.get("error").is_some(), "{method}: {answer}");
        answer["error"].take()
    }

    /// Starts a call of a tool and does not wait.
    pub async fn start_tool(&mut self, name: &str, arguments: Value) -> u64 {
        self.request("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// The result of a tool.
    pub async fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// The error of a tool that is none of its own making.
    pub async fn tool_error(&mut self, name: &str, arguments: Value) -> Value {
        self.error("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// The first text of a tool's result.
    pub async fn tool_text(&mut self, name: &str, arguments: Value) -> String {
        text(&self.tool(name, arguments).await)
    }

    /// Every item of a list, page by page: `tools`, `prompts`, `resources` or `resourceTemplates`.
    pub async fn list(&mut self, what: &str) -> Vec<Value> {
        let method =
            if what == "resourceTemplates" { "resources/templates/list" } else { &format!("{what}/list") };
        let (mut items, mut params) = (Vec::new(), json!({}));
        loop {
            let page = self.result(method, params).await;
            items.extend(page[what].as_array().cloned().unwrap_or_default());
            let Some(cursor) = page.get("nextCursor") else { return items };
            params = json!({ "cursor": cursor });
        }
    }

    /// Waits until the server has worked off everything sent so far that needs no handler: what it had to say about
    /// it is in [`notifications`](Self::notifications) and [`requests`](Self::requests) then, and what is not there was not said.
    pub async fn catch_up(&mut self) {
        let method = if self.stateless { "server/discover" } else { "ping" };
        self.result(method, json!({})).await;
    }

    /// Reads until the server closes the pipe.
    pub async fn closed(&mut self) {
        while let Some(message) = self.read().await {
            self.file(message).await;
        }
    }

    async fn take_one(&mut self) {
        let message = self.read().await.expect("the server closed the pipe");
        self.file(message).await;
    }

    async fn file(&mut self, message: Value) {
        match (message.get("id"), message.get("method")) {
            (Some(_), Some(method)) if method == "ping" => self.reply(&message, json!({})).await,
            (Some(_), Some(_)) => self.requests.push_back(message),
            (None, Some(_)) => self.notifications.push(message),
            (_, None) => self.answers.push(message),
        }
    }

    /// The next message; `None` when the server has closed the pipe.
    pub async fn read(&mut self) -> Option<Value> {
        loop {
            match self.reader.next_frame() {
                Some(Frame::Message(bytes)) => {
                    self.audit.passed(Direction::Received, bytes);
                    let shown = || String::from_utf8_lossy(bytes).into_owned();
                    return Some(
                        serde_json::from_slice(bytes).unwrap_or_else(|why| panic!("{why} in {}", shown())),
                    );
                }
                Some(Frame::TooLong) => panic!("the server sent a message over the limit"),
                None => {
                    let more = timeout(self.patience, self.reader.fill()).await;
                    if !more.expect("the server says nothing").unwrap_or(false) {
                        return None;
                    }
                }
            }
        }
    }
}

/// The first text of a tool's result.
pub fn text(result: &Value) -> String {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text in {result}")).to_owned()
}
