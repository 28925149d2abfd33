//! Completion: proposals for the value of an argument while a user types.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::{Extra, JsonObject, RequestMeta, ResultMeta, ResultType, union};

/// Parameters of `completion/complete`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteParams {
    /// Whose argument it is.
    #[serde(rename = "ref")]
    pub reference: CompletionRef,
    /// The argument and what was typed so far.
    pub argument: CompletionArgument,
    /// What is known besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<RequestMeta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Whose argument is completed, told apart by `type`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum CompletionRef {
    /// A prompt's.
    #[serde(rename = "ref/prompt")]
    Prompt(PromptReference),
    /// A resource template's.
    #[serde(rename = "ref/resource")]
    Resource(ResourceTemplateReference),
}

impl<'de> Deserialize<'de> for CompletionRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut reference = JsonObject::deserialize(deserializer)?;
        let kind: String = union::take_string(&mut reference, "type", "completion reference")?;
        match kind.as_str() {
            "ref/prompt" => union::rest(reference, "prompt reference").map(Self::Prompt),
            "ref/resource" => union::rest(reference, "resource reference").map(Self::Resource),
            _ => Err(de::Error::custom(format_args!(
                "`type` of completion reference must be `ref/prompt` or `ref/resource`, not {kind:?}"
            ))),
        }
    }
}

/// A prompt, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptReference {
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A resource template, by its template or one address of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplateReference {
    /// The template or address.
    pub uri: String,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An argument and what was typed so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionArgument {
    /// The argument.
    pub name: String,
    /// What was typed so far.
    pub value: String,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What is known besides the argument that is being typed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionContext {
    /// The arguments that already have a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The answer to `completion/complete`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteResult {
    /// The proposals.
    pub completion: Completion,
    /// What kind of result this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<ResultMeta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CompleteResult {
    /// An answer with these proposals.
    pub fn new(completion: Completion) -> Self {
        Self { completion, ..Self::default() }
    }
}

/// Proposals for a value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// The proposals, at most [`Completion::MAX_VALUES`].
    pub values: Vec<String>,
    /// How many there are in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more than were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Completion {
    /// How many proposals one answer may carry.
    pub const MAX_VALUES: usize = 100;

    /// The first proposals that fit into an answer; says how many there are and whether some were left out.
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut values: Vec<String> = values.into_iter().map(Into::into).collect();
        let total = values.len();
        values.truncate(Self::MAX_VALUES);
        Self {
            values,
            total: u64::try_from(total).ok(),
            has_more: Some(total > Self::MAX_VALUES),
            extra: Extra::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_told_apart_by_type() {
        let json = json!({"type": "ref/resource", "uri": "a:{b}", "x": 1});
        let reference: CompletionRef = serde_json::from_value(json.clone()).unwrap();
        assert!(matches!(reference, CompletionRef::Resource(_)));
        assert_eq!(serde_json::to_value(&reference).unwrap(), json);
        let error = serde_json::from_value::<CompletionRef>(json!({"type": "ref/tool", "name": "t"}));
        assert!(error.unwrap_err().to_string().contains("`type`"));
    }

    #[test]
    fn an_answer_holds_a_hundred_values() {
        let completion = Completion::new((0..101).map(|n| n.to_string()));
        assert_eq!((completion.values.len(), completion.total), (100, Some(101)));
        assert_eq!(completion.has_more, Some(true));
    }
}
