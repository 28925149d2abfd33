//! The data model of the protocol: everything that travels inside `params`, `result` and `_meta`.
//!
//! There is one model, in the shape of the newest revision, widened by what older revisions had and the
//! newest dropped; fitting a value to an older revision happens elsewhere, by clearing members. The map:
//!
//! - what every message may carry: `meta` (the `_meta` objects), `params` (requests without own members),
//!   `result` (result types and the union of all server results), `cache`, `error_data`;
//! - who speaks and what they can do: `implementation`, `capabilities`, `lifecycle`;
//! - what a server offers: `tools`, `resources`, `prompts`, `completion`, `content` with its
//!   `blocks`, `resource_contents`;
//! - what a server asks of the client: `elicitation` with its forms (`form`, `field`, `choice`, `form_check`,
//!   `format`), `sampling`, `roots`, and `input`, which wraps the three for requests that are answered in several rounds;
//! - what travels on its own: `notification`, `progress`, `cancelled`, `logging`, `subscriptions`;
//! - helpers without a wire form of their own: `macros`, `number`, `union`.
//!
//! Every wire object ends in `extra`, which keeps unknown members over a round trip. A `null` in an optional
//! member reads as absent. Unions are read by their discriminator, never by trying one shape after another.

#[macro_use]
mod macros;

mod blocks;
mod cache;
mod cancelled;
mod capabilities;
mod choice;
mod completion;
mod content;
mod elicitation;
mod error_data;
mod field;
mod form;
mod form_check;
mod format;
mod implementation;
mod input;
mod lifecycle;
mod logging;
mod meta;
mod notification;
mod number;
mod params;
mod progress;
mod prompts;
mod resource_contents;
mod resources;
mod result;
mod roots;
mod sampling;
mod subscriptions;
mod tools;
mod union;

pub use blocks::{
    Annotations, AudioContent, EmbeddedResource, ImageContent, Role, TextContent, ToolResultContent,
    ToolUseContent,
};
pub use cache::CacheScope;
pub use cancelled::CancelledParams;
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, PromptsCapability, ResourcesCapability, RootsCapability,
    SamplingCapability, ServerCapabilities, ToolsCapability,
};
pub use choice::{Choices, MultiChoiceSchema, SingleChoiceSchema, TitledChoice};
pub use completion::{
    CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext, CompletionRef,
    PromptReference, ResourceTemplateReference,
};
pub use content::Content;
pub use elicitation::{
    ElicitAction, ElicitFormParams, ElicitMode, ElicitParams, ElicitResult, ElicitUrlParams,
    ElicitationCompleteParams,
};
pub use error_data::{MissingCapabilityData, UnsupportedVersionData, UrlElicitationRequiredData};
pub use field::{BooleanSchema, FieldSchema, NumberKind, NumberSchema, StringFormat, StringSchema};
pub use form::FormSchema;
pub use implementation::{Icon, IconTheme, Implementation};
pub use input::{InputRequest, InputRequests, InputRequiredResult, InputResponses};
pub use lifecycle::{DiscoverResult, InitializeParams, InitializeResult};
pub use logging::{LogLevel, LogParams, SetLevelParams, UnknownLogLevel};
pub use meta::{Meta, NotificationMeta, RequestMeta, ResultMeta, keys};
pub use notification::{NotificationParams, ResourceUpdatedParams, ServerNotification};
pub use number::plain_number;
pub use params::{PaginatedParams, RequestParams};
pub use progress::ProgressParams;
pub use prompts::{
    GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
};
pub use resource_contents::{ResourceBody, ResourceContents};
pub use resources::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult, Resource,
    ResourceTemplate, SubscribeParams,
};
pub use result::{CustomResult, EmptyResult, ResultType, ServerResult};
pub use roots::{ListRootsParams, ListRootsResult, Root};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences, OneOrMany,
    SamplingMessage, ToolChoice, ToolChoiceMode,
};
pub use subscriptions::{AcknowledgedParams, ListenParams, SubscriptionFilter, SubscriptionsListenResult};
pub use tools::{CallToolParams, CallToolResult, ListToolsResult, Tool, ToolAnnotations};

/// A JSON object without a fixed shape.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

/// The members of an object that this model does not name.
pub type Extra = serde_json::Map<String, serde_json::Value>;
