//! Features of the protocol, and which of them each party of a conversation was seen to use.

use std::collections::BTreeMap;
use std::fmt;

use refmcp_proto::jsonrpc::code;
use refmcp_proto::model::keys;
use refmcp_proto::revision::{Method, NotificationMethod, ServerMethod};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conversation::State;
use super::message::{Body, Message};
use crate::verdict::Role;

/// A feature of the protocol, named as the specification names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// Tools are listed and called.
    Tools,
    /// Resources are listed and read.
    Resources,
    /// Resource templates are listed.
    ResourceTemplates,
    /// A client is told of updates of resources that it has subscribed to.
    Subscriptions,
    /// Prompts are listed and used.
    Prompts,
    /// Arguments are completed.
    Completion,
    /// A client says which log messages it wants, and gets them.
    Logging,
    /// A party tells that one of its lists has changed.
    ListChanges,
    /// Lists come in pages.
    Pagination,
    /// A request tells of its progress.
    Progress,
    /// A request is cancelled.
    Cancellation,
    /// A party asks whether the other is there.
    Ping,
    /// A client has roots.
    Roots,
    /// A client has a model.
    Sampling,
    /// A client shows forms to its user.
    FormElicitation,
    /// A client leads its user to an address.
    UrlElicitation,
    /// A request becomes a task.
    Tasks,
    /// A server has skills.
    Skills,
}

/// What was seen of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Support {
    /// The party declares it, and it was not used.
    Declared,
    /// The other party asked for it, and got an error.
    Refused,
    /// The party used it.
    Used,
}

/// The features that the parties of a conversation used.
#[derive(Debug, Clone, Default)]
pub struct Features {
    seen: BTreeMap<(Feature, Role), Support>,
    /// Input requests by their keys: the client answers them with a later request.
    asked: Vec<(String, Feature)>,
}

/// Input requests that are remembered, and bytes of their keys.
const MAX_ASKED: usize = 64;

impl Features {
    /// What was seen of a feature; `None` where nothing was.
    pub fn support(&self, feature: Feature, role: Role) -> Option<Support> {
        self.seen.get(&(feature, role)).copied()
    }

    /// Adds what was seen in another conversation.
    pub fn merge(&mut self, other: &Self) {
        for (&(feature, role), &support) in &other.seen {
            self.see(feature, role, support);
        }
    }

    /// The same, and what the parties declare.
    pub(super) fn with_capabilities(&self, state: &State) -> Self {
        let mut features = self.clone();
        for feature in Feature::ALL {
            for role in [Role::Client, Role::Server] {
                if feature.is_declared(role, &state.facts(role).capabilities) {
                    features.see(feature, role, Support::Declared);
                }
            }
        }
        features
    }

    pub(super) fn observe(&mut self, message: &Message<'_>) {
        match &message.body {
            Body::Request { method, params, .. } => self.request(message.from, method, params),
            Body::Notification { method, .. } => {
                let feature = NotificationMethod::known(method).and_then(Feature::of_notification);
                self.used(feature, message.from);
            }
            Body::Response { request: Some(request), result, .. } => {
                let feature = Feature::of_request(request.from, &request.method, &request.params);
                match (result, feature) {
                    (Ok(result), feature) => {
                        self.used(feature, message.from);
                        self.result(message.from, result);
                    }
                    // Other errors of a server are about the request, and not about the feature.
                    (Err(error), Some(feature)) => {
                        let unknown = error["code"] == code::METHOD_NOT_FOUND;
                        if unknown || message.from == Role::Client {
                            self.see(feature, message.from, Support::Refused);
                        }
                    }
                    (Err(_), None) => {}
                }
            }
            Body::Response { .. } => {}
        }
    }

    fn request(&mut self, from: Role, method: &str, params: &Value) {
        self.used(Feature::of_request(from, method, params), from);
        let meta = &params["_meta"];
        for (feature, value) in [
            (Feature::Pagination, &params["cursor"]),
            (Feature::Progress, &meta[keys::PROGRESS_TOKEN]),
            (Feature::Logging, &meta[keys::LOG_LEVEL]),
            (Feature::Tasks, &params["task"]),
        ] {
            self.used(Some(feature).filter(|_| !value.is_null()), from);
        }
        let answers = params["inputResponses"].as_object().filter(|_| from == Role::Client);
        for key in answers.into_iter().flat_map(|answers| answers.keys()) {
            let asked = self.asked.iter().find(|(asked, _)| asked == key).map(|(_, feature)| *feature);
            self.used(asked, from);
        }
    }

    fn result(&mut self, from: Role, result: &Value) {
        self.used(Some(Feature::Pagination).filter(|_| result["nextCursor"].is_string()), from);
        let requests = result["inputRequests"].as_object().filter(|_| from == Role::Server);
        for (key, request) in requests.into_iter().flatten() {
            let method = request["method"].as_str().unwrap_or_default();
            let Some(feature) = Feature::of_request(from, method, &request["params"]) else { continue };
            self.used(Some(feature), from);
            self.asked.retain(|(asked, _)| asked != key);
            if self.asked.len() < MAX_ASKED && key.len() <= MAX_ASKED {
                self.asked.push((key.clone(), feature));
            }
        }
    }

    fn used(&mut self, feature: Option<Feature>, role: Role) {
        if let Some(feature) = feature {
            self.see(feature, role, Support::Used);
        }
    }

