//! The builder of a server.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::{EngineConfig, Policy, Timeouts, VersionChoice};
use refmcp_proto::jsonrpc::Limits;
use refmcp_proto::model::{
    CacheScope, Implementation, JsonObject, LogLevel, PromptsCapability, ResourcesCapability,
    SKILLS_EXTENSION, ServerCapabilities, TaskSupport, ToolsCapability, UI_EXTENSION,
};
use refmcp_proto::revision::{Method, Revision};
use refmcp_transport::{MemoryBudget, Observer};
use serde_json::Value;

use crate::call::Call;
use crate::catalog::{App, Catalog, Prompt, Resource, ResourceTemplate, Skill, Tool};
use crate::error::CallError;
use crate::forward::Forward;
use crate::method::{CallRecord, CustomMethod};
use crate::request_state::StateSealer;
use crate::server::{Server, Settings};
use crate::session::Session;
use crate::tasks::{self, TaskOptions};

/// The parts of a server; [`build`](Self::build) makes it one.
#[must_use = "a builder does nothing until it is built"]
pub struct ServerBuilder {
    config: EngineConfig,
    catalog: Catalog,
    faults: Vec<String>,
    methods: HashMap<Arc<str>, CustomMethod>,
    declares: Option<Declare>,
    forward: Option<Box<dyn Forward>>,
    settings: Settings,
}

/// Changes what the server declares.
type Declare = Box<dyn FnOnce(&mut ServerCapabilities) + Send + Sync>;

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("info", &self.config.server_info).finish_non_exhaustive()
    }
}

/// Why a server cannot be built: the author's mistakes, all of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server cannot be built: {}", .0.join("; "))]
pub struct BuildError(pub Vec<String>);

impl Server {
    /// Starts to build a server of this name and version.
    #[doc(alias = "new")]
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        let capabilities = ServerCapabilities { logging: Some(JsonObject::new()), ..Default::default() };
        let info = Implementation::new(name, version);
        ServerBuilder {
            config: EngineConfig::new(info, capabilities, Arc::new(StateSealer::random())),
            catalog: Catalog::default(),
            faults: Vec::new(),
            methods: HashMap::new(),
            declares: None,
            forward: None,
            settings: Settings::default(),
        }
    }
}

