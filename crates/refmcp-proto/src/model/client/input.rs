//! Multi round-trip requests: [`InputRequest`], what a server needs from the client (elicitation, sampling, roots), and the
//! responses that the client brings.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::{
    CreateMessageParams, ElicitFormParams, ElicitParams, ElicitUrlParams, Extra, ResultType, TaskMetadata,
};
use crate::revision::ServerMethod;

/// The member of the parameters that asks for a task (2025-11-25). Elsewhere it is unknown, so reading ignores its shape.
const TASK: &str = "task";

/// What a server needs, each under a name of its choice.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// What the client brings, under the same names; unread, because only the one who asked knows the shape.
pub type InputResponses = BTreeMap<String, Value>;

/// One thing a server needs from a client. It is written as an object of `method` and `params`.
#[derive(Debug, Clone, PartialEq)]
pub enum InputRequest {
    /// Elicitation: an answer of the user.
    Elicit(ElicitParams),
    /// Sampling: a message of a model.
    Sample(Box<CreateMessageParams>),
    /// The list of roots.
    Roots,
}

impl InputRequest {
    /// The method on the wire.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Elicit(_) => ServerMethod::Elicit.name(),
            Self::Sample(_) => ServerMethod::CreateMessage.name(),
            Self::Roots => ServerMethod::ListRoots.name(),
        }
    }

    /// Reads a request of this method, with the text of its parameters; `None` for any other method.
    pub(crate) fn read(method: &str, params: Option<&str>) -> Option<Result<Self, String>> {
        fn parse<T: de::DeserializeOwned>(method: &str, params: Option<&str>) -> Result<T, String> {
            let params = params.ok_or_else(|| format!("input request {method} has no `params`"))?;
            serde_json::from_str(params)
                .map_err(|error| format!("`params` of input request {method}: {error}"))
        }

        match ServerMethod::known(method)? {
            ServerMethod::Elicit => Some(parse(method, params).map(Self::Elicit)),
            ServerMethod::CreateMessage => Some(parse(method, params).map(Self::Sample)),
            ServerMethod::ListRoots => Some(Ok(Self::Roots)),
            ServerMethod::Ping
            | ServerMethod::GetTask
            | ServerMethod::GetTaskResult
            | ServerMethod::CancelTask
            | ServerMethod::ListTasks => None,
        }
    }

    /// Asks the client to run it as a task (2025-11-25). Roots are never a task.
    pub fn set_task(&mut self, task: &TaskMetadata) {
        let members = task.ttl.map(|ttl| ("ttl".to_owned(), Value::from(ttl)));
        let members = members.into_iter().chain(task.extra.clone());
        if let Some(extra) = self.extra_mut() {
            extra.insert(TASK.to_owned(), Value::Object(members.collect()));
        }
    }

    /// Whether the client is asked to run it as a task.
    pub fn asks_for_task(&self) -> bool {
        match self {
            Self::Elicit(ElicitParams::Form(params)) => params.extra.contains_key(TASK),
            Self::Elicit(ElicitParams::Url(params)) => params.extra.contains_key(TASK),
            Self::Sample(params) => params.extra.contains_key(TASK),
            Self::Roots => false,
        }
    }

    /// Takes out the member that asks for a task, unread.
    pub fn take_task(&mut self) -> Option<Value> {
        self.extra_mut()?.remove(TASK)
    }

    fn extra_mut(&mut self) -> Option<&mut Extra> {
        match self {
            Self::Elicit(ElicitParams::Form(params)) => Some(&mut params.extra),
            Self::Elicit(ElicitParams::Url(params)) => Some(&mut params.extra),
            Self::Sample(params) => Some(&mut params.extra),
            Self::Roots => None,
        }
    }

    /// The parameters, to be written.
    pub fn params(&self) -> impl Serialize + '_ {
        Params(self)
    }
}

from_variants! {
    InputRequest {
        ElicitParams => Elicit,
        ElicitFormParams => Elicit,
        ElicitUrlParams => Elicit,
        CreateMessageParams => Sample,
    }
}

