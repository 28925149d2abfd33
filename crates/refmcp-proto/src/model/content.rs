//! Content: what tools return, what prompts are made of and what a model reads and writes.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::model::base::number::write_plain;
use crate::model::base::union;
use crate::model::{JsonObject, Meta, Resource, ResourceContents};

/// A content block, told apart by its `type`.
///
/// The structs inside do not hold the `type` themselves, so a block cannot contradict its variant.
///
/// To add a content block: a variant here, a rule in `revision/rules.rs` that says which revisions have it, what older
/// clients get instead in `revision/downgrade/results.rs`, and how people see it in `refmcp/src/ui/render/content.rs`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(ImageContent),
    /// A sound.
    Audio(AudioContent),
    /// A resource to be read elsewhere.
    ResourceLink(Resource),
    /// A resource with its contents.
    Resource(EmbeddedResource),
    /// A model asks for a tool to be called (sampling only).
    ToolUse(ToolUseContent),
    /// What the tool answered (sampling only).
    ToolResult(ToolResultContent),
    /// A block of a type this model does not know, with its `type`, as it came.
    #[serde(untagged)]
    Unknown(JsonObject),
}

impl ContentBlock {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// A picture, in base64.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// A sound, in base64.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(data, mime_type))
    }

    /// A pointer to a resource.
    pub fn link(resource: Resource) -> Self {
        Self::ResourceLink(resource)
    }

    /// A resource with its contents.
    pub fn embedded(resource: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource::new(resource))
    }

    /// The `type` on the wire; empty for an unknown block that has none.
    pub fn kind(&self) -> &str {
        match self {
            Self::Text(_) => "text",
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::ResourceLink(_) => "resource_link",
            Self::Resource(_) => "resource",
            Self::ToolUse(_) => "tool_use",
            Self::ToolResult(_) => "tool_result",
            Self::Unknown(block) => block.get("type").and_then(Value::as_str).unwrap_or_default(),
        }
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// Sets for whom and how important the block is; blocks that cannot say so stay as they are.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        match &mut self {
            Self::Text(block) => block.annotations = Some(annotations),
            Self::Image(block) => block.annotations = Some(annotations),
            Self::Audio(block) => block.annotations = Some(annotations),
            Self::ResourceLink(block) => block.annotations = Some(annotations),
            Self::Resource(block) => block.annotations = Some(annotations),
            Self::ToolUse(_) | Self::ToolResult(_) | Self::Unknown(_) => {}
        }
        self
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut block = JsonObject::deserialize(deserializer)?;
        let kind: String = union::take_string(&mut block, "type", "content block")?;
        match kind.as_str() {
            "text" => union::rest(block, "text block").map(Self::Text),
            "image" => union::rest(block, "image block").map(Self::Image),
            "audio" => union::rest(block, "audio block").map(Self::Audio),
            "resource_link" => union::rest(block, "resource_link block").map(Self::ResourceLink),
            "resource" => union::rest(block, "resource block").map(Self::Resource),
            "tool_use" => union::rest(block, "tool_use block").map(Self::ToolUse),
            "tool_result" => union::rest(block, "tool_result block").map(Self::ToolResult),
            _ => {
                block.insert("type".to_owned(), Value::String(kind));
                Ok(Self::Unknown(block))
            }
        }
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

json_object! {
    /// Text.
    pub struct TextContent {
        /// The text itself.
        text: String,
        /// For whom and how important.
        annotations?: Annotations,
        _meta: Meta,
        /// A block of text.
        fn new,
    }

    /// A picture.
    pub struct ImageContent {
        /// The bytes, in base64.
        data: String,
        /// The media type.
        mime_type: String,
        /// For whom and how important.
        annotations?: Annotations,
        _meta: Meta,
        /// A picture, in base64.
        fn new,
    }

    /// A sound.
    pub struct AudioContent {
        /// The bytes, in base64.
        data: String,
        /// The media type.
        mime_type: String,
        /// For whom and how important.
        annotations?: Annotations,
        _meta: Meta,
        /// A sound, in base64.
        fn new,
    }

    /// A resource with its contents.
    pub struct EmbeddedResource {
        /// The contents.
        resource: ResourceContents,
        /// For whom and how important.
        annotations?: Annotations,
        _meta: Meta,
        /// A block around the contents of a resource.
        fn new,
    } without Default

    /// A model asks for a tool to be called.
    pub struct ToolUseContent {
        /// What the answer refers to.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        input: JsonObject,
        _meta: Meta,
        /// A call of a tool, under an id.
        fn new,
    }

    /// What a tool answered to a model.
    pub struct ToolResultContent {
        /// The id of the call.
        tool_use_id: String,
        /// The answer.
        content: Vec<ContentBlock>,
        /// The answer as data.
        structured_content?: Value,
        /// Whether the call failed.
        is_error?: bool,
        _meta: Meta,
        /// The answer to the call with that id.
        fn new,
    }

    /// For whom something is and how important it is.
    pub struct Annotations {
        /// Who should see it.
        audience?: Vec<Role>,
        /// From 0, may be left out, to 1, must be read.
        #[serde(serialize_with = "write_plain")]
        priority?: f64,
        /// When it last changed, as an ISO 8601 time.
        last_modified?: String,
        /// Annotations that say nothing yet.
        fn new,
    }
}

/// Whose turn a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: Value) -> Result<ContentBlock, String> {
        serde_json::from_value(json).map_err(|error| error.to_string())
    }

    #[test]
    fn unknown_blocks_and_members_survive() {
        for json in [
            json!({"type": "video", "data": "", "n": 1}),
            json!({"type": "text", "text": "t", "later": [1], "_meta": {"a/b": null}}),
            json!({"type": "tool_result", "toolUseId": "1", "content": [{"type": "hologram"}]}),
            json!({"type": "text", "text": "t", "annotations": {"priority": 1, "audience": ["user"]}}),
        ] {
            let content = read(json.clone()).unwrap();
            assert_eq!(content.kind(), json["type"].as_str().unwrap());
            assert_eq!(serde_json::to_value(&content).unwrap(), json);
        }
    }

    #[test]
    fn the_discriminator_is_named_when_wrong() {
        assert!(read(json!({"text": "t"})).unwrap_err().contains("`type`"));
        assert!(read(json!({"type": 1})).unwrap_err().contains("`type`"));
        let error = read(json!({"type": "image", "data": ""})).unwrap_err();
        assert!(error.contains("image block") && error.contains("mimeType"), "{error}");
    }

    #[test]
    fn the_type_comes_first() {
        assert_eq!(serde_json::to_string(&ContentBlock::text("x")).unwrap(), r#"{"type":"text","text":"x"}"#);
    }
}