impl ServerBuilder {
    /// Adds a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        let name = &tool.definition.name;
        if !is_tool_name(name) {
            self.faults.push(format!("tool {name:?}: a name is 1 to 128 letters, digits, '_', '-' or '.'"));
        }
        if self.catalog.has_tool(name) {
            self.faults.push(format!("tool {name} is there twice"));
        }
        if let Err(invalid) = self.catalog.add_tool(tool) {
            self.faults.push(invalid.to_string());
        }
        self
    }

    /// Adds a resource.
    pub fn resource(mut self, resource: Resource) -> Self {
        if self.catalog.has_resource(&resource.definition.uri) {
            self.faults.push(format!("resource {} is there twice", resource.definition.uri));
        }
        self.catalog.add_resource(resource);
        self
    }

    /// Adds an app: a page that hosts show beside calls of the tools that [name it](Tool::app).
    pub fn app(mut self, app: App) -> Self {
        if self.catalog.has_resource(app.uri()) {
            self.faults.push(format!("resource {} is there twice", app.uri()));
        }
        if let Err(invalid) = self.catalog.add_app(app) {
            self.faults.push(invalid.to_string());
        }
        self
    }

    /// Adds a family of resources.
    pub fn template(mut self, template: ResourceTemplate) -> Self {
        let unknown =
            template.completers.keys().find(|name| !template.pattern.names().any(|known| known == *name));
        if let Some(name) = unknown {
            let whole = &template.definition.uri_template;
            self.faults.push(format!("template {whole}: suggestions for {name}, which is not in it"));
        }
        self.catalog.add_template(template);
        self
    }

    /// Adds a prompt.
    pub fn prompt(mut self, prompt: Prompt) -> Self {
        let name = &prompt.definition.name;
        if self.catalog.has_prompt(name) {
            self.faults.push(format!("prompt {name} is there twice"));
        }
        let known: Vec<&str> =
            prompt.definition.arguments.iter().flatten().map(|known| known.name.as_str()).collect();
        if let Some(unknown) = prompt.completers.keys().find(|argument| !known.contains(&argument.as_str())) {
            self.faults.push(format!("prompt {name}: suggestions for {unknown}, which is no argument of it"));
        }
        self.catalog.add_prompt(prompt);
        self
    }

    /// Adds a skill, whose files are resources.
    pub fn skill(mut self, skill: Skill) -> Self {
        let before = self.catalog.skills.len();
        match self.catalog.add_skill(skill) {
            Err(invalid) => self.faults.push(invalid.to_string()),
            Ok(_) if self.catalog.skills.len() == before => {
                self.faults.push("a skill is there twice".to_owned());
            }
            Ok(_) => {}
        }
        self
    }

    /// Declares that the server has skills, also where they are added later.
    pub fn skills(mut self) -> Self {
        declare_skills(&mut self.config.capabilities);
        self
    }

    /// Adds a method beyond the protocol.
    pub fn method<F, Fut>(mut self, name: &str, handler: F) -> Self
    where
        F: Fn(Call, JsonObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<JsonObject, CallError>> + Send + 'static,
    {
        if Method::known(name).is_some_and(|method| !method.is_extension()) {
            self.faults.push(format!("method {name} belongs to the protocol"));
        }
        self.methods.insert(name.into(), CustomMethod::new(handler));
        self
    }

    /// Adds a method beyond the protocol that makes sense only within a session.
    pub fn session_method<F, Fut>(mut self, name: &str, handler: F) -> Self
    where
        F: Fn(Call, JsonObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<JsonObject, CallError>> + Send + 'static,
    {
        self.config.session_methods.insert(name.into());
        self.method(name, handler)
    }

    /// Serves every call by this, in place of tools, resources, prompts and methods: makes a gateway to another server.
    /// [`capabilities`](Self::capabilities) declares what that server offers.
    pub fn forward(mut self, handler: impl Forward) -> Self {
        self.config.forwards = true;
        self.forward = Some(Box::new(handler));
        self
    }

    /// Declares an extension: as a capability of this name in sessions, and under this id in `extensions`.
    pub fn extension(mut self, capability: &str, id: &str, settings: JsonObject) -> Self {
        self.config.capabilities.extra.insert(capability.to_owned(), Value::Object(settings.clone()));
        self.config
            .capabilities
            .extensions
            .get_or_insert_default()
            .insert(id.to_owned(), Value::Object(settings));
        self
    }

    /// Changes what is declared. Whatever the server has when it is built is declared already; this is for lists that
    /// are empty at first, and for leaving something out.
    pub fn capabilities(
        mut self,
        change: impl FnOnce(&mut ServerCapabilities) + Send + Sync + 'static,
    ) -> Self {
        self.declares = Some(Box::new(change));
        self
    }

    /// Changes how the server describes itself.
    pub fn info(mut self, change: impl FnOnce(Implementation) -> Implementation) -> Self {
        let info = change(Implementation::clone(&self.config.server_info));
        self.config.stamp = Arc::new(Implementation::new(&info.name, &info.version));
        self.config.server_info = Arc::new(info);
        self
    }

    /// Advice for the model that uses the server.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.config.instructions = Some(text.into());
        self
    }

    /// The supported revisions; by default all.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.config.revisions = revisions.into_iter().collect();
        self
    }

    /// How strict to be with clients that break rules.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.config.policy = policy;
        self
    }

    /// How long things may take.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.config.timeouts = timeouts;
        self
    }

    /// How often one call may ask the client for input.
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.config.max_rounds = rounds;
        self
    }

    /// The log level of sessions that have set none.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.config.log_level = level;
        self
    }

    /// For how long lists and resources may be kept, and by whom.
    pub fn cache(mut self, time: Duration, scope: CacheScope) -> Self {
        self.config.cache = (time, scope);
        self
    }

    /// How many items a page of a list has.
    pub fn page_size(mut self, size: usize) -> Self {
        self.settings.page_size = size.max(1);
        self
    }

    /// How large messages may be.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// How many requests one session may have in flight.
    pub fn max_in_flight(mut self, most: usize) -> Self {
        self.config.max_in_flight = most;
        self
    }

    /// How many handlers may run at once in the whole server; more calls wait for their turn.
    pub fn max_running(mut self, most: usize) -> Self {
        self.settings.max_running = most.max(1);
        self
    }

    /// How long calls may go on when a connection ends.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// The key that seals request states and cursors; servers with the same key can open each other's.
    pub fn seal_key(mut self, key: [u8; 32]) -> Self {
        self.config.sealer = Arc::new(StateSealer::with_key(key));
        self
    }

    /// Calls this with a record of every request when it has ended, also of those that need no handler, such as `ping`.
    pub fn on_call(mut self, on_call: impl Fn(&CallRecord<'_>) + Send + Sync + 'static) -> Self {
        self.settings.on_call = Some(Arc::new(on_call));
        self
    }

    /// Calls this with each session once it is open, under the lock of its engine: what takes time or sends something
    /// belongs into a task.
    pub fn on_session(mut self, on_session: impl Fn(&Arc<Session>) + Send + Sync + 'static) -> Self {
        self.settings.on_session = Some(Arc::new(on_session));
        self
    }

    /// Does this at the beginning of every call of a tool. Like a handler it runs again from its beginning when the client
    /// has answered a request; an error ends the call.
    pub fn before_tools<Fut>(mut self, before: impl Fn(Call) -> Fut + Send + Sync + 'static) -> Self
    where
        Fut: Future<Output = Result<(), CallError>> + Send + 'static,
    {
        self.settings.before_tools = Some(Arc::new(move |call| Box::pin(before(call))));
        self
    }

    /// Chooses the revision of sessions, where it is not the one that the client requests.
    pub fn version_choice(mut self, choice: VersionChoice) -> Self {
        self.config.version_choice = Some(choice);
        self
    }

    /// Is called with each message, HTTP head and finding of every client as it passes, over every transport.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.settings.observer = Some(observer);
        self
    }

    /// Has calls of tools become tasks, also of tools that are added later, and says how tasks are kept. Servers that have such a
    /// tool when they are built have tasks anyway.
    pub fn tasks(mut self, options: TaskOptions) -> Self {
        self.settings.tasks = options;
        tasks::declare(&mut self.config.capabilities);
        self
    }

    /// Limits the bytes that are held for all clients together: messages that are not complete, responses that are not
    /// read, logs of streams. The default is half of the memory that this process may use.
    pub fn memory(mut self, budget: MemoryBudget) -> Self {
        self.settings.memory = budget;
        self
    }

    /// Makes the server.
    pub fn build(mut self) -> Result<Server, BuildError> {
        if self.config.revisions.is_empty() {
            self.faults.push("it speaks no revision".to_owned());
        }
        self.faults.extend(self.apps_that_are_missing());
        if !self.faults.is_empty() {
            return Err(BuildError(self.faults));
        }
        self.declare();
        self.config.custom_methods = self.methods.keys().cloned().collect();
        Ok(Server::assemble(self.config, self.catalog, self.methods, self.forward, self.settings))
    }

    /// What is wrong with tools whose app is not there.
    fn apps_that_are_missing(&self) -> Vec<String> {
        let missing = self.catalog.tools.iter().filter_map(|tool| {
            let uri = tool.ui.as_ref()?.resource_uri.as_deref()?;
            let fault =
                format!("tool {}: there is no app at {uri}; add one with that URI", tool.definition.name);
            (!self.catalog.may_have_app(uri)).then_some(fault)
        });
        missing.collect()
    }

    /// Declares the capabilities of what is there. Lists can change at run time, so each declares `listChanged`.
    fn declare(&mut self) {
        let capabilities = &mut self.config.capabilities;
        if !self.catalog.tools.is_empty() {
            capabilities.tools = Some(ToolsCapability { list_changed: Some(true), ..Default::default() });
        }
        if !self.catalog.resources.is_empty() || !self.catalog.templates.is_empty() {
            capabilities.resources = Some(changing_resources());
        }
        if !self.catalog.skills.is_empty() {
            declare_skills(capabilities);
        }
        if !self.catalog.prompts.is_empty() {
            capabilities.prompts = Some(PromptsCapability { list_changed: Some(true), ..Default::default() });
        }
        let suggests = self.catalog.prompts.iter().any(|prompt| !prompt.completers.is_empty())
            || self.catalog.templates.iter().any(|template| !template.completers.is_empty());
        if suggests {
            capabilities.completions = Some(JsonObject::new());
        }
        if self.catalog.tools.iter().any(|tool| *tool.task_support() != TaskSupport::Forbidden) {
            tasks::declare(capabilities);
        }
        if self.catalog.has_apps() {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.entry(UI_EXTENSION).or_insert_with(|| JsonObject::new().into());
        }
        if let Some(change) = self.declares.take() {
            change(capabilities);
        }
    }
}

/// Resources that clients can subscribe to, and whose list changes.
fn changing_resources() -> ResourcesCapability {
    ResourcesCapability { subscribe: Some(true), list_changed: Some(true), ..Default::default() }
}

/// Declares skills, whose files are resources and whose directories can be read.
fn declare_skills(capabilities: &mut ServerCapabilities) {
    capabilities.resources.get_or_insert_with(changing_resources);
    let settings = JsonObject::from_iter([("directoryRead".to_owned(), true.into())]);
    let extensions = capabilities.extensions.get_or_insert_default();
    extensions.insert(SKILLS_EXTENSION.to_owned(), Value::Object(settings));
}

fn is_tool_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}
