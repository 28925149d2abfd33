//! The steps that ask the client: roots, sampling and elicitation, outside of calls or in one.

use refmcp_server::model::{
    ContentBlock, CreateMessageParams, ElicitUrlParams, JsonObject, ModelHint, ModelPreferences, Role,
    SamplingMessage, Tool, ToolResultContent,
};
use refmcp_server::peer::Peer;
use refmcp_server::{Call, ElicitOutcome, ServerRequest, ServerRequestError, Session};
use serde_json::json;

use super::step::Step;
use crate::tools::forms;

/// What the model may answer at the most.
const MAX_TOKENS: u64 = 200;
/// Where the user is sent: a page that exists for such purposes.
const PAGE: &str = "https://example.com/refmcp/tour";
/// The tool that the model can ask for.
const TOOL: &str = "weather_today";

/// Where a request to the client belongs.
#[derive(Clone, Copy)]
pub(super) enum Asker<'a> {
    Call(&'a Call),
    Session(&'a Session),
}

impl Asker<'_> {
    async fn request<A>(
        self,
        key: &str,
        request: impl Into<ServerRequest<A>>,
    ) -> Result<A, ServerRequestError> {
        match self {
            Self::Call(call) => call.request(key, request),
            Self::Session(session) => session.request(request).await,
        }
    }
}

/// Asks what a step asks, and says how it ended; `None` for other steps.
///
/// # Errors
/// Only that the client has not answered yet: a call passes it on.
pub(super) async fn ask(
    step: Step,
    asker: Asker<'_>,
    peer: &Peer,
) -> Result<Option<String>, ServerRequestError> {
    let answer = match step {
        Step::Roots => roots(asker, "tour/roots").await,
        Step::RootsChange => roots(asker, "tour/roots-change").await,
        Step::Sampling => sampling(asker).await,
        Step::SamplingTools => sampling_tools(asker).await,
        Step::ElicitForm => asker.request("tour/form", forms::all(peer)).await.map(|it| reaction(&it)),
        Step::ElicitUrl => {
            let visit = ElicitUrlParams::new("Part of the tour: visit this page, or decline.", PAGE);
            asker.request("tour/url", visit).await.map(|it: ElicitOutcome<()>| reaction(&it))
        }
        _ => return Ok(None),
    };
    Ok(Some(match answer {
        Ok(how) => how,
        Err(ServerRequestError::Pending) => return Err(ServerRequestError::Pending),
        Err(ServerRequestError::Refused(error)) => format!("refused with error {}", error.code),
        Err(ServerRequestError::TimedOut) => "no answer".to_owned(),
        Err(ServerRequestError::Closed) => "the session ended before the answer".to_owned(),
        Err(ServerRequestError::Unsupported(_)) => "not declared".to_owned(),
        Err(ServerRequestError::InvalidResult { .. } | ServerRequestError::Conflict(_)) => {
            "an answer that does not fit the request".to_owned()
        }
    }))
}

fn reaction<T>(outcome: &ElicitOutcome<T>) -> String {
    let action = match outcome {
        ElicitOutcome::Accepted(_) => "accepted",
        ElicitOutcome::Declined => "declined",
        ElicitOutcome::Cancelled => "cancelled",
    };
    action.to_owned()
}

async fn roots(asker: Asker<'_>, key: &str) -> Result<String, ServerRequestError> {
    let roots = asker.request(key, ServerRequest::list_roots()).await?;
    Ok(format!(
        "{} listed",
        if roots.len() == 1 { "1 root".to_owned() } else { format!("{} roots", roots.len()) }
    ))
}

fn prompt(text: &str) -> CreateMessageParams {
    let hint = ModelHint { name: Some("claude".to_owned()), ..ModelHint::default() };
    let preferences = ModelPreferences { hints: Some(vec![hint]), ..ModelPreferences::default() };
    CreateMessageParams::new(vec![SamplingMessage::user(text)], MAX_TOKENS)
        .system_prompt("Answer in one short sentence.")
        .model_preferences(preferences)
}

async fn sampling(asker: Asker<'_>) -> Result<String, ServerRequestError> {
    let request = prompt("This is part of a tour of MCP. Say hello.");
    asker.request("tour/sampling", request).await.map(|_| "answered".to_owned())
}

/// A model that asks for the tool gets its result, and the conversation goes on.
async fn sampling_tools(asker: Asker<'_>) -> Result<String, ServerRequestError> {
    let schema =
        json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let mut tool = Tool::new(TOOL, "Tells today's weather in a city");
    tool.input_schema = std::sync::Arc::new(schema.as_object().cloned().unwrap_or_else(JsonObject::new));
    let mut request = prompt("What is the weather like in Oslo today?").tools(vec![tool]);
    let answer = asker.request("tour/sampling-tools", request.clone()).await?;
    let blocks = answer.content.as_slice();
    let results: Vec<ContentBlock> = blocks.iter().filter_map(tool_result).collect();
    if results.is_empty() {
        return Ok("answered without the tool".to_owned());
    }
    request.messages.push(SamplingMessage::new(Role::Assistant, answer.content.into_vec()));
    request.messages.push(SamplingMessage::new(Role::User, results));
    asker.request("tour/sampling-tools-result", request).await?;
    Ok("answered with the tool".to_owned())
}

fn tool_result(block: &ContentBlock) -> Option<ContentBlock> {
    let ContentBlock::ToolUse(call) = block else { return None };
    let text = vec![ContentBlock::text("Sunny, 18 degrees")];
    Some(ContentBlock::ToolResult(ToolResultContent::new(call.id.clone(), text)))
}
