//! The cache of results with a `ttlMs`, and of the schemas of listed tools.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::model::{JsonObject, ServerNotification, TaskSupport, Tool};
use refmcp_proto::param_headers::{ParamHeader, param_headers};
use refmcp_proto::revision::Method;
use refmcp_proto::schema::{SchemaError, SchemaValidator};
use refmcp_proto::time::Timestamp;
use serde_json::Value;

/// Bytes of all cached results.
const MAX_BYTES: usize = 8 << 20;

/// Tools whose schemas are cached.
const MAX_TOOLS: usize = 10_000;

/// No result is cached for longer, whatever its server says.
const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The cache of one server.
#[derive(Default)]
pub(crate) struct ResponseCache {
    results: HashMap<(Arc<str>, Box<str>), CachedResult>,
    bytes: usize,
    tools: HashMap<String, Arc<CachedTool>>,
}

struct CachedResult {
    text: Arc<str>,
    until: Timestamp,
}

/// The schemas of a listed tool.
pub(crate) struct CachedTool {
    mirrored: Vec<ParamHeader>,
    task_support: Option<TaskSupport>,
    /// The output schema, or why it cannot be used.
    output: Option<Result<SchemaValidator, SchemaError>>,
}

impl ResponseCache {
    /// A result that is still fresh.
    pub(crate) fn get(&self, now: Timestamp, method: &Arc<str>, params: &str) -> Option<Arc<str>> {
        let kept = self.results.get(&(method.clone(), params.into()))?;
        (now < kept.until).then(|| kept.text.clone())
    }

    /// Caches a result for as long as its server allows.
    pub(crate) fn insert(&mut self, now: Timestamp, method: &Arc<str>, params: &str, text: &str) {
        let ttl = Duration::from_millis(ttl(text)).min(MAX_TTL);
        if ttl.is_zero() || text.len() > MAX_BYTES / 4 {
            return;
        }
        if self.bytes + text.len() > MAX_BYTES {
            self.remove_if(|_, kept| now >= kept.until);
        }
        if self.bytes + text.len() > MAX_BYTES {
            self.remove_if(|_, _| true);
        }
        let kept = CachedResult { text: text.into(), until: now + ttl };
        self.bytes += text.len();
        if let Some(old) = self.results.insert((method.clone(), params.into()), kept) {
            self.bytes -= old.text.len();
        }
    }

    /// Drops what a notification says has changed.
    pub(crate) fn invalidate(&mut self, notification: &ServerNotification) {
        match notification {
            ServerNotification::ToolsListChanged(_) => self.invalidate_list(Method::ListTools.name()),
            ServerNotification::PromptsListChanged(_) => self.invalidate_list(Method::ListPrompts.name()),
            ServerNotification::ResourcesListChanged(_) => {
                self.invalidate_list(Method::ListResources.name());
                self.invalidate_list(Method::ListResourceTemplates.name());
                // No notification is defined for skills; their files are resources.
                self.invalidate_list(Method::ListSkills.name());
            }
            ServerNotification::ResourceUpdated(_) => {
                self.invalidate_list(Method::ReadResource.name());
                self.invalidate_list(Method::ListSkills.name());
            }
            _ => {}
        }
    }

    /// Drops the pages of a list.
    pub(crate) fn invalidate_list(&mut self, list: &str) {
        self.remove_if(|method, _| method == list);
    }

    /// Drops all results.
    pub(crate) fn clear(&mut self) {
        self.remove_if(|_, _| true);
    }

    fn remove_if(&mut self, is_old: impl Fn(&str, &CachedResult) -> bool) {
        let bytes = &mut self.bytes;
        self.results.retain(|(method, _), kept| {
            let old = is_old(method, kept);
            if old {
                *bytes -= kept.text.len();
            }
            !old
        });
    }

    /// Caches the schemas of a listed tool.
    ///
    /// # Errors
    /// Why the tool cannot be called over HTTP: its `x-mcp-header` annotations are invalid.
    pub(crate) fn insert_tool(&mut self, tool: &Tool) -> Result<(), String> {
        let mirrored = param_headers(&tool.input_schema)?;
        if self.tools.len() < MAX_TOOLS || self.tools.contains_key(&tool.name) {
            let output = tool.output_schema.as_ref().map(|schema| SchemaValidator::compile(schema));
            let task_support = tool.execution.as_ref().and_then(|execution| execution.task_support.clone());
            self.tools.insert(tool.name.clone(), Arc::new(CachedTool { mirrored, task_support, output }));
        }
        Ok(())
    }

