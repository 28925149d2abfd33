//! Policies: what the strict one refuses and the lenient one serves.

use refmcp_http::Options;
use serde_json::{Value, json};

use crate::http_sse;
use crate::support::http1::{Reply, send};
use crate::support::{LATEST_SESSION, STATELESS, Site, initialize_params, request, with_meta};

const LENIENT_SERVES: &str = "; --policy lenient serves it";

pub(crate) fn lenient() -> Options {
    Options { require_version: false, require_accept: false, serve_duplicate_ids: true, ..Options::default() }
}

impl Site {
    /// Sends exactly these headers, and `Content-Type`.
    pub(crate) async fn bare(&self, method: &str, path: &str, more: &[(&str, &str)], body: &str) -> Reply {
        let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        headers.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        send(self.address, method, path, &headers, body.as_bytes()).await
    }

    /// The id of a session that was opened with an `Accept` header and is ready.
    async fn opened(&self) -> String {
        let reply = self.post(&[], &request("initialize", initialize_params(LATEST_SESSION))).await;
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let headers = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", LATEST_SESSION)];
        assert_eq!(self.post(&headers, &ready).await.status, 202);
        session
    }
}

fn steps() -> Value {
    json!({ "name": "steps", "arguments": { "n": 2, "ms": 1 }, "_meta": { "progressToken": 1 } })
}

#[tokio::test]
async fn without_accept_a_lenient_endpoint_chooses_the_response() {
    let site = Site::open(lenient()).await;
    let initialize = request("initialize", initialize_params(LATEST_SESSION)).to_string();
    let opened = site.bare("POST", "/mcp", &[], &initialize).await;
    assert_eq!((opened.status, opened.header("content-type")), (200, Some("application/json")));

    let session = site.opened().await;
    let headers = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", LATEST_SESSION)];
    let ping = site.bare("POST", "/mcp", &headers, &request("ping", json!({})).to_string()).await;
    assert_eq!((ping.status, ping.header("content-type")), (200, Some("application/json")));
    let stream = site.bare("POST", "/mcp", &headers, &request("tools/call", steps()).to_string()).await;
    assert_eq!((stream.status, stream.is_sse()), (200, true));
    assert_eq!(stream.events().await.len(), 3);
    let standing = site.bare("GET", "/mcp", &headers, "").await;
    assert_eq!((standing.status, standing.is_sse()), (200, true));
    let older = site.bare("GET", "/sse", &[], "").await;
    assert_eq!((older.status, older.is_sse()), (200, true));

    let named = [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "tools/call"), ("Mcp-Name", "steps")];
    let call = request("tools/call", with_meta(steps())).to_string();
    let stream = site.bare("POST", "/mcp", &named, &call).await;
    assert_eq!((stream.status, stream.is_sse()), (200, true));
    assert_eq!(stream.events().await.len(), 3);

    // An `Accept` that is sent counts.
    for kind in ["application/json", "text/event-stream", "text/html"] {
        let headers = [headers[0], headers[1], ("Accept", kind)];
        let reply = site.bare("POST", "/mcp", &headers, &request("ping", json!({})).to_string()).await;
        assert_eq!(reply.status, 406, "{kind}");
        let said = reply.text().await;
        assert_eq!(said, "Accept must allow application/json and text/event-stream\n");
    }
}

#[tokio::test]
async fn strict_refusals_name_the_policy_that_would_serve_them() {
    let site = Site::usual().await;
    let session = site.opened().await;
    let headers = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", LATEST_SESSION)];
    let ping = request("ping", json!({})).to_string();
    for (method, path, headers, body, status, why) in [
        ("POST", "/mcp", &headers[..], &*ping, 406, "no Accept header"),
        ("POST", "/mcp", &headers[..], "{", 406, "no Accept header"),
        ("GET", "/mcp", &headers[..], "", 406, "no Accept header"),
        ("GET", "/sse", &[], "", 406, "no Accept header"),
    ] {
        let reply = site.bare(method, path, headers, body).await;
        assert_eq!(reply.status, status, "{method} {path}");
        let said = reply.text().await;
        let said = said.trim_end();
        assert!(said.starts_with(why) && said.ends_with(LENIENT_SERVES), "{method} {path}: {said}");
    }
    let unversioned = site.post(&headers[..1], &request("ping", json!({}))).await;
    assert_eq!(unversioned.status, 400);
    let said = unversioned.json().await;
    assert!(said["error"]["message"].as_str().unwrap().ends_with(LENIENT_SERVES), "{said}");

    let slow = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": { "name": "slow", "arguments": { "ms": 100_000 }, "_meta": { "progressToken": 1 } } });
    let _first = site.post(&headers, &slow).await;
    let again = site.post(&headers, &slow).await.json().await;
    assert!(again["error"]["message"].as_str().unwrap().ends_with(LENIENT_SERVES), "{again}");

    let early = site.post(&[], &request("initialize", initialize_params(LATEST_SESSION))).await;
    let id = early.header("mcp-session-id").unwrap().to_owned();
    let headers = [("Mcp-Session-Id", &*id), ("MCP-Protocol-Version", LATEST_SESSION)];
    let mut said = site.post(&headers, &request("tools/list", json!({}))).await;
    let said = if said.is_sse() { said.event().await.unwrap().1 } else { said.json().await };
    assert!(said["error"]["message"].as_str().unwrap().ends_with(LENIENT_SERVES), "{said}");
}

