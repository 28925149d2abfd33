//! What a server offers.

use refmcp_client::ListedSkill;
use refmcp_proto::model::{JsonObject, Prompt, Resource, ResourceTemplate, Tool};

use super::apps::app_of;
use super::{View, hints, task_support};
use crate::arguments::{ArgumentField, all_fields};
use crate::ui::render::table::Table;
use crate::ui::text::wrap;
use crate::ui::text::{first_line, one_line};

/// Tools, each with what it does, its arguments, and what it says about itself.
pub(crate) fn tools(tools: &[Tool], view: &View) -> String {
    let mut out = String::new();
    for tool in tools {
        heading(&mut out, view, &tool.name, tool_title(tool));
        about(&mut out, view, tool.description.as_deref());
        detail(&mut out, view, &arguments(tool));
        let hints = hints(tool);
        if !hints.is_empty() {
            detail(&mut out, view, &format!("says it {}", hints.join(", ")));
        }
        detail(&mut out, view, task_support(tool).unwrap_or_default());
        let app = app_of(tool);
        if !app.is_empty() {
            detail(&mut out, view, &app.join(", "));
        }
    }
    or_none(out, "tools")
}

/// What a tool calls itself for people.
pub(crate) fn tool_title(tool: &Tool) -> Option<&str> {
    tool.title.as_deref().or_else(|| tool.annotations.as_ref()?.title.as_deref())
}

/// Prompts, each with what it is for and its arguments.
pub(crate) fn prompts(prompts: &[Prompt], view: &View) -> String {
    let mut out = String::new();
    for prompt in prompts {
        heading(&mut out, view, &prompt.name, prompt.title.as_deref());
        about(&mut out, view, prompt.description.as_deref());
        for argument in prompt.arguments.iter().flatten() {
            let optional = if argument.required == Some(true) { "" } else { "?" };
            let note = argument.description.as_deref().map(first_line).unwrap_or_default();
            let line = format!("{}{optional}  {note}", one_line(&argument.name));
            detail(&mut out, view, line.trim_end());
        }
    }
    or_none(out, "prompts")
}

/// Resources, a line each.
pub(crate) fn resources(resources: &[Resource], view: &View) -> String {
    let mut table = Table::new(&["URI", "NAME", "TYPE", "SIZE", "ABOUT"]);
    for resource in resources {
        table.row([
            &resource.uri,
            resource.title.as_ref().unwrap_or(&resource.name),
            resource.mime_type.as_deref().unwrap_or_default(),
            &resource.size.map(bytes).unwrap_or_default(),
            &resource.description.as_deref().map(first_line).unwrap_or_default(),
        ]);
    }
    table.render_or("no resources", view.paint, view.width)
}

/// Resource templates, a line each.
pub(crate) fn templates(templates: &[ResourceTemplate], view: &View) -> String {
    let mut table = Table::new(&["URI TEMPLATE", "NAME", "TYPE", "ABOUT"]);
    for template in templates {
        table.row([
            &template.uri_template,
            template.title.as_ref().unwrap_or(&template.name),
            template.mime_type.as_deref().unwrap_or_default(),
            &template.description.as_deref().map(first_line).unwrap_or_default(),
        ]);
    }
    table.render_or("no resource templates", view.paint, view.width)
}

/// Skills, a line each; one whose entry is wrong says so.
pub(crate) fn skills(skills: &[ListedSkill], view: &View) -> String {
    let mut table = Table::new(&["URI", "FILES", "SIZE", "ABOUT"]);
    for skill in skills {
        let (files, size, about) = match &skill.entry {
            Ok(entry) if entry.is_dynamic() => {
                ("dynamic".to_owned(), String::new(), entry.description().to_owned())
            }
            Ok(entry) => {
                (entry.files().count().to_string(), bytes(entry.size()), entry.description().to_owned())
            }
            Err(fault) => (String::new(), String::new(), fault.to_string()),
        };
        table.row([&skill.uri, &files, &size, &first_line(&about)]);
    }
    table.render_or("no skills", view.paint, view.width)
}

fn or_none(text: String, what: &str) -> String {
    if text.is_empty() { format!("no {what}\n") } else { text }
}

pub(super) fn heading(out: &mut String, view: &View, name: &str, title: Option<&str>) {
    out.push_str(&view.paint.strong(&one_line(name)));
    if let Some(title) = title.filter(|title| *title != name) {
        out.push_str("  ");
        out.push_str(&one_line(title));
    }
    out.push('\n');
}

fn about(out: &mut String, view: &View, description: Option<&str>) {
    if let Some(description) = description.filter(|text| !text.trim().is_empty()) {
        for line in fitted(&first_line(description), view) {
            out.push_str(&format!("    {line}\n"));
        }
    }
}

fn detail(out: &mut String, view: &View, line: &str) {
    if !line.is_empty() {
        for line in fitted(line, view) {
            out.push_str(&format!("    {}\n", view.paint.faint(&line)));
        }
    }
}

/// A line, broken into several where the terminal is narrower; nothing is cut.
fn fitted(line: &str, view: &View) -> Vec<String> {
    view.width.map_or_else(|| vec![line.to_owned()], |width| wrap(line, width.saturating_sub(4)))
}

/// The arguments of a tool on one line.
fn arguments(tool: &Tool) -> String {
    let fields = fields(&tool.input_schema).into_iter();
    fields
        .map(|(label, field)| format!("{label}: {}", one_line(&field.expected)))
        .collect::<Vec<_>>()
        .join("; ")
}

/// The arguments of a schema, each with what is expected and what is said about it.
pub(super) fn schema_arguments(schema: &JsonObject) -> Vec<(String, String)> {
    let described = |(label, field): (String, ArgumentField)| match field.description {
        Some(about) => (format!("{label}:"), format!("{}. {about}", field.expected)),
        None => (format!("{label}:"), field.expected),
    };
    fields(schema).into_iter().map(described).collect()
}

/// The arguments of a schema, those that are required first; a question mark says which can be left out.
fn fields(schema: &JsonObject) -> Vec<(String, ArgumentField)> {
    let mut fields = all_fields(schema);
    fields.sort_by_key(|field| !field.required);
    let label =
        |field: &ArgumentField| format!("{}{}", one_line(&field.name), if field.required { "" } else { "?" });
    fields.into_iter().map(|field| (label(&field), field)).collect()
}

/// A number of bytes as people say it.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}
