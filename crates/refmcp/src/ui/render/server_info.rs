//! Who a server is and what it can do.

use refmcp_client::ServerFacts;
use refmcp_proto::model::{SKILLS_EXTENSION, ServerCapabilities};
use refmcp_proto::revision::Method;

use super::View;
use crate::ui::text::{indent, multi_line, one_line};

/// What is known of a server, a line for each thing.
pub(crate) fn server_info(facts: &ServerFacts, transport: &str, view: &View) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    if let Some(server) = &facts.info {
        let title = server.title.as_ref().filter(|title| **title != server.name);
        let title = title.map(|title| format!("  {}", one_line(title))).unwrap_or_default();
        lines.push(("server", format!("{} {}{title}", one_line(&server.name), one_line(&server.version))));
        let more = [("about", &server.description), ("website", &server.website_url)];
        lines.extend(
            more.into_iter()
                .filter_map(|(name, text)| text.as_deref().map(|text| (name, one_line(text).into_owned()))),
        );
    }
    let revision = facts.revision.as_str();
    lines.push(("revision", revision.to_owned()));
    let others: Vec<&str> =
        facts.versions.iter().map(String::as_str).filter(|other| *other != revision).collect();
    if !others.is_empty() {
        lines.push(("also speaks", one_line(&others.join(", ")).into_owned()));
    }
    lines.push(("transport", one_line(transport).into_owned()));
    lines.push(("offers", offers(&facts.capabilities)));
    let mut out = String::new();
    for (name, text) in lines {
        out.push_str(&format!("{}{text}\n", view.paint.strong(&format!("{name:<13}"))));
    }
    if let Some(instructions) = facts.instructions.as_deref().filter(|text| !text.trim().is_empty()) {
        out.push_str(&view.paint.strong("instructions"));
        out.push_str(&format!("\n{}\n", indent(&multi_line(instructions), "  ")));
    }
    out
}

/// The capabilities by name, with what each adds in brackets.
fn offers(capabilities: &ServerCapabilities) -> String {
    let named = |name: &str, extras: &[(&str, Option<bool>)]| {
        let extras: Vec<&str> =
            extras.iter().filter(|(_, there)| *there == Some(true)).map(|(extra, _)| *extra).collect();
        if extras.is_empty() { name.to_owned() } else { format!("{name} ({})", extras.join(", ")) }
    };
    let mut all = Vec::new();
    if let Some(tools) = &capabilities.tools {
        all.push(named("tools", &[("tells of changes", tools.list_changed)]));
    }
    if let Some(resources) = &capabilities.resources {
        let extras = [("tells of changes", resources.list_changed), ("can be watched", resources.subscribe)];
        all.push(named("resources", &extras));
    }
    if let Some(prompts) = &capabilities.prompts {
        all.push(named("prompts", &[("tells of changes", prompts.list_changed)]));
    }
    for (name, there) in
        [("completions", capabilities.completions.is_some()), ("logging", capabilities.logging.is_some())]
    {
        if there {
            all.push(name.to_owned());
        }
    }
    let further = [&capabilities.extensions, &capabilities.experimental].into_iter().flatten();
    let further = further.flat_map(serde_json::Map::keys).chain(capabilities.extra.keys());
    // Extensions of the protocol that are known here are called by their short names.
    let reads = Some(Method::ReadDirectory.is_offered(capabilities));
    all.extend(further.map(|name| match name.as_str() {
        SKILLS_EXTENSION => named("skills", &[("reads directories", reads)]),
        name => one_line(name).into_owned(),
    }));
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}
