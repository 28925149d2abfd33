//! What a client remembers of a server: results that may be kept, and what lists said of tools.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::model::{JsonObject, ServerNotification, Tool};
use refmcp_proto::param_headers::{ParamHeader, param_headers};
use refmcp_proto::schema::SchemaValidator;
use refmcp_proto::time::Timestamp;
use serde_json::Value;

/// Bytes of results that are kept at the most.
const MOST_BYTES: usize = 8 << 20;

/// Tools whose schemas are kept at the most.
const MOST_TOOLS: usize = 10_000;

/// Longer than this no result is kept, whatever its server says.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What is known of one server.
#[derive(Debug, Default)]
pub(crate) struct ResponseCache {
    results: HashMap<(Arc<str>, Box<str>), Kept>,
    bytes: usize,
    tools: HashMap<String, Arc<CachedTool>>,
}

#[derive(Debug)]
struct Kept {
    text: Arc<str>,
    until: Timestamp,
}

/// What is known of one tool.
#[derive(Debug)]
pub(crate) struct CachedTool {
    mirrored: Vec<ParamHeader>,
    /// What its structured output keeps to; or why that cannot be said.
    output: Option<Result<SchemaValidator, String>>,
}

impl ResponseCache {
    /// A result that is still fresh.
    pub(crate) fn find(&self, now: Timestamp, method: &Arc<str>, params: &str) -> Option<Arc<str>> {
        let kept = self.results.get(&(method.clone(), params.into()))?;
        (now < kept.until).then(|| kept.text.clone())
    }

    /// Keeps a result for as long as its server allows.
    pub(crate) fn keep(&mut self, now: Timestamp, method: &Arc<str>, params: &str, text: &str) {
        let ttl = Duration::from_millis(ttl(text)).min(LONGEST);
        if ttl.is_zero() || text.len() > MOST_BYTES / 4 {
            return;
        }
        if self.bytes + text.len() > MOST_BYTES {
            self.forget(|_, kept| now >= kept.until);
        }
        if self.bytes + text.len() > MOST_BYTES {
            self.forget(|_, _| true);
        }
        let kept = Kept { text: text.into(), until: now + ttl };
        self.bytes += text.len();
        if let Some(old) = self.results.insert((method.clone(), params.into()), kept) {
            self.bytes -= old.text.len();
        }
    }

    /// What changed is asked for again.
    pub(crate) fn heard(&mut self, told: &ServerNotification) {
        match told {
            ServerNotification::ToolsListChanged(_) => self.forget(|method, _| method == "tools/list"),
            ServerNotification::PromptsListChanged(_) => self.forget(|method, _| method == "prompts/list"),
            ServerNotification::ResourcesListChanged(_) => {
                self.forget(|method, _| matches!(method, "resources/list" | "resources/templates/list"));
            }
            ServerNotification::ResourceUpdated(_) => self.forget(|method, _| method == "resources/read"),
            _ => {}
        }
    }

    /// Forgets the pages of a list.
    pub(crate) fn forget_list(&mut self, list: &str) {
        self.forget(|method, _| method == list);
    }

    /// Forgets every result.
    pub(crate) fn forget_all(&mut self) {
        self.forget(|_, _| true);
    }

    fn forget(&mut self, is_old: impl Fn(&str, &Kept) -> bool) {
        let bytes = &mut self.bytes;
        self.results.retain(|(method, _), kept| {
            let old = is_old(method, kept);
            if old {
                *bytes -= kept.text.len();
            }
            !old
        });
    }

    /// Takes note of a tool that was listed.
    ///
    /// # Errors
    /// Why the tool cannot be called over HTTP: headers cannot repeat what its schema wants them to.
    pub(crate) fn note(&mut self, tool: &Tool) -> Result<(), String> {
        let mirrored = param_headers(&tool.input_schema)?;
        if self.tools.len() < MOST_TOOLS || self.tools.contains_key(&tool.name) {
            let output = tool.output_schema.as_ref().map(|schema| SchemaValidator::compile(schema));
            self.tools.insert(tool.name.clone(), Arc::new(CachedTool { mirrored, output }));
        }
        Ok(())
    }

    /// What is known of a tool.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<CachedTool>> {
        self.tools.get(name).cloned()
    }
}