    fn see(&mut self, feature: Feature, role: Role, support: Support) {
        let known = self.seen.entry((feature, role)).or_insert(support);
        *known = support.max(*known);
    }
}

impl Feature {
    /// Every one.
    pub const ALL: [Self; 18] = [
        Self::Tools,
        Self::Resources,
        Self::ResourceTemplates,
        Self::Subscriptions,
        Self::Prompts,
        Self::Completion,
        Self::Logging,
        Self::ListChanges,
        Self::Pagination,
        Self::Progress,
        Self::Cancellation,
        Self::Ping,
        Self::Roots,
        Self::Sampling,
        Self::FormElicitation,
        Self::UrlElicitation,
        Self::Tasks,
        Self::Skills,
    ];

    /// The feature that a request belongs to.
    fn of_request(from: Role, method: &str, params: &Value) -> Option<Self> {
        match from {
            Role::Client => Self::of_method(&Method::known(method)?),
            Role::Server => Some(match ServerMethod::known(method)? {
                ServerMethod::Elicit if params["mode"] == "url" => Self::UrlElicitation,
                ServerMethod::Elicit => Self::FormElicitation,
                ServerMethod::CreateMessage => Self::Sampling,
                ServerMethod::ListRoots => Self::Roots,
                ServerMethod::Ping => Self::Ping,
                ServerMethod::GetTask
                | ServerMethod::GetTaskResult
                | ServerMethod::CancelTask
                | ServerMethod::ListTasks => Self::Tasks,
                _ => return None,
            }),
        }
    }

    fn of_method(method: &Method) -> Option<Self> {
        Some(match method {
            Method::ListTools | Method::CallTool => Self::Tools,
            Method::ListResources | Method::ReadResource => Self::Resources,
            Method::ListResourceTemplates => Self::ResourceTemplates,
            Method::Subscribe | Method::Unsubscribe | Method::Listen => Self::Subscriptions,
            Method::ListPrompts | Method::GetPrompt => Self::Prompts,
            Method::Complete => Self::Completion,
            Method::SetLevel => Self::Logging,
            Method::Ping => Self::Ping,
            Method::GetTask
            | Method::CancelTask
            | Method::UpdateTask
            | Method::GetTaskResult
            | Method::ListTasks => Self::Tasks,
            Method::ListSkills | Method::GetSkill | Method::ReadDirectory => Self::Skills,
            _ => return None,
        })
    }

    fn of_notification(method: NotificationMethod) -> Option<Self> {
        Some(match method {
            NotificationMethod::Cancelled => Self::Cancellation,
            NotificationMethod::Progress => Self::Progress,
            NotificationMethod::Log => Self::Logging,
            NotificationMethod::RootsListChanged
            | NotificationMethod::ToolsListChanged
            | NotificationMethod::PromptsListChanged
            | NotificationMethod::ResourcesListChanged => Self::ListChanges,
            NotificationMethod::ResourceUpdated | NotificationMethod::SubscriptionsAcknowledged => {
                Self::Subscriptions
            }
            NotificationMethod::ElicitationComplete => Self::UrlElicitation,
            NotificationMethod::TaskStatus | NotificationMethod::Task => Self::Tasks,
            _ => return None,
        })
    }

    /// Whether the capabilities of a party declare it.
    pub(super) fn is_declared(self, role: Role, capabilities: &Value) -> bool {
        let has = |pointer: &str| {
            capabilities
                .pointer(pointer)
                .is_some_and(|value| value.is_object() || value == &Value::Bool(true))
        };
        let extension = |name: &str| has(&format!("/extensions/io.modelcontextprotocol~1{name}"));
        match (self, role) {
            (Self::Tools, Role::Server) => has("/tools"),
            (Self::Resources | Self::ResourceTemplates, Role::Server) => has("/resources"),
            (Self::Subscriptions, Role::Server) => has("/resources/subscribe"),
            (Self::Prompts, Role::Server) => has("/prompts"),
            (Self::Completion, Role::Server) => has("/completions"),
            (Self::Logging, Role::Server) => has("/logging"),
            (Self::ListChanges, Role::Server) => {
                ["/tools", "/resources", "/prompts"].iter().any(|list| has(&format!("{list}/listChanged")))
            }
            (Self::ListChanges, Role::Client) => has("/roots/listChanged"),
            (Self::Roots, Role::Client) => has("/roots"),
            (Self::Sampling, Role::Client) => has("/sampling"),
            // Without a mode, forms are meant.
            (Self::FormElicitation, Role::Client) => {
                has("/elicitation") && (has("/elicitation/form") || !has("/elicitation/url"))
            }
            (Self::UrlElicitation, Role::Client) => has("/elicitation/url"),
            (Self::Tasks, _) => has("/tasks") || extension("tasks"),
            (Self::Skills, _) => extension("skills"),
            _ => false,
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resource templates",
            Self::Subscriptions => "subscriptions",
            Self::Prompts => "prompts",
            Self::Completion => "completion",
            Self::Logging => "logging",
            Self::ListChanges => "list changes",
            Self::Pagination => "pagination",
            Self::Progress => "progress",
            Self::Cancellation => "cancellation",
            Self::Ping => "ping",
            Self::Roots => "roots",
            Self::Sampling => "sampling",
            Self::FormElicitation => "elicitation by form",
            Self::UrlElicitation => "elicitation by URL",
            Self::Tasks => "tasks",
            Self::Skills => "skills",
        })
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Declared => "declared, not used",
            Self::Refused => "refused",
            Self::Used => "used",
        })
    }
}
