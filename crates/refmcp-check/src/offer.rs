//! What a server offers: its lists, and which tools may be called.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::session::Session;

/// Pages that are read of a list.
const MAX_PAGES: usize = 50;

/// Items that are kept of a list.
const MAX_ITEMS: usize = 5000;

/// What a server offers in one revision.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offer {
    pub(crate) tools: Vec<Value>,
    pub(crate) resources: Vec<Value>,
    pub(crate) templates: Vec<Value>,
    pub(crate) prompts: Vec<Value>,
    pub(crate) capabilities: Value,
    /// The name and the version of the server.
    pub(crate) server: String,
}

impl Offer {
    pub(crate) async fn discover(session: &mut Session) -> Self {
        let capabilities = session.server.get("capabilities").cloned().unwrap_or_default();
        let mut offer = Self { server: server_name(&session.server), ..Self::default() };
        if capabilities.get("tools").is_some() {
            offer.tools = list(session, "tools/list", "tools").await;
        }
        if capabilities.get("resources").is_some() {
            offer.resources = list(session, "resources/list", "resources").await;
            offer.templates = list(session, "resources/templates/list", "resourceTemplates").await;
        }
        if capabilities.get("prompts").is_some() {
            offer.prompts = list(session, "prompts/list", "prompts").await;
        }
        Self { capabilities, ..offer }
    }

    /// The names of tools that say of themselves that they only read.
    pub(crate) fn read_only(&self) -> BTreeSet<String> {
        let reads = |tool: &&Value| tool.pointer("/annotations/readOnlyHint") == Some(&json!(true));
        self.tools.iter().filter(reads).filter_map(|tool| name(tool)).map(str::to_owned).collect()
    }
}

/// The name of an item.
pub(crate) fn name(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str)
}

/// All pages of a list; what cannot be read is left out.
pub(crate) async fn list(session: &mut Session, method: &str, member: &str) -> Vec<Value> {
    let (mut items, mut params) = (Vec::new(), json!({}));
    for _ in 0..MAX_PAGES {
        let (id, answer) = session.request(method, params).await;
        let Some(result) = answer.result(&id) else { break };
        items.extend(result.get(member).and_then(Value::as_array).into_iter().flatten().cloned());
        items.truncate(MAX_ITEMS);
        match result.get("nextCursor") {
            Some(cursor @ Value::String(_)) if items.len() < MAX_ITEMS => {
                params = json!({ "cursor": cursor });
            }
            _ => break,
        }
    }
    items
}

fn server_name(result: &Value) -> String {
    let info =
        result.get("serverInfo").or_else(|| result.get("_meta")?.get("io.modelcontextprotocol/serverInfo"));
    let member = |name| info.and_then(|info| info.get(name)).and_then(Value::as_str).unwrap_or_default();
    let text = format!("{} {}", member("name"), member("version"));
    text.trim().chars().take(200).collect()
}
