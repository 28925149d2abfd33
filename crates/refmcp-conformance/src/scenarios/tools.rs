//! The beginning of every conversation, and calling a tool.

use refmcp_client::Host;
use serde_json::json;

use super::Fault;
use crate::assignment::Assignment;
use crate::server;

/// Opens a conversation and asks something in it.
pub(super) async fn initialize(assignment: Assignment) -> Result<(), Fault> {
    let client = server::connect(&assignment, Host::new()).await?;
    client.list_tools().await?;
    client.close().await;
    Ok(())
}

/// Calls a tool that is listed.
pub(super) async fn call(assignment: Assignment) -> Result<(), Fault> {
    let client = server::connect(&assignment, Host::new()).await?;
    let tools = client.list_tools().await?;
    let tool = server::tool(&tools, "add_numbers")?;
    server::call(&client, &tool.name, json!({ "a": 5, "b": 3 })).await?;
    client.close().await;
    Ok(())
}
