//! Tools with server requests of several rounds (`input_required` results since 2026-07-28).

use refmcp_server::model::{BooleanSchema, CreateMessageResult, FormSchema, Root, StringSchema};
use refmcp_server::{Call, CallError, ElicitOutcome, NoArguments, ServerRequestError, Tool};
use serde_json::Value;

use super::server_requests::text_of;

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
    let name = ask_name(&call)?;
    Ok(format!("Hello, {}!", text(&name, "name")))
}

async fn capital(call: Call, _: NoArguments) -> Result<String, CallError> {
    let answer = ask_capital(&call)?;
    Ok(format!("LLM response: {}", text_of(&answer)))
}

async fn list_roots(call: Call, _: NoArguments) -> Result<String, CallError> {
    Ok(tell_roots(&call.list_roots("client_roots")?))
}

async fn confirm(call: Call, _: NoArguments) -> Result<&'static str, CallError> {
    // A state that does not open ends the call before it gets here.
    call.elicit("confirm", "Please confirm", FormSchema::new().required("ok", BooleanSchema::new()))?;
    Ok("state-ok")
}

async fn multiple_inputs(call: Call, _: NoArguments) -> Result<String, CallError> {
    let name = ask_name(&call);
    let greeting = call.sample("greeting", "Say a greeting.", 50);
    let roots = call.list_roots("client_roots");
    let (name, greeting, roots) = (name?, greeting?, roots?);
    Ok(format!("{} {}! {}", text_of(&greeting), text(&name, "name"), tell_roots(&roots)))
}

async fn multi_round(call: Call, _: NoArguments) -> Result<String, CallError> {
    let name = call.elicit("step1", "Step 1: What is your name?", text_form("name"))?;
    let name = text(&name, "name");
    let question = format!("Step 2: What is your favourite colour, {name}?");
    let colour = call.elicit("step2", question, text_form("color"))?;
    Ok(format!("{name} likes {}", text(&colour, "color")))
}

/// A client that supports neither request gets the error of sampling.
async fn capabilities(call: Call, _: NoArguments) -> Result<String, CallError> {
    let (forms, model) = (call.peer().capabilities.elicits_forms(), call.peer().capabilities.samples());
    let name = forms.then(|| ask_name(&call)).transpose();
    let answer = (model || !forms).then(|| ask_capital(&call)).transpose();
    let (name, answer) = (name?, answer?);
    let name = name.as_ref().map_or("stranger", |name| text(name, "name"));
    let answer = answer.as_ref().map(text_of).unwrap_or_default();
    Ok(format!("Hello, {name}! {answer}"))
}

fn ask_name(call: &Call) -> Result<ElicitOutcome, ServerRequestError> {
    call.elicit("user_name", "What is your name?", text_form("name"))
}

fn ask_capital(call: &Call) -> Result<CreateMessageResult, ServerRequestError> {
    call.sample("capital_question", "What is the capital of France?", 100)
}

/// A form with one field for text.
fn text_form(field: &str) -> FormSchema {
    FormSchema::new().required(field, StringSchema::new())
}

/// A value of a form, or "stranger" when the user declines.
fn text<'a>(answer: &'a ElicitOutcome, field: &str) -> &'a str {
    match answer {
        ElicitOutcome::Accepted(values) => values.get(field).and_then(Value::as_str).unwrap_or_default(),
        ElicitOutcome::Declined | ElicitOutcome::Cancelled => "stranger",
    }
}

fn tell_roots(roots: &[Root]) -> String {
    let uris: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
    format!("Client roots: {}", uris.join(", "))
}
