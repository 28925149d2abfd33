//! What a server offers: tools, resources, templates and prompts, each a value with a function, apps and skills.

/// The setters and `Debug` of items, by which members their definitions have.
macro_rules! item {
    ($kind:ident: $($setter:ident),*) => {
        impl $kind {
            $(item!(@ $setter);)*

            /// Adds an icon.
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
        pub fn $member(mut self, $member: impl Into<String>) -> Self {
            self.definition.$member = Some($member.into());
            self
        }
    };
    (@ annotations) => {
        /// Sets for whom it is, how important, how old.
        pub fn annotations(mut self, annotations: refmcp_proto::model::Annotations) -> Self {
            self.definition.annotations = Some(annotations);
            self
        }
    };
    (@ complete) => {
        /// Completes values of an argument.
        pub fn complete<F, Fut>(mut self, argument: impl Into<String>, suggest: F) -> Self
        where
            F: Fn(Call, CompletionRequest) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Vec<String>> + Send + 'static,
        {
            self.completers.insert(argument.into(), Arc::new(move |call, request| Box::pin(suggest(call, request))));
            self
        }
    };
}

mod app;
mod ordered_map;
mod prompt;
mod resource;
mod skill;
mod tool;

use std::collections::BTreeSet;
use std::sync::Arc;

use refmcp_proto::engine::Change;
use refmcp_proto::model::{self, APP_MIME_TYPE};

pub use app::{App, InvalidApp};
pub(crate) use prompt::Completer;
pub use prompt::{CompletionRequest, Prompt, PromptArguments};
pub use refmcp_proto::param_headers::ParamHeader;
pub use resource::{Resource, ResourceTemplate, TemplateValues};
pub(crate) use skill::CompiledSkill;
pub use skill::{InvalidSkill, Skill};
pub use tool::{InvalidTool, Json, NoArguments, Tool, ToolOutput};

pub(crate) use ordered_map::OrderedMap;

use crate::statistics::{MAX_TOOLS, OTHER_TOOLS};

/// Everything on offer, in the order in which it is listed.
#[derive(Debug, Default)]
pub struct Catalog {
    pub(crate) tools: OrderedMap<Tool>,
    pub(crate) resources: OrderedMap<Resource>,
    pub(crate) templates: OrderedMap<ResourceTemplate>,
    pub(crate) prompts: OrderedMap<Prompt>,
    /// By the URIs of their `SKILL.md`.
    pub(crate) skills: OrderedMap<CompiledSkill>,
    /// The entries of skills and of those further down in them, by their URIs.
    pub(crate) skill_entries: OrderedMap<model::Skill>,
    /// The lists that have changed since [`take_changes`](Self::take_changes).
    changes: BTreeSet<Change>,
}

impl Catalog {
    /// Adds a tool, or replaces the one of the same name. One whose schemas cannot be compiled is refused.
    pub fn add_tool(&mut self, mut tool: Tool) -> Result<(), InvalidTool> {
        tool.compile()?;
        let name = tool.definition.name.clone();
        // A tool that is replaced goes on counting.
        let counted = self.tools.get(&name).and_then(|known| known.statistics.clone());
        let has_room = self.tools.len() < MAX_TOOLS && name != OTHER_TOOLS;
        tool.statistics = counted.or_else(|| has_room.then(Arc::default));
        self.tools.put(&name, tool);
        self.changes.insert(Change::Tools);
        Ok(())
    }

    /// Removes a tool; `false` when there was none of this name.
    pub fn remove_tool(&mut self, name: &str) -> bool {
        let removed = self.tools.remove(name);
        self.changes.extend(removed.then_some(Change::Tools));
        removed
    }

    /// Adds a resource, or replaces the one with the same URI. Where only size and time of modification differ, the list
    /// counts as unchanged: these tell of the content, and [`Server::resource_updated`](crate::Server::resource_updated)
    /// announces that.
    pub fn add_resource(&mut self, resource: Resource) {
        let known = self.resources.get(&resource.definition.uri);
        if known.is_none_or(|known| !known.differs_only_in_content(&resource)) {
            self.changes.insert(Change::Resources);
        }
        self.resources.put(&resource.definition.uri.clone(), resource);
    }

    /// Adds an app, or replaces the one with the same URI.
    pub fn add_app(&mut self, app: App) -> Result<(), InvalidApp> {
        self.add_resource(app.into_resource()?);
        Ok(())
    }

    /// Removes a resource or an app; `false` when there was none at this URI.
    pub fn remove_resource(&mut self, uri: &str) -> bool {
        let removed = self.resources.remove(uri);
        self.changes.extend(removed.then_some(Change::Resources));
        removed
    }

    /// Adds a template, or replaces the same one.
    pub fn add_template(&mut self, template: ResourceTemplate) {
        self.templates.put(&template.definition.uri_template.clone(), template);
        self.changes.insert(Change::Resources);
    }

    /// Removes a template; `false` when there was no such one.
    pub fn remove_template(&mut self, uri_template: &str) -> bool {
        let removed = self.templates.remove(uri_template);
        self.changes.extend(removed.then_some(Change::Resources));
        removed
    }

    /// Adds a prompt, or replaces the one of the same name.
    pub fn add_prompt(&mut self, prompt: Prompt) {
        self.prompts.put(&prompt.definition.name.clone(), prompt);
        self.changes.insert(Change::Prompts);
    }

    /// Removes a prompt; `false` when there was none of this name.
    pub fn remove_prompt(&mut self, name: &str) -> bool {
        let removed = self.prompts.remove(name);
        self.changes.extend(removed.then_some(Change::Prompts));
        removed
    }

    /// Adds a skill and its files as resources, or replaces the one with the same URI. Gives the URIs of files that are new,
    /// gone or have other bytes than before, for [`Server::resource_updated`](crate::Server::resource_updated).
    ///
    /// # Errors
    /// What is wrong with the skill. Nothing has changed then.
    pub fn add_skill(&mut self, skill: Skill) -> Result<Vec<String>, InvalidSkill> {
        let skill = skill.compile()?;
        let uri = skill.uri();
        let before = self.skills.get(&uri).cloned();
        let fault = |why: String| InvalidSkill { name: skill.name().to_owned(), why };
        if let Some(other) = self.skills.iter().find(|other| other.overlaps(&skill)) {
            let what = "one of them lies in the other; add its files to the outer one";
            return Err(fault(format!("there is a skill {}, and {what}", other.uri())));
        }
        let own: BTreeSet<&str> = before.iter().flat_map(|before| before.resource_uris()).collect();
        let taken = skill.resource_uris().find(|uri| self.has_resource(uri) && !own.contains(uri));
        if let Some(taken) = taken {
            return Err(fault(format!("there is another resource {taken}")));
        }
        let changed = skill.changed_files(before.as_deref());
        if before.as_ref().is_none_or(|before| before.entries != skill.entries) {
            self.changes.insert(Change::Resources);
        }
        // What stays keeps its place in the lists.
        if let Some(before) = &before {
            let kept: BTreeSet<&str> = skill.resource_uris().collect();
            before
                .resource_uris()
                .filter(|uri| !kept.contains(uri))
                .for_each(|uri| self.drop_skill_file(uri));
        }
        for entry in &skill.entries {
            self.skill_entries.put(&entry.uri, entry.clone());
        }
        for resource in &skill.resources {
            self.resources.put(&resource.definition.uri, resource.clone());
        }
        self.skills.put(&uri, skill);
        Ok(changed)
    }

    /// Removes a skill with its files, by the URI of its `SKILL.md`; gives the URIs of the files, none where there was no such
    /// skill.
    pub fn remove_skill(&mut self, uri: &str) -> Vec<String> {
        let Some(removed) = self.skills.get(uri).cloned() else { return Vec::new() };
        self.changes.insert(Change::Resources);
        self.skills.remove(uri);
        removed.resource_uris().for_each(|uri| self.drop_skill_file(uri));
        removed.resource_uris().map(str::to_owned).collect()
    }

    fn drop_skill_file(&mut self, uri: &str) {
        self.resources.remove(uri);
        self.skill_entries.remove(uri);
    }

    /// The URIs of all skills, those further down in others included.
    pub fn skills(&self) -> impl Iterator<Item = &str> {
        self.skill_entries.iter().map(|entry| entry.uri.as_str())
    }

    /// The lists that have changed since this was last called.
    pub(crate) fn take_changes(&mut self) -> BTreeSet<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Whether there is a tool of this name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.get(name).is_some()
    }

    /// Whether there is a resource at this URI.
    pub fn has_resource(&self, uri: &str) -> bool {
        self.resources.get(uri).is_some()
    }

    /// Whether the page of an app is, or may be, at this URI: a template says only when it is read.
    pub(crate) fn may_have_app(&self, uri: &str) -> bool {
        match self.resources.get(uri) {
            Some(resource) => resource.definition.mime_type.as_deref() == Some(APP_MIME_TYPE),
            None => self.templates.iter().any(|template| template.pattern.matches(uri).is_some()),
        }
    }

    /// Whether a tool has an app, or a resource is the page of one.
    pub(crate) fn has_apps(&self) -> bool {
        let is_app =
            |resource: &Arc<Resource>| resource.definition.mime_type.as_deref() == Some(APP_MIME_TYPE);
        self.resources.iter().any(is_app) || self.tools.iter().any(|tool| tool.ui.is_some())
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
