//! Questions to the client, each with the type of its answer.

use std::fmt;
use std::marker::PhantomData;

use refmcp_proto::model::{
    BooleanSchema, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitParams,
    ElicitResult, ElicitUrlParams, FieldSchema, FormSchema, InputRequest, JsonObject, ListRootsResult, Root,
    SamplingMessage,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A question to the client, whose answer is an `A`.
///
/// ```
/// use refmcp_server::{Question, model::StringSchema};
///
/// let name = Question::form("Who are you?").required("name", StringSchema::new());
/// let sure = Question::confirm("Delete everything?");
/// # let _ = (name, sure);
/// ```
pub struct Question<A> {
    pub(crate) request: InputRequest,
    read: fn(&InputRequest, Value) -> Result<A, String>,
    answer: PhantomData<fn() -> A>,
}

/// What a person did with a form.
#[derive(Debug, Clone, PartialEq)]
pub enum FormAnswer {
    /// Filled it in; the values fit the form.
    Accepted(JsonObject),
    /// Refused to.
    Declined,
    /// Put it away without deciding.
    Cancelled,
}

/// What a person said to the visit of a web page; consent only, nobody knows yet what happened there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisitAnswer {
    /// Agreed.
    Accepted,
    /// Refused.
    Declined,
    /// Put it away without deciding.
    Cancelled,
}

impl<A> Question<A> {
    fn new(request: InputRequest, read: fn(&InputRequest, Value) -> Result<A, String>) -> Self {
        Self { request, read, answer: PhantomData }
    }

    /// Reads and checks an answer.
    pub(crate) fn read(&self, answer: Value) -> Result<A, String> {
        (self.read)(&self.request, answer)
    }
}

impl Question<FormAnswer> {
    /// A form for a person, so far without fields.
    pub fn form(message: impl Into<String>) -> Self {
        Self::form_with(ElicitFormParams::new(message, FormSchema::new()))
    }

    /// A form that is already made.
    pub fn form_with(form: ElicitFormParams) -> Self {
        Self::new(InputRequest::Elicit(ElicitParams::Form(form)), read_form)
    }

    /// Adds a field that must be filled in.
    #[must_use]
    pub fn required(self, name: impl Into<String>, field: impl Into<FieldSchema>) -> Self {
        self.map_form(|form| form.required(name, field))
    }

    /// Adds a field that may be left empty.
    #[must_use]
    pub fn optional(self, name: impl Into<String>, field: impl Into<FieldSchema>) -> Self {
        self.map_form(|form| form.optional(name, field))
    }

    fn map_form(mut self, change: impl FnOnce(FormSchema) -> FormSchema) -> Self {
        if let InputRequest::Elicit(ElicitParams::Form(params)) = &mut self.request {
            params.requested_schema = change(std::mem::take(&mut params.requested_schema));
        }
        self
    }
}

impl Question<bool> {
    /// Yes or no; putting the question away is a no.
    pub fn confirm(message: impl Into<String>) -> Self {
        let form = FormSchema::new().required("confirm", BooleanSchema::new());
        let params = ElicitFormParams::new(message, form);
        Self::new(InputRequest::Elicit(ElicitParams::Form(params)), |request, answer| {
            Ok(match read_form(request, answer)? {
                FormAnswer::Accepted(values) => values.get("confirm") == Some(&Value::Bool(true)),
                FormAnswer::Declined | FormAnswer::Cancelled => false,
            })
        })
    }
}

impl Question<VisitAnswer> {
    /// Sends a person to a web page, for what must not pass through the client.
    pub fn visit(message: impl Into<String>, url: impl Into<String>) -> Self {
        let params = ElicitUrlParams::new(message, url);
        Self::new(InputRequest::Elicit(ElicitParams::Url(params)), |_, answer| {
            let answer: ElicitResult = parse(answer)?;
            Ok(match answer.action {
                ElicitAction::Accept => VisitAnswer::Accepted,
                ElicitAction::Decline => VisitAnswer::Declined,
                ElicitAction::Cancel => VisitAnswer::Cancelled,
            })
        })
    }
}

impl Question<CreateMessageResult> {
    /// Lets the client's model say something.
    pub fn model(prompt: impl Into<String>, max_tokens: u64) -> Self {
        Self::model_with(CreateMessageParams::new(vec![SamplingMessage::user(prompt)], max_tokens))
    }

    /// The same with every detail.
    pub fn model_with(params: CreateMessageParams) -> Self {
        Self::new(InputRequest::Sample(Box::new(params)), |_, answer| parse(answer))
    }
}

impl Question<Vec<Root>> {
    /// Where in the file system the client works.
    pub fn roots() -> Self {
        Self::new(InputRequest::Roots, |_, answer| Ok(parse::<ListRootsResult>(answer)?.roots))
    }
}

fn read_form(request: &InputRequest, answer: Value) -> Result<FormAnswer, String> {
    let answer: ElicitResult = parse(answer)?;
    match answer.action {
        ElicitAction::Decline => Ok(FormAnswer::Declined),
        ElicitAction::Cancel => Ok(FormAnswer::Cancelled),
        ElicitAction::Accept => {
            let values = answer.content.unwrap_or_default();
            if let InputRequest::Elicit(ElicitParams::Form(params)) = request {
                params.requested_schema.check(&values)?;
            }
            Ok(FormAnswer::Accepted(values))
        }
    }
}

fn parse<T: DeserializeOwned>(answer: Value) -> Result<T, String> {
    serde_json::from_value(answer).map_err(|fault| fault.to_string())
}

impl<A> fmt::Debug for Question<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("request", &self.request).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use refmcp_proto::model::StringSchema;
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_checked_against_the_form() {
        let question = Question::form("?").required("name", StringSchema::new().min_length(2u64));
        let accepted = question.read(json!({"action": "accept", "content": {"name": "Al"}}));
        assert!(matches!(accepted, Ok(FormAnswer::Accepted(_))));
        for bad in [
            json!({"action": "accept", "content": {"name": "A"}}),
            json!({"action": "accept"}),
            json!({"action": "maybe"}),
            json!({}),
        ] {
            assert!(question.read(bad.clone()).is_err(), "{bad}");
        }
        assert_eq!(question.read(json!({"action": "decline"})), Ok(FormAnswer::Declined));
    }

    #[test]
    fn confirming_needs_a_yes() {
        let question = Question::confirm("?");
        assert_eq!(question.read(json!({"action": "accept", "content": {"confirm": true}})), Ok(true));
        assert_eq!(question.read(json!({"action": "accept", "content": {"confirm": false}})), Ok(false));
        assert_eq!(question.read(json!({"action": "cancel"})), Ok(false));
    }
}
