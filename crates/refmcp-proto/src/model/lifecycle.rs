//! How a connection opens: `initialize` and `server/discover`, who both sides are and what they can do.

use crate::model::{
    APP_MIME_TYPE, InputRequest, JsonObject, RequestMeta, TASKS_EXTENSION, TaskElicitationRequests,
    TaskRequests, TaskSamplingRequests, TasksCapability, UI_EXTENSION,
};

json_object! {
    /// Parameters of `initialize` (older revisions only).
    pub struct InitializeParams {
        /// The revision the client would like to speak.
        protocol_version: String,
        /// What the client can do.
        capabilities: ClientCapabilities,
        /// Who the client is.
        client_info: Implementation,
        _meta: RequestMeta,
    }
}

impl InitializeParams {
    /// A client that can do nothing special.
    pub fn new(protocol_version: impl Into<String>, client_info: Implementation) -> Self {
        Self { protocol_version: protocol_version.into(), client_info, ..Self::default() }
    }
}

json_object! {
    /// The answer to `initialize` (older revisions only).
    pub struct InitializeResult {
        /// The revision the session speaks.
        protocol_version: String,
        /// What the server offers.
        capabilities: ServerCapabilities,
        /// Who the server is.
        server_info: Implementation,
        /// How to use the server, for the model.
        instructions?: String,
        ..result,
        /// An answer without instructions.
        fn new,
    }

    /// The answer to `server/discover`.
    pub struct DiscoverResult {
        /// The revisions the server speaks without a session.
        supported_versions: Vec<String>,
        /// What the server offers.
        capabilities: ServerCapabilities,
        /// How to use the server, for the model.
        instructions?: String,
        ..cacheable_result,
        /// An answer without instructions.
        fn new,
    }
}

json_object! {
    /// A client or server, by name and version.
    pub struct Implementation {
        /// The name for programs.
        name: String,
        /// The version, in any notation.
        version: String,
        /// The name for people.
        title?: String,
        /// What it is for.
        description?: String,
        /// Where to read more about it.
        website_url?: String,
        /// Pictures of it.
        icons?: Vec<Icon>,
        /// An implementation with a name and a version.
        fn new,
    }

    /// A picture, in one or more sizes.
    pub struct Icon {
        /// Where it is: a URL or a `data:` URI.
        src: String,
        /// Its media type, when the source does not tell or tells wrongly.
        mime_type?: String,
        /// The sizes it is good for, such as `48x48` or `any`.
        sizes?: Vec<String>,
        /// The background it was drawn for.
        theme?: IconTheme,
        /// An icon at a URL or in a `data:` URI.
        fn new,
    }
}

impl Icon {
    /// Adds a size, such as `48x48` or `any`.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.get_or_insert_default().push(size.into());
        self
    }
}

open_enum! {
    /// The background an icon was drawn for.
    pub enum IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}

json_object! {
    /// What a client can do for a server.
    pub struct ClientCapabilities {
        /// Experiments outside the protocol, by name.
        experimental?: JsonObject,
        /// The client can list its roots.
        roots?: RootsCapability,
        /// The client can sample from a model.
        sampling?: SamplingCapability,
        /// The client can ask its user.
        elicitation?: ElicitationCapability,
        /// The client has tasks (2025-11-25).
        tasks?: TasksCapability,
        /// Extensions of the protocol, by identifier, with their settings.
        extensions?: JsonObject,
    }
}

impl ClientCapabilities {
    /// Whether the user can be asked by a form; an empty declaration means forms too.
    pub fn elicits_forms(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Whether the user can be sent to a URL.
    pub fn elicits_urls(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.url.is_some())
    }

    /// Whether the client samples.
    pub fn samples(&self) -> bool {
        self.sampling.is_some()
    }

    /// Whether the client samples with tools at the model's hand.
    pub fn samples_with_tools(&self) -> bool {
        self.sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some())
    }

    /// Whether the client lists roots.
    pub fn has_roots(&self) -> bool {
        self.roots.is_some()
    }

    /// Whether the client has declared this extension.
    pub fn has_extension(&self, id: &str) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(id))
    }

    /// Whether a call may become a task of the extension.
    pub fn takes_tasks(&self) -> bool {
        self.has_extension(TASKS_EXTENSION)
    }

    /// Whether the client runs this request as a task, where it is asked to (2025-11-25).
    pub fn runs_as_task(&self, request: &InputRequest) -> bool {
        let Some(requests) = self.tasks.as_ref().and_then(|tasks| tasks.requests.as_ref()) else {
            return false;
        };
        match request {
            InputRequest::Sample(_) => {
                requests.sampling.as_ref().is_some_and(|sampling| sampling.create_message.is_some())
            }
            InputRequest::Elicit(_) => {
                requests.elicitation.as_ref().is_some_and(|elicitation| elicitation.create.is_some())
            }
            InputRequest::Roots => false,
        }
    }

    /// Whether the client cancels tasks that it runs (2025-11-25).
    pub fn cancels_tasks(&self) -> bool {
        self.tasks.as_ref().is_some_and(|tasks| tasks.cancel.is_some())
    }

    /// Whether the client lists tasks that it runs (2025-11-25).
    pub fn lists_tasks(&self) -> bool {
        self.tasks.as_ref().is_some_and(|tasks| tasks.list.is_some())
    }

    /// Declares that the client runs as tasks what it can do for servers, lists these tasks and cancels them (2025-11-25);
    /// where it neither samples nor elicits, nothing.
    pub fn declare_tasks(&mut self) {
        let empty = || Some(JsonObject::new());
        let sampling =
            self.samples().then(|| TaskSamplingRequests { create_message: empty(), ..Default::default() });
        let elicitation = self
            .elicitation
            .is_some()
            .then(|| TaskElicitationRequests { create: empty(), ..Default::default() });
        if sampling.is_some() || elicitation.is_some() {
            let requests = TaskRequests { sampling, elicitation, ..Default::default() };
            let (list, cancel, requests) = (empty(), empty(), Some(requests));
            self.tasks = Some(TasksCapability { list, cancel, requests, ..Default::default() });
        }
    }

    /// Whether the client shows apps: it has declared the extension with the media type of their pages.
    pub fn shows_apps(&self) -> bool {
        let settings = self.extensions.as_ref().and_then(|extensions| extensions.get(UI_EXTENSION));
        let mime_types = settings.and_then(|settings| settings.get("mimeTypes")?.as_array());
        mime_types.is_some_and(|mime_types| mime_types.iter().any(|mime_type| mime_type == APP_MIME_TYPE))
    }

    /// Declares that the client shows apps.
    pub fn declare_apps(&mut self) {
        let settings = serde_json::json!({ "mimeTypes": [APP_MIME_TYPE] });
        self.extensions.get_or_insert_default().insert(UI_EXTENSION.to_owned(), settings);
    }
}

