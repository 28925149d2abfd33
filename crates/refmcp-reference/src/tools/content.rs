//! Every kind of content block.

use refmcp_server::Tool;
use refmcp_server::model::{ContentBlock, Resource, ResourceContents, Role};

use super::fixed;
use crate::media;
use crate::resources::builtin::{WRITTEN, annotations};

pub(super) fn tools() -> Vec<Tool> {
    let tools = [
        fixed("image", "Image", "Returns a picture", picture),
        fixed("audio", "Audio", "Returns a sound", sound),
        fixed("resource_link", "Resource link", "Returns a link to a resource of this server", link),
        fixed("embedded_resource", "Embedded resource", "Returns a resource with its contents", embedded),
        fixed("annotated", "Annotated content", ANNOTATED, annotated),
        fixed("mixed", "Mixed content", "Returns one block of each kind", mixed),
    ];
    tools.into_iter().map(|tool| tool.read_only().idempotent().inline()).collect()
}

const ANNOTATED: &str = "Returns blocks for the user, for the assistant, and for both";

fn annotated() -> Vec<ContentBlock> {
    let annotate = |text: &str, audience: &[Role], priority: f64| {
        ContentBlock::text(text).annotations(annotations(audience, priority, WRITTEN.to_owned()))
    };
    vec![
        annotate("This is for the user, and it matters most.", &[Role::User], 1.0),
        annotate("This is for the assistant.", &[Role::Assistant], 0.5),
        annotate("This is for both, and can be left out.", &[Role::User, Role::Assistant], 0.0),
    ]
}

pub(crate) fn mixed() -> Vec<ContentBlock> {
    vec![ContentBlock::text("One block of each kind:"), picture(), sound(), link(), embedded()]
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
