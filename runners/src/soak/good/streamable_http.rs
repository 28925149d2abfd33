//! Streamable HTTP: a session with its calls, and calls that belong to no session.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{Caller, ECHOES};
use crate::soak::http::{Connection, Response, Target, in_session};
use crate::soak::message;

/// Opens a session, calls tools in it and ends it.
pub(super) async fn session(target: Target, revision: &str, mut caller: Caller) -> Result<()> {
    let mut connection = Connection::open(target).await?;
    let initialize = message::initialize(revision, &json!({}));
    let opened = connection.exchange(&target.post("", &initialize)).await.context("initialize")?;
    if opened.is_refusal() {
        caller.refused();
        return Ok(());
    }
    let session = opened.session.with_context(|| format!("no session: status {}", opened.status))?;
    let headers = in_session(revision, &session);
    let ready =
        connection.exchange(&target.post(&headers, message::INITIALIZED)).await.context("initialized")?;
    if ready.is_refusal() {
        caller.refused();
        return Ok(());
    }
    for id in 1..=ECHOES {
        let nonce = caller.nonce();
        let response = connection.exchange(&target.post(&headers, &Caller::echo(id, &nonce))).await?;
        if !answered(&caller, &response, id, &nonce)? {
            return Ok(());
        }
    }
    let task = message::long_task(100, 3, 20);
    let response = connection.exchange(&target.post(&headers, &task)).await.context("long_task")?;
    if !answered(&caller, &response, 100, "done: 3 of 3 steps")? {
        return Ok(());
    }
    let ping = message::request(101, "ping", &json!({}));
    let response = connection.exchange(&target.post(&headers, &ping)).await.context("ping")?;
    if !response.is_refusal() {
        message::only_response(&response.messages()?, 101)?;
    }
    let ended = connection.exchange(&target.request("DELETE /mcp", &headers, "")).await.context("DELETE")?;
    ensure!(ended.is_refusal() || matches!(ended.status, 200 | 204), "DELETE: status {}", ended.status);
    Ok(())
}

/// Calls of 2026-07-28.
pub(super) async fn stateless(target: Target, mut caller: Caller) -> Result<()> {
    let mut connection = Connection::open(target).await?;
    for id in 1..=ECHOES {
        let nonce = caller.nonce();
        let call = message::stateless_call(id, "echo", &json!({ "message": nonce }));
        let response = connection.exchange(&target.post_stateless("echo", &call)).await?;
        if !answered(&caller, &response, id, &nonce)? {
            break;
        }
    }
    Ok(())
}

/// Whether a call was answered, and not refused.
fn answered(caller: &Caller, response: &Response, id: u64, wanted: &str) -> Result<bool> {
    if response.is_refusal() {
        caller.refused();
        return Ok(false);
    }
    caller.answered(&response.messages()?, id, wanted)?;
    Ok(true)
}
