//! Scenarios about `_meta` and HTTP headers of requests.

use std::collections::BTreeMap;

use refmcp_client::model::{CreateMessageResult, JsonObject, Root};
use refmcp_client::{Client, Host};
use serde::Deserialize;
use serde_json::{Value, json};

use super::BoxError;
use crate::run_config::RunConfig;
use crate::server;

/// Declares every capability with every request.
pub(super) async fn metadata(config: RunConfig) -> Result<Client, BoxError> {
    let host = Host::new()
        .sampling(|_| async { Ok(CreateMessageResult::text("none", "There is no model here.")) })
        .elicitation_defaults()
        .roots([Root::new("file:///")]);
    let client = server::connect(&config, host).await?;
    client.list_tools().await?;
    Ok(client)
}

/// Makes every kind of request that has headers of its own.
pub(super) async fn standard(config: RunConfig) -> Result<Client, BoxError> {
    let client = server::connect(&config, Host::new()).await?;
    for tool in client.list_tools().await? {
        server::call(&client, &tool.name, json!({})).await?;
    }
    for resource in client.list_resources().await? {
        client.read_resource(&resource.uri).await?;
    }
    for prompt in client.list_prompts().await? {
        client.get_prompt(&prompt.name, &BTreeMap::new()).await?;
    }
    Ok(client)
}

/// Makes the calls of the context, whose arguments headers repeat.
pub(super) async fn mirrored(config: RunConfig) -> Result<Client, BoxError> {
    let client = server::connect(&config, Host::new()).await?;
    let tools = client.list_tools().await?;
    for call in calls(config.context)? {
        let tool = server::tool(&tools, &call.name)?;
        server::call(&client, &tool.name, call.arguments).await?;
    }
    Ok(client)
}

/// Calls every listed tool; the library drops those with invalid headers.
pub(super) async fn invalid(config: RunConfig) -> Result<Client, BoxError> {
    let client = server::connect(&config, Host::new()).await?;
    for tool in client.list_tools().await? {
        server::call(&client, &tool.name, json!({ "region": "here" })).await?;
    }
    Ok(client)
}

/// A call that the suite asks for.
#[derive(Debug, PartialEq, Deserialize)]
struct WantedCall {
    name: String,
    arguments: JsonObject,
}

fn calls(context: JsonObject) -> Result<Vec<WantedCall>, BoxError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Context {
        tool_calls: Vec<WantedCall>,
    }
    let context: Context = serde_json::from_value(Value::Object(context))
        .map_err(|error| format!("the context has no tool calls that can be read: {error}"))?;
    Ok(context.tool_calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(value: &Value) -> JsonObject {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn the_context_tells_the_calls_with_their_nulls() {
        let wanted = json!({"name": "a", "toolCalls": [{"name": "b", "arguments": {"c": null, "d": 1}}]});
        let calls = calls(context(&wanted)).unwrap();
        let arguments = context(&json!({"c": null, "d": 1}));
        assert_eq!(calls, [WantedCall { name: "b".to_owned(), arguments }]);
    }

    #[test]
    fn a_context_without_calls_is_refused() {
        for wrong in [json!({}), json!({"toolCalls": 1}), json!({"toolCalls": [{"name": "b"}]})] {
            let error = calls(context(&wrong)).unwrap_err().to_string();
            assert!(error.starts_with("the context"), "{wrong}: {error}");
        }
    }
}
