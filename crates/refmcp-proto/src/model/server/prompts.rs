//! Prompts: messages a server prepares for a user to start from.

use std::collections::BTreeMap;

use crate::model::{ContentBlock, Icon, InputResponses, Meta, RequestMeta, Role};

json_object! {
    /// A prompt, or a template of one.
    pub struct Prompt {
        /// The name for programs.
        name: String,
        /// The name for people.
        title?: String,
        /// What it is good for.
        description?: String,
        /// What can be filled in.
        arguments?: Vec<PromptArgument>,
        /// Pictures of it.
        icons?: Vec<Icon>,
        _meta: Meta,
        /// A prompt with a name.
        fn new,
    }
}

impl Prompt {
    /// Adds something that can be filled in.
    #[must_use]
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.arguments.get_or_insert_default().push(argument);
        self
    }
}

json_object! {
    /// Something to fill in.
    pub struct PromptArgument {
        /// The name for programs.
        name: String,
        /// The name for people.
        title?: String,
        /// What to fill in.
        description?: String,
        /// Whether it must be filled in.
        required?: bool,
        /// An argument with a name.
        fn new,
    }

    /// One message of a prompt.
    pub struct PromptMessage {
        /// Whose turn it is.
        role: Role,
        /// What is said.
        content: ContentBlock,
        /// A message of either side.
        fn new,
    } without Default
}

impl PromptMessage {
    /// A message of the user.
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::User, content)
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

json_object! {
    /// One page of the prompts.
    pub struct ListPromptsResult {
        /// The prompts.
        prompts: Vec<Prompt>,
        /// Where the next page starts; absent on the last page.
        next_cursor?: String,
        ..cacheable_result,
        /// A page, the last one until `next_cursor` is set.
        fn new,
    }

    /// Parameters of `prompts/get`.
    pub struct GetPromptParams {
        /// The prompt.
        name: String,
        /// What was filled in.
        arguments?: BTreeMap<String, String>,
        /// Answers to what an earlier round asked.
        input_responses?: InputResponses,
        /// The state an earlier round handed out.
        request_state?: String,
        _meta: RequestMeta,
    }

    /// A prompt, filled in.
    pub struct GetPromptResult {
        /// What it is good for.
        description?: String,
        /// The messages.
        messages: Vec<PromptMessage>,
        ..result,
        /// A prompt of these messages.
        fn new,
    }
}

impl GetPromptResult {
    /// Adds a message.
    #[must_use]
    pub fn message(mut self, message: PromptMessage) -> Self {
        self.messages.push(message);
        self
    }
}

impl From<PromptMessage> for GetPromptResult {
    fn from(message: PromptMessage) -> Self {
        Self::new(vec![message])
    }
}

impl From<Vec<PromptMessage>> for GetPromptResult {
    fn from(messages: Vec<PromptMessage>) -> Self {
        Self::new(messages)
    }
}
