//! The bodies of the content blocks, each without its `type`, which the union around them writes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::number::write_plain;
use super::{Content, Extra, JsonObject, Meta, ResourceContents};

/// Text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextContent {
    /// The text itself.
    pub text: String,
    /// For whom and how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl TextContent {
    /// A block of text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    setters! {
        /// Sets for whom and how important it is.
        annotations: Annotations,
        /// Sets `_meta`.
        meta: Meta,
    }
}

/// A picture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// The bytes, in base64.
    pub data: String,
    /// The media type.
    pub mime_type: String,
    /// For whom and how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ImageContent {
    /// A picture, in base64.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self { data: data.into(), mime_type: mime_type.into(), ..Self::default() }
    }

    setters! {
        /// Sets for whom and how important it is.
        annotations: Annotations,
        /// Sets `_meta`.
        meta: Meta,
    }
}

/// A sound.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AudioContent {
    /// The bytes, in base64.
    pub data: String,
    /// The media type.
    pub mime_type: String,
    /// For whom and how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl AudioContent {
    /// A sound, in base64.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self { data: data.into(), mime_type: mime_type.into(), ..Self::default() }
    }

    setters! {
        /// Sets for whom and how important it is.
        annotations: Annotations,
        /// Sets `_meta`.
        meta: Meta,
    }
}

/// A resource with its contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddedResource {
    /// The contents.
    pub resource: ResourceContents,
    /// For whom and how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl EmbeddedResource {
    /// A block around the contents of a resource.
    pub fn new(resource: ResourceContents) -> Self {
        Self { resource, annotations: None, meta: None, extra: Extra::new() }
    }

    setters! {
        /// Sets for whom and how important it is.
        annotations: Annotations,
        /// Sets `_meta`.
        meta: Meta,
    }
}

/// A model asks for a tool to be called.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUseContent {
    /// What the answer refers to.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub input: JsonObject,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ToolUseContent {
    /// A call of a tool, under an id.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: JsonObject) -> Self {
        Self { id: id.into(), name: name.into(), input, ..Self::default() }
    }
}

/// What a tool answered to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultContent {
    /// The id of the call.
    pub tool_use_id: String,
    /// The answer.
    pub content: Vec<Content>,
    /// The answer as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ToolResultContent {
    /// The answer to the call with that id.
    pub fn new(tool_use_id: impl Into<String>, content: Vec<Content>) -> Self {
        Self { tool_use_id: tool_use_id.into(), content, ..Self::default() }
    }

    setters! {
        /// Sets the answer as data.
        structured_content: Value,
        /// Sets whether the call failed.
        is_error: bool,
    }
}

/// For whom something is and how important it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Who should see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// From 0, may be left out, to 1, must be read.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "write_plain")]
    pub priority: Option<f64>,
    /// When it last changed, as an ISO 8601 time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Annotations {
    /// Annotations that say nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets who should see it.
        audience: Vec<Role>,
        /// Sets the importance, from 0 to 1.
        priority: f64,
        /// Sets when it last changed.
        last_modified: String,
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
