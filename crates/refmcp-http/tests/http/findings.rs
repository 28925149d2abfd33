//! Findings: mistakes of clients are recorded, with a session or without.

use serde_json::{Value, json};

use crate::policy::lenient;
use crate::support::{Client, LATEST_SESSION, STATELESS, Site, initialize_params, request, with_meta};

fn note(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": {} })
}

async fn found(site: &Site, rule: &str) -> f64 {
    site.metric(&format!("refmcp_findings_total{{rule=\"{rule}\"}}")).await
}

#[tokio::test]
async fn in_a_session() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    for _ in 0..3 {
        for method in ["initialized", "progress", "$/cancelRequest"] {
            assert_eq!(client.post(&note(method)).await.status, 202);
        }
        let mut call = request("tools/call", json!({ "name": "echo", "arguments": { "message": "m" } }));
        call["_meta"] = json!({ "progressToken": 1 });
        assert_eq!(client.post(&call).await.json().await["result"]["isError"], false);
    }
    for rule in ["LIFE-02", "PROG-01", "CANC-01", "RPC-01"] {
        assert_eq!(found(&site, rule).await, 1.0, "{rule}");
    }
}

#[tokio::test]
async fn without_a_session() {
    let site = Site::usual().await;
    let version = [("MCP-Protocol-Version", STATELESS)];
    assert_eq!(site.post(&version, &note("cancelled")).await.status, 202);
    let mut meant = note("$/cancelRequest");
    meant["params"] = with_meta(json!({}));
    assert_eq!(site.post(&version, &meant).await.status, 202);
    assert_eq!(found(&site, "CANC-04").await, 2.0);
    // `_meta` belongs into the parameters; beside them it is ignored.
    let mut list = request("tools/list", json!({}));
    list["_meta"] = with_meta(json!({}))["_meta"].take();
    for headers in [&version[..], &[]] {
        let refused = site.post(headers, &list).await;
        assert_eq!(refused.status, 400);
        let error = refused.json().await["error"].take();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().starts_with("params._meta must have"), "{error}");
    }
    assert_eq!(found(&site, "RPC-01").await, 2.0);
}

#[tokio::test]
async fn missing_headers_are_findings_on_a_lenient_endpoint() {
    let site = Site::open(lenient()).await;
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let ping = request("ping", json!({}));
    let complete = Client::open(&site, LATEST_SESSION).await;
    complete.is_served().await;
    let page = site.send("GET", "/metrics", &[], b"").await.text().await;
    assert!(!page.contains("refmcp_findings_total{"), "nothing is missing: {page}");

    let initialize = request("initialize", initialize_params(LATEST_SESSION)).to_string();
    let opened = site.bare("POST", "/mcp", &[], &initialize).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    assert_eq!(found(&site, "HTTP-03").await, 1.0, "no Accept with initialize");
    let named = [("Mcp-Session-Id", &*session)];
    assert_eq!(site.bare("POST", "/mcp", &named, &ready.to_string()).await.status, 202);
    assert_eq!(found(&site, "LIFE-09").await, 1.0, "no MCP-Protocol-Version with a notification");
    for _ in 0..3 {
        assert_eq!(site.bare("POST", "/mcp", &named, &ping.to_string()).await.status, 200);
    }
    assert_eq!((found(&site, "HTTP-03").await, found(&site, "LIFE-09").await), (1.0, 1.0), "once each");
    assert!(site.bare("GET", "/mcp", &named, "").await.is_sse());
    assert_eq!(found(&site, "HTTP-13").await, 1.0);

    let alone = [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "tools/list")];
    let list = request("tools/list", with_meta(json!({}))).to_string();
    assert_eq!(site.bare("POST", "/mcp", &alone, &list).await.status, 200);
    assert_eq!(found(&site, "MHTTP-02").await, 1.0);

    // An older revision does not have this header.
    let older = Client::open(&site, "2025-03-26").await;
    let named = [("Mcp-Session-Id", &*older.session), ("Accept", "*/*")];
    assert_eq!(site.bare("POST", "/mcp", &named, &ping.to_string()).await.status, 200);
    assert_eq!(found(&site, "LIFE-09").await, 1.0);
}

#[tokio::test]
async fn malformed_bodies_are_findings() {
    let site = Site::usual().await;
    assert_eq!(site.send("POST", "/mcp", &[], b"{oops").await.status, 400);
    assert_eq!(found(&site, "RPC-01").await, 1.0, "without a session, each is counted");
    assert_eq!(site.send("POST", "/mcp", &[], b"7").await.status, 400);
    assert_eq!(found(&site, "RPC-01").await, 2.0);
    let client = Client::open(&site, LATEST_SESSION).await;
    for _ in 0..3 {
        assert_eq!(site.send("POST", "/mcp", &client.headers(), b"{oops").await.status, 400);
    }
    assert_eq!(found(&site, "RPC-01").await, 3.0, "in a session, once");
    let refused = site.post(&[], &request("initialize", json!({}))).await;
    assert_eq!((refused.status, &refused.json().await["error"]["code"]), (200, &json!(-32602)));
    assert_eq!(found(&site, "LIFE-01").await, 1.0);
}

