//! Scenarios about tools: a call, schemas that must arrive unchanged, a response stream that breaks off, input requests.

use refmcp_client::http::{HttpSettings, StreamableHttp};
use refmcp_client::model::{ElicitFormParams, ElicitResult, FieldSchema, JsonObject};
use refmcp_client::{Client, Host};
use serde_json::{Value, json};

use super::BoxError;
use crate::run_config::RunConfig;
use crate::server;

/// Connects and sends a request.
pub(super) async fn initialize(config: RunConfig) -> Result<Client, BoxError> {
    let client = server::connect(&config, Host::new()).await?;
    client.list_tools().await?;
    Ok(client)
}

/// Calls a tool that is listed.
pub(super) async fn call(config: RunConfig) -> Result<Client, BoxError> {
    let client = server::connect(&config, Host::new()).await?;
    let tools = client.list_tools().await?;
    let tool = server::tool(&tools, "add_numbers")?;
    server::call(&client, &tool.name, json!({ "a": 5, "b": 3 })).await?;
    Ok(client)
}

/// A schema refers to another on the web, which stays there.
pub(super) async fn references(config: RunConfig) -> Result<Client, BoxError> {
    let client = server::connect(&config, Host::new()).await?;
    let tools = client.list_tools().await?;
    server::tool(&tools, "lookup_user")?;
    Ok(client)
}

/// Sends a schema back as it was received.
pub(super) async fn preservation(config: RunConfig) -> Result<Client, BoxError> {
    let client = server::connect(&config, Host::new()).await?;
    let tools = client.list_tools().await?;
    let schema = &server::tool(&tools, "json_schema_2020_12_tool")?.input_schema;
    server::call(&client, "json_schema_echo", json!({ "schema": schema })).await?;
    Ok(client)
}

/// The server closes the stream before it answers; the answer comes on the next one, after the pause it asked for.
pub(super) async fn retry(config: RunConfig) -> Result<Client, BoxError> {
    // The server of this scenario gives its answer to the first stream that is asked for after the call, whatever for.
    let mut settings = HttpSettings::default();
    settings.get_stream = false;
    let at_url = StreamableHttp::new(&config.url)?.settings(settings);
    let client = server::connect_to(at_url, &config, Host::new()).await?;
    server::call(&client, "test_reconnection", json!({})).await?;
    Ok(client)
}

/// A form is sent back with the defaults of its fields.
pub(super) async fn defaults(config: RunConfig) -> Result<Client, BoxError> {
    let client = server::connect(&config, Host::new().elicitation_defaults()).await?;
    let tools = client.list_tools().await?;
    let tool = server::tool(&tools, "test_client_elicitation_defaults")?;
    server::call(&client, &tool.name, json!({})).await?;
    Ok(client)
}

/// A tool that is asked again gets the state that it gave, and no other tool does.
pub(super) async fn request_state(config: RunConfig) -> Result<Client, BoxError> {
    let host = Host::new().elicitation(|form| async move { Ok(ElicitResult::accept(confirmed(&form))) });
    let client = server::connect(&config, host).await?;
    client.list_tools().await?;
    // At once, for the state of one to have the chance to end up with the other.
    tokio::try_join!(
        server::call(&client, "test_mrtr_echo_state", json!({})),
        server::call(&client, "test_mrtr_unrelated", json!({})),
    )?;
    server::call(&client, "test_mrtr_no_state", json!({})).await?;
    server::call(&client, "test_mrtr_no_result_type", json!({})).await?;
    Ok(client)
}

/// Everything that can be ticked is.
fn confirmed(form: &ElicitFormParams) -> JsonObject {
    let boxes = form.requested_schema.properties.iter();
    let boxes = boxes.filter(|(_, field)| matches!(field, FieldSchema::Boolean(_)));
    boxes.map(|(name, _)| (name.clone(), Value::Bool(true))).collect()
}
