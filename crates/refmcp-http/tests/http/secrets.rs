//! What one client says, no other hears, however alike they are.

use serde_json::{Value, json};

use crate::legacy;
use crate::support::{Client, LATEST_SESSION, Site};

/// Every message must be about this client's secret and no other's.
fn only_mine(messages: &[Value], secret: &str) {
    for message in messages {
        let text = message.to_string();
        assert_eq!(text.matches("secret-").count(), 1, "{text}");
        assert!(text.contains(&format!("{secret}\"")), "{text} is not about {secret}");
    }
}

async fn with_session(site: &'static Site, revision: &'static str, secret: String) {
    let client = Client::open(site, revision).await;
    for _ in 0..5 {
        let stream = client.watch(1, "steps", json!({ "n": 3, "ms": 2, "note": secret })).await;
        let heard: Vec<Value> = stream.events().await.into_iter().map(|(_, message)| message).collect();
        assert_eq!(heard.len(), 4);
        only_mine(&heard, &secret);
        let echo = client.call(1, "echo", json!({ "message": secret })).await.json().await;
        only_mine(&[echo], &secret);
    }
}

async fn without_session(site: &'static Site, secret: String) {
    for _ in 0..5 {
        let arguments = json!({ "n": 3, "ms": 2, "note": secret });
        let params = json!({ "name": "steps", "arguments": arguments, "_meta": { "progressToken": "t" } });
        let stream = site.alone("tools/call", params, &[]).await;
        let heard: Vec<Value> = stream.events().await.into_iter().map(|(_, message)| message).collect();
        assert_eq!(heard.len(), 4);
        only_mine(&heard, &secret);
    }
}

async fn over_two_endpoints(site: &'static Site, secret: String) {
    let (mut stream, address) = legacy::open(site).await;
    for _ in 0..5 {
        // The oldest revision has no message with its progress, so only the answer tells.
        let heard = legacy::steps(site, &mut stream, &address, &secret).await;
        only_mine(&heard[heard.len() - 1..], &secret);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_clients_hear_only_of_themselves() {
    let site: &'static Site = Box::leak(Box::new(Site::usual().await));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..50 {
        let secret = format!("secret-{number}");
        match number % 5 {
            0 => clients.spawn(with_session(site, "2025-03-26", secret)),
            1 => clients.spawn(with_session(site, "2025-06-18", secret)),
            2 => clients.spawn(with_session(site, LATEST_SESSION, secret)),
            3 => clients.spawn(without_session(site, secret)),
            _ => clients.spawn(over_two_endpoints(site, secret)),
        };
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
}
