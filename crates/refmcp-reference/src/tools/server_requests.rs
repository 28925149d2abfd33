//! Tools with server requests: elicitation, sampling, roots.

use std::time::Duration;

use refmcp_server::model::{
    CreateMessageParams, ElicitUrlParams, JsonObject, ModelHint, ModelPreferences, Root, SamplingMessage,
};
use refmcp_server::revision::{Revision, Tasks};
use refmcp_server::{Call, CallError, ElicitOutcome, Json, NoArguments, ServerRequest, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::forms;
use crate::models;

/// What the model may answer at the most.
const MAX_TOKENS: u64 = 500;
/// How long a client is to keep its task.
const TASK_TTL: Duration = Duration::from_secs(600);
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
    /// Whether the client is to run the request as a task, which it has to declare (2025-11-25)
    #[serde(default)]
    task: bool,
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

#[derive(Serialize, JsonSchema)]
struct Reacted {
    /// What the user did
    action: Action,
    /// What the user filled in, when a form was accepted
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<JsonObject>,
    /// The page that the user agreed to visit
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Action {
    Accept,
    Decline,
    Cancel,
}

async fn ask_user(call: Call, AskUser { form, task }: AskUser) -> Result<(String, Json<Reacted>), CallError> {
    let form = match form {
        Form::All => forms::all(call.peer()),
        Form::Choice => forms::choice(),
        Form::Confirm => forms::confirm(),
        Form::Url => return visit(&call, task),
    };
    Ok(match call.request("form", request(&call, form, task)?)? {
        ElicitOutcome::Accepted(values) => {
            let text = format!("The user accepted and answered {}", Value::Object(values.clone()));
            (text, Json(Reacted { action: Action::Accept, values: Some(values), url: None }))
        }
        ElicitOutcome::Declined => not_accepted(Action::Decline, "The user declined"),
        ElicitOutcome::Cancelled => not_accepted(Action::Cancel, "The user put the form away"),
    })
}

fn visit(call: &Call, task: bool) -> Result<(String, Json<Reacted>), CallError> {
    let page = ElicitUrlParams::new("Please give your consent on our page.", PAGE);
    Ok(match call.request("visit", request(call, page, task)?)? {
        ElicitOutcome::Accepted(()) => {
            let text = format!("The user agreed to visit {PAGE}");
            (text, Json(Reacted { action: Action::Accept, values: None, url: Some(PAGE) }))
        }
        ElicitOutcome::Declined => not_accepted(Action::Decline, "The user declined to visit the page"),
        ElicitOutcome::Cancelled => not_accepted(Action::Cancel, "The user put the request away"),
    })
}

/// A request, by a task of the client where that is wanted.
fn request<A>(
    call: &Call,
    request: impl Into<ServerRequest<A>>,
    task: bool,
) -> Result<ServerRequest<A>, CallError> {
    let request = request.into();
    if !task {
        return Ok(request);
    }
    if !request.can_be_task(call.peer()) {
        let able = |revision: &Revision| revision.rules().tasks == Tasks::Experimental;
        let revisions: Vec<&str> = Revision::ALL.into_iter().filter(able).map(Revision::as_str).collect();
        let what = format!(
            "the client does not run {} as a task: it has to declare that in capabilities.tasks.requests, in a session of \
             {}; or call the tool without task",
            request.method(),
            revisions.join(", ")
        );
        return Err(CallError::new(what));
    }
    Ok(request.as_task(Some(TASK_TTL)))
}

fn not_accepted(action: Action, text: &str) -> (String, Json<Reacted>) {
    (text.to_owned(), Json(Reacted { action, values: None, url: None }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskModel {
    /// What the model is asked
    #[schemars(length(min = 1, max = 10_000))]
    prompt: String,
    /// Whether the client is to run the request as a task, which it has to declare (2025-11-25)
    #[serde(default)]
    task: bool,
}

async fn ask_model(call: Call, AskModel { prompt, task }: AskModel) -> Result<String, CallError> {
    let hint = ModelHint { name: Some(models::active(&call)?.to_owned()), ..ModelHint::default() };
    let preferences = ModelPreferences { hints: Some(vec![hint]), ..ModelPreferences::default() };
    let params = CreateMessageParams::new(vec![SamplingMessage::user(prompt)], MAX_TOKENS)
        .model_preferences(preferences);
    let answer = call.request("model", request(&call, params, task)?)?;
    let said: Vec<&str> =
        answer.content.as_slice().iter().map(|block| block.as_text().unwrap_or(block.kind())).collect();
    Ok(format!("{} answered: {}", answer.model, said.join("\n")))
}

#[derive(Serialize, JsonSchema)]
struct Roots {
    /// The roots that the client has
    #[schemars(with = "Vec<ListedRoot>")]
    roots: Vec<Root>,
    /// How often the client has told of changes in this session
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<u64>,
}

// The members of a root that the schema tells of; there may be more.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct ListedRoot {
    /// Where it is
    uri: String,
    /// What it is called
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

async fn list_roots(call: Call, _: NoArguments) -> Result<(String, Json<Roots>), CallError> {
    let roots = call.list_roots("roots")?;
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
    let changes = call.session().map(|session| session.roots_changes());
    if let Some(changes) = changes {
        text.push_str(&format!("\nIt has told of {changes} changes in this session"));
    }
    Ok((text, Json(Roots { roots, changes })))
}
