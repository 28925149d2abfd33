//! What stands for something else in a message, and back.

use std::collections::BTreeMap;

use refmcp_proto::model::keys;
use refmcp_proto::revision::{Lifecycle, Revision};
use serde_json::{Map, Value, json};

/// Placeholders that stand where a member of an object stands.
const MEMBERS: [&str; 3] = ["$META", "$DONE", "$CACHED"];

/// What placeholders stand for in one run.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) revision: Revision,
    pub(super) capabilities: Value,
    pub(super) server_info: Value,
    /// The values that were kept, by name.
    pub(super) kept: BTreeMap<String, Value>,
}

/// Reads a message in which placeholders stand for members.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut plain = text.to_owned();
    for name in MEMBERS {
        plain = plain.replace(&format!("{name}{{"), &format!("\"{name}\":{{"));
        // What is left has no members of its own; quoted ones were just made.
        plain = plain.replace(&format!("{name},"), &format!("\"{name}\":{{}},"));
        plain = plain.replace(&format!("{name}}}"), &format!("\"{name}\":{{}}}}"));
    }
    serde_json::from_str(&plain).map_err(|error| format!("{error} in {plain}"))
}

impl Context {
    pub(super) fn is_stateless(&self) -> bool {
        self.revision.lifecycle() == Lifecycle::PerRequest
    }

    /// The text that a client sends for a line.
    pub(super) fn sent(&self, line: &str) -> Result<String, String> {
        let line = self.fill_text(line);
        let has_members = MEMBERS.iter().any(|name| line.contains(name));
        if !has_members && line.starts_with('{') {
            // The text is left alone, so that what a parser would tidy up arrives as it was written.
            return Ok(line.replacen('{', "{\"jsonrpc\":\"2.0\",", 1));
        }
        let mut message = self.expand(parse(&line)?);
        match &mut message {
            Value::Array(items) => items.iter_mut().for_each(add_version),
            single => add_version(single),
        }
        Ok(message.to_string())
    }

    /// A text with the revision and the kept values filled in.
    pub(super) fn fill_text(&self, text: &str) -> String {
        let mut text = text.replace("$REVISION", self.revision.as_str());
        // Longer names first: one may begin with another.
        for (name, value) in self.kept.iter().rev() {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text = text.replace(&format!("${name}"), &shown);
        }
        text
    }

    /// A message with everything in place of its placeholders, but for values that are to be kept.
    pub(super) fn expand(&self, message: Value) -> Value {
        match message {
            Value::Array(items) => items.into_iter().map(|item| self.expand(item)).collect(),
            Value::Object(members) => {
                let members = members.into_iter().map(|(key, value)| (key, self.expand(value)));
                let mut members: Map<String, Value> = members.collect();
                for name in MEMBERS {
                    if let Some(Value::Object(given)) = members.remove(name) {
                        self.expand_member(name, given, &mut members);
                    }
                }
                Value::Object(members)
            }
            Value::String(text) if text == "$REVISION" => json!(self.revision.as_str()),
            Value::String(text) => {
                let kept = text.strip_prefix('$').and_then(|name| self.kept.get(name));
                kept.cloned().unwrap_or(Value::String(text))
            }
            other => other,
        }
    }

    fn expand_member(&self, name: &str, mut meta: Map<String, Value>, members: &mut Map<String, Value>) {
        if self.is_stateless() {
            let mut usual = Map::new();
            if name == "$META" {
                usual.insert(keys::PROTOCOL_VERSION.to_owned(), json!(self.revision.as_str()));
                usual.insert(keys::CLIENT_CAPABILITIES.to_owned(), self.capabilities.clone());
            } else {
                usual.insert(keys::SERVER_INFO.to_owned(), self.server_info.clone());
                members.insert("resultType".to_owned(), json!("complete"));
            }
            if name == "$CACHED" {
                members.insert("ttlMs".to_owned(), json!(0));
                members.insert("cacheScope".to_owned(), json!("private"));
            }
            usual.append(&mut meta);
            meta = usual;
        }
        if !meta.is_empty() {
            members.insert("_meta".to_owned(), Value::Object(meta));
        }
    }

