//! Results: their type tag and the union of everything a server can answer.

use serde::{Deserialize, Serialize};

use super::{
    CacheScope, CallToolResult, CompleteResult, DiscoverResult, Extra, GetPromptResult, InitializeResult,
    InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, ReadResourceResult, ResultMeta, SubscriptionsListenResult,
};

open_enum! {
    /// What kind of result it is; a result that does not say is complete.
    pub enum ResultType {
        /// The answer to the request.
        Complete = "complete",
        /// Not yet: the client has to supply something and ask again.
        InputRequired = "input_required",
    }
}

/// A result that says nothing but that the request was done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmptyResult {
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

/// A result of a method this model does not know; its members are all in `extra`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomResult {
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

impl CustomResult {
    /// A result with these members.
    pub fn new(members: Extra) -> Self {
        Self { extra: members, ..Self::default() }
    }
}

/// Anything a server can answer. It is written as the result inside; reading needs no such union, because
/// whoever asked knows what to expect.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ServerResult {
    /// Done, nothing to say: `ping` and the session era's setters.
    Empty(EmptyResult),
    /// `initialize`.
    Initialize(Box<InitializeResult>),
    /// `server/discover`.
    Discover(Box<DiscoverResult>),
    /// `tools/list`.
    ListTools(ListToolsResult),
    /// `tools/call`.
    CallTool(CallToolResult),
    /// `resources/list`.
    ListResources(ListResourcesResult),
    /// `resources/templates/list`.
    ListResourceTemplates(ListResourceTemplatesResult),
    /// `resources/read`.
    ReadResource(ReadResourceResult),
    /// `prompts/list`.
    ListPrompts(ListPromptsResult),
    /// `prompts/get`.
    GetPrompt(GetPromptResult),
    /// `completion/complete`.
    Complete(CompleteResult),
    /// The client has to supply something first.
    InputRequired(InputRequiredResult),
    /// `subscriptions/listen`, when it ends.
    Listen(SubscriptionsListenResult),
    /// Any other method.
    Custom(CustomResult),
}

/// Evaluates one expression for whichever result is inside; they share member names but no trait.
macro_rules! any_result {
    ($self:expr, $result:ident => $value:expr) => {
        match $self {
            ServerResult::Empty($result) => $value,
            ServerResult::Initialize($result) => $value,
            ServerResult::Discover($result) => $value,
            ServerResult::ListTools($result) => $value,
            ServerResult::CallTool($result) => $value,
            ServerResult::ListResources($result) => $value,
            ServerResult::ListResourceTemplates($result) => $value,
            ServerResult::ReadResource($result) => $value,
            ServerResult::ListPrompts($result) => $value,
            ServerResult::GetPrompt($result) => $value,
            ServerResult::Complete($result) => $value,
            ServerResult::InputRequired($result) => $value,
            ServerResult::Listen($result) => $value,
            ServerResult::Custom($result) => $value,
        }
    };
}

impl ServerResult {
    /// The type tag, to be set or cleared.
    pub fn result_type_mut(&mut self) -> &mut Option<ResultType> {
        any_result!(self, result => &mut result.result_type)
    }

    /// The metadata, to be set or cleared.
    pub fn meta_mut(&mut self) -> &mut Option<ResultMeta> {
        any_result!(self, result => &mut result.meta)
    }

    /// The lifetime in milliseconds and the scope of a result that may be cached; `None` for the others.
    pub fn cache_mut(&mut self) -> Option<(&mut Option<u64>, &mut Option<CacheScope>)> {
        match self {
            Self::Discover(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            Self::ListTools(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            Self::ListResources(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            Self::ListResourceTemplates(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            Self::ReadResource(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            Self::ListPrompts(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            _ => None,
        }
    }
}

/// Wraps each result in its variant.
macro_rules! into_server_result {
    ($($result:ty => $variant:ident),* $(,)?) => {
        $(
            impl From<$result> for ServerResult {
                fn from(result: $result) -> Self {
                    Self::$variant(result.into())
                }
            }
        )*
    };
}

into_server_result! {
    EmptyResult => Empty,
    InitializeResult => Initialize,
    DiscoverResult => Discover,
    ListToolsResult => ListTools,
    CallToolResult => CallTool,
    ListResourcesResult => ListResources,
    ListResourceTemplatesResult => ListResourceTemplates,
    ReadResourceResult => ReadResource,
    ListPromptsResult => ListPrompts,
    GetPromptResult => GetPrompt,
    CompleteResult => Complete,
    InputRequiredResult => InputRequired,
    SubscriptionsListenResult => Listen,
    CustomResult => Custom,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_shared_by_all_results_are_reached_through_the_union() {
        let mut result = ServerResult::from(ListToolsResult::default());
        *result.result_type_mut() = Some(ResultType::Complete);
        if let Some((ttl, scope)) = result.cache_mut() {
            *ttl = Some(0);
            *scope = Some(CacheScope::Public);
        }
        let json = json!({"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "public"});
        assert_eq!(serde_json::to_value(&result).unwrap(), json);
        assert_eq!(ServerResult::from(EmptyResult::default()).cache_mut(), None);
    }

    #[test]
    fn unknown_result_types_are_kept() {
        let result: EmptyResult = serde_json::from_value(json!({"resultType": "task", "taskId": 1})).unwrap();
        assert_eq!(result.result_type, Some(ResultType::Other("task".into())));
        assert_eq!(serde_json::to_value(&result).unwrap(), json!({"resultType": "task", "taskId": 1}));
    }
}
