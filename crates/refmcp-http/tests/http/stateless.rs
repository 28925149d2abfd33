//! Stateless requests, of the revision without sessions.

use std::time::Duration;

use refmcp_proto::engine::Change;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::http1::Reply;
use crate::support::{Client, LATEST_SESSION, STATELESS, Site, request, text_of};

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

async fn refused(reply: Reply, status: u16, code: i64) {
    assert_eq!((reply.status, reply.header("mcp-session-id")), (status, None));
    let body = reply.json().await;
    assert_eq!((&body["id"], &body["error"]["code"]), (&json!(1), &json!(code)), "{body}");
}

fn echo() -> Value {
    json!({ "name": "echo", "arguments": { "message": "hello" } })
}

#[tokio::test]
async fn a_stateless_request_needs_no_session() {
    let site = Site::usual().await;
    for stray in [&[][..], &[("Mcp-Session-Id", "stray"), ("Last-Event-ID", "1.1")]] {
        let reply = site.stateless("tools/call", echo(), stray).await;
        assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None));
        assert_eq!(text_of(&reply.json().await), "hello");
    }
}

#[tokio::test]
async fn get_and_delete_do_not_exist() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let version = ("MCP-Protocol-Version", STATELESS);
    for headers in [&[version][..], &[version, ("Mcp-Session-Id", &client.session)]] {
        assert_eq!(site.send("GET", "/mcp", headers, b"").await.status, 405);
        assert_eq!(site.send("DELETE", "/mcp", headers, b"").await.status, 405);
    }
    assert_eq!(
        client.call(2, "echo", json!({ "message": "m" })).await.status,
        200,
        "the session is still there"
    );
}

#[tokio::test]
async fn the_body_must_name_revision_and_capabilities() {
    let site = Site::usual().await;
    let headers = [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "tools/list")];
    for meta in [
        json!(null),
        json!({}),
        json!({ VERSION_KEY: STATELESS }),
        json!({ "io.modelcontextprotocol/clientCapabilities": {} }),
        json!({ VERSION_KEY: 7, "io.modelcontextprotocol/clientCapabilities": {} }),
        json!({ VERSION_KEY: STATELESS, "io.modelcontextprotocol/clientCapabilities": "none" }),
    ] {
        let params = if meta.is_null() { json!({}) } else { json!({ "_meta": meta }) };
        refused(site.post(&headers, &request("tools/list", params)).await, 400, -32602).await;
    }
}

#[tokio::test]
async fn headers_must_repeat_the_body() {
    let site = Site::usual().await;
    for wrong in [
        ("Mcp-Method", ""),
        ("Mcp-Method", "tools/list"),
        ("Mcp-Method", "TOOLS/CALL"),
        ("Mcp-Name", ""),
        ("Mcp-Name", "slow"),
        ("Mcp-Name", "=?base64?!?="),
        ("MCP-Protocol-Version", ""),
        ("MCP-Protocol-Version", LATEST_SESSION),
        ("MCP-Protocol-Version", "v999"),
    ] {
        refused(site.stateless("tools/call", echo(), &[wrong]).await, 400, -32020).await;
    }
    let coded = site.stateless("tools/call", echo(), &[("Mcp-Name", "=?base64?ZWNobw==?=")]).await;
    assert_eq!(coded.status, 200);
    let other = json!({ "_meta": { VERSION_KEY: "v999" } });
    refused(site.stateless("tools/list", other.clone(), &[]).await, 400, -32020).await;
    refused(site.stateless("tools/list", other, &[("MCP-Protocol-Version", "v999")]).await, 400, -32022)
        .await;
}

#[tokio::test]
async fn arguments_are_repeated_where_the_schema_says_so() {
    let site = Site::usual().await;
    let call = |arguments: Value| json!({ "name": "mirror", "arguments": arguments });
    let both = json!({ "region": "Zürich", "size": 42 });
    let coded = ("Mcp-Param-Region", "=?base64?WsO8cmljaA==?=");
    for size in ["42", "42.0"] {
        let reply =
            site.stateless("tools/call", call(both.clone()), &[coded, ("mcp-param-size", size)]).await;
        assert_eq!(reply.status, 200, "{size}");
    }
    let wrong: [&[(&str, &str)]; 5] = [
        &[],
        &[coded],
        &[coded, ("Mcp-Param-Size", "43")],
        &[coded, ("Mcp-Param-Size", "42"), ("Mcp-Param-Size", "43")],
        &[("Mcp-Param-Region", "Bern"), ("Mcp-Param-Size", "42")],
    ];
    for headers in wrong {
        refused(site.stateless("tools/call", call(both.clone()), headers).await, 400, -32020).await;
    }
    for absent in [json!({}), json!({ "region": null })] {
        let reply = site.stateless("tools/call", call(absent), &[]).await;
        assert_eq!(reply.status, 200);
    }
}

#[tokio::test]
async fn errors_have_a_status_of_their_own() {
    let site = Site::usual().await;
    refused(site.stateless("no/such", json!({}), &[]).await, 404, -32601).await;
    refused(site.stateless("initialize", json!({}), &[]).await, 404, -32601).await;
    let ask = json!({ "name": "ask", "arguments": {} });
    refused(site.stateless("tools/call", ask, &[]).await, 400, -32021).await;
    let unknown = json!({ "name": "no such tool", "arguments": {} });
    refused(site.stateless("tools/call", unknown, &[]).await, 200, -32602).await;
}

#[tokio::test]
async fn an_elicitation_is_an_input_required_result() {
    let site = Site::usual().await;
    let capabilities = json!({ "elicitation": { "form": {} } });
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    let reply =
        site.stateless("tools/call", json!({ "name": "ask", "arguments": {}, "_meta": meta }), &[]).await;
    assert_eq!(reply.status, 200);
    let answer = reply.json().await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
}

#[tokio::test]
async fn closing_the_connection_cancels_the_request() {
    let site = Site::usual().await;
    let many =
        json!({ "name": "steps", "arguments": { "n": 100_000, "ms": 10 }, "_meta": { "progressToken": 1 } });
    let mut stream = site.stateless("tools/call", many, &[]).await;
    assert!(stream.is_sse());
    let (id, _) = stream.event().await.unwrap();
    assert_eq!((id, site.ended()), (None, 0), "nothing to come back to");
    drop(stream);
    site.until_ended(1).await;
    // The head of this response is still held back.
    let slow = json!({ "name": "slow", "arguments": { "ms": 1_000_000 } });
    let waiting = timeout(Duration::from_millis(300), site.stateless("tools/call", slow, &[])).await;
    assert!(waiting.is_err());
    site.until_ended(2).await;
}

#[tokio::test]
async fn a_listener_is_notified_of_changes() {
    let site = Site::usual().await;
    let wish = json!({ "notifications": { "toolsListChanged": true } });
    let mut stream = site.stateless("subscriptions/listen", wish, &[]).await;
    assert_eq!((stream.status, stream.is_sse()), (200, true));
    let (_, first) = stream.event().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"]["toolsListChanged"], true);
    assert_eq!(first["params"]["_meta"][SUBSCRIPTION_KEY], 1);
    site.server.changed(&Change::Resources);
    site.server.changed(&Change::Tools);
    let (_, second) = stream.event().await.unwrap();
    assert_eq!(second["method"], "notifications/tools/list_changed", "only what was asked for");
    assert_eq!(second["params"]["_meta"][SUBSCRIPTION_KEY], 1);
}
