//! The least an HTTP server can do: parse a body of JSON, write a body of JSON, nothing of MCP. Usage: `bare_http PORT`

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderName, StatusCode, header};
use axum::routing::post;
use axum::serve::ListenerExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<()> {
    let port: u16 = std::env::args().nth(1).context("no port")?.parse()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?.tap_io(|stream| {
        // Failing this, the answers are late, and the benchmark shows it.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, Router::new().route("/mcp", post(echo))).await?;
    Ok(())
}

async fn echo(body: Bytes) -> Result<([(HeaderName, &'static str); 1], Vec<u8>), StatusCode> {
    let request: Value = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let text = &request["params"]["arguments"]["message"];
    let answer = json!({
        "jsonrpc": "2.0", "id": request["id"], "result": { "content": [{ "type": "text", "text": text }] }
    });
    let answer = serde_json::to_vec(&answer).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], answer))
}
