//! One thing that a server offers, with all that the server says of it.

use refmcp_client::ListedSkill;
use refmcp_proto::model::{JsonObject, Prompt, Resource, ResourceTemplate, Tool};
use serde_json::Value;

use super::apps::app_of;
use super::content::pretty;
use super::lists::{bytes, heading, schema_arguments, tool_title};
use super::{View, hints, task_support};
use crate::command::client::models::Model;
use crate::ui::text::{indent, multi_line, one_line};

/// A tool: its whole description, its arguments one by one, what it says about itself, its schemas.
pub(crate) fn tool_details(tool: &Tool, view: &View) -> String {
    let mut out = String::new();
    heading(&mut out, view, &tool.name, tool_title(tool));
    description(&mut out, tool.description.as_deref());
    let arguments = schema_arguments(&tool.input_schema);
    section(&mut out, view, "arguments", &lines_of(&arguments));
    let said = hints(tool);
    if !said.is_empty() {
        section(&mut out, view, "says it", &said.join("\n"));
    }
    if let Some(support) = task_support(tool) {
        section(&mut out, view, "tasks", support);
    }
    section(&mut out, view, "app", &app_of(tool).join("\n"));
    schema(&mut out, view, "input schema", &tool.input_schema);
    if let Some(output) = &tool.output_schema {
        schema(&mut out, view, "output schema", output);
    }
    out
}

/// A prompt, with its arguments one by one.
pub(crate) fn prompt_details(prompt: &Prompt, view: &View) -> String {
    let mut out = String::new();
    heading(&mut out, view, &prompt.name, prompt.title.as_deref());
    description(&mut out, prompt.description.as_deref());
    let arguments = prompt.arguments.iter().flatten().map(|argument| {
        let optional = if argument.required == Some(true) { "" } else { "?" };
        (format!("{}{optional}", argument.name), argument.description.clone().unwrap_or_default())
    });
    section(&mut out, view, "arguments", &lines_of(&arguments.collect::<Vec<_>>()));
    out
}

/// A resource.
pub(crate) fn resource_details(resource: &Resource, view: &View) -> String {
    let facts = [
        ("name", Some(resource.name.clone())),
        ("title", resource.title.clone()),
        ("type", resource.mime_type.clone()),
        ("size", resource.size.map(bytes)),
        ("annotations", resource.annotations.as_ref().and_then(|it| serde_json::to_string(it).ok())),
    ];
    with_facts(view, &resource.uri, resource.description.as_deref(), facts)
}

/// A skill, with its files and their digests.
pub(crate) fn skill_details(skill: &ListedSkill, view: &View) -> String {
    let entry = match &skill.entry {
        Ok(entry) => entry,
        Err(fault) => return format!("{}\n", multi_line(&fault.to_string())),
    };
    let mut out = String::new();
    heading(&mut out, view, entry.uri(), Some(entry.name()));
    description(&mut out, Some(entry.description()));
    let files: Vec<(String, String)> =
        entry.files().map(|(_, path, digest)| (path.to_owned(), digest.to_string())).collect();
    let files = if entry.is_dynamic() { "dynamic".to_owned() } else { lines_of(&files) };
    section(&mut out, view, "files", &files);
    out
}

/// A resource template.
pub(crate) fn template_details(template: &ResourceTemplate, view: &View) -> String {
    let facts = [
        ("name", Some(template.name.clone())),
        ("title", template.title.clone()),
        ("type", template.mime_type.clone()),
        ("annotations", template.annotations.as_ref().and_then(|it| serde_json::to_string(it).ok())),
    ];
    with_facts(view, &template.uri_template, template.description.as_deref(), facts)
}

/// A model.
pub(crate) fn model_details(model: &Model, active: bool, view: &View) -> String {
    let facts = [
        ("active", active.then(|| "yes".to_owned())),
        ("context", model.context_length.map(|tokens| format!("{tokens} tokens"))),
    ];
    with_facts(view, &model.name, model.description.as_deref(), facts)
}

/// Something with its description, and those of these facts that are known.
fn with_facts<const COUNT: usize>(
    view: &View,
    name: &str,
    about: Option<&str>,
    facts: [(&str, Option<String>); COUNT],
) -> String {
    let mut out = String::new();
    heading(&mut out, view, name, None);
    description(&mut out, about);
    let known = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    section(&mut out, view, "facts", &lines_of(&known.collect::<Vec<_>>()));
    out
}

fn description(out: &mut String, text: Option<&str>) {
    if let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) {
        out.push_str(&format!("{}\n", indent(&multi_line(text), "    ")));
    }
}

pub(super) fn section(out: &mut String, view: &View, name: &str, text: &str) {
    if !text.is_empty() {
        out.push_str(&format!("  {}\n{}\n", view.paint.strong(name), indent(&multi_line(text), "    ")));
    }
}

fn schema(out: &mut String, view: &View, name: &str, schema: &JsonObject) {
    section(out, view, name, &pretty(&Value::Object(schema.clone())));
}

pub(super) fn lines_of(pairs: &[(String, String)]) -> String {
    let lines = pairs.iter().map(|(name, about)| format!("{}  {}", one_line(name), one_line(about)));
    lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
