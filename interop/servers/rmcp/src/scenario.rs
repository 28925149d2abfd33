//! What the server offers beside its tools, and that it speaks every revision that rmcp knows.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::ServerHandler;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::tools;

const NAMES: [&str; 3] = ["Ada", "Alan", "Grace"];
const TICK: &str = "scenario://tick";
const TICK_EVERY: Duration = Duration::from_millis(100);

/// One session, or one request where there are no sessions.
#[derive(Clone)]
pub struct Scenario {
    /// The least severe messages that the session wants to hear.
    pub level: Arc<Mutex<LoggingLevel>>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self { level: Arc::new(Mutex::new(LoggingLevel::Info)) }
    }
}

/// A value of the model, from its JSON.
pub fn made<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// A result, from its JSON. Older peers get it without its type.
fn result<T: DeserializeOwned>(mut json: Value) -> Result<T, ErrorData> {
    json["resultType"] = "complete".into();
    made(json)
}

/// Whether the request belongs to no session.
pub fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

impl ServerHandler for Scenario {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("scenario", "1.0.0"))
            .with_instructions("For interoperability tests.")
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        result(json!({ "tools": tools::listed() }))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, request, context).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if let Ok(mut level) = self.level.lock() {
            *level = request.level;
        }
        Ok(())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        result(json!({ "resources": [
            { "uri": "scenario://note", "name": "note", "mimeType": "text/plain" },
            { "uri": TICK, "name": "tick", "mimeType": "text/plain" },
        ] }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        result(json!({ "resourceTemplates": [
            { "uriTemplate": "scenario://greeting/{name}", "name": "greeting", "mimeType": "text/plain" },
        ] }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let text = match (uri.as_str(), uri.strip_prefix("scenario://greeting/")) {
            ("scenario://note", _) => "a note".to_owned(),
            (TICK, _) => "tick".to_owned(),
            (_, Some(name)) => format!("Hello, {name}!"),
            _ => {
                return Err(ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri }))));
            }
        };
        let contents = json!([{ "uri": uri, "mimeType": "text/plain", "text": text }]);
        result::<ReadResourceResult>(json!({ "contents": contents })).map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tokio::spawn(async move {
            let notify =
                || context.peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(&*request.uri));
            while notify().await.is_ok() {
                tokio::time::sleep(TICK_EVERY).await;
            }
        });
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let ticking = async {
            while context.sink().notify_resource_updated(TICK).await.is_ok() {
                tokio::time::sleep(TICK_EVERY).await;
            }
        };
        tokio::select! {
            () = ticking => {}
            () = context.cancelled() => {}
        }
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = json!([{ "name": "name", "required": true }]);
        let prompt = json!({ "name": "greet", "description": "Greets a person", "arguments": arguments });
        result(json!({ "prompts": [prompt] }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let (Some(name), "greet") = (arguments.get("name").and_then(Value::as_str), &*request.name) else {
            return Err(ErrorData::invalid_params(format!("no prompt {}", request.name), None));
        };
        let content = json!({ "type": "text", "text": format!("Say hello to {name}.") });
        let messages = json!([{ "role": "user", "content": content }]);
        result::<GetPromptResult>(json!({ "messages": messages })).map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let prefix = request.argument.value;
        let values: Vec<&str> = NAMES.into_iter().filter(|name| name.starts_with(&prefix)).collect();
        let total = values.len();
        result(json!({ "completion": { "values": values, "total": total, "hasMore": false } }))
    }
}
