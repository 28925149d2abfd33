//! Headers that a handler sees are those of its request, not those that its session was opened with.

use serde_json::{Value, json};

use crate::support::{Client, LATEST_SESSION, Site, initialize_params, request, text_of};
use crate::{http_sse, websocket};

/// A call of the tool that tells the header `X-Api-Key`.
fn call(arguments: &Value) -> Value {
    request("tools/call", json!({ "name": "api_key", "arguments": arguments }))
}

/// A client whose `initialize` had the key `ann`.
async fn opened_by_ann(site: &Site) -> Client<'_> {
    let body = request("initialize", initialize_params(LATEST_SESSION));
    let reply = site.post(&[("X-Api-Key", "ann")], &body).await;
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    let client = Client::of_session(site, session, LATEST_SESSION);
    client.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    client
}

#[tokio::test]
async fn in_a_session_each_request_has_its_own_headers() {
    let site = Site::usual().await;
    let client = opened_by_ann(&site).await;
    for arguments in [json!({}), json!({ "ms": 5 })] {
        for key in ["bob", "cat"] {
            let headers = [&client.headers()[..], &[("X-Api-Key", key)]].concat();
            let answer = site.post(&headers, &call(&arguments)).await.answer().await;
            assert_eq!(text_of(&answer), key, "{arguments}");
        }
        let answer = client.post(&call(&arguments)).await.answer().await;
        assert_eq!(text_of(&answer), "none", "a request without the header has none");
    }
}

#[tokio::test]
async fn a_call_that_asked_has_the_headers_of_its_request() {
    let site = Site::usual().await;
    let client = opened_by_ann(&site).await;
    let headers = [&client.headers()[..], &[("X-Api-Key", "bob")]].concat();
    let mut stream = site.post(&headers, &call(&json!({ "ask": true }))).await;
    // The first event has no message.
    let asked = loop {
        let (_, message) = stream.event().await.unwrap();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": yes });
    let headers = [&client.headers()[..], &[("X-Api-Key", "cat")]].concat();
    assert_eq!(site.post(&headers, &answer).await.status, 202);
    assert_eq!(text_of(&stream.answer().await), "bob");
}

#[tokio::test]
async fn over_http_sse_each_message_has_its_own_headers() {
    let site = Site::usual().await;
    let (mut stream, address) = http_sse::open(&site).await;
    for key in ["bob", "cat"] {
        let body = call(&json!({})).to_string();
        let reply = site.send("POST", &address, &[("X-Api-Key", key)], body.as_bytes()).await;
        assert_eq!(reply.status, 202);
        assert_eq!(text_of(&stream.event().await.unwrap().1), key);
    }
}

#[tokio::test]
async fn a_websocket_has_the_headers_of_its_handshake() {
    let site = Site::usual().await;
    let mut socket = websocket::connect(&site, "/mcp/ws", &[("x-api-key", "ann")]).await.unwrap();
    websocket::say(&mut socket, &request("initialize", initialize_params(LATEST_SESSION))).await;
    websocket::hear(&mut socket).await;
    websocket::say(&mut socket, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    websocket::say(&mut socket, &call(&json!({}))).await;
    assert_eq!(text_of(&websocket::hear(&mut socket).await), "ann");
}
