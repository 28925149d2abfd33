//! What one client says, no other hears, however alike they are: a crowd of clients over every transport, all with the
//! same request ids and the same progress tokens, each with a secret of its own.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Client, LATEST_SESSION, Site, request};
use crate::websocket;
use crate::{legacy, support};

const CLIENTS: usize = 200;
const CALLS: usize = 3;

/// What a client has heard, which must all be about its own secret.
struct Ears {
    secret: String,
    /// The methods of what was no answer.
    methods: Vec<String>,
}

impl Ears {
    fn new(number: usize) -> Self {
        Self { secret: format!("secret-{number:05}"), methods: Vec::new() }
    }

    /// Takes in a message that is about a secret.
    fn hears(&mut self, message: &Value) {
        let text = message.to_string();
        assert!(text.contains(&self.secret), "{text} is not about {}", self.secret);
        assert_eq!(text.matches("secret-").count(), text.matches(&self.secret).count(), "{text}");
        self.methods.extend(message["method"].as_str().map(str::to_owned));
    }

    /// Everything that `whisper` and `steps` say was heard.
    fn heard(&self, methods: &[&str]) {
        for method in methods {
            let count = self.methods.iter().filter(|known| known == method).count();
            assert!(count >= CALLS, "{method} {count} times: {:?}", self.methods);
        }
    }

    /// The call of a tool that says the secret in every way.
    fn whisper(&self) -> Value {
        json!({ "name": "whisper", "arguments": { "secret": self.secret }, "_meta": { "progressToken": "t" } })
    }

    /// The call of a tool that says the secret with every step.
    fn steps(&self) -> Value {
        let arguments = json!({ "n": 3, "ms": 1, "note": self.secret });
        json!({ "name": "steps", "arguments": arguments, "_meta": { "progressToken": "t" } })
    }
}

const ALL: [&str; 3] = ["notifications/message", "notifications/progress", "elicitation/create"];

fn yes() -> Value {
    json!({ "action": "accept", "content": { "confirm": true } })
}

async fn with_session(site: &'static Site, revision: &'static str, mut ears: Ears) {
    let client = Client::open(site, revision).await;
    let standing = client.get(None).await;
    for _ in 0..CALLS {
        let mut stream = client.post(&request("tools/call", ears.whisper())).await;
        while let Some((_, message)) = stream.event().await {
            ears.hears(&message);
            if message["method"] == "elicitation/create" {
                let given = json!({ "jsonrpc": "2.0", "id": message["id"], "result": yes() });
                assert_eq!(client.post(&given).await.status, 202);
            }
        }
        for (_, message) in client.post(&request("tools/call", ears.steps())).await.events().await {
            ears.hears(&message);
        }
        ears.hears(&client.call(1, "echo", json!({ "message": ears.secret })).await.json().await);
    }
    ears.heard(&ALL);
    assert_eq!(client.delete().await, 204);
    for (_, message) in standing.events().await {
        ears.hears(&message);
    }
}

async fn without_session(site: &'static Site, mut ears: Ears) {
    for _ in 0..CALLS {
        for (_, message) in site.alone("tools/call", ears.steps(), &[]).await.events().await {
            ears.hears(&message);
        }
        let mut params = ears.whisper();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "elicitation": { "form": {} } });
        let question = site.alone("tools/call", params.clone(), &[]).await.answer().await;
        ears.hears(&question);
        params["requestState"] = question["result"]["requestState"].clone();
        params["inputResponses"] = json!({ "sure": yes() });
        let answer = site.alone("tools/call", params, &[]).await.answer().await;
        ears.hears(&answer);
        assert!(support::text_of(&answer).starts_with("true "), "{answer}");
    }
    ears.heard(&["notifications/progress"]);
}

async fn over_two_endpoints(site: &'static Site, mut ears: Ears) {
    let (mut stream, address) = legacy::open(site).await;
    for _ in 0..CALLS {
        legacy::post(site, &address, &request("tools/call", ears.steps())).await;
        loop {
            let (_, message) = stream.event().await.unwrap();
            if message.get("id").is_some() {
                break ears.hears(&message);
            }
            // The oldest revision has no message with its progress, so only the answer tells.
            assert_eq!(message["method"], "notifications/progress");
        }
    }
}

async fn over_a_socket(site: &'static Site, mut ears: Ears) {
    let mut socket = websocket::open(site, "/mcp/ws").await;
    for params in [ears.whisper(), ears.steps()].into_iter().cycle().take(2 * CALLS) {
        websocket::say(&mut socket, &request("tools/call", params)).await;
        loop {
            let message = websocket::hear(&mut socket).await;
            ears.hears(&message);
            if message["method"] == "elicitation/create" {
                let given = json!({ "jsonrpc": "2.0", "id": message["id"], "result": yes() });
                websocket::say(&mut socket, &given).await;
            } else if message.get("id").is_some() {
                break;
            }
        }
    }
    ears.heard(&ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everybody_hears_only_of_themselves() {
    let site: &'static Site = Box::leak(Box::new(Site::usual().await));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let ears = Ears::new(number);
        match number % 5 {
            0 => clients.spawn(with_session(site, "2025-06-18", ears)),
            1 => clients.spawn(with_session(site, LATEST_SESSION, ears)),
            2 => clients.spawn(without_session(site, ears)),
            3 => clients.spawn(over_two_endpoints(site, ears)),
            _ => clients.spawn(over_a_socket(site, ears)),
        };
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    site.until_quiet().await;
}