#[tokio::test]
async fn refused_requests_are_findings() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let ping = request("ping", json!({})).to_string();
    let list = request("tools/list", with_meta(json!({}))).to_string();
    let initialize = request("initialize", initialize_params(LATEST_SESSION)).to_string();
    let batch = format!("[{list}]");
    let accept = ("Accept", "application/json, text/event-stream");
    let (stateless, session) = (("MCP-Protocol-Version", STATELESS), ("Mcp-Session-Id", &*client.session));
    for (headers, body, rule) in [
        (&[accept, stateless, ("Mcp-Method", "tools/call")][..], &list, "MHTTP-09"),
        (&[accept, stateless], &list, "MHTTP-09"),
        (
            &[accept, ("MCP-Protocol-Version", LATEST_SESSION), ("Mcp-Method", "tools/list")],
            &list,
            "MHTTP-08",
        ),
        (&[accept, stateless, ("Mcp-Method", "ping")], &ping, "STATE-04"),
        (&[("Accept", "text/html"), stateless, ("Mcp-Method", "tools/list")], &list, "MHTTP-02"),
        (&[("Accept", "text/html"), session], &ping, "HTTP-03"),
        (&[accept], &ping, "HTTP-19"),
        (&[accept, stateless], &batch, "RPC-10"),
        (&[accept, session, ("MCP-Protocol-Version", "2025-03-26")], &ping, "LIFE-09"),
        (&[accept, session], &initialize, "LIFE-01"),
    ] {
        let before = found_or_none(&site, rule).await;
        let refused = site.bare("POST", "/mcp", headers, body).await;
        assert!(refused.status == 400 || refused.status == 406, "{rule}: {}", refused.status);
        assert_eq!(found(&site, rule).await, before + 1.0, "{rule}");
    }
    // What was refused belongs to the session that it named, as everything else of it does.
    let [session, version] = client.headers();
    for _ in 0..2 {
        let page = [session, version, ("Accept", "text/html")];
        assert_eq!(site.bare("GET", "/mcp", &page, "").await.status, 406);
        assert_eq!(site.bare("POST", "/mcp", &page, &ping).await.status, 406);
    }
    for (rule, number) in [("HTTP-03", 1.0), ("LIFE-01", 1.0), ("LIFE-09", 1.0), ("HTTP-13", 1.0)] {
        assert_eq!(found(&site, rule).await, number, "{rule}: once in a session");
    }
}

#[tokio::test]
async fn a_response_with_the_header_of_another_revision_is_refused() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    let stateless = ("MCP-Protocol-Version", STATELESS);
    let session = ("Mcp-Session-Id", &*client.session);
    for body in [&response, &note("notifications/roots/list_changed")] {
        let refused = site.post(&[session, stateless], body).await;
        assert_eq!(refused.status, 400);
        let error = refused.json().await;
        assert_eq!(error["id"], Value::Null);
        let why = error["error"]["message"].as_str().unwrap();
        assert!(why.contains("is 2026-07-28, but this session agreed on 2025-11-25"), "{why}");
    }
    assert_eq!(found(&site, "LIFE-09").await, 1.0, "once in a session");
    let refused = site.post(&[stateless], &response).await;
    assert_eq!(refused.status, 400);
    let error = refused.json().await;
    assert!(error["error"]["message"].as_str().unwrap().contains("send no requests"), "{error}");
    assert_eq!(found(&site, "RPC-15").await, 1.0);
}

#[tokio::test]
async fn a_meta_that_is_null_in_a_session_has_its_own_finding() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let refused = client.post(&request("tools/list", json!({ "_meta": null }))).await;
    assert_eq!(refused.status, 400);
    let error = refused.json().await["error"].take();
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32602), &json!("params._meta is not an object"))
    );
    assert_eq!((found(&site, "RPC-01").await, found_or_none(&site, "STATE-04").await), (1.0, 0.0));
}

#[tokio::test]
async fn a_revision_without_a_rule_has_no_finding_about_it() {
    let site = Site::open(lenient()).await;
    for (revision, findings) in [("2024-11-05", 0.0), ("2025-03-26", 1.0)] {
        let initialize = request("initialize", initialize_params(revision)).to_string();
        let opened = site.bare("POST", "/mcp", &[], &initialize).await;
        assert_eq!(opened.status, 200);
        assert_eq!(found_or_none(&site, "HTTP-03").await, findings, "{revision}");
        let session = ("Mcp-Session-Id", opened.header("mcp-session-id").unwrap());
        let ping = request("ping", json!({})).to_string();
        let refused = site.bare("POST", "/mcp", &[session, ("Accept", "text/html")], &ping).await;
        assert_eq!(refused.status, 406);
        assert_eq!(found_or_none(&site, "HTTP-03").await, 2.0 * findings, "{revision}");
        let wrong = [session, ("MCP-Protocol-Version", LATEST_SESSION), ("Accept", "*/*")];
        assert_eq!(site.bare("POST", "/mcp", &wrong, &ping).await.status, 400);
        assert_eq!(found_or_none(&site, "LIFE-09").await, 0.0, "{revision}");
    }
    // HTTP+SSE has no rule about it, either.
    assert!(site.bare("GET", "/sse", &[], "").await.is_sse());
    assert_eq!(site.bare("GET", "/sse", &[("Accept", "text/html")], "").await.status, 406);
    assert_eq!(found_or_none(&site, "HTTP-13").await, 0.0);
}

/// The same before a rule was ever broken.
async fn found_or_none(site: &Site, rule: &str) -> f64 {
    let page = site.send("GET", "/metrics", &[], b"").await.text().await;
    let name = format!("refmcp_findings_total{{rule=\"{rule}\"}}");
    if page.contains(&name) { found(site, rule).await } else { 0.0 }
}
