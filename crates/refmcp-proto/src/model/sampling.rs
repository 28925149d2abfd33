//! Sampling: a server asks the client's model for a message.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::number::write_plain;
use super::{Content, Extra, JsonObject, Meta, Role, Tool};

/// Parameters of `sampling/createMessage`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// How long the answer may become.
    pub max_tokens: u64,
    /// Which model to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// What the model is told beforehand; the client may change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Whose context to include.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// How freely the model picks its words.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "write_plain")]
    pub temperature: Option<f64>,
    /// Texts that end the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Hints for the provider of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// Tools the model may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether the model has to ask for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CreateMessageParams {
    /// A conversation to continue, and how long the answer may become.
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: u64) -> Self {
        Self { messages, max_tokens, ..Self::default() }
    }

    setters! {
        /// Sets which model to take.
        model_preferences: ModelPreferences,
        /// Sets what the model is told beforehand.
        system_prompt: String,
        /// Sets whose context to include.
        include_context: IncludeContext,
        /// Sets how freely the model picks its words.
        temperature: f64,
        /// Sets texts that end the answer.
        stop_sequences: Vec<String>,
        /// Sets hints for the provider of the model.
        metadata: JsonObject,
        /// Sets tools the model may ask for.
        tools: Vec<Tool>,
        /// Sets whether the model has to ask for one.
        tool_choice: ToolChoice,
        /// Sets `_meta`.
        meta: Meta,
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingMessage {
    /// Whose turn it is.
    pub role: Role,
    /// What is said.
    pub content: OneOrMany<Content>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl SamplingMessage {
    /// A message of either side.
    pub fn new(role: Role, content: impl Into<OneOrMany<Content>>) -> Self {
        Self { role, content: content.into(), meta: None, extra: Extra::new() }
    }

    /// A text of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, Content::text(text))
    }

    /// A text of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, Content::text(text))
    }
}

/// One value or a list of them; what was read as one is written as one, since older revisions know no lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// One, not in a list.
    One(T),
    /// A list, of any length.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// The values, however they are written.
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }

    /// The values, however they were written.
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(value) => vec![value],
            Self::Many(values) => values,
        }
    }
}

impl<T> From<T> for OneOrMany<T> {
    fn from(value: T) -> Self {
        Self::One(value)
    }
}

impl<T> From<Vec<T>> for OneOrMany<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Many(values)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = OneOrMany<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or an array of objects")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(OneOrMany::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(OneOrMany::Many)
            }
        }

        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// Which model to take; the client decides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPreferences {
    /// Models that would do, best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// How much cost matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "write_plain")]
    pub cost_priority: Option<f64>,
    /// How much speed matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "write_plain")]
    pub speed_priority: Option<f64>,
    /// How much ability matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "write_plain")]
    pub intelligence_priority: Option<f64>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A model that would do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelHint {
    /// A part of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Whose context the client should include.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IncludeContext {
    /// Nobody's.
    None,
    /// That of the server that asks.
    ThisServer,
    /// That of all servers.
    AllServers,
}

/// Whether the model has to ask for a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolChoice {
    /// Absent means [`ToolChoiceMode::Auto`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Whether the model has to ask for a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoiceMode {
    /// As it likes.
    Auto,
    /// It has to.
    Required,
    /// It must not.
    None,
}

impl From<ToolChoiceMode> for ToolChoice {
    fn from(mode: ToolChoiceMode) -> Self {
        Self { mode: Some(mode), extra: Extra::new() }
    }
}

/// What the model said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageResult {
    /// Whose turn it is.
    pub role: Role,
    /// What is said.
    pub content: OneOrMany<Content>,
    /// The model that said it.
    pub model: String,
    /// Why it ended: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CreateMessageResult {
    /// A model said this.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content: OneOrMany::One(Content::text(text)),
            model: model.into(),
            stop_reason: None,
            meta: None,
            extra: Extra::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_stays_one_and_many_stay_many() {
        let block = json!({"type": "text", "text": "t"});
        for content in [block.clone(), json!([block]), json!([])] {
            let json = json!({"role": "user", "content": content});
            let message: SamplingMessage = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(serde_json::to_value(&message).unwrap(), json);
        }
        let error = serde_json::from_value::<SamplingMessage>(json!({"role": "user", "content": "t"}));
        assert!(error.unwrap_err().to_string().contains("an object or an array"));
    }
}