json_object! {
    /// How a client handles roots.
    pub struct RootsCapability {
        /// The client tells when its roots change (older revisions only).
        list_changed?: bool,
    }

    /// How a client samples.
    pub struct SamplingCapability {
        /// Tools may be offered to the model.
        tools?: JsonObject,
        /// Context of servers may be included.
        context?: JsonObject,
    }

    /// How a client asks its user.
    pub struct ElicitationCapability {
        /// By a form.
        form?: JsonObject,
        /// By opening a URL.
        url?: JsonObject,
    }

    /// What a server offers.
    pub struct ServerCapabilities {
        /// Experiments outside the protocol, by name.
        experimental?: JsonObject,
        /// The server sends log messages.
        logging?: JsonObject,
        /// The server completes arguments.
        completions?: JsonObject,
        /// The server has prompts.
        prompts?: PromptsCapability,
        /// The server has resources.
        resources?: ResourcesCapability,
        /// The server has tools.
        tools?: ToolsCapability,
        /// The server has tasks (2025-11-25).
        tasks?: TasksCapability,
        /// Extensions of the protocol, by identifier, with their settings.
        extensions?: JsonObject,
    }

    /// How a server offers prompts.
    pub struct PromptsCapability {
        /// The server tells when the list changes.
        list_changed?: bool,
    }

    /// How a server offers resources.
    pub struct ResourcesCapability {
        /// The server tells when a resource a client watches is updated.
        subscribe?: bool,
        /// The server tells when the list changes.
        list_changed?: bool,
    }

    /// How a server offers tools.
    pub struct ToolsCapability {
        /// The server tells when the list changes.
        list_changed?: bool,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_elicitation_means_forms() {
        let cases = [
            (json!({}), false, false),
            (json!({"elicitation": null}), false, false),
            (json!({"elicitation": {}}), true, false),
            (json!({"elicitation": {"form": {}}}), true, false),
            (json!({"elicitation": {"url": {}}}), false, true),
            (json!({"elicitation": {"form": {}, "url": {}}}), true, true),
        ];
        for (json, forms, urls) in cases {
            let capabilities: ClientCapabilities = serde_json::from_value(json.clone()).unwrap();
            assert_eq!((capabilities.elicits_forms(), capabilities.elicits_urls()), (forms, urls), "{json}");
        }
    }

    #[test]
    fn apps_are_shown_by_clients_that_name_their_media_type() {
        let shows = |settings: serde_json::Value| {
            let declared = json!({ "extensions": { UI_EXTENSION: settings } });
            serde_json::from_value::<ClientCapabilities>(declared).unwrap().shows_apps()
        };
        assert!(shows(json!({ "mimeTypes": ["text/html", APP_MIME_TYPE] })));
        for unclear in [
            json!({}),
            json!({ "mimeTypes": ["text/html"] }),
            json!({ "mimeTypes": APP_MIME_TYPE }),
            json!(null),
        ] {
            assert!(!shows(unclear.clone()), "{unclear}");
        }
        let mut capabilities = ClientCapabilities::default();
        assert!(!capabilities.shows_apps());
        capabilities.declare_apps();
        assert!(capabilities.shows_apps());
    }

    #[test]
    fn tasks_are_declared_for_what_the_client_can_do() {
        let declared = |json: serde_json::Value| {
            let mut capabilities: ClientCapabilities = serde_json::from_value(json).unwrap();
            capabilities.declare_tasks();
            serde_json::to_value(capabilities.tasks).unwrap()
        };
        assert_eq!(declared(json!({"roots": {}})), json!(null));
        assert_eq!(
            declared(json!({"sampling": {}})),
            json!({"list": {}, "cancel": {}, "requests": {"sampling": {"createMessage": {}}}})
        );
        assert_eq!(
            declared(json!({"elicitation": {"url": {}}}))["requests"],
            json!({"elicitation": {"create": {}}})
        );
    }

    #[test]
    fn unknown_capabilities_survive() {
        let json = json!({"tasks": {"list": {}}, "roots": {"listChanged": true, "x": 1}});
        let capabilities: ClientCapabilities = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&capabilities).unwrap(), json);
    }
}