impl CachedTool {
    /// What headers say of these arguments.
    pub(crate) fn mirrored(&self, arguments: &JsonObject) -> Vec<(String, String)> {
        let said = |header: &ParamHeader| Some((header.name.clone(), header.value(arguments)?));
        self.mirrored.iter().filter_map(said).collect()
    }

    /// Whether its output has a schema.
    pub(crate) fn has_output(&self) -> bool {
        self.output.is_some()
    }

    /// What is wrong with the tool's output; an error needs none.
    pub(crate) fn check_output(&self, output: Option<&Value>, is_error: bool) -> Result<(), String> {
        match (&self.output, output) {
            (None, _) => Ok(()),
            (Some(_), None) if is_error => Ok(()),
            (Some(_), None) => Err("there is none".to_owned()),
            (Some(Ok(schema)), Some(output)) => schema.validate(output),
            (Some(Err(why)), Some(_)) => Err(format!("the schema cannot be used: {why}")),
        }
    }
}

/// How many milliseconds a result says that it stays fresh.
fn ttl(text: &str) -> u64 {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Hints {
        ttl_ms: Option<Value>,
    }
    if !text.contains("ttlMs") {
        return 0;
    }
    let hints = serde_json::from_str::<Hints>(text).ok();
    hints.and_then(|hints| hints.ttl_ms?.as_u64()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn results_are_kept_as_long_as_the_server_says() {
        let mut cache = ResponseCache::default();
        let list: Arc<str> = "tools/list".into();
        cache.keep(NOW, &list, "{}", r#"{"tools":[],"ttlMs":500}"#);
        assert!(cache.find(at(1_499), &list, "{}").is_some());
        assert_eq!(cache.find(at(1_500), &list, "{}"), None);
        assert_eq!(cache.find(NOW, &list, r#"{"cursor":"2"}"#), None, "another page");
        for text in ["{}", r#"{"ttlMs":-1}"#, r#"{"ttlMs":"500"}"#, r#"{"tools":[{"ttlMs":500}]}"#] {
            cache.forget_all();
            cache.keep(NOW, &list, "{}", text);
            assert_eq!(cache.find(NOW, &list, "{}"), None, "{text}");
        }
    }

    #[test]
    fn what_changes_is_forgotten() {
        let mut cache = ResponseCache::default();
        for method in ["tools/list", "prompts/list", "resources/read"] {
            cache.keep(NOW, &method.into(), "{}", r#"{"ttlMs":5000}"#);
        }
        cache.heard(&ServerNotification::ToolsListChanged(Default::default()));
        cache.heard(&ServerNotification::ResourceUpdated(refmcp_proto::model::ResourceUpdatedParams::new(
            "a:b",
        )));
        let left: Vec<_> = cache.results.keys().map(|(method, _)| &**method).collect();
        assert_eq!((left, cache.bytes), (vec!["prompts/list"], r#"{"ttlMs":5000}"#.len()));
    }

    #[test]
    fn what_is_kept_has_a_limit() {
        let mut cache = ResponseCache::default();
        let text = format!(r#"{{"ttlMs":5000,"x":"{}"}}"#, "x".repeat(1 << 20));
        for page in 0..100 {
            cache.keep(NOW, &"tools/list".into(), &page.to_string(), &text);
            assert!(cache.bytes <= MOST_BYTES);
        }
        assert!(cache.find(NOW, &"tools/list".into(), "99").is_some(), "the newest is there");
    }

    #[test]
    fn output_keeps_to_its_schema() {
        let mut cache = ResponseCache::default();
        let schema = json!({ "type": "object", "required": ["n"] });
        let tool: Tool = serde_json::from_value(
            json!({ "name": "t", "inputSchema": { "type": "object" }, "outputSchema": schema }),
        )
        .unwrap();
        cache.note(&tool).unwrap();
        let notes = cache.tool("t").unwrap();
        assert!(notes.check_output(Some(&json!({ "n": 1 })), false).is_ok());
        assert!(notes.check_output(Some(&json!({})), false).is_err());
        assert!(notes.check_output(None, false).is_err());
        assert!(notes.check_output(None, true).is_ok(), "a failure has nothing to say");
    }
}
