//! Every kind of content block.

use refmcp_server::model::{Annotations, ContentBlock, Resource, ResourceContents, Role};
use refmcp_server::{Call, CallError, NoArguments, Tool};

use crate::media;
use crate::resources::builtin;

pub(super) fn tools() -> Vec<Tool> {
    let tools = [
        Tool::new("image", "Returns a picture", image).title("Image"),
        Tool::new("audio", "Returns a sound", audio).title("Audio"),
        Tool::new("resource_link", "Returns a link to a resource of this server", resource_link)
            .title("Resource link"),
        Tool::new("embedded_resource", "Returns a resource with its contents", embedded_resource)
            .title("Embedded resource"),
        Tool::new("annotated", "Returns blocks for the user, for the assistant, and for both", annotated)
            .title("Annotated content"),
        Tool::new("mixed", "Returns one block of each kind", mixed).title("Mixed content"),
    ];
    tools.into_iter().map(|tool| tool.read_only().idempotent().inline()).collect()
}

async fn image(_: Call, _: NoArguments) -> Result<ContentBlock, CallError> {
    Ok(picture())
}

async fn audio(_: Call, _: NoArguments) -> Result<ContentBlock, CallError> {
    Ok(sound())
}

async fn resource_link(_: Call, _: NoArguments) -> Result<ContentBlock, CallError> {
    Ok(link())
}

async fn embedded_resource(_: Call, _: NoArguments) -> Result<ContentBlock, CallError> {
    Ok(embedded())
}

async fn annotated(_: Call, _: NoArguments) -> Result<Vec<ContentBlock>, CallError> {
    let annotate = |text: &str, audience: Vec<Role>, priority: f64| {
        let annotations = Annotations {
            audience: Some(audience),
            priority: Some(priority),
            last_modified: Some(builtin::WRITTEN.to_owned()),
            ..Annotations::default()
        };
        ContentBlock::text(text).annotations(annotations)
    };
    Ok(vec![
        annotate("This is for the user, and it matters most.", vec![Role::User], 1.0),
        annotate("This is for the assistant.", vec![Role::Assistant], 0.5),
        annotate("This is for both, and can be left out.", vec![Role::User, Role::Assistant], 0.0),
    ])
}

async fn mixed(_: Call, _: NoArguments) -> Result<Vec<ContentBlock>, CallError> {
    Ok(vec![ContentBlock::text("One block of each kind:"), picture(), sound(), link(), embedded()])
}

fn picture() -> ContentBlock {
    ContentBlock::image(media::base64(media::DIAGRAM), media::PNG)
}

fn sound() -> ContentBlock {
    ContentBlock::audio(media::base64(media::TONE), media::WAV)
}

fn link() -> ContentBlock {
    let resource = Resource::new("file:///resources/plans.md", "plans.md")
        .title("Plans")
        .description("What comes next")
        .mime_type("text/markdown");
    ContentBlock::link(resource)
}

fn embedded() -> ContentBlock {
    let contents = ResourceContents::text("embedded://greeting", "Hello from inside a tool result.\n");
    ContentBlock::embedded(contents.mime_type("text/plain"))
}
