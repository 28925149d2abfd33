//! The suite's prompts.

use refmcp_server::model::{ContentBlock, FormSchema, PromptMessage, ResourceContents, StringSchema};
use refmcp_server::{ElicitOutcome, Prompt};
use serde_json::Value;

use super::content::picture;

pub(super) fn prompts() -> [Prompt; 5] {
    [simple(), with_arguments(), with_embedded_resource(), with_image(), with_input()]
}

fn simple() -> Prompt {
    Prompt::new("test_simple_prompt", |_, _| async {
        Ok(PromptMessage::user("This is a simple prompt for testing."))
    })
    .title("Simple prompt")
    .description("A simple prompt without arguments")
}

fn with_arguments() -> Prompt {
    Prompt::new("test_prompt_with_arguments", |_, given| async move {
        let argument = |name: &str| given.get(name).cloned().unwrap_or_default();
        let text = format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1"), argument("arg2"));
        Ok(PromptMessage::user(text))
    })
    .title("Prompt with arguments")
    .description("A prompt with required arguments")
    .required("arg1", "First test argument")
    .required("arg2", "Second test argument")
    .complete("arg1", |_, typed| async move { typed.among(["paris", "park", "party", "test1", "test2"]) })
}

fn with_embedded_resource() -> Prompt {
    Prompt::new("test_prompt_with_embedded_resource", |_, given| async move {
        let uri = given.get("resourceUri").cloned().unwrap_or_default();
        let contents =
            ResourceContents::text(uri, "Embedded resource content for testing.").mime_type("text/plain");
        Ok(vec![
            PromptMessage::user(ContentBlock::embedded(contents)),
            PromptMessage::user("Please process the embedded resource above."),
        ])
    })
    .title("Prompt with an embedded resource")
    .description("A prompt with an embedded resource")
    .required("resourceUri", "URI of the resource to embed")
}

fn with_image() -> Prompt {
    Prompt::new("test_prompt_with_image", |_, _| async {
        Ok(vec![PromptMessage::user(picture()), PromptMessage::user("Please analyze the image above.")])
    })
    .title("Prompt with an image")
    .description("A prompt with an image")
}

fn with_input() -> Prompt {
    Prompt::new("test_input_required_result_prompt", |call, _| async move {
        let form = FormSchema::new().required("context", StringSchema::new());
        let context = match call.elicit("user_context", "What is the context?", form)? {
            ElicitOutcome::Accepted(values) => {
                values.get("context").and_then(Value::as_str).unwrap_or_default().to_owned()
            }
            ElicitOutcome::Declined | ElicitOutcome::Cancelled => "none".to_owned(),
        };
        Ok(PromptMessage::user(format!("Use this context: {context}")))
    })
    .title("Prompt that asks")
    .description("A prompt that asks the user for context")
}
