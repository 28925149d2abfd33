//! Requests to bytes: the caller's parameters, and what the protocol adds to every request.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::config::{CallOptions, ClientConfig};
use crate::model::{JsonObject, TaskMetadata, keys};
use crate::revision::{Lifecycle, LogScope, Rules};

/// What every request has in `_meta`: members of an object, without its braces.
pub(super) fn fixed_meta(config: &ClientConfig, rules: &Rules) -> Vec<u8> {
    let mut members = JsonObject::new();
    if rules.lifecycle == Lifecycle::PerRequest {
        members.insert(keys::PROTOCOL_VERSION.to_owned(), rules.revision.as_str().into());
        members.insert(keys::CLIENT_CAPABILITIES.to_owned(), value(&config.declared_capabilities(rules)));
        members.insert(keys::CLIENT_INFO.to_owned(), value(&config.info));
    }
    inside(&members)
}

/// A request before it is written.
#[derive(Debug)]
pub(super) struct RequestDraft<'a> {
    pub(super) id: u64,
    pub(super) method: &'a str,
    /// The text of an object.
    pub(super) params: &'a str,
    pub(super) options: &'a CallOptions,
    /// The input responses for the last round, and its `requestState`.
    pub(super) responses: Option<&'a BTreeMap<String, Value>>,
    pub(super) state: Option<&'a str>,
    /// Asks for a task.
    pub(super) task: Option<&'a TaskMetadata>,
}

impl RequestDraft<'_> {
    /// Appends the request, by these rules.
    pub(super) fn encode_request(&self, out: &mut Vec<u8>, rules: &Rules, fixed_meta: &[u8]) {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        json(out, &self.id);
        out.extend_from_slice(b",\"method\":");
        json(out, self.method);
        out.extend_from_slice(b",\"params\":{");
        let mut members = Members { out, any: false };
        self.write_meta(&mut members, rules, fixed_meta);
        if let Some(responses) = self.responses {
            json(members.next(), INPUT_RESPONSES);
            members.out.push(b':');
            json(members.out, responses);
        }
        if let Some(state) = self.state {
            json(members.next(), REQUEST_STATE);
            members.out.push(b':');
            json(members.out, state);
        }
        if let Some(task) = self.task {
            members.next().extend_from_slice(b"\"task\":");
            json(members.out, task);
        }
        members.add(inner(self.params).as_bytes());
        out.extend_from_slice(b"}}");
    }

    fn write_meta(&self, members: &mut Members<'_>, rules: &Rules, fixed_meta: &[u8]) {
        let level = self.options.log_level.filter(|_| rules.log_scope == LogScope::Request);
        let own = &self.options.meta;
        if fixed_meta.is_empty() && level.is_none() && !self.options.progress && own.is_empty() {
            return;
        }
        members.next().extend_from_slice(b"\"_meta\":{");
        let mut meta = Members { out: members.out, any: false };
        meta.add(fixed_meta);
        if let Some(level) = level {
            meta.add(format!("\"{}\":\"{level}\"", keys::LOG_LEVEL).as_bytes());
        }
        if self.options.progress {
            meta.next().extend_from_slice(b"\"progressToken\":");
            json(meta.out, &self.id);
        }
        // Members of the protocol come first and are not overwritten.
        let taken = |key: &str| {
            (!fixed_meta.is_empty() && FIXED_KEYS.contains(&key))
                || (level.is_some() && key == keys::LOG_LEVEL)
                || (self.options.progress && key == keys::PROGRESS_TOKEN)
        };
        for (key, value) in own.iter().filter(|(key, _)| !taken(key)) {
            json(meta.next(), key);
            meta.out.push(b':');
            json(meta.out, value);
        }
        members.out.push(b'}');
    }
}

/// The keys of `_meta` that every stateless request has.
const FIXED_KEYS: [&str; 3] = [keys::PROTOCOL_VERSION, keys::CLIENT_CAPABILITIES, keys::CLIENT_INFO];

/// The members of an object that is being written.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    any: bool,
}

impl Members<'_> {
    /// Where the next one goes.
    fn next(&mut self) -> &mut Vec<u8> {
        if std::mem::replace(&mut self.any, true) {
            self.out.push(b',');
        }
        self.out
    }

    /// Adds members that are written already.
    fn add(&mut self, members: &[u8]) {
        if !members.is_empty() {
            self.next().extend_from_slice(members);
        }
    }
}

/// Parameters without the input of the round before, where a caller has put it into them: each round has its own.
pub(super) fn without_input(params: &str) -> Option<Box<str>> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(params).ok()?;
    let known = members.len();
    members.retain(|key, _| key != INPUT_RESPONSES && key != REQUEST_STATE);
    // Others stay as they were written.
    (members.len() < known).then(|| serde_json::to_string(&members).ok())?.map(Into::into)
}

const INPUT_RESPONSES: &str = "inputResponses";
const REQUEST_STATE: &str = "requestState";

/// The text of an object without its braces.
fn inner(object: &str) -> &str {
    let text = object.trim();
    text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default().trim()
}

fn inside(members: &JsonObject) -> Vec<u8> {
    let mut out = Vec::new();
    json(&mut out, members);
    inner(&String::from_utf8_lossy(&out)).as_bytes().to_vec()
}

fn value(of: &impl Serialize) -> Value {
    // Values of the model have string keys and no failing parts.
    serde_json::to_value(of).unwrap_or_default()
}

fn json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Writing into memory cannot fail, nor can values of the model.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{Implementation, LogLevel};
    use crate::revision::Revision;

    fn written(revision: Revision, params: &str, options: &CallOptions, state: Option<&str>) -> Value {
        let config = ClientConfig::new(Implementation::new("c", "1"));
        let responses = state.map(|_| BTreeMap::from([("k".to_owned(), json!({"action": "accept"}))]));
        let request = RequestDraft {
            id: 7,
            method: "tools/call",
            params,
            options,
            responses: responses.as_ref(),
            state,
            task: None,
        };
        let mut out = Vec::new();
        request.encode_request(&mut out, revision.rules(), &fixed_meta(&config, revision.rules()));
        serde_json::from_slice(&out)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)))
    }

    #[test]
    fn session_requests_have_no_meta() {
        let options = CallOptions { log_level: Some(LogLevel::Debug), ..CallOptions::default() };
        for params in ["{}", " { } ", ""] {
            assert_eq!(
                written(Revision::V2025_06_18, params, &options, None),
                json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {}})
            );
        }
    }

    #[test]
    fn stateless_requests_describe_the_client_in_meta() {
        let mut options =
            CallOptions { log_level: Some(LogLevel::Debug), progress: true, ..CallOptions::default() };
        options.meta = JsonObject::from_iter([
            ("traceparent".to_owned(), json!("00")),
            (keys::PROTOCOL_VERSION.to_owned(), json!("mine")),
            (keys::PROGRESS_TOKEN.to_owned(), json!("mine")),
        ]);
        let params = r#"{"name":"a","arguments":{"x":[1,{}]}}"#;
        assert_eq!(
            written(Revision::V2026_07_28, params, &options, Some("s\"t"))["params"],
            json!({
                "_meta": {
                    keys::PROTOCOL_VERSION: "2026-07-28", keys::CLIENT_CAPABILITIES: {},
                    keys::CLIENT_INFO: {"name": "c", "version": "1"},
                    keys::LOG_LEVEL: "debug", "progressToken": 7, "traceparent": "00",
                },
                "inputResponses": {"k": {"action": "accept"}},
                "requestState": "s\"t",
                "name": "a", "arguments": {"x": [1, {}]},
            })
        );
    }
}
