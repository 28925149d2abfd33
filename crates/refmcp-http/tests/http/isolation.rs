//! Isolation of clients: many clients over every transport, all with the same request ids and progress tokens, each with
//! its own secret, receive only messages about it.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Client, LATEST_SESSION, Site, request};
use crate::websocket;
use crate::{http_sse, support};

const CLIENTS: usize = 200;
const CALLS: usize = 3;

/// The messages that a client has received, all about its own secret.
struct ReceivedMessages {
    secret: String,
    /// The methods of requests and notifications.
    methods: Vec<String>,
}

impl ReceivedMessages {
    fn new(number: usize) -> Self {
        Self { secret: format!("secret-{number:05}"), methods: Vec::new() }
    }

    /// Adds a message, which must be about the secret.
    fn add(&mut self, message: &Value) {
        let text = message.to_string();
        assert!(text.contains(&self.secret), "{text} is not about {}", self.secret);
        assert_eq!(text.matches("secret-").count(), text.matches(&self.secret).count(), "{text}");
        self.methods.extend(message["method"].as_str().map(str::to_owned));
    }

    /// Checks that all messages of `whisper` and `steps` were received.
    fn assert_complete(&self, methods: &[&str]) {
        for method in methods {
            let count = self.methods.iter().filter(|known| known == method).count();
            assert!(count >= CALLS, "{method} {count} times: {:?}", self.methods);
        }
    }

    /// The call of a tool that sends the secret in every kind of message.
    fn whisper(&self) -> Value {
        json!({ "name": "whisper", "arguments": { "secret": self.secret }, "_meta": { "progressToken": "t" } })
    }

    /// The call of a tool that sends the secret with every step.
    fn steps(&self) -> Value {
        let arguments = json!({ "n": 3, "ms": 1, "note": self.secret });
        json!({ "name": "steps", "arguments": arguments, "_meta": { "progressToken": "t" } })
    }
}

const ALL: [&str; 3] = ["notifications/message", "notifications/progress", "elicitation/create"];

fn yes() -> Value {
    json!({ "action": "accept", "content": { "confirm": true } })
}

async fn with_session(site: &'static Site, revision: &'static str, mut received: ReceivedMessages) {
    let client = Client::open(site, revision).await;
    let standing = client.get(None).await;
    for _ in 0..CALLS {
        let mut stream = client.post(&request("tools/call", received.whisper())).await;
        while let Some((_, message)) = stream.event().await {
            received.add(&message);
            if message["method"] == "elicitation/create" {
                let given = json!({ "jsonrpc": "2.0", "id": message["id"], "result": yes() });
                assert_eq!(client.post(&given).await.status, 202);
            }
        }
        for (_, message) in client.post(&request("tools/call", received.steps())).await.events().await {
            received.add(&message);
        }
        received.add(&client.call(1, "echo", json!({ "message": received.secret })).await.json().await);
    }
    received.assert_complete(&ALL);
    assert_eq!(client.delete().await, 204);
    for (_, message) in standing.events().await {
        received.add(&message);
    }
}

async fn without_session(site: &'static Site, mut received: ReceivedMessages) {
    for _ in 0..CALLS {
        for (_, message) in site.stateless("tools/call", received.steps(), &[]).await.events().await {
            received.add(&message);
        }
        let mut params = received.whisper();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "elicitation": { "form": {} } });
        let question = site.stateless("tools/call", params.clone(), &[]).await.answer().await;
        received.add(&question);
        params["requestState"] = question["result"]["requestState"].clone();
        params["inputResponses"] = json!({ "sure": yes() });
        let answer = site.stateless("tools/call", params, &[]).await.answer().await;
        received.add(&answer);
        assert!(support::text_of(&answer).starts_with("true "), "{answer}");
    }
    received.assert_complete(&["notifications/progress"]);
}

async fn over_two_endpoints(site: &'static Site, mut received: ReceivedMessages) {
    let (mut stream, address) = http_sse::open(site).await;
    for _ in 0..CALLS {
        http_sse::post(site, &address, &request("tools/call", received.steps())).await;
        loop {
            let (_, message) = stream.event().await.unwrap();
            if message.get("id").is_some() {
                break received.add(&message);
            }
            // The oldest revision has no message with its progress, so only the answer tells.
            assert_eq!(message["method"], "notifications/progress");
        }
    }
}

async fn over_a_socket(site: &'static Site, mut received: ReceivedMessages) {
    let mut socket = websocket::open(site, "/mcp/ws").await;
    for params in [received.whisper(), received.steps()].into_iter().cycle().take(2 * CALLS) {
        websocket::say(&mut socket, &request("tools/call", params)).await;
        loop {
            let message = websocket::hear(&mut socket).await;
            received.add(&message);
            if message["method"] == "elicitation/create" {
                let given = json!({ "jsonrpc": "2.0", "id": message["id"], "result": yes() });
                websocket::say(&mut socket, &given).await;
            } else if message.get("id").is_some() {
                break;
            }
        }
    }
    received.assert_complete(&ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_client_receives_only_its_own_messages() {
    let site: &'static Site = Box::leak(Box::new(Site::usual().await));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let received = ReceivedMessages::new(number);
        match number % 5 {
            0 => clients.spawn(with_session(site, "2025-06-18", received)),
            1 => clients.spawn(with_session(site, LATEST_SESSION, received)),
            2 => clients.spawn(without_session(site, received)),
            3 => clients.spawn(over_two_endpoints(site, received)),
            _ => clients.spawn(over_a_socket(site, received)),
        };
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    site.until_quiet().await;
}
