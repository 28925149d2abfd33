//! Sessions of streamable HTTP, in each revision that has them.

use refmcp_proto::revision::{BatchRule, Lifecycle, Revision};
use serde_json::json;

use crate::support::{Client, LATEST_SESSION, STATELESS, Site, initialize_params, request, text_of};

#[tokio::test]
async fn a_session_is_opened_used_and_ended() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    assert!(client.session.len() >= 22 && client.session.bytes().all(|byte| byte.is_ascii_graphic()));
    let reply = client.call(2, "echo", json!({ "message": "hello" })).await;
    assert_eq!(reply.status, 200);
    assert_eq!(text_of(&reply.json().await), "hello");
    let ended = site.send("DELETE", "/mcp", &client.headers(), b"").await;
    assert_eq!(ended.status, 204);
    assert_eq!(client.call(3, "echo", json!({ "message": "hello" })).await.status, 404);
    assert_eq!(client.get(None).await.status, 404);
    assert_eq!(site.send("DELETE", "/mcp", &client.headers(), b"").await.status, 404);
}

#[tokio::test]
async fn a_session_id_is_required_and_must_be_known() {
    let site = Site::usual().await;
    let version = ("MCP-Protocol-Version", LATEST_SESSION);
    let list = request("tools/list", json!({}));
    let reply = site.post(&[version], &list).await;
    assert_eq!(reply.status, 400);
    let body = reply.json().await;
    assert_eq!((&body["id"], &body["error"]["code"]), (&json!(1), &json!(-32600)));
    assert_eq!(site.send("GET", "/mcp", &[version], b"").await.status, 400);
    assert_eq!(site.send("DELETE", "/mcp", &[version], b"").await.status, 400);
    for headers in [&[("Mcp-Session-Id", "unknown"), version][..], &[("Mcp-Session-Id", "unknown")]] {
        assert_eq!(site.post(headers, &list).await.status, 404);
        assert_eq!(site.send("GET", "/mcp", headers, b"").await.status, 404);
        assert_eq!(site.send("DELETE", "/mcp", headers, b"").await.status, 404);
    }
}

#[tokio::test]
async fn the_version_header_is_required_by_its_revision() {
    let site = Site::usual().await;
    let list = request("tools/list", json!({}));
    for (revision, without) in [("2025-03-26", 200), ("2025-06-18", 400), (LATEST_SESSION, 400)] {
        let client = Client::open(&site, revision).await;
        let session = ("Mcp-Session-Id", client.session.as_str());
        assert_eq!(site.post(&[session], &list).await.status, without, "{revision}");
        for (version, status) in [(revision, 200), ("2024-11-05", 400), ("1999-01-01", 400), ("", 400)] {
            let reply = site.post(&[session, ("MCP-Protocol-Version", version)], &list).await;
            assert_eq!(reply.status, status, "{revision} {version:?}");
        }
        let twice = [session, ("MCP-Protocol-Version", revision), ("MCP-Protocol-Version", "2024-11-05")];
        assert_eq!(site.post(&twice, &list).await.status, 400, "{revision}");
        assert_eq!(site.send("GET", "/mcp", &twice, b"").await.status, 400, "{revision}");
        assert_eq!(site.send("DELETE", "/mcp", &twice, b"").await.status, 400, "{revision}");
    }
}

#[tokio::test]
async fn notifications_are_accepted_without_a_body() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    for message in [
        json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/unheard_of" }),
        json!({ "jsonrpc": "2.0", "id": "unknown", "result": {} }),
    ] {
        let reply = client.post(&message).await;
        assert_eq!((reply.status, reply.text().await.as_str()), (202, ""), "{message}");
    }
}

#[tokio::test]
async fn initialize_does_not_belong_into_a_session() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let reply = site.post(&client.headers(), &request("initialize", initialize_params(LATEST_SESSION))).await;
    assert_eq!((reply.status, reply.header("mcp-session-id")), (400, None));
    assert_eq!(reply.json().await["error"]["code"], -32600);
}

#[tokio::test]
async fn malformed_messages_are_bad_requests() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
    ] {
        let reply = site.send("POST", "/mcp", &client.headers(), body.as_bytes()).await;
        assert_eq!(reply.status, 400, "{body}");
        assert_eq!(reply.json().await["error"]["code"], code, "{body}");
    }
}

/// The engine refuses batches, the HTTP layer what is not JSON: both write the same id.
#[tokio::test]
async fn errors_without_a_request_id_carry_null_in_every_revision() {
    let site = Site::usual().await;
    let bodies =
        ["{", "7", "[]", "[7]", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, r#"{"jsonrpc":"2.0"}"#];
    for revision in Revision::with(Lifecycle::Handshake) {
        let client = Client::open(&site, revision.as_str()).await;
        for body in bodies {
            let text = site.send("POST", "/mcp", &client.headers(), body.as_bytes()).await.text().await;
            let one_answered = revision.rules().batches != BatchRule::Refused && body.contains("ping");
            assert_eq!(text.contains(r#""id":null"#), !one_answered, "{revision} {body}: {text}");
        }
    }
    for body in bodies {
        let headers = [("mcp-protocol-version", STATELESS), ("mcp-method", "ping")];
        let text = site.send("POST", "/mcp", &headers, body.as_bytes()).await.text().await;
        assert!(text.contains(r#""id":null"#), "{body}: {text}");
    }
}

#[tokio::test]
async fn batches_are_answered_where_the_revision_has_them() {
    let site = Site::usual().await;
    let client = Client::open(&site, "2025-03-26").await;
    let call = |id: u32| {
        let params = json!({ "name": "echo", "arguments": { "message": id.to_string() } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let reply = client.post(&json!([call(1), call(2)])).await;
    assert_eq!(reply.status, 200);
    let answers = reply.answer().await;
    let mut texts: Vec<&str> = answers.as_array().unwrap().iter().map(text_of).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["1", "2"]);
    let told = client.post(&json!([{ "jsonrpc": "2.0", "method": "notifications/unheard_of" }])).await;
    assert_eq!((told.status, told.text().await.as_str()), (202, ""));
}

#[tokio::test]
async fn an_elicitation_comes_on_the_stream_of_its_call() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let mut stream = client.call(5, "ask", json!({})).await;
    assert!(stream.is_sse());
    let (_, question) = stream.event().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let content = json!({ "action": "accept", "content": { "confirm": true } });
    let given = json!({ "jsonrpc": "2.0", "id": question["id"], "result": content });
    assert_eq!(client.post(&given).await.status, 202);
    let (_, answer) = stream.event().await.unwrap();
    assert_eq!(answer["id"], 5);
    assert!(text_of(&answer).starts_with("sure: "), "{answer}");
    assert!(stream.event().await.is_none(), "the answer ends the stream");
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_calls() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let mut stream = client.call_with_progress(1, "steps", json!({ "n": 100_000, "ms": 5 })).await;
    stream.event().await.unwrap();
    assert_eq!(site.send("DELETE", "/mcp", &client.headers(), b"").await.status, 204);
    site.until_ended(1).await;
    while let Some((_, message)) = stream.event().await {
        assert_eq!(message["method"], "notifications/progress", "no answer: {message}");
    }
}
