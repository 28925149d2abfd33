//! Results and what they are made of.

use std::time::Duration;

use serde_json::Value;

use crate::engine::EngineConfig;
use crate::model::{
    Annotations, CallToolResult, Content, Implementation, Prompt, Resource, ResourceContents,
    ResourceTemplate, ResultMeta, ResultType, ServerCapabilities, ServerResult, Tool,
};
use crate::revision::{Rules, StructuredOutput};

/// Brings a result into the shape that these rules want, and completes it with what every result must have.
pub fn result(rules: &Rules, config: &EngineConfig, result: &mut ServerResult) {
    match result {
        ServerResult::CallTool(result) => call_tool(rules, result),
        ServerResult::ListTools(result) => result.tools.iter_mut().for_each(|item| tool(rules, item)),
        ServerResult::ListResources(result) => {
            result.resources.iter_mut().for_each(|item| resource(rules, item));
        }
        ServerResult::ListResourceTemplates(result) => {
            result.resource_templates.iter_mut().for_each(|item| template(rules, item));
        }
        ServerResult::ReadResource(result) => {
            result.contents.iter_mut().for_each(|item| contents(rules, item));
        }
        ServerResult::ListPrompts(result) => result.prompts.iter_mut().for_each(|item| prompt(rules, item)),
        ServerResult::GetPrompt(result) => {
            result.messages.iter_mut().for_each(|message| content(rules, &mut message.content));
        }
        _ => {}
    }
    stamp(rules, config, result);
    cache_hints(rules, config, result);
}

/// Says of a result that it is one, and whose.
fn stamp(rules: &Rules, config: &EngineConfig, result: &mut ServerResult) {
    if !rules.stamped_results {
        *result.result_type_mut() = None;
        if let Some(meta) = result.meta_mut() {
            meta.server_info = None;
            meta.subscription_id = None;
            if meta.extra.is_empty() {
                *result.meta_mut() = None;
            }
        }
        return;
    }
    let kind = match result {
        ServerResult::InputRequired(_) => ResultType::InputRequired,
        _ => ResultType::Complete,
    };
    result.result_type_mut().get_or_insert(kind);
    let who = match result {
        ServerResult::Discover(_) => &config.server_info,
        _ => &config.stamp,
    };
    result.meta_mut().get_or_insert_with(ResultMeta::default).server_info = Some(who.clone());
}

fn cache_hints(rules: &Rules, config: &EngineConfig, result: &mut ServerResult) {
    let Some((ttl, scope)) = result.cache_mut() else { return };
    if rules.cache_hints {
        let (time, whose) = &config.cache;
        ttl.get_or_insert_with(|| millis(*time));
        scope.get_or_insert_with(|| *whose);
    } else {
        *ttl = None;
        *scope = None;
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What a server offers, as far as these rules have words for it.
pub fn capabilities(rules: &Rules, offered: &ServerCapabilities) -> ServerCapabilities {
    let mut capabilities = offered.clone();
    if !rules.completions_capability {
        capabilities.completions = None;
    }
    // What goes beyond the protocol has a place of its own in the newest revision, and stands among the rest before.
    if rules.extensions {
        capabilities.extra.clear();
    } else {
        capabilities.extensions = None;
    }
    capabilities
}

/// Who someone is.
pub fn implementation(rules: &Rules, implementation: &mut Implementation) {
    if !rules.titles {
        implementation.title = None;
    }
    if !rules.icons {
        implementation.icons = None;
        implementation.description = None;
        implementation.website_url = None;
    }
}

fn call_tool(rules: &Rules, result: &mut CallToolResult) {
    result.content.iter_mut().for_each(|block| content(rules, block));
    let fits = match rules.structured_output {
        StructuredOutput::Unknown => false,
        StructuredOutput::Object => result.structured_content.as_ref().is_some_and(Value::is_object),
        StructuredOutput::Any => true,
    };
    if !fits {
        result.structured_content = None;
    }
    // Absent means the same, but clients compare with `false`.
    result.is_error.get_or_insert(false);
}

fn tool(rules: &Rules, tool: &mut Tool) {
    if !rules.tool_annotations {
        tool.annotations = None;
    }
    if !rules.titles {
        // Before tools had titles, their annotations did.
        if let Some(title) = tool.title.take().filter(|_| rules.tool_annotations) {
            tool.annotations.get_or_insert_default().title.get_or_insert(title);
        }
        tool.meta = None;
    }
    if !rules.icons {
        tool.icons = None;
    }
    let fits = match rules.structured_output {
        StructuredOutput::Unknown => false,
        StructuredOutput::Object => tool
            .output_schema
            .as_ref()
            .is_some_and(|schema| schema.get("type").and_then(Value::as_str) == Some("object")),
        StructuredOutput::Any => true,
    };
    if !fits {
        tool.output_schema = None;
    }
}

fn resource(rules: &Rules, resource: &mut Resource) {
    annotations(rules, &mut resource.annotations);
    if !rules.titles {
        resource.title = None;
        resource.meta = None;
    }
    if !rules.icons {
        resource.icons = None;
    }
}

fn template(rules: &Rules, template: &mut ResourceTemplate) {
    annotations(rules, &mut template.annotations);
    if !rules.titles {
        template.title = None;
        template.meta = None;
    }
    if !rules.icons {
        template.icons = None;
    }
}

fn prompt(rules: &Rules, prompt: &mut Prompt) {
    if !rules.titles {
        prompt.title = None;
        prompt.meta = None;
        prompt.arguments.iter_mut().flatten().for_each(|argument| argument.title = None);
    }
    if !rules.icons {
        prompt.icons = None;
    }
}

fn contents(rules: &Rules, contents: &mut ResourceContents) {
    if !rules.titles {
        contents.meta = None;
    }
}

fn annotations(rules: &Rules, annotations: &mut Option<Annotations>) {
    if let Some(annotations) = annotations
        && !rules.titles
    {
        annotations.last_modified = None;
    }
}

/// A content block; one that the revision does not know becomes text that says what it was.
pub fn content(rules: &Rules, block: &mut Content) {
    let note = match block {
        Content::Audio(audio) if !rules.audio => {
            Some(format!("[audio, {}, {} characters of base64]", audio.mime_type, audio.data.len()))
        }
        Content::ResourceLink(link) if !rules.resource_links => {
            Some(format!("[resource {}: {}]", link.name, link.uri))
        }
        _ => None,
    };
    if let Some(note) = note {
        *block = Content::text(note);
    }
    match block {
        Content::Text(text) => {
            annotations(rules, &mut text.annotations);
            text.meta.take_if(|_| !rules.titles);
        }
        Content::Image(image) => {
            annotations(rules, &mut image.annotations);
            image.meta.take_if(|_| !rules.titles);
        }
        Content::Audio(audio) => {
            annotations(rules, &mut audio.annotations);
            audio.meta.take_if(|_| !rules.titles);
        }
        Content::Resource(embedded) => {
            annotations(rules, &mut embedded.annotations);
            embedded.meta.take_if(|_| !rules.titles);
            contents(rules, &mut embedded.resource);
        }
        Content::ResourceLink(link) => resource(rules, link),
        Content::ToolUse(_) | Content::ToolResult(_) | Content::Unknown(_) => {}
    }
}
