//! Server requests: elicitation, sampling and roots, each with the type of its result.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use refmcp_proto::model::{
    BooleanSchema, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitParams,
    ElicitResult, ElicitUrlParams, FormSchema, InputRequest, JsonObject, ListRootsResult, Root, TaskMetadata,
};
use refmcp_proto::peer::Peer;
use refmcp_proto::revision::Tasks;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A request to the client whose result is an `A`: what [`Call::request`](crate::Call::request) takes.
///
/// Made from the parameters of the specification: [`ElicitFormParams`], [`ElicitUrlParams`], [`CreateMessageParams`].
pub struct ServerRequest<A> {
    pub(crate) request: InputRequest,
    read: fn(&InputRequest, Value) -> Result<A, String>,
    result: PhantomData<fn() -> A>,
}

/// What the user did with an elicitation. A form gives its values; consent to visit a URL gives nothing, since what
/// happens there does not pass through the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElicitOutcome<T = JsonObject> {
    /// The user accepted; values fit the form.
    Accepted(T),
    /// The user declined.
    Declined,
    /// The user dismissed it without deciding.
    Cancelled,
}

impl<A> ServerRequest<A> {
    fn new(request: InputRequest, read: fn(&InputRequest, Value) -> Result<A, String>) -> Self {
        Self { request, read, result: PhantomData }
    }

    /// Has the client run it as a task where it declares that (2025-11-25), to be kept for `ttl` from its creation, or as long as
    /// the client likes; elsewhere it is sent as ever, and so are roots.
    ///
    /// For the handler nothing changes: the server polls the task, fetches its outcome, and cancels it with the call. A request
    /// is no task unless the handler says so: the feature is experimental, and a task costs some messages more than a response.
    /// It is worth them where an answer takes long, and the response to one request would be lost with its connection. A call
    /// that waits for a task of its client stays in its process: other replicas do not take it over.
    ///
    /// ```
    /// # use refmcp_server::{Call, CallError, ServerRequest, model::{CreateMessageParams, SamplingMessage}};
    /// # async fn handler(call: Call) -> Result<String, CallError> {
    /// let long = CreateMessageParams::new(vec![SamplingMessage::user("Write a novel.")], 100_000);
    /// let novel = call.request("novel", ServerRequest::from(long).as_task(None))?;
    /// # Ok(format!("{novel:?}")) }
    /// ```
    #[must_use]
    pub fn as_task(mut self, ttl: Option<Duration>) -> Self {
        let ttl = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        self.request.set_task(&TaskMetadata { ttl, ..TaskMetadata::default() });
        self
    }

    /// Whether this client runs it as a task.
    pub fn can_be_task(&self, peer: &Peer) -> bool {
        peer.rules().tasks == Tasks::Experimental && peer.capabilities.runs_as_task(&self.request)
    }

    /// The method on the wire.
    pub fn method(&self) -> &'static str {
        self.request.method()
    }

    /// Reads and checks the client's result.
    pub(crate) fn read(&self, result: Value) -> Result<A, String> {
        (self.read)(&self.request, result)
    }
}

impl ServerRequest<bool> {
    /// A form for a yes or no; declining and dismissing it are a no.
    pub fn confirm(message: impl Into<String>) -> Self {
        let schema = FormSchema::new().required("confirm", BooleanSchema::new());
        let params = ElicitFormParams::new(message, schema);
        Self::new(InputRequest::Elicit(ElicitParams::Form(params)), |request, result| {
            Ok(match read_form(request, result)? {
                ElicitOutcome::Accepted(values) => values.get("confirm") == Some(&Value::Bool(true)),
                ElicitOutcome::Declined | ElicitOutcome::Cancelled => false,
            })
        })
    }
}

impl ServerRequest<Vec<Root>> {
    /// The client's roots.
    pub fn list_roots() -> Self {
        Self::new(InputRequest::Roots, |_, result| Ok(parse::<ListRootsResult>(result)?.roots))
    }
}

