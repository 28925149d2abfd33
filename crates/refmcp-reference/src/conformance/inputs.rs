//! Tools that need several rounds: their questions come as a result where the revision has no requests of a server.

use refmcp_server::model::{BooleanSchema, Root, StringSchema};
use refmcp_server::{Call, CallError, FormAnswer, NoArguments, Question, Tool};
use serde_json::Value;

use super::asking::text_of;

pub(super) fn tools() -> Vec<Tool> {
    let tools = [
        Tool::new("test_input_required_result_elicitation", "Asks for a name and greets", greet)
            .title("Input: elicitation"),
        Tool::new("test_input_required_result_sampling", "Asks the model for a capital", capital)
            .title("Input: sampling"),
        Tool::new("test_input_required_result_list_roots", "Asks for the roots", list_roots)
            .title("Input: roots"),
        Tool::new(
            "test_input_required_result_request_state",
            "Asks for a confirmation, with a state",
            confirm,
        )
        .title("Input: request state"),
        Tool::new("test_input_required_result_multiple_inputs", "Asks three things at once", multiple_inputs)
            .title("Input: several at once"),
        Tool::new("test_input_required_result_multi_round", "Asks twice, one after the other", multi_round)
            .title("Input: several rounds"),
        Tool::new("test_input_required_result_tampered_state", "Refuses a state that was changed", confirm)
            .title("Input: tampered state"),
        Tool::new(
            "test_input_required_result_capabilities",
            "Asks only what the client can answer",
            capabilities,
        )
        .title("Input: by capabilities"),
    ];
    tools.into_iter().map(Tool::read_only).collect()
}

async fn greet(call: Call, _: NoArguments) -> Result<String, CallError> {
    let name = call.ask("user_name", name_form())?;
    Ok(format!("Hello, {}!", text(&name, "name")))
}

async fn capital(call: Call, _: NoArguments) -> Result<String, CallError> {
    let answer = call.ask("capital_question", Question::model("What is the capital of France?", 100))?;
    Ok(format!("LLM response: {}", text_of(&answer)))
}

async fn list_roots(call: Call, _: NoArguments) -> Result<String, CallError> {
    Ok(tell_roots(&call.ask("client_roots", Question::roots())?))
}

async fn confirm(call: Call, _: NoArguments) -> Result<&'static str, CallError> {
    let form = Question::form("Please confirm").required("ok", BooleanSchema::new());
    // A state that does not open ends the call before it gets here.
    call.ask("confirm", form)?;
    Ok("state-ok")
}

async fn multiple_inputs(call: Call, _: NoArguments) -> Result<String, CallError> {
    let name = call.ask("user_name", name_form());
    let greeting = call.ask("greeting", Question::model("Say a greeting.", 50));
    let roots = call.ask("client_roots", Question::roots());
    let (name, greeting, roots) = (name?, greeting?, roots?);
    Ok(format!("{} {}! {}", text_of(&greeting), text(&name, "name"), tell_roots(&roots)))
}

async fn multi_round(call: Call, _: NoArguments) -> Result<String, CallError> {
    let name = call
        .ask("step1", Question::form("Step 1: What is your name?").required("name", StringSchema::new()))?;
    let name = text(&name, "name");
    let question = format!("Step 2: What is your favourite colour, {name}?");
    let colour = call.ask("step2", Question::form(question).required("color", StringSchema::new()))?;
    Ok(format!("{name} likes {}", text(&colour, "color")))
}

/// Whoever can answer neither question hears that sampling is missing.
async fn capabilities(call: Call, _: NoArguments) -> Result<String, CallError> {
    let (forms, model) = (call.peer().capabilities.elicits_forms(), call.peer().capabilities.samples());
    let name = forms.then(|| call.ask("user_name", name_form())).transpose();
    let capital = Question::model("What is the capital of France?", 100);
    let answer = (model || !forms).then(|| call.ask("capital_question", capital)).transpose();
    let (name, answer) = (name?, answer?);
    let name = name.as_ref().map_or("stranger", |name| text(name, "name"));
    let answer = answer.as_ref().map(text_of).unwrap_or_default();
    Ok(format!("Hello, {name}! {answer}"))
}

fn name_form() -> Question<FormAnswer> {
    Question::form("What is your name?").required("name", StringSchema::new())
}

/// A value of a form; whoever declines stays a stranger.
fn text<'a>(answer: &'a FormAnswer, field: &str) -> &'a str {
    match answer {
        FormAnswer::Accepted(values) => values.get(field).and_then(Value::as_str).unwrap_or_default(),
        FormAnswer::Declined | FormAnswer::Cancelled => "stranger",
    }
}

fn tell_roots(roots: &[Root]) -> String {
    let uris: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
    format!("Client roots: {}", uris.join(", "))
}