    pub(crate) fn tool(&self, name: &str) -> Option<Arc<CachedTool>> {
        self.tools.get(name).cloned()
    }
}

impl CachedTool {
    /// The headers that repeat these arguments.
    pub(crate) fn mirrored(&self, arguments: &JsonObject) -> Vec<(String, String)> {
        let said = |header: &ParamHeader| Some((header.name.clone(), header.value(arguments)?));
        self.mirrored.iter().filter_map(said).collect()
    }

    /// Whether calls become tasks where the client asks for it (2025-11-25).
    pub(crate) fn task_support(&self) -> Option<&TaskSupport> {
        self.task_support.as_ref()
    }

    /// True if there is an output schema.
    pub(crate) fn has_output(&self) -> bool {
        self.output.is_some()
    }

    /// Checks the structured output of a tool; a failed tool needs none.
    pub(crate) fn check_output(&self, output: Option<&Value>, is_error: bool) -> Result<(), SchemaError> {
        match (&self.output, output) {
            (None, _) => Ok(()),
            (Some(_), None) if is_error => Ok(()),
            (Some(_), None) => Err(SchemaError::Invalid("there is none".to_owned())),
            (Some(Ok(schema)), Some(output)) => schema.validate(output),
            (Some(Err(SchemaError::Invalid(why))), Some(_)) => {
                Err(SchemaError::Invalid(format!("the schema cannot be used: {why}")))
            }
            (Some(Err(too_much)), Some(_)) => Err(too_much.clone()),
        }
    }
}

/// The `ttlMs` of a result.
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
    fn results_are_cached_for_their_ttl() {
        let mut cache = ResponseCache::default();
        let list: Arc<str> = "tools/list".into();
        cache.insert(NOW, &list, "{}", r#"{"tools":[],"ttlMs":500}"#);
        assert!(cache.get(at(1_499), &list, "{}").is_some());
        assert_eq!(cache.get(at(1_500), &list, "{}"), None);
        assert_eq!(cache.get(NOW, &list, r#"{"cursor":"2"}"#), None, "another page");
        for text in ["{}", r#"{"ttlMs":-1}"#, r#"{"ttlMs":"500"}"#, r#"{"tools":[{"ttlMs":500}]}"#] {
            cache.clear();
            cache.insert(NOW, &list, "{}", text);
            assert_eq!(cache.get(NOW, &list, "{}"), None, "{text}");
        }
    }

    #[test]
    fn notifications_of_changes_drop_results() {
        let mut cache = ResponseCache::default();
        for method in ["tools/list", "prompts/list", "resources/read"] {
            cache.insert(NOW, &method.into(), "{}", r#"{"ttlMs":5000}"#);
        }
        cache.invalidate(&ServerNotification::ToolsListChanged(Default::default()));
        cache.invalidate(&ServerNotification::ResourceUpdated(
            refmcp_proto::model::ResourceUpdatedParams::new("a:b"),
        ));
        let left: Vec<_> = cache.results.keys().map(|(method, _)| &**method).collect();
        assert_eq!((left, cache.bytes), (vec!["prompts/list"], r#"{"ttlMs":5000}"#.len()));
    }

    #[test]
    fn the_cache_has_a_limit_of_bytes() {
        let mut cache = ResponseCache::default();
        let text = format!(r#"{{"ttlMs":5000,"x":"{}"}}"#, "x".repeat(1 << 20));
        for page in 0..100 {
            cache.insert(NOW, &"tools/list".into(), &page.to_string(), &text);
            assert!(cache.bytes <= MAX_BYTES);
        }
        assert!(cache.get(NOW, &"tools/list".into(), "99").is_some(), "the newest is there");
    }

    #[test]
    fn structured_output_is_checked_against_its_schema() {
        let mut cache = ResponseCache::default();
        let schema = json!({ "type": "object", "required": ["n"] });
        let tool: Tool = serde_json::from_value(
            json!({ "name": "t", "inputSchema": { "type": "object" }, "outputSchema": schema }),
        )
        .unwrap();
        cache.insert_tool(&tool).unwrap();
        let notes = cache.tool("t").unwrap();
        assert!(notes.check_output(Some(&json!({ "n": 1 })), false).is_ok());
        assert!(notes.check_output(Some(&json!({})), false).is_err());
        assert!(notes.check_output(None, false).is_err());
        assert!(notes.check_output(None, true).is_ok(), "a failure has nothing to say");
    }
}
