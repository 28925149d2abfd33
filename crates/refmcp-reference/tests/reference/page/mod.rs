//! `docs/reference-server.md` tells of everything that the server offers, and of nothing else. Its tables are compared
//! with a running server; `cargo xtask reference-page --update` writes the columns that come from it.

mod revisions;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use refmcp_reference::{Options, Profile};
use refmcp_server::rule;
use serde_json::{Value, json};

use crate::client::{Client, SESSIONS, STATELESS};
use table::Table;

const PAGE: &str = "docs/reference-server.md";

/// What is said by hand of everything that is offered.
const BY_HAND: &[&str] = &["what it exercises in a client"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The tables of one half of the server.
async fn tables(profile: Profile, parts: [&'static str; 4]) -> Vec<Table> {
    let server = refmcp_reference::server(Options { profile, ..Options::default() }).unwrap();
    let mut client = Client::new(&server, STATELESS).await;
    let table = |part, headings, rows| Table { part, headings, by_hand: BY_HAND, rows };
    let mut tables = Vec::new();

    let revisions = revisions::of_tools(&server).await;
    let row = |tool: &Value| {
        let (name, title) = (text(&tool["name"]), text(&tool["title"]));
        let works = revisions[&name].clone();
        vec![format!("`{name}`"), title, tool_arguments(tool), text(&tool["description"]), works]
    };
    let headings = &["tool", "title", "arguments", "what it does", "revisions"];
    tables.push(table(parts[0], headings, client.list("tools").await.iter().map(row).collect()));

    let revisions = revisions::of_resources(&server).await;
    let row = |resource: &Value| {
        let (uri, title, kind) =
            (text(&resource["uri"]), text(&resource["title"]), text(&resource["mimeType"]));
        let works = revisions[&uri].clone();
        vec![format!("`{uri}`"), title, kind, text(&resource["description"]), works]
    };
    let headings = &["resource", "title", "type", "what it is", "revisions"];
    let mut resources = client.list("resources").await;
    // Files of skills are in a table of their own.
    resources.retain(|resource| !text(&resource["uri"]).starts_with("skill:"));
    tables.push(table(parts[1], headings, resources.iter().map(row).collect()));

    let revisions = revisions::of_templates(&server).await;
    let row = |template: &Value| {
        let (uri, title) = (text(&template["uriTemplate"]), text(&template["title"]));
        let (kind, works) = (text(&template["mimeType"]), revisions[&uri].clone());
        vec![format!("`{uri}`"), title, kind, text(&template["description"]), works]
    };
    let headings = &["template", "title", "type", "what it is", "revisions"];
    tables.push(table(parts[2], headings, client.list("templates").await.iter().map(row).collect()));

    let revisions = revisions::of_prompts(&server).await;
    let row = |prompt: &Value| {
        let arguments = prompt["arguments"].as_array().into_iter().flatten();
        let arguments =
            arguments.map(|argument| named(&argument["name"], argument["required"] == true, None));
        let (name, arguments) = (text(&prompt["name"]), arguments.collect::<Vec<_>>().join(", "));
        let works = revisions[&name].clone();
        vec![format!("`{name}`"), text(&prompt["title"]), arguments, text(&prompt["description"]), works]
    };
    let headings = &["prompt", "title", "arguments", "what it is", "revisions"];
    tables.push(table(parts[3], headings, client.list("prompts").await.iter().map(row).collect()));
    tables
}

async fn models() -> Table {
    let server = refmcp_reference::server(Options::default()).unwrap();
    let mut client = Client::new(&server, STATELESS).await;
    let list = client.result("models/list", json!({})).await;
    let rows = list["models"].as_array().unwrap().iter();
    let rows = rows.map(|model| {
        vec![code(&model["name"]), text(&model["description"]), model["contextLength"].to_string()]
    });
    let headings = &["model", "what it is", "context length"];
    Table { part: "models", headings, by_hand: &[], rows: rows.collect() }
}

async fn skills() -> Table {
    let server = refmcp_reference::server(Options::default()).unwrap();
    let mut client = Client::new(&server, STATELESS).await;
    let skills = client.list("skills").await;
    let row = |skill: &Value| {
        let root = text(&skill["uri"]).replace("SKILL.md", "");
        let files = skill["resources"].as_array().into_iter().flatten();
        let files = files.map(|file| format!("`{}`", text(&file["uri"]).replace(&root, "")));
        let description = text(&skill["frontmatter"]["description"]);
        vec![code(&skill["uri"]), description, files.collect::<Vec<_>>().join(", ")]
    };
    let headings = &["skill", "what it is", "files"];
    Table { part: "skills", headings, by_hand: BY_HAND, rows: skills.iter().map(row).collect() }
}

/// The rules that the server has findings for: every rule that the engine and the HTTP server name.
fn findings() -> Table {
    let mut rules = BTreeSet::new();
    let sources = [
        "refmcp-proto/src/engine/server",
        MESSAGE_CHECKS,
        "refmcp-proto/src/jsonrpc/decode.rs",
        "refmcp-proto/src/http.rs",
        "refmcp-http/src",
    ];
    let mut paths: Vec<PathBuf> = sources.iter().map(|path| root().join("crates").join(path)).collect();
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let mut source = source.split("#[cfg(test)]").next().unwrap();
        if path.ends_with(MESSAGE_CHECKS) {
            // Below are the notifications that only servers send.
            source = source.split_once("NotificationMethod::Log =>").expect("the notifications of servers").0;
        }
        let named = source.split("&rule::").skip(1);
        rules.extend(named.map(|text| {
            let end =
                text.find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').unwrap_or(text.len());
            let rule = rule::find(&text[..end].replace('_', "-"));
            rule.unwrap_or_else(|| panic!("{}: no rule {}", path.display(), &text[..end])).id
        }));
    }
    let rows = rows_of(&rules);
    Table { part: "findings", headings: &["rule"], by_hand: &["what the client did"], rows }
}

const MESSAGE_CHECKS: &str = "refmcp-proto/src/engine/message_checks.rs";

fn rows_of(rules: &BTreeSet<&'static str>) -> Vec<Vec<String>> {
    rules.iter().map(|rule| vec![format!("`{rule}`")]).collect()
}

#[tokio::test(start_paused = true)]
async fn the_page_tells_of_everything_and_of_nothing_else() {
    let mut all = tables(Profile::Reference, ["tools", "resources", "templates", "prompts"]).await;
    let fixtures = ["fixture-tools", "fixture-resources", "fixture-templates", "fixture-prompts"];
    all.extend(tables(Profile::Conformance, fixtures).await);
    all.extend([skills().await, models().await, findings()]);
    let path = root().join(PAGE);
    let mut page = fs::read_to_string(&path).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        for table in &all {
            page = table.put_into(&page).unwrap();
        }
        fs::write(&path, &page).unwrap();
    }
    let faults: Vec<String> = all.iter().flat_map(|table| table.faults(&page)).collect();
    assert!(
        faults.is_empty(),
        "{PAGE} and the server differ; `cargo xtask reference-page --update` writes what comes from the server:\n{}",
        faults.join("\n")
    );
}