    /// Compares a message with an expected one, and keeps what is to be kept.
    pub(super) fn matches(&mut self, expected: &Value, actual: &Value) -> bool {
        let expected = self.expand(expected.clone());
        let mut kept = Vec::new();
        let same = compare(&expected, actual, &mut kept);
        self.kept.extend(kept);
        same
    }

    /// A message as a line would have it: the opposite of [`expand`](Self::expand).
    pub(super) fn generalize(&self, expected: Option<&Value>, actual: &Value, among: &[Revision]) -> Value {
        let mut general = actual.clone();
        self.name_kept(expected, &mut general);
        let mixed = among.iter().any(|revision| revision.lifecycle() == Lifecycle::PerRequest);
        match &mut general {
            Value::Array(items) => items.iter_mut().for_each(|item| self.fold_result(item, mixed)),
            single => self.fold_result(single, mixed),
        }
        if among.len() > 1 {
            self.name_revision(&mut general);
        }
        general
    }

    fn name_kept(&self, expected: Option<&Value>, general: &mut Value) {
        // Numbers are equal by chance too often.
        if let Some((name, _)) = self.kept.iter().find(|(_, value)| value.is_string() && *value == general) {
            *general = json!(format!("${name}"));
            return;
        }
        match (expected, general) {
            (Some(Value::String(name)), general) if name.starts_with('$') && name != "$REVISION" => {
                *general = json!(name);
            }
            (expected, Value::Object(members)) => {
                for (key, value) in members {
                    self.name_kept(expected.and_then(|expected| expected.get(key)), value);
                }
            }
            (expected, Value::Array(items)) => {
                for (at, value) in items.iter_mut().enumerate() {
                    self.name_kept(expected.and_then(|expected| expected.get(at)), value);
                }
            }
            _ => {}
        }
    }

    fn name_revision(&self, general: &mut Value) {
        match general {
            Value::String(text) if text == self.revision.as_str() => *general = json!("$REVISION"),
            Value::Array(items) => items.iter_mut().for_each(|item| self.name_revision(item)),
            Value::Object(members) => members.values_mut().for_each(|value| self.name_revision(value)),
            _ => {}
        }
    }

    /// Puts one word in the place of what every result has.
    fn fold_result(&self, message: &mut Value, mixed: bool) {
        let Some(Value::Object(result)) = message.get_mut("result") else { return };
        if !self.is_stateless() {
            if mixed && !result.contains_key("resultType") {
                let meta = result.remove("_meta").unwrap_or_else(|| json!({}));
                result.insert("$DONE".to_owned(), meta);
            }
            return;
        }
        let ours =
            result.get("_meta").and_then(|meta| meta.get(keys::SERVER_INFO)) == Some(&self.server_info);
        if !ours || result.get("resultType") != Some(&json!("complete")) {
            return;
        }
        result.remove("resultType");
        let mut meta = result.remove("_meta").unwrap_or_default();
        if let Some(meta) = meta.as_object_mut() {
            meta.remove(keys::SERVER_INFO);
        }
        let cached =
            result.get("ttlMs") == Some(&json!(0)) && result.get("cacheScope") == Some(&json!("private"));
        if cached {
            result.remove("ttlMs");
            result.remove("cacheScope");
        }
        result.insert(if cached { "$CACHED" } else { "$DONE" }.to_owned(), meta);
    }
}

fn add_version(message: &mut Value) {
    if let Some(members) = message.as_object_mut() {
        members.insert("jsonrpc".to_owned(), json!("2.0"));
    }
}

fn compare(expected: &Value, actual: &Value, kept: &mut Vec<(String, Value)>) -> bool {
    match (expected, actual) {
        (Value::String(name), value) if name.len() > 1 && name.starts_with('$') => {
            kept.push((name.trim_start_matches('$').to_owned(), value.clone()));
            true
        }
        (Value::Object(left), Value::Object(right)) => {
            // All members are looked at, also after a difference: an update needs the values to be kept.
            let same = left
                .iter()
                .map(|(key, value)| right.get(key).is_some_and(|other| compare(value, other, kept)));
            same.fold(left.len() == right.len(), |all, same| all && same)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| compare(left, right, kept))
        }
        (left, right) => left == right,
    }
}