impl From<InputRequest> for ServerRequest<Value> {
    /// Any request; its result is not read.
    fn from(request: InputRequest) -> Self {
        Self::new(request, |_, result| Ok(result))
    }
}

impl From<ElicitFormParams> for ServerRequest<ElicitOutcome> {
    fn from(params: ElicitFormParams) -> Self {
        Self::new(InputRequest::Elicit(ElicitParams::Form(params)), read_form)
    }
}

impl From<ElicitUrlParams> for ServerRequest<ElicitOutcome<()>> {
    fn from(params: ElicitUrlParams) -> Self {
        Self::new(InputRequest::Elicit(ElicitParams::Url(params)), |_, result| {
            read_outcome(result, |_| Ok(()))
        })
    }
}

impl From<CreateMessageParams> for ServerRequest<CreateMessageResult> {
    fn from(params: CreateMessageParams) -> Self {
        Self::new(InputRequest::Sample(Box::new(params)), |_, result| parse(result))
    }
}

/// Checks a response of the client to a request of this kind.
pub(crate) fn check_response(request: &InputRequest, response: Value) -> Result<(), String> {
    match request {
        InputRequest::Elicit(ElicitParams::Form(_)) => read_form(request, response).map(drop),
        InputRequest::Elicit(ElicitParams::Url(_)) => read_outcome(response, |_| Ok(())).map(drop),
        InputRequest::Sample(_) => parse::<CreateMessageResult>(response).map(drop),
        InputRequest::Roots => parse::<ListRootsResult>(response).map(drop),
    }
}

fn read_form(request: &InputRequest, result: Value) -> Result<ElicitOutcome, String> {
    read_outcome(result, |values| {
        if let InputRequest::Elicit(ElicitParams::Form(params)) = request {
            params.requested_schema.check(&values)?;
        }
        Ok(values)
    })
}

fn read_outcome<T>(
    result: Value,
    accept: impl FnOnce(JsonObject) -> Result<T, String>,
) -> Result<ElicitOutcome<T>, String> {
    let result: ElicitResult = parse(result)?;
    match result.action {
        ElicitAction::Accept => accept(result.content.unwrap_or_default()).map(ElicitOutcome::Accepted),
        ElicitAction::Decline => Ok(ElicitOutcome::Declined),
        ElicitAction::Cancel => Ok(ElicitOutcome::Cancelled),
    }
}

fn parse<T: DeserializeOwned>(result: Value) -> Result<T, String> {
    serde_json::from_value(result).map_err(|error| error.to_string())
}

impl<A> fmt::Debug for ServerRequest<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRequest").field("request", &self.request).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use refmcp_proto::model::StringSchema;
    use serde_json::json;

    use super::*;

    #[test]
    fn elicited_values_are_checked_against_the_form() {
        let schema = FormSchema::new().required("name", StringSchema::new().min_length(2u64));
        let request = ServerRequest::from(ElicitFormParams::new("?", schema));
        let accepted = request.read(json!({"action": "accept", "content": {"name": "Al"}}));
        assert!(matches!(accepted, Ok(ElicitOutcome::Accepted(_))));
        for bad in [
            json!({"action": "accept", "content": {"name": "A"}}),
            json!({"action": "accept"}),
            json!({"action": "maybe"}),
            json!({}),
        ] {
            assert!(request.read(bad.clone()).is_err(), "{bad}");
        }
        assert_eq!(request.read(json!({"action": "decline"})), Ok(ElicitOutcome::Declined));
    }

    #[test]
    fn confirming_needs_a_yes() {
        let request = ServerRequest::confirm("?");
        assert_eq!(request.read(json!({"action": "accept", "content": {"confirm": true}})), Ok(true));
        assert_eq!(request.read(json!({"action": "accept", "content": {"confirm": false}})), Ok(false));
        assert_eq!(request.read(json!({"action": "cancel"})), Ok(false));
    }
}
