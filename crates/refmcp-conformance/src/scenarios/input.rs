//! Tools that ask for something before they answer.

use refmcp_client::Host;
use refmcp_client::model::{ElicitFormParams, ElicitResult, FieldSchema, JsonObject};
use serde_json::{Value, json};

use super::Fault;
use crate::assignment::Assignment;
use crate::server;

/// A form is sent back with the defaults of its fields.
pub(super) async fn defaults(assignment: Assignment) -> Result<(), Fault> {
    let client = server::connect(&assignment, Host::new().elicitation_defaults()).await?;
    let tools = client.list_tools().await?;
    let tool = server::tool(&tools, "test_client_elicitation_defaults")?;
    server::call(&client, &tool.name, json!({})).await?;
    client.close().await;
    Ok(())
}

/// A tool that is asked again gets the state that it gave, and no other tool does.
pub(super) async fn request_state(assignment: Assignment) -> Result<(), Fault> {
    let host = Host::new().elicitation(|form| async move { Ok(ElicitResult::accept(confirmed(&form))) });
    let client = server::connect(&assignment, host).await?;
    client.list_tools().await?;
    // At once, for the state of one to have the chance to end up with the other.
    tokio::try_join!(
        server::call(&client, "test_mrtr_echo_state", json!({})),
        server::call(&client, "test_mrtr_unrelated", json!({})),
    )?;
    server::call(&client, "test_mrtr_no_state", json!({})).await?;
    server::call(&client, "test_mrtr_no_result_type", json!({})).await?;
    client.close().await;
    Ok(())
}

/// Everything that can be ticked is.
fn confirmed(form: &ElicitFormParams) -> JsonObject {
    let boxes = form.requested_schema.properties.iter();
    let boxes = boxes.filter(|(_, field)| matches!(field, FieldSchema::Boolean(_)));
    boxes.map(|(name, _)| (name.clone(), Value::Bool(true))).collect()
}
