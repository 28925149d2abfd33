//! Results: their type, how long they may be cached, and the union of all results of a server.

use crate::model::{
    CallToolResult, CompleteResult, DiscoverResult, ExperimentalTask, Extra, GetPromptResult, GetSkillResult,
    InitializeResult, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListSkillsResult, ListTasksResult, ListToolsResult, ReadDirectoryResult,
    ReadResourceResult, ResultMeta, SubscriptionsListenResult, Task,
};
use serde::{Deserialize, Serialize};

open_enum! {
    /// What kind of result it is; a result that does not say is complete.
    pub enum ResultType {
        /// The answer to the request.
        Complete = "complete",
        /// Not yet: the client has to supply something and ask again.
        InputRequired = "input_required",
        /// Not yet: the request goes on as a task.
        Task = "task",
    }
}

json_object! {
    /// A result that says nothing but that the request was done.
    pub struct EmptyResult {
        ..result
    }

    /// A result of a method this model does not know; its members are all in `extra`.
    pub struct CustomResult {
        ..result
    }
}

impl CustomResult {
    /// A result with these members.
    pub fn new(members: Extra) -> Self {
        Self { extra: members, ..Self::default() }
    }
}

/// Writes the union of all results of a server, and what they have in common, from a table.
macro_rules! server_results {
    ($($(#[$doc:meta])* $variant:ident($result:ty),)*) => {
        /// Any result of a server. It is written as the result inside; reading needs no such union, because the method of
        /// the request tells which result to expect.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum ServerResult {
            $($(#[$doc])* $variant($result),)*
        }

        impl ServerResult {
            /// The result type, to be set or cleared.
            pub fn result_type_mut(&mut self) -> &mut Option<ResultType> {
                match self {
                    $(Self::$variant(result) => &mut result.result_type,)*
                }
            }

            /// The metadata, to be set or cleared.
            pub fn meta_mut(&mut self) -> &mut Option<ResultMeta> {
                match self {
                    $(Self::$variant(result) => &mut result.meta,)*
                }
            }
        }
    };
}

server_results! {
    /// Done: `ping`, `logging/setLevel`, `resources/subscribe` and `resources/unsubscribe`.
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
    /// The client has to supply input first.
    InputRequired(InputRequiredResult),
    /// `subscriptions/listen`, when it ends.
    Listen(SubscriptionsListenResult),
    /// The request goes on as a task.
    CreateTask(Box<Task>),
    /// `tasks/get`, and in 2025-11-25 `tasks/cancel`.
    GetTask(Box<Task>),
    /// The same as 2025-11-25 writes it.
    GetExperimentalTask(Box<ExperimentalTask>),
    /// `tasks/list`.
    ListTasks(ListTasksResult),
    /// `skills/list`.
    ListSkills(ListSkillsResult),
    /// `skills/get`.
    GetSkill(Box<GetSkillResult>),
    /// `resources/directory/read`.
    ReadDirectory(ReadDirectoryResult),
    /// Any other method.
    Custom(CustomResult),
}

impl ServerResult {
    /// The lifetime in milliseconds and the scope of a result that may be cached; `None` for the others.
    pub fn cache_mut(&mut self) -> Option<(&mut Option<u64>, &mut Option<CacheScope>)> {
        match self {
            Self::Discover(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            Self::ListTools(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            Self::ListResources(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            Self::ListResourceTemplates(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            Self::ReadResource(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            Self::ListPrompts(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            Self::ListSkills(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            Self::GetSkill(result) => Some((&mut result.ttl_ms, &mut result.cache_scope)),
            _ => None,
        }
    }

    /// Whether an extension defines it that is the same in every revision.
    pub fn is_of_every_revision(&self) -> bool {
        matches!(self, Self::ListSkills(_) | Self::GetSkill(_) | Self::ReadDirectory(_))
    }
}

from_variants! {
    ServerResult {
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
        ListTasksResult => ListTasks,
        ListSkillsResult => ListSkills,
        GetSkillResult => GetSkill,
        ReadDirectoryResult => ReadDirectory,
        CustomResult => Custom,
    }
}

/// Who may share a cached result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Everyone: the result is the same for all users.
    Public,
    /// Only the one who asked.
    Private,
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
        let result: EmptyResult =
            serde_json::from_value(json!({"resultType": "later", "taskId": 1})).unwrap();
        assert_eq!(result.result_type, Some(ResultType::Other("later".into())));
        assert_eq!(serde_json::to_value(&result).unwrap(), json!({"resultType": "later", "taskId": 1}));
    }
}