/// The page names the suite in the version that the tests run.
#[test]
fn the_page_names_the_pinned_conformance_suite() {
    let manifest = fs::read_to_string(root().join("interop/conformance/package.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let version = manifest["dependencies"]["@modelcontextprotocol/conformance"].as_str().unwrap();
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    assert!(page.contains(&format!("@modelcontextprotocol/conformance@{version} ")), "{version}");
    assert!(page.contains(&format!("pins version\n{version},")), "{version}");
}

/// The page says that the lists are the same in every revision.
#[tokio::test]
async fn every_revision_lists_the_same() {
    let server = refmcp_reference::server(Options::default()).unwrap();
    let mut newest = Client::new(&server, STATELESS).await;
    for list in ["tools", "resources", "templates", "prompts"] {
        let names = |items: Vec<Value>| -> Vec<Value> {
            let name = |item: &Value| {
                let keys = ["uriTemplate", "uri", "name"];
                keys.iter().find_map(|key| item.get(*key)).unwrap().clone()
            };
            items.iter().map(name).collect()
        };
        let expected = names(newest.list(list).await);
        for revision in SESSIONS {
            let mut client = Client::new(&server, revision).await;
            assert_eq!(names(client.list(list).await), expected, "{list} of {revision}");
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn code(value: &Value) -> String {
    format!("`{}`", text(value))
}

/// An argument as the page writes it: with its default, or with a question mark where it may be left out.
fn named(name: &Value, required: bool, default: Option<&Value>) -> String {
    match default.filter(|default| !default.is_null()) {
        Some(default) => format!("`{}={default}`", text(name)),
        None => format!("{}{}", code(name), if required { "" } else { "?" }),
    }
}

fn tool_arguments(tool: &Value) -> String {
    let schema = &tool["inputSchema"];
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
    let properties = schema["properties"].as_object().into_iter().flatten();
    let arguments = properties.map(|(name, of)| named(&json!(name), required(name), of.get("default")));
    arguments.collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn everything_that_is_offered_has_a_title() {
    let server = refmcp_reference::server(Options::default()).unwrap();
    let mut client = Client::new(&server, STATELESS).await;
    for kind in ["tools", "resources", "templates", "prompts"] {
        for offered in client.list(kind).await {
            assert!(offered["title"].as_str().is_some_and(|title| !title.is_empty()), "{kind}: {offered}");
        }
    }
}
