//! What a server offers: its lists, and which tools may be called.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use refmcp_proto::revision::Revision;
use serde_json::{Value, json};

use crate::connection::Answer;
use crate::probe::Stop;
use crate::report::shortened;
use crate::session::Session;

/// Pages that are read of a list.
const MAX_PAGES: usize = 50;

/// Items that are kept of a list.
const MAX_ITEMS: usize = 5000;

/// Bytes of the answer of a server that did not give a list.
const MAX_SHOWN: usize = 400;

/// What a server offers in one revision.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offer {
    pub(crate) tools: List,
    pub(crate) resources: List,
    pub(crate) templates: List,
    pub(crate) prompts: List,
    pub(crate) capabilities: Value,
    /// The name and the version of the server.
    pub(crate) server: String,
}

/// The items of a list, and why they are not all.
#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    pub(crate) items: Vec<Value>,
    /// How the server answered where it did not give the list, or which limit was reached.
    pub(crate) missing: Option<String>,
}

impl List {
    /// Why nothing is judged where no item is of use.
    pub(crate) fn without(&self, why: &str) -> Stop {
        match &self.missing {
            Some(missing) => Stop::NotVerified(missing.clone()),
            None => Stop::Skipped(why.to_owned()),
        }
    }
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
}

/// The names of tools that say of themselves that they only read, in some revision, and in none that they might do more.
pub(crate) fn read_only(offers: &BTreeMap<Revision, Arc<Offer>>) -> BTreeSet<String> {
    let reads = |tool: &&Value| tool.pointer("/annotations/readOnlyHint") == Some(&json!(true));
    let names = |tool: &Value| name(tool).map(str::to_owned);
    let tools = || {
        let annotated = offers.iter().filter(|(revision, _)| revision.rules().tool_annotations);
        annotated.flat_map(|(_, offer)| &offer.tools.items)
    };
    // Of two tools with one name it is not known which is called.
    let others: BTreeSet<String> = tools().filter(|tool| !reads(tool)).filter_map(names).collect();
    tools().filter(reads).filter_map(names).filter(|name| !others.contains(name)).collect()
}

/// The name of an item.
pub(crate) fn name(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str)
}

/// All pages of a list, or those up to the first that the server does not give.
pub(crate) async fn list(session: &mut Session, method: &str, member: &str) -> List {
    let (mut items, mut params) = (Vec::new(), json!({}));
    for _ in 0..MAX_PAGES {
        let (id, answer) = session.request(method, params).await;
        let page = answer.result(&id).and_then(|result| result.get(member)).and_then(Value::as_array);
        let Some(page) = page else {
            return List { items, missing: Some(not_listed(method, member, &id, &answer)) };
        };
        items.extend(page.iter().cloned());
        if items.len() > MAX_ITEMS {
            items.truncate(MAX_ITEMS);
            return List { items, missing: Some(format!("{method} has more than {MAX_ITEMS} items")) };
        }
        match answer.result(&id).and_then(|result| result.get("nextCursor")) {
            Some(cursor @ Value::String(_)) => params = json!({ "cursor": cursor }),
            _ => return List { items, missing: None },
        }
    }
    List { items, missing: Some(format!("{method} has more than {MAX_PAGES} pages")) }
}

/// How a server answered that did not give a list.
fn not_listed(method: &str, member: &str, id: &Value, answer: &Answer) -> String {
    let what = match answer.result(id) {
        Some(_) => format!("a result without the array {member}"),
        None => answer.summary(id),
    };
    let shown = shortened(answer.exchange.answer.trim(), MAX_SHOWN);
    let shown = if shown.is_empty() { shown } else { format!(": {shown}") };
    format!("{method} is answered with {what}{shown}")
}

fn server_name(result: &Value) -> String {
    let info =
        result.get("serverInfo").or_else(|| result.get("_meta")?.get("io.modelcontextprotocol/serverInfo"));
    let member = |name| info.and_then(|info| info.get(name)).and_then(Value::as_str).unwrap_or_default();
    let text = format!("{} {}", member("name"), member("version"));
    text.trim().chars().take(200).collect()
}