#[tokio::test]
async fn notifications_need_no_accept() {
    for options in [Options::default(), lenient()] {
        let site = Site::open(options).await;
        for accept in [&[][..], &[("Accept", "text/html")]] {
            let opened = site.post(&[], &request("initialize", initialize_params("2025-03-26"))).await;
            let session = opened.header("mcp-session-id").unwrap().to_owned();
            let mut headers = vec![("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", "2025-03-26")];
            headers.extend(accept);
            let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            let response = json!({ "jsonrpc": "2.0", "id": 99, "result": {} });
            for silent in [ready.clone(), response.clone(), json!([ready, response])] {
                let reply = site.bare("POST", "/mcp", &headers, &silent.to_string()).await;
                assert_eq!(reply.status, 202, "{accept:?} {silent}");
            }
            let alone = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": with_meta(json!({ "requestId": 1 })) });
            let named = [&[("MCP-Protocol-Version", STATELESS)], accept].concat();
            assert_eq!(site.bare("POST", "/mcp", &named, &alone.to_string()).await.status, 202, "{accept:?}");
        }
        // HTTP+SSE answers on its stream and never checked it.
        let (_stream, address) = http_sse::open(&site).await;
        let ping = request("initialize", initialize_params("2024-11-05")).to_string();
        assert_eq!(site.bare("POST", &address, &[], &ping).await.status, 202);
    }
    let site = Site::usual().await;
    let opened = site.post(&[], &request("initialize", initialize_params("2025-03-26"))).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let headers = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", "2025-03-26")];
    for answered in [
        json!([]),
        json!([1]),
        json!([{ "jsonrpc": "2.0", "method": "notifications/x" }, request("ping", json!({}))]),
    ] {
        let reply = site.bare("POST", "/mcp", &headers, &answered.to_string()).await;
        assert_eq!(reply.status, 406, "{answered}");
    }
}

#[tokio::test]
async fn an_error_without_an_id_says_null() {
    let site = Site::usual().await;
    let session = site.opened().await;
    let unknown = [("Mcp-Session-Id", "unknown")];
    let named = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", LATEST_SESSION)];
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    for (headers, body, status, code) in [
        (&[][..], "{", 400, -32700),
        (&[], "", 400, -32700),
        (&[], "[]", 400, -32600),
        (&[], "7", 400, -32600),
        (&[], r#"{"jsonrpc":"1.0"}"#, 400, -32600),
        (&[], r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, 400, -32600),
        (&named, "{", 400, -32700),
        (&named[..1], ready, 400, -32600),
        (&unknown, ready, 404, -32600),
        (&[("MCP-Protocol-Version", "1999-01-01")], ready, 400, -32022),
    ] {
        let reply = site.send("POST", "/mcp", headers, body.as_bytes()).await;
        assert_eq!(reply.status, status, "{body}");
        let said = reply.json().await;
        assert_eq!(
            (said.get("id"), &said["error"]["code"]),
            (Some(&Value::Null), &json!(code)),
            "{body}: {said}"
        );
    }
}

#[tokio::test]
async fn a_client_that_posts_to_the_stream_is_told_where_to_post() {
    let site = Site::usual().await;
    let reply = site.post_to("/sse").await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET")));
    let said = reply.text().await;
    assert_eq!(
        said,
        "open the stream with GET /sse, and post to the URI that its endpoint event names; \
         or POST to /mcp for streamable HTTP\n"
    );
    let reply = site.send("GET", "/messages", &[], b"").await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
    assert!(reply.text().await.contains("GET /sse opens the stream"));
}

impl Site {
    async fn post_to(&self, path: &str) -> Reply {
        let body = request("initialize", initialize_params(LATEST_SESSION)).to_string();
        self.send("POST", path, &[], body.as_bytes()).await
    }
}
