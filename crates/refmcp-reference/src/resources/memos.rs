//! The resource template of memos, with completions that depend on the arguments already given.

use refmcp_server::model::ResourceContents;
use refmcp_server::{CallError, ResourceTemplate, UriTemplateError};

const SHELVES: [(&str, &[&str]); 3] = [
    ("office", &["budget", "goals"]),
    ("recipes", &["bread", "pancakes", "soup"]),
    ("travel", &["lisbon", "oslo", "quito"]),
];

/// `memo://{shelf}/{name}`: which names are suggested depends on the shelf.
pub(super) fn memos() -> Result<ResourceTemplate, UriTemplateError> {
    let memos = ResourceTemplate::new("memo://{shelf}/{name}", "memos", |_, uri, values| async move {
        let (shelf, name) = (value(&values, "shelf"), value(&values, "name"));
        if !names(shelf).any(|known| known == name) {
            return Err(CallError::resource_not_found(uri));
        }
        let text = format!("The memo \"{name}\" from the shelf \"{shelf}\".\n");
        Ok(ResourceContents::text(uri, text).mime_type("text/plain"))
    })?;
    let memos = memos
        .title("Memos")
        .description("Memos by shelf and name; both can be completed")
        .mime_type("text/plain")
        .complete("shelf", |_, typed| async move { typed.among(SHELVES.map(|(shelf, _)| shelf)) })
        .complete("name", |_, typed| async move {
            match typed.known.get("shelf") {
                Some(shelf) => typed.among(names(shelf)),
                None => typed.among(SHELVES.iter().flat_map(|(_, names)| *names).copied()),
            }
        });
    Ok(memos)
}

fn names(shelf: &str) -> impl Iterator<Item = &'static str> {
    SHELVES.iter().filter(move |(known, _)| *known == shelf).flat_map(|(_, names)| *names).copied()
}

fn value<'a>(values: &'a refmcp_server::TemplateValues, name: &str) -> &'a str {
    values.get(name).map(String::as_str).unwrap_or_default()
}
