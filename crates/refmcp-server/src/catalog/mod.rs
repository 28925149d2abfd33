//! What a server offers: tools, resources, templates and prompts, each a value with a function.

/// The setters and `Debug` of items, by which members their definitions have.
macro_rules! item {
    ($kind:ident: $($setter:ident),*) => {
        impl $kind {
            $(item!(@ $setter);)*

            /// Adds an icon.
            #[must_use]
            pub fn icon(mut self, icon: refmcp_proto::model::Icon) -> Self {
                self.definition.icons.get_or_insert_default().push(icon);
                self
            }
        }

        impl std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($kind)).field("name", &self.definition.name).finish_non_exhaustive()
            }
        }
    };
    (@ title) => { item!(@ title, "Sets the name for people."); };
    (@ description) => { item!(@ description, "Sets the description."); };
    (@ mime_type) => { item!(@ mime_type, "Sets the media type of the content."); };
    (@ $member:ident, $about:literal) => {
        #[doc = $about]
        #[must_use]
        pub fn $member(mut self, $member: impl Into<String>) -> Self {
            self.definition.$member = Some($member.into());
            self
        }
    };
    (@ annotations) => {
        /// Sets for whom it is, how important, how old.
        #[must_use]
        pub fn annotations(mut self, annotations: refmcp_proto::model::Annotations) -> Self {
            self.definition.annotations = Some(annotations);
            self
        }
    };
    (@ complete) => {
        /// Completes values of an argument.
        #[must_use]
        pub fn complete<F, Fut>(mut self, argument: impl Into<String>, suggest: F) -> Self
        where
            F: Fn(Call, CompletionRequest) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Vec<String>> + Send + 'static,
        {
            self.completers.insert(argument.into(), Completer::new(suggest));
            self
        }
    };
}

mod ordered_map;
mod prompt;
mod resource;
mod tool;

use std::sync::Arc;

use refmcp_proto::engine::Change;

pub(crate) use prompt::Completer;
pub use prompt::{CompletionRequest, Prompt, PromptArguments};
pub use refmcp_proto::param_headers::ParamHeader;
pub use resource::{Resource, ResourceTemplate, TemplateValues};
pub use tool::{Json, NoArguments, Tool, ToolOutput};

pub(crate) use ordered_map::OrderedMap;

use crate::statistics::{MOST_TOOLS, OTHER_TOOLS};

/// Everything on offer, in the order in which it is listed.
#[derive(Debug, Default)]
pub struct Catalog {
    pub(crate) tools: OrderedMap<Tool>,
    pub(crate) resources: OrderedMap<Resource>,
    pub(crate) templates: OrderedMap<ResourceTemplate>,
    pub(crate) prompts: OrderedMap<Prompt>,
}

impl Catalog {
    /// Adds a tool, or replaces the one of the same name. One whose schemas cannot be compiled is left out, and the
    /// log says why.
    pub fn add_tool(&mut self, mut tool: Tool) -> Option<Change> {
        if tool.input_validator.is_none()
            && let Err(fault) = tool.compile()
        {
            tracing::error!("{fault}");
            return None;
        }
        let name = tool.definition.name.clone();
        // A tool that is replaced goes on counting.
        let counted = self.tools.get(&name).and_then(|known| known.statistics.clone());
        let has_room = self.tools.len() < MOST_TOOLS && name != OTHER_TOOLS;
        tool.statistics = counted.or_else(|| has_room.then(Arc::default));
        self.tools.put(&name, tool);
        Some(Change::Tools)
    }

    /// Removes a tool.
    pub fn remove_tool(&mut self, name: &str) -> Option<Change> {
        self.tools.remove(name).then_some(Change::Tools)
    }

    /// Adds a resource, or replaces the one with the same URI.
    pub fn add_resource(&mut self, resource: Resource) -> Option<Change> {
        self.resources.put(&resource.definition.uri.clone(), resource);
        Some(Change::Resources)
    }

    /// Removes a resource.
    pub fn remove_resource(&mut self, uri: &str) -> Option<Change> {
        self.resources.remove(uri).then_some(Change::Resources)
    }

    /// Adds a template, or replaces the same one.
    pub fn add_template(&mut self, template: ResourceTemplate) -> Option<Change> {
        self.templates.put(&template.definition.uri_template.clone(), template);
        Some(Change::Resources)
    }

    /// Adds a prompt, or replaces the one of the same name.
    pub fn add_prompt(&mut self, prompt: Prompt) -> Option<Change> {
        self.prompts.put(&prompt.definition.name.clone(), prompt);
        Some(Change::Prompts)
    }

    /// Removes a prompt.
    pub fn remove_prompt(&mut self, name: &str) -> Option<Change> {
        self.prompts.remove(name).then_some(Change::Prompts)
    }

    /// Whether there is a tool of this name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.get(name).is_some()
    }

    /// Whether there is a resource at this URI.
    pub fn has_resource(&self, uri: &str) -> bool {
        self.resources.get(uri).is_some()
    }

    /// Whether there is a prompt of this name.
    pub fn has_prompt(&self, name: &str) -> bool {
        self.prompts.get(name).is_some()
    }

    /// The prompts, in the order in which they are listed.
    pub fn prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.prompts.iter().map(|prompt| &**prompt)
    }

    /// How many things are on offer.
    pub fn len(&self) -> usize {
        self.tools.len() + self.resources.len() + self.templates.len() + self.prompts.len()
    }

    /// Whether nothing is on offer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
