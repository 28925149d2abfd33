//! The schemas of tools: nothing of them is fetched, nothing is lost.

use refmcp_client::Host;
use serde_json::json;

use super::Fault;
use crate::assignment::Assignment;
use crate::server;

/// A schema refers to another on the web, which stays there.
pub(super) async fn references(assignment: Assignment) -> Result<(), Fault> {
    let client = server::connect(&assignment, Host::new()).await?;
    let tools = client.list_tools().await?;
    server::tool(&tools, "lookup_user")?;
    client.close().await;
    Ok(())
}

/// Sends a schema back as it was received.
pub(super) async fn preservation(assignment: Assignment) -> Result<(), Fault> {
    let client = server::connect(&assignment, Host::new()).await?;
    let tools = client.list_tools().await?;
    let schema = &server::tool(&tools, "json_schema_2020_12_tool")?.input_schema;
    server::call(&client, "json_schema_echo", json!({ "schema": schema })).await?;
    client.close().await;
    Ok(())
}
