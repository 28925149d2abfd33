//! Models and metadata, which are beyond the protocol.

use serde_json::Value;

use super::View;
use crate::command::client::models::ModelList;
use crate::ui::render::table::Table;
use crate::ui::text::{first_line, one_line};

/// Models, a line each; the active one is marked.
pub(crate) fn models(list: &ModelList, view: &View) -> String {
    let mut table = Table::new(&["MODEL", "ACTIVE", "CONTEXT", "ABOUT"]);
    for model in &list.models {
        table.row([
            &model.name,
            if list.is_active(model) { "yes" } else { "" },
            &model.context_length.map(|tokens| tokens.to_string()).unwrap_or_default(),
            &model.description.as_deref().map(first_line).unwrap_or_default(),
        ]);
    }
    table.render_or("no models", view.paint, view.width)
}

/// Metadata, a line for each member; of an object, the names of its members.
pub(crate) fn metadata(metadata: &Value, view: &View) -> String {
    let members: Vec<(&String, String)> = metadata
        .as_object()
        .into_iter()
        .flatten()
        // Protocol members of the result, such as its type and lifetime, are no metadata of the server.
        .filter(|(name, _)| !PROTOCOL.contains(&name.as_str()))
        .map(|(name, value)| (name, short(value)))
        .collect();
    let width = members.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default() + 2;
    let line = |(name, value): &(&String, String)| {
        let name = view.paint.strong(&format!("{:<width$}", one_line(name)));
        format!("{name}{}", one_line(value)).trim_end().to_owned() + "\n"
    };
    if members.is_empty() { "no metadata\n".to_owned() } else { members.iter().map(line).collect() }
}

/// Members that any result may have.
const PROTOCOL: [&str; 4] = ["_meta", "resultType", "ttlMs", "cacheScope"];

fn short(value: &Value) -> String {
    let one = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Object(members) if members.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(one).collect::<Vec<_>>().join(", "),
        Value::Object(members) => members.keys().cloned().collect::<Vec<_>>().join(", "),
        other => one(other),
    }
}
