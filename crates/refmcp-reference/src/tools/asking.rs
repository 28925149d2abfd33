//! Tools that ask the client: its user, its model, its roots.

use refmcp_server::model::{
    CallToolResult, CreateMessageParams, ModelHint, ModelPreferences, Root, SamplingMessage,
};
use refmcp_server::{Call, CallError, FormAnswer, NoArguments, Question, Tool, VisitAnswer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::forms;
use crate::models;

/// What the model may answer at the most.
const MOST_TOKENS: u64 = 500;
/// Where `ask_user` sends people: a page that exists for such purposes.
const PAGE: &str = "https://example.com/refmcp/consent";

pub(super) fn tools() -> Vec<Tool> {
    let tools = [
        Tool::new("ask_user", "Asks the user, by a form or by sending them to a web page", ask_user)
            .title("Ask the user"),
        Tool::new("ask_model", "Asks the client's model, with the selected model as a hint", ask_model)
            .title("Ask the model"),
        Tool::new("list_roots", "Asks for the client's roots and shows them", list_roots).title("List roots"),
    ];
    // They change nothing here, but what they reach is beyond the server.
    tools.into_iter().map(|tool| tool.read_only().annotate(|hints| hints.open_world(true))).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskUser {
    /// What the user is asked
    #[serde(default)]
    form: Form,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Form {
    /// A form with a field of every kind
    #[default]
    All,
    /// A form with two choices
    Choice,
    /// Yes or no
    Confirm,
    /// The visit of a web page
    Url,
}

async fn ask_user(call: Call, AskUser { form }: AskUser) -> Result<CallToolResult, CallError> {
    let form = match form {
        Form::All => forms::all(call.peer()),
        Form::Choice => forms::choice(),
        Form::Confirm => forms::confirm(),
        Form::Url => return visit(&call),
    };
    let answer = call.ask("form", Question::form_with(form))?;
    Ok(match answer {
        FormAnswer::Accepted(values) => {
            let text = format!("The user accepted and answered {}", Value::Object(values.clone()));
            told(text, json!({ "action": "accept", "values": values }))
        }
        FormAnswer::Declined => told("The user declined".to_owned(), json!({ "action": "decline" })),
        FormAnswer::Cancelled => told("The user put the form away".to_owned(), json!({ "action": "cancel" })),
    })
}

fn visit(call: &Call) -> Result<CallToolResult, CallError> {
    let answer = call.ask("visit", Question::visit("Please give your consent on our page.", PAGE))?;
    Ok(match answer {
        VisitAnswer::Accepted => {
            told(format!("The user agreed to visit {PAGE}"), json!({ "action": "accept", "url": PAGE }))
        }
        VisitAnswer::Declined => {
            told("The user declined to visit the page".to_owned(), json!({ "action": "decline" }))
        }
        VisitAnswer::Cancelled => {
            told("The user put the request away".to_owned(), json!({ "action": "cancel" }))
        }
    })
}

fn told(text: String, structured: Value) -> CallToolResult {
    CallToolResult::text(text).structured_content(structured)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskModel {
    /// What the model is asked
    #[schemars(length(min = 1, max = 10_000))]
    prompt: String,
}

async fn ask_model(call: Call, AskModel { prompt }: AskModel) -> Result<String, CallError> {
    let hint = ModelHint { name: Some(models::active(&call)?.to_owned()), ..ModelHint::default() };
    let preferences = ModelPreferences { hints: Some(vec![hint]), ..ModelPreferences::default() };
    let request = CreateMessageParams::new(vec![SamplingMessage::user(prompt)], MOST_TOKENS)
        .model_preferences(preferences);
    let answer = call.ask("model", Question::model_with(request))?;
    let said: Vec<&str> =
        answer.content.as_slice().iter().map(|block| block.as_text().unwrap_or(block.kind())).collect();
    Ok(format!("{} answered: {}", answer.model, said.join("\n")))
}

async fn list_roots(call: Call, _: NoArguments) -> Result<CallToolResult, CallError> {
    let roots = call.ask("roots", Question::roots())?;
    let mut text = match roots.len() {
        0 => "The client has no roots".to_owned(),
        1 => "The client has one root:".to_owned(),
        count => format!("The client has {count} roots:"),
    };
    for Root { uri, name, .. } in &roots {
        text.push_str(&format!(
            "\n- {uri}{}",
            name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default()
        ));
    }
    let mut structured = json!({ "roots": roots });
    if let (Some(session), Some(members)) = (call.session(), structured.as_object_mut()) {
        let changes = session.roots_changes();
        text.push_str(&format!("\nIt has told of {changes} changes in this session"));
        members.insert("changes".to_owned(), changes.into());
    }
    Ok(told(text, structured))
}
