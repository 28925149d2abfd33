//! Tools with one server request: sampling or elicitation.

use refmcp_server::model::{
    BooleanSchema, Choices, CreateMessageParams, CreateMessageResult, FormSchema, InputRequest,
    MultiChoiceSchema, NumberSchema, SamplingMessage, SingleChoiceSchema, StringSchema,
};
use refmcp_server::{Call, CallError, ElicitOutcome, NoArguments, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub(super) fn tools() -> Vec<Tool> {
    let tools = [
        Tool::new("test_sampling", "Asks the client's model", sampling).title("Sampling"),
        Tool::new("test_elicitation", "Asks the user for a name and a mail address", elicitation)
            .title("Elicitation"),
        Tool::new(
            "test_elicitation_sep1034_defaults",
            "Asks the user, with a default for every type",
            defaults,
        )
        .title("Elicitation with defaults"),
        Tool::new("test_elicitation_sep1330_enums", "Asks the user, with every kind of choice", enums)
            .title("Elicitation with enums"),
        Tool::new("test_missing_capability", "Needs a client that declares sampling", missing_capability)
            .title("Missing capability"),
        Tool::new(
            "test_streaming_elicitation",
            "Asks the user without sending a request of its own",
            streaming,
        )
        .title("Elicitation on a stream"),
    ];
    tools.into_iter().map(Tool::read_only).collect()
}

#[derive(Deserialize, JsonSchema)]
struct Prompt {
    /// The prompt to send to the LLM
    prompt: String,
}

async fn sampling(call: Call, Prompt { prompt }: Prompt) -> Result<String, CallError> {
    let answer = call.sample("sampling", prompt, 100)?;
    Ok(format!("LLM response: {}", text_of(&answer)))
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    /// The message to show the user
    message: String,
}

async fn elicitation(call: Call, Message { message }: Message) -> Result<String, CallError> {
    let form = FormSchema::new()
        .required("username", StringSchema::new().description("User's response"))
        .required("email", StringSchema::new().description("User's email address"));
    let (action, content) = said(call.elicit("elicitation", message, form)?);
    Ok(format!("User response: action: {action}, content: {content}"))
}

async fn defaults(call: Call, _: NoArguments) -> Result<String, CallError> {
    let status = SingleChoiceSchema::new(["active", "inactive", "pending"].into_iter().collect());
    let form = FormSchema::new()
        .optional("name", StringSchema::new().description("User name").with_default("John Doe"))
        .optional("age", NumberSchema::integer().description("User age").with_default(30))
        .optional("score", NumberSchema::number().description("User score").with_default(95.5))
        .optional("status", status.description("User status").with_default("active"))
        .optional("verified", BooleanSchema::new().description("Verification status").with_default(true));
    completed(&call, "defaults", "Please review and update the form fields with defaults", form)
}

async fn enums(call: Call, _: NoArguments) -> Result<String, CallError> {
    const VALUES: [&str; 3] = ["option1", "option2", "option3"];
    const TITLED: [(&str, &str); 3] =
        [("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option")];
    let legacy = Choices::Named {
        values: ["opt1", "opt2", "opt3"].map(str::to_owned).to_vec(),
        names: ["Option One", "Option Two", "Option Three"].map(str::to_owned).to_vec(),
    };
    let form = FormSchema::new()
        .optional("untitledSingle", SingleChoiceSchema::new(VALUES.into_iter().collect()))
        .optional("titledSingle", SingleChoiceSchema::new(Choices::titled(TITLED)))
        .optional("legacyEnum", SingleChoiceSchema::new(legacy))
        .optional("untitledMulti", MultiChoiceSchema::new(VALUES.into_iter().collect()))
        .optional("titledMulti", MultiChoiceSchema::new(Choices::titled(TITLED)));
    completed(&call, "enums", "Please select options from the enum fields", form)
}

fn completed(call: &Call, key: &str, message: &str, form: FormSchema) -> Result<String, CallError> {
    let (action, content) = said(call.elicit(key, message, form)?);
    Ok(format!("Elicitation completed: action={action}, content={content}"))
}

async fn missing_capability(call: Call, _: NoArguments) -> Result<&'static str, CallError> {
    let needed = CreateMessageParams::new(vec![SamplingMessage::user("")], 1);
    call.peer().check_support(&InputRequest::Sample(Box::new(needed)))?;
    Ok("The client declares sampling")
}

async fn streaming(call: Call, _: NoArguments) -> Result<String, CallError> {
    let form = FormSchema::new().required("confirmed", BooleanSchema::new());
    completed(&call, "confirmation", "Please confirm", form)
}

fn said(answer: ElicitOutcome) -> (&'static str, Value) {
    match answer {
        ElicitOutcome::Accepted(values) => ("accept", Value::Object(values)),
        ElicitOutcome::Declined => ("decline", Value::Object(Default::default())),
        ElicitOutcome::Cancelled => ("cancel", Value::Object(Default::default())),
    }
}

/// What a model said, as far as it is text.
pub(super) fn text_of(answer: &CreateMessageResult) -> String {
    let blocks = answer.content.as_slice().iter();
    blocks.filter_map(|block| block.as_text()).collect::<Vec<_>>().join("\n")
}
