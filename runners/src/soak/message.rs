//! The messages that clients send.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// The newest revision with sessions, and the one whose requests stand for themselves.
pub(super) const SESSION_REVISION: &str = "2025-11-25";
pub(super) const STATELESS_REVISION: &str = "2026-07-28";

pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub(super) fn initialize(revision: &str, capabilities: &Value) -> String {
    request(
        0,
        "initialize",
        &json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": { "name": "soak", "version": "1" },
        }),
    )
}

pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

pub(super) fn call(id: u64, tool: &str, arguments: &Value) -> String {
    request(id, "tools/call", &json!({ "name": tool, "arguments": arguments }))
}

/// A call that reports progress.
pub(super) fn long_task(id: u64, steps: u32, step_ms: u32) -> String {
    let arguments = json!({ "steps": steps, "step_ms": step_ms });
    let meta = json!({ "progressToken": id });
    request(id, "tools/call", &json!({ "name": "long_task", "arguments": arguments, "_meta": meta }))
}

/// A call outside of sessions.
pub(super) fn stateless_call(id: u64, tool: &str, arguments: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS_REVISION,
        "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request(id, "tools/call", &json!({ "name": tool, "arguments": arguments, "_meta": meta }))
}

/// The text of the one response to this request among the messages; notifications are passed over.
pub(super) fn only_response(messages: &[Value], id: u64) -> Result<&Value> {
    let mut responses = messages.iter().filter(|message| message.get("method").is_none());
    let response = responses.next().with_context(|| format!("no response to {id} in {messages:?}"))?;
    ensure!(responses.next().is_none(), "more than one response: {messages:?}");
    ensure!(response["id"] == id, "the response to another request than {id}: {response}");
    response.get("result").with_context(|| format!("no result: {response}"))
}

/// The text that a tool returned.
pub(super) fn text(result: &Value) -> Option<&str> {
    result["content"][0]["text"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_one_response_and_it_is_its_own() {
        let progress = json!({ "method": "notifications/progress" });
        let response = json!({ "id": 7, "result": { "content": [{ "text": "nonce" }] } });
        let result = only_response(&[progress.clone(), response.clone()], 7).unwrap().clone();
        assert_eq!(text(&result), Some("nonce"));
        for wrong in
            [vec![progress], vec![response.clone(), response.clone()], vec![json!({ "id": 7, "error": {} })]]
        {
            assert!(only_response(&wrong, 7).is_err(), "{wrong:?}");
        }
        assert!(only_response(&[response], 8).is_err());
    }
}
