//! HTTP+SSE: a stream of events, and a second connection for what is sent.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Caller, ECHOES};
use crate::soak::http::{Connection, Target};
use crate::soak::message;

/// Opens a session and calls a tool in it; the session ends with its stream.
pub(super) async fn session(target: Target, revision: &str, mut caller: Caller) -> Result<()> {
    let mut events = Connection::open(target).await?;
    let status = events.open_events(&target.request("GET /sse", "Accept: text/event-stream\r\n", "")).await?;
    if matches!(status, 429 | 503) {
        caller.refused();
        return Ok(());
    }
    ensure!(status == 200, "GET /sse: status {status}");
    let endpoint = events.event().await.context("endpoint")?;
    let path = endpoint
        .split_once("127.0.0.1")
        .map_or(endpoint.as_str(), |(_, rest)| rest.find('/').map_or(rest, |slash| &rest[slash..]));
    let mut client =
        SseClient { line: format!("POST {path}"), events, sender: Connection::open(target).await?, target };
    if !client.send(&message::initialize(revision, &json!({}))).await? {
        caller.refused();
        return Ok(());
    }
    message::only_response(&[client.message().await?], 0)?;
    if !client.send(message::INITIALIZED).await? {
        caller.refused();
        return Ok(());
    }
    for id in 1..=ECHOES {
        let nonce = caller.nonce();
        if !client.send(&Caller::echo(id, &nonce)).await? {
            caller.refused();
            return Ok(());
        }
        caller.answered(&[client.message().await?], id, &nonce)?;
    }
    Ok(())
}

struct SseClient {
    target: Target,
    /// The request line of what is sent.
    line: String,
    events: Connection,
    sender: Connection,
}

impl SseClient {
    /// Sends a message; false if it is refused for lack of room.
    async fn send(&mut self, message: &str) -> Result<bool> {
        let request = self.target.request(&self.line, "Content-Type: application/json\r\n", message);
        let response = self.sender.exchange(&request).await?;
        ensure!(response.is_refusal() || response.status == 202, "{}: status {}", self.line, response.status);
        Ok(!response.is_refusal())
    }

    async fn message(&mut self) -> Result<Value> {
        Ok(serde_json::from_str(&self.events.event().await?)?)
    }
}
