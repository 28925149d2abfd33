//! What clients do wrong is recorded wherever it comes in, also where no session keeps it.

use serde_json::{Value, json};

use crate::support::{Client, LATEST_SESSION, STATELESS, Site, request, with_meta};

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
    assert_eq!(found(&site, "CANC-01").await, 2.0);
    // Who asks is said inside the parameters; beside them nobody looks.
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
