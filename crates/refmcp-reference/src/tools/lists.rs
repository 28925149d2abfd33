//! Tools, prompts and resources that come and go while the server runs.

use std::future::ready;

use refmcp_server::model::{PromptMessage, ResourceContents};
use refmcp_server::{Call, CallError, NoArguments, Prompt, Resource, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::WRITE_SCOPE;
use crate::added_items::{self, AddedItem};

pub(super) fn tools() -> Vec<Tool> {
    let adds = [
        Tool::new("add_tool", "Adds a tool to the list; it tells its own name", add_tool).title("Add a tool"),
        Tool::new("add_prompt", "Adds a prompt to the list", add_prompt).title("Add a prompt"),
        Tool::new("add_resource", "Adds a text resource to the list", add_resource).title("Add a resource"),
    ];
    let removes = [
        Tool::new("remove_tool", "Removes a tool that add_tool added", remove_tool).title("Remove a tool"),
        Tool::new("remove_prompt", "Removes a prompt that add_prompt added", remove_prompt)
            .title("Remove a prompt"),
        Tool::new("remove_resource", "Removes a resource that add_resource added", remove_resource)
            .title("Remove a resource"),
    ];
    let changes = |tool: Tool, destroys| {
        tool.annotate(|hints| hints.read_only(false).destructive(destroys).idempotent(false))
            .scopes([WRITE_SCOPE])
    };
    let pairs = adds.into_iter().zip(removes);
    pairs.flat_map(|(add, remove)| [changes(add, false), changes(remove, true)]).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    /// Letters, digits, '_', '-' and '.'
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z0-9_.-]+$"))]
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewResource {
    /// Where it will be, such as memo:///today
    #[schemars(length(min = 3, max = 2000), regex(pattern = r"^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$"))]
    uri: String,
    /// What it will say
    #[schemars(length(max = 4000))]
    text: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Located {
    /// Where it is
    #[schemars(length(max = 2000))]
    uri: String,
}

async fn add_tool(call: Call, Named { name }: Named) -> Result<String, CallError> {
    let says = format!("This is {name}, which was added while the server ran");
    let describes = "A tool that was added while the server ran";
    let tool = Tool::new(name.clone(), describes, move |_: Call, _: NoArguments| ready(Ok(says.clone())));
    let tool = tool.title(format!("Added: {name}")).read_only().idempotent().inline();
    added_items::add(&call, AddedItem::Tool(name), |lists| lists.add_tool(tool)).await
}

async fn remove_tool(call: Call, Named { name }: Named) -> Result<String, CallError> {
    added_items::remove(&call, &AddedItem::Tool(name)).await
}

async fn add_prompt(call: Call, Named { name }: Named) -> Result<String, CallError> {
    let says = format!("This is {name}, which was added while the server ran.");
    let prompt = Prompt::new(name.clone(), move |_, _| ready(Ok(PromptMessage::user(says.as_str()))));
    let prompt =
        prompt.title(format!("Added: {name}")).description("A prompt that was added while the server ran");
    added_items::add(&call, AddedItem::Prompt(name), |lists| {
        lists.add_prompt(prompt);
        Ok(())
    })
    .await
}

async fn remove_prompt(call: Call, Named { name }: Named) -> Result<String, CallError> {
    added_items::remove(&call, &AddedItem::Prompt(name)).await
}

async fn add_resource(call: Call, NewResource { uri, text }: NewResource) -> Result<String, CallError> {
    let text = text.unwrap_or_else(|| "This was added while the server ran.\n".to_owned());
    let name = uri.rsplit(['/', ':']).find(|part| !part.is_empty()).unwrap_or(&uri).to_owned();
    let size = u64::try_from(text.len())?;
    let contents = ResourceContents::text(uri.clone(), text).mime_type("text/plain");
    let resource = Resource::new(uri.clone(), name, move |_| ready(Ok(contents.clone())));
    let resource = resource
        .description("A resource that was added while the server ran")
        .mime_type("text/plain")
        .size(size);
    added_items::add(&call, AddedItem::Resource(uri), |lists| {
        lists.add_resource(resource);
        Ok(())
    })
    .await
}

async fn remove_resource(call: Call, Located { uri }: Located) -> Result<String, CallError> {
    added_items::remove(&call, &AddedItem::Resource(uri)).await
}
