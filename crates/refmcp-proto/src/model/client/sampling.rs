//! Sampling: a server asks the client's model for a message.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::model::base::number::write_plain;
use crate::model::{ContentBlock, Extra, JsonObject, Meta, Role, Tool};

json_object! {
    /// Parameters of `sampling/createMessage`.
    pub struct CreateMessageParams {
        /// The messages so far.
        messages: Vec<SamplingMessage>,
        /// How long the answer may become.
        max_tokens: u64,
        /// Which model to take.
        model_preferences?: ModelPreferences,
        /// What the model is told beforehand; the client may change it.
        system_prompt?: String,
        /// Whose context to include.
        include_context?: IncludeContext,
        /// How freely the model picks its words.
        #[serde(serialize_with = "write_plain")]
        temperature?: f64,
        /// Texts that end the answer.
        stop_sequences?: Vec<String>,
        /// Hints for the provider of the model.
        metadata?: JsonObject,
        /// Tools the model may ask for.
        tools?: Vec<Tool>,
        /// Whether the model has to ask for one.
        tool_choice?: ToolChoice,
        _meta: Meta,
    }
}

impl CreateMessageParams {
    /// Messages to continue, and the most tokens of the response.
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: u64) -> Self {
        Self { messages, max_tokens, ..Self::default() }
    }
}

json_object! {
    /// One message.
    pub struct SamplingMessage {
        /// Whose turn it is.
        role: Role,
        /// What is said.
        content: OneOrMany<ContentBlock>,
        _meta: Meta,
        /// A message of either side.
        fn new,
    } without Default
}

impl SamplingMessage {
    /// A text of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, ContentBlock::text(text))
    }

    /// A text of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, ContentBlock::text(text))
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

json_object! {
    /// Which model to take; the client decides.
    pub struct ModelPreferences {
        /// Models that would do, best first.
        hints?: Vec<ModelHint>,
        /// How much cost matters, from 0 to 1.
        #[serde(serialize_with = "write_plain")]
        cost_priority?: f64,
        /// How much speed matters, from 0 to 1.
        #[serde(serialize_with = "write_plain")]
        speed_priority?: f64,
        /// How much ability matters, from 0 to 1.
        #[serde(serialize_with = "write_plain")]
        intelligence_priority?: f64,
    }

    /// A model that would do.
    pub struct ModelHint {
        /// A part of its name.
        name?: String,
    }
}

/// Whose context the client should include.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IncludeContext {
    /// None.
    None,
    /// That of the server that asks.
    ThisServer,
    /// That of all servers.
    AllServers,
}

json_object! {
    /// Whether the model has to ask for a tool.
    pub struct ToolChoice {
        /// Absent means [`ToolChoiceMode::Auto`].
        mode?: ToolChoiceMode,
    }
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

json_object! {
    /// What the model said.
    pub struct CreateMessageResult {
        /// Whose turn it is.
        role: Role,
        /// What is said.
        content: OneOrMany<ContentBlock>,
        /// The model that said it.
        model: String,
        /// Why it ended: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or something else.
        stop_reason?: String,
        _meta: Meta,
    } without Default
}

impl CreateMessageResult {
    /// A model said this.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content: OneOrMany::One(ContentBlock::text(text)),
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
