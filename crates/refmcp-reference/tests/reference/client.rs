//! A client that speaks one revision, answers what it is asked, and remembers what it hears.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use refmcp_reference::Options;
use refmcp_server::transport::memory::MemoryPipe;
use refmcp_server::transport::pipe::{Frame, FrameReader, FrameWriter};
use refmcp_server::{Revision, Server};
use refmcp_testkit::messages::{initialize_params, request_meta};
use refmcp_testkit::schema::{Direction, Schema};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

/// The revisions that a session can have, oldest first.
pub(crate) const SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The newest of them.
pub(crate) const SESSION: &str = "2025-11-25";
/// The revision without sessions.
pub(crate) const STATELESS: &str = "2026-07-28";

/// How long anything may take. Longer than every timer of the server, since paused clocks jump from one to the next.
const TEST_TIMEOUT: Duration = Duration::from_secs(3600);

pub(crate) struct Client {
    pipe: MemoryPipe,
    next: u64,
    /// What a request says about its sender, where there is no session.
    envelope: Option<Map<String, Value>>,
    /// Notifications that no test has read yet.
    pub(crate) heard: Vec<Value>,
    /// Questions of the server, in order.
    pub(crate) asked: Vec<Value>,
    /// Whether questions of one round are answered in a round each.
    pub(crate) one_by_one: bool,
    /// What people do with forms and visits.
    pub(crate) action: &'static str,
    /// What the server's messages must look like.
    schema: Rc<Schema>,
    /// The methods of our requests.
    methods: HashMap<u64, String>,
}

thread_local! {
    /// Schemas are large; one for all clients of a test will do.
    static SCHEMAS: RefCell<HashMap<Revision, Rc<Schema>>> = RefCell::default();
}

fn schema(revision: &str) -> Rc<Schema> {
    let revision = revision.parse().unwrap();
    SCHEMAS.with_borrow_mut(|schemas| {
        schemas.entry(revision).or_insert_with(|| Rc::new(Schema::load(revision))).clone()
    })
}

pub(crate) fn server() -> Server {
    refmcp_reference::server(Options::default()).unwrap()
}

pub(crate) fn everything() -> Value {
    json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} }, "roots": { "listChanged": true } })
}

impl Client {
    /// A client of this revision that can do everything.
    pub(crate) async fn new(server: &Server, revision: &str) -> Self {
        Self::with(server, revision, everything()).await
    }

    /// A client of this revision with these capabilities.
    pub(crate) async fn with(server: &Server, revision: &str, capabilities: Value) -> Self {
        let mut client = Self {
            pipe: server.in_memory(),
            next: 0,
            envelope: None,
            heard: Vec::new(),
            asked: Vec::new(),
            one_by_one: false,
            action: "accept",
            schema: schema(revision),
            methods: HashMap::new(),
        };
        if revision == STATELESS {
            client.envelope = request_meta("test", revision, capabilities).as_object().cloned();
        } else {
            let params = initialize_params("test", revision, capabilities);
            let opened = client.result("initialize", params).await;
            assert_eq!(opened["protocolVersion"], revision);
            client.notify("notifications/initialized", json!({})).await;
        }
        client
    }