/// The parameters alone, so that an envelope can be written around them without copying.
struct Params<'a>(&'a InputRequest);

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            InputRequest::Elicit(params) => params.serialize(serializer),
            InputRequest::Sample(params) => params.serialize(serializer),
            InputRequest::Roots => serializer.serialize_map(Some(0))?.end(),
        }
    }
}

impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("method", self.method())?;
        map.serialize_entry("params", &Params(self))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The parameters stay unread until the method is known; reading them into a map meanwhile would lose
        // the order of a form's fields.
        #[derive(Deserialize)]
        struct Frame {
            method: Option<String>,
            params: Option<Box<RawValue>>,
        }

        let Frame { method, params } = Frame::deserialize(deserializer)?;
        let method = method.ok_or_else(|| de::Error::custom("input request has no `method`"))?;
        let read = Self::read(&method, params.as_deref().map(RawValue::get));
        read.map_or_else(
            || {
                Err(de::Error::custom(format_args!(
                    "`method` of input request must be `elicitation/create`, `sampling/createMessage` or \
                     `roots/list`, not {method:?}"
                )))
            },
            |read| read.map_err(de::Error::custom),
        )
    }
}

json_object! {
    /// A result that says: supply this and ask again.
    pub struct InputRequiredResult {
        /// What the server needs.
        input_requests?: InputRequests,
        /// What the client must send back unchanged; opaque to it.
        request_state?: String,
        ..result
    } without Default
}

impl InputRequiredResult {
    /// A result that asks for these.
    pub fn new(input_requests: InputRequests) -> Self {
        Self { input_requests: Some(input_requests), ..Self::default() }
    }
}

impl Default for InputRequiredResult {
    /// Unlike other results this one is nothing without its type, so it has it from the start.
    fn default() -> Self {
        Self {
            input_requests: None,
            request_state: None,
            result_type: Some(ResultType::InputRequired),
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
    fn input_requests_are_told_apart_by_method() {
        let read = |json: Value| serde_json::from_value::<InputRequest>(json).map_err(|e| e.to_string());
        assert_eq!(read(json!({"method": "roots/list"})), Ok(InputRequest::Roots));
        let json = json!({"method": "roots/list", "params": {}});
        assert_eq!(serde_json::to_value(InputRequest::Roots).unwrap(), json);
        assert!(read(json!({"params": {}})).unwrap_err().contains("`method`"));
        assert!(read(json!({"method": "tools/call"})).unwrap_err().contains("`method`"));
        let error = read(json!({"method": "elicitation/create"})).unwrap_err();
        assert!(error.contains("`params`"), "{error}");
    }

    #[test]
    fn a_task_is_asked_for_by_a_member_of_the_parameters() {
        let json = json!({
            "method": "sampling/createMessage",
            "params": { "messages": [], "maxTokens": 1, "task": { "ttl": 5 } }
        });
        let mut request: InputRequest = serde_json::from_value(json.clone()).unwrap();
        assert!(request.asks_for_task());
        assert_eq!(request.take_task(), Some(json!({ "ttl": 5 })));
        assert!(!request.asks_for_task());
        request.set_task(&TaskMetadata { ttl: Some(5), ..TaskMetadata::default() });
        assert_eq!(serde_json::to_value(&request).unwrap(), json);
        let mut roots = InputRequest::Roots;
        roots.set_task(&TaskMetadata::default());
        assert!(!roots.asks_for_task());
    }

    #[test]
    fn the_order_of_fields_survives_reading() {
        let text = r#"{"z":{"params":{"message":"m","requestedSchema":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"boolean"}}}},"method":"elicitation/create"}}"#;
        let requests: InputRequests = serde_json::from_str(text).unwrap();
        let written = serde_json::to_string(&requests).unwrap();
        assert!(
            written.contains(r#""properties":{"b":{"type":"string"},"a":{"type":"boolean"}}"#),
            "{written}"
        );
    }
}
