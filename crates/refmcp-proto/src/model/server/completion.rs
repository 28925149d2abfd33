//! Completion: proposals for the value of an argument while a user types.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::model::base::union;
use crate::model::{Extra, JsonObject, RequestMeta};

json_object! {
    /// Parameters of `completion/complete`.
    pub struct CompleteParams {
        /// Whose argument it is.
        #[serde(rename = "ref")]
        reference: CompletionRef,
        /// The argument and what was typed so far.
        argument: CompletionArgument,
        /// What is known besides.
        context?: CompletionContext,
        _meta: RequestMeta,
    } without Default
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

json_object! {
    /// A prompt, by name.
    pub struct PromptReference {
        /// The name for programs.
        name: String,
        /// The name for people.
        title?: String,
        /// A prompt, by name.
        fn new,
    }

    /// A resource template, by its template or one address of it.
    pub struct ResourceTemplateReference {
        /// The template or address.
        uri: String,
        /// A resource template.
        fn new,
    }

    /// An argument and what was typed so far.
    pub struct CompletionArgument {
        /// The argument.
        name: String,
        /// What was typed so far.
        value: String,
        /// An argument, and what was typed of it.
        fn new,
    }

    /// What is known besides the argument that is being typed.
    pub struct CompletionContext {
        /// The arguments that already have a value.
        arguments?: BTreeMap<String, String>,
    }

    /// The answer to `completion/complete`.
    pub struct CompleteResult {
        /// The proposals.
        completion: Completion,
        ..result,
        /// An answer with these proposals.
        fn new,
    }

    /// Proposals for a value.
    pub struct Completion {
        /// The proposals, at most [`Completion::MAX_VALUES`].
        values: Vec<String>,
        /// How many there are in all.
        total?: u64,
        /// Whether there are more than were sent.
        has_more?: bool,
    }
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
    fn a_completion_has_at_most_a_hundred_values() {
        let completion = Completion::new((0..101).map(|n| n.to_string()));
        assert_eq!((completion.values.len(), completion.total), (100, Some(101)));
        assert_eq!(completion.has_more, Some(true));
    }
}