    /// Adds a member to the `_meta` of every request from now on.
    pub(crate) fn meta(&mut self, key: &str, value: Value) {
        self.envelope.get_or_insert_default().insert(key.to_owned(), value);
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a request and does not wait.
    pub(crate) async fn start(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if let Some(envelope) = &self.envelope {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta.as_object_mut().unwrap().extend(envelope.clone());
        }
        self.write(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params })).await;
        self.methods.insert(self.next, method.to_owned());
        self.next
    }

    /// The answer to a request; whatever the server asks meanwhile is answered.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.read().await;
            match (message.get("id"), message.get("method")) {
                (Some(given), None) if *given == id => return message,
                (Some(_), None) => panic!("an answer to something else: {message}"),
                (Some(_), Some(_)) => self.reply(&message).await,
                (None, _) => self.heard.push(message),
            }
        }
    }

    /// Sends a request, goes through as many rounds as it takes, and gives the answer.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let mut round = params.clone();
        loop {
            let id = self.start(method, round).await;
            let answer = self.answer(id).await;
            if answer["result"]["resultType"] != "input_required" {
                return answer;
            }
            round = params.clone();
            round["requestState"] = answer["result"]["requestState"].clone();
            let mut responses = Map::new();
            for (key, question) in answer["result"]["inputRequests"].as_object().unwrap() {
                responses.insert(key.clone(), self.reaction(question));
                if self.one_by_one {
                    break;
                }
            }
            round["inputResponses"] = Value::Object(responses);
        }
    }

    /// The result of a request.
    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.request(method, params).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// The error that a request ends with.
    pub(crate) async fn error(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.request(method, params).await;
        assert!(answer.get("error").is_some(), "{method}: {answer}");
        answer["error"].take()
    }

    /// The result of a tool.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// The first text of a tool's result.
    pub(crate) async fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{tool}: {result}")).to_owned()
    }

    /// Every item of a list, page by page.
    pub(crate) async fn list(&mut self, what: &str) -> Vec<Value> {
        let (method, member) = match what {
            "templates" => ("resources/templates/list".to_owned(), "resourceTemplates"),
            other => (format!("{other}/list"), other),
        };
        let (mut items, mut params) = (Vec::new(), json!({}));
        loop {
            let page = self.result(&method, params).await;
            items.extend(page[member].as_array().unwrap().clone());
            let Some(cursor) = page.get("nextCursor") else { return items };
            params = json!({ "cursor": cursor });
        }
    }

    /// Waits for a notification and takes it from what was heard.
    pub(crate) async fn hear(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.heard.iter().position(|heard| heard["method"] == method) {
                return self.heard.remove(at);
            }
            let message = self.read().await;
            assert!(message.get("id").is_none(), "unexpected: {message}");
            self.heard.push(message);
        }
    }

    /// How many notifications of this kind were heard by now.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.heard.iter().filter(|heard| heard["method"] == method).count()
    }

    async fn reply(&mut self, request: &Value) {
        let result = self.reaction(request);
        self.write(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    /// What a accept_all client does with a question.
    pub(crate) fn reaction(&mut self, question: &Value) -> Value {
        self.asked.push(question.clone());
        let params = &question["params"];
        match question["method"].as_str().unwrap() {
            "roots/list" => json!({ "roots": [{ "uri": "file:///work", "name": "work" }] }),
            "sampling/createMessage" => json!({
                "role": "assistant", "model": "test-model", "content": { "type": "text", "text": "Paris" },
            }),
            "elicitation/create" if self.action != "accept" => json!({ "action": self.action }),
            "elicitation/create" if params["mode"] == "url" => json!({ "action": "accept" }),
            "elicitation/create" => {
                let fields = params["requestedSchema"]["properties"].as_object().unwrap();
                let values: Map<_, _> =
                    fields.iter().map(|(name, field)| (name.clone(), value(name, field))).collect();
                json!({ "action": "accept", "content": values })
            }
            other => panic!("asked for {other}"),
        }
    }

    pub(crate) async fn write(&mut self, message: &Value) {
        self.pipe.1.push(message.to_string().as_bytes());
        while self.pipe.1.pending() > 0 {
            self.pipe.1.flush().await.unwrap();
        }
    }

    async fn read(&mut self) -> Value {
        loop {
            match self.pipe.0.next_frame() {
                Some(Frame::Message(bytes)) => {
                    let message = serde_json::from_slice(bytes).unwrap();
                    self.check(&message);
                    return message;
                }
                Some(Frame::TooLong) => panic!("the server sent a message over the limit"),
                None => {
                    let more = timeout(TEST_TIMEOUT, self.pipe.0.fill())
                        .await
                        .expect("the server says nothing")
                        .unwrap();
                    assert!(more, "the server closed the pipe");
                }
            }
        }
    }
}

impl Client {
    /// Every message of the server is one that the specification knows.
    fn check(&self, message: &Value) {
        let id = message.get("id").filter(|_| message.get("method").is_none()).and_then(Value::as_u64);
        let method = id.and_then(|id| self.methods.get(&id)).map(String::as_str);
        if let Err(error) = self.schema.check(Direction::FromServer, message, method) {
            panic!("{method:?}: {error}");
        }
    }
}

/// A value that fits a field.
fn value(name: &str, field: &Value) -> Value {
    let first = |choices: &Value| {
        let choices = choices.as_object()?;
        let plain = choices.get("enum").and_then(|values| values.get(0)).cloned();
        let titled = choices.get("oneOf").or_else(|| choices.get("anyOf"));
        plain.or_else(|| titled?.get(0)?.get("const").cloned())
    };
    match (field["type"].as_str().unwrap(), field["format"].as_str()) {
        ("array", _) => json!([first(&field["items"]).unwrap()]),
        ("boolean", _) => json!(true),
        ("integer", _) => json!(42),
        ("number", _) => json!(0.25),
        (_, Some("email")) => json!("alice@example.com"),
        (_, Some("uri")) => json!("https://example.com/"),
        (_, Some("date")) => json!("2024-05-06"),
        (_, Some("date-time")) => json!("2024-05-06T07:08:09Z"),
        _ => first(field).unwrap_or_else(|| if name == "name" { json!("Alice") } else { json!(name) }),
    }
}
