//! Tools: what a server lets a model do.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::model::{
    ContentBlock, Extra, Icon, InputResponses, JsonObject, Meta, RequestMeta, ResultMeta, ResultType,
    TaskMetadata, ToolExecution,
};

json_object! {
    /// A tool. The schemas are shared, since lists are answered often and schemas are large.
    pub struct Tool {
        /// The name to call it by.
        name: String,
        /// The name for people.
        title?: String,
        /// What it does, for the model.
        description?: String,
        /// The JSON Schema of its arguments, with `type: object` at the root.
        input_schema: Arc<JsonObject>,
        /// The JSON Schema of its structured content.
        output_schema?: Arc<JsonObject>,
        /// Hints about its behaviour.
        annotations?: ToolAnnotations,
        /// Pictures of it.
        icons?: Vec<Icon>,
        /// How it is run (2025-11-25).
        execution?: ToolExecution,
        _meta: Meta,
    }
}

impl Tool {
    /// A tool that takes any object; see [`Tool::input_schema`].
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let mut any_object = JsonObject::new();
        any_object.insert("type".to_owned(), Value::from("object"));
        any_object.insert("properties".to_owned(), JsonObject::new().into());
        Self {
            name: name.into(),
            description: Some(description.into()),
            input_schema: Arc::new(any_object),
            ..Self::default()
        }
    }

    /// Sets the JSON Schema of the arguments.
    #[must_use]
    pub fn input_schema(mut self, schema: impl Into<Arc<JsonObject>>) -> Self {
        self.input_schema = schema.into();
        self
    }
}

json_object! {
    /// Hints about a tool's behaviour; a client cannot rely on them unless it trusts the server.
    pub struct ToolAnnotations {
        /// The name for people; [`Tool::title`] goes first.
        title?: String,
        /// It changes nothing; taken as false when absent.
        read_only_hint?: bool,
        /// Its changes may destroy; taken as true when absent.
        destructive_hint?: bool,
        /// Calling it again with the same arguments changes nothing more; taken as false when absent.
        idempotent_hint?: bool,
        /// It reaches out to things beyond the server; taken as true when absent.
        open_world_hint?: bool,
        /// Hints that say nothing yet.
        fn new,
    }
}

impl ToolAnnotations {
    /// Says whether it changes nothing.
    #[must_use]
    pub fn read_only(self, yes: bool) -> Self {
        self.read_only_hint(yes)
    }

    /// Says whether its changes may destroy.
    #[must_use]
    pub fn destructive(self, yes: bool) -> Self {
        self.destructive_hint(yes)
    }

    /// Says whether calling it again changes nothing more.
    #[must_use]
    pub fn idempotent(self, yes: bool) -> Self {
        self.idempotent_hint(yes)
    }

    /// Says whether it reaches out to things beyond the server.
    #[must_use]
    pub fn open_world(self, yes: bool) -> Self {
        self.open_world_hint(yes)
    }
}

json_object! {
    /// One page of the tools.
    pub struct ListToolsResult {
        /// The tools.
        tools: Vec<Tool>,
        /// Where the next page starts; absent on the last page.
        next_cursor?: String,
        ..cacheable_result,
        /// A page, the last one until `next_cursor` is set.
        fn new,
    }

    /// Parameters of `tools/call`.
    pub struct CallToolParams {
        /// The tool.
        name: String,
        /// The arguments.
        arguments?: JsonObject,
        /// Answers to what an earlier round asked.
        input_responses?: InputResponses,
        /// The state an earlier round handed out.
        request_state?: String,
        /// That the call is to become a task (2025-11-25).
        task?: TaskMetadata,
        _meta: RequestMeta,
    }

    /// What a tool answered. A failure of the tool itself is an answer too, so that the model can see it.
    ///
    /// Every revision demands `content`. Reading does without where there is `structuredContent`: it is the same answer
    /// as data, and the client's engine has noted what is missing.
    #[serde(try_from = "ReadCallToolResult")]
    pub struct CallToolResult {
        /// The answer for the model.
        content: Vec<ContentBlock>,
        /// The answer as data; any JSON value. Reading takes `null` for absent, as everywhere.
        structured_content?: Value,
        /// Whether the tool failed.
        is_error?: bool,
        ..result
    }
}

/// A tool's answer as it is read, before it is known whether there is anything in it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadCallToolResult {
    content: Option<Vec<ContentBlock>>,
    structured_content: Option<Value>,
    is_error: Option<bool>,
    result_type: Option<ResultType>,
    #[serde(rename = "_meta")]
    meta: Option<ResultMeta>,
    #[serde(flatten)]
    extra: Extra,
}

impl TryFrom<ReadCallToolResult> for CallToolResult {
    type Error = &'static str;

    fn try_from(read: ReadCallToolResult) -> Result<Self, Self::Error> {
        let ReadCallToolResult { content, structured_content, is_error, result_type, meta, extra } = read;
        if content.is_none() && structured_content.is_none() {
            return Err("missing field `content`");
        }
        let content = content.unwrap_or_default();
        Ok(Self { content, structured_content, is_error, result_type, meta, extra })
    }
}

impl CallToolResult {
    /// An answer of these blocks.
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self { content, ..Self::default() }
    }

    /// An answer of one block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![ContentBlock::text(text)])
    }

    /// A failure, told to the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self::text(text).is_error(true)
    }

    /// An answer as data, with the same data as text for clients that only read blocks.
    pub fn structured(value: Value) -> Self {
        Self::text(value.to_string()).structured_content(value)
    }

    /// Adds a block.
    #[must_use]
    pub fn block(mut self, block: impl Into<ContentBlock>) -> Self {
        self.content.push(block.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_result_needs_content_or_structured_content() {
        let read = |value: Value| serde_json::from_value::<CallToolResult>(value);
        let data = read(json!({ "structuredContent": { "n": 1 }, "isError": false })).unwrap();
        assert_eq!((data.content.len(), data.structured_content), (0, Some(json!({ "n": 1 }))));
        assert!(read(json!({ "content": null, "structuredContent": 1 })).is_ok());
        assert!(read(json!({ "content": [] })).is_ok());
        for nothing in [json!({}), json!({ "isError": false }), json!({ "structuredContent": null })] {
            let error = read(nothing).unwrap_err();
            assert!(error.to_string().contains("content"), "{error}");
        }
        let more = read(json!({ "content": [], "more": 1 })).unwrap();
        assert_eq!(more.extra.get("more"), Some(&json!(1)));
    }
}
