//! The methods of the protocol and of its extensions, in both directions: one row each, which asks [`Rules`] where it exists.
//!
//! A new method is a row here, parameters and a result in `model/`, a handler in `refmcp-server/src/method/`, a function of
//! `refmcp-client` and a command. Everything else reads the rows: routing, HTTP headers, metrics, findings.

use std::sync::Arc;

use serde_json::Value;

use super::{Elicitation, Lifecycle, LogScope, Rules, Tasks, UrlElicitation};
use crate::model::{ClientCapabilities, SKILLS_EXTENSION, ServerCapabilities, TASKS_EXTENSION};

/// Writes an enum from the rows of its table: a variant, its name on the wire, and what holds for it.
macro_rules! methods {
    (@name [$($variant:ident $name:literal)*]) => {
        /// The name on the wire.
        pub const fn name(self) -> &'static str {
            match self {
                $(Self::$variant => $name,)*
            }
        }
    };
    (@name [$($variant:ident $name:literal)*] $custom:ident) => {
        /// The name on the wire.
        pub fn name(&self) -> &str {
            match self {
                $(Self::$variant => $name,)*
                Self::$custom(name) => name,
            }
        }

        /// The place in the table; a custom method has none.
        pub fn index(&self) -> Option<usize> {
            enum Place { $($variant),* }
            match self {
                $(Self::$variant => Some(Place::$variant as usize),)*
                Self::$custom(_) => None,
            }
        }
    };
    (
        $(#[$doc:meta])*
        $enum:ident: $row:ident {
            $($variant:ident $name:literal: $value:expr;)*
        }
        $($(#[$custom_doc:meta])* $custom:ident($custom_name:ty): $custom_value:expr)?
    ) => {
        $(#[$doc])*
        #[non_exhaustive]
        pub enum $enum {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
            $($(#[$custom_doc])* $custom($custom_name),)?
        }

        impl $enum {
            /// How many there are.
            pub const COUNT: usize = [$($name),*].len();

            /// The names on the wire, in the order of the table.
            pub const NAMES: [&str; Self::COUNT] = [$($name),*];

            /// The one of this name, in whichever revision.
            pub fn known(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            methods!(@name [$($variant $name)*] $($custom)?);

            fn row(&self) -> &'static $row {
                match self {
                    $(Self::$variant => const { &$value },)*
                    $(Self::$custom(_) => const { &$custom_value },)?
                }
            }
        }
    };
}

methods! {
    /// A request that a client can make of a server: the list of methods, with the revisions that have each.
    ///
    /// ```
    /// use refmcp_proto::revision::{Method, Revision};
    ///
    /// let method = Method::known("tools/call").unwrap();
    /// assert_eq!((method.name(), method.name_member()), ("tools/call", Some("name")));
    /// assert!(method.may_request_input() && method.exists_in(Revision::LATEST.rules()));
    /// assert!(!Method::Ping.exists_in(Revision::LATEST.rules()));
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    Method: RequestRow {
        CallTool              "tools/call":               row(ALWAYS, TOOLS).requests_input().named_by("name");
        ListTools             "tools/list":               row(ALWAYS, TOOLS).lists();
        ReadResource          "resources/read":           row(ALWAYS, RESOURCES).requests_input().named_by("uri");
        ListResources         "resources/list":           row(ALWAYS, RESOURCES).lists();
        ListResourceTemplates "resources/templates/list": row(ALWAYS, RESOURCES).lists();
        Subscribe             "resources/subscribe":      row(UNPROMPTED_CHANGES, SUBSCRIBE);
        Unsubscribe           "resources/unsubscribe":    row(UNPROMPTED_CHANGES, SUBSCRIBE);
        GetPrompt             "prompts/get":              row(ALWAYS, PROMPTS).requests_input().named_by("name");
        ListPrompts           "prompts/list":             row(ALWAYS, PROMPTS).lists();
        Complete              "completion/complete":      row(ALWAYS, COMPLETIONS);
        Ping                  "ping":                     row(SESSION, BY_EVERY_SERVER);
        Initialize            "initialize":               row(SESSION, BY_EVERY_SERVER);
        Discover              "server/discover":          row(STATELESS, BY_EVERY_SERVER);
        SetLevel              "logging/setLevel":         row(SESSION_LOG_LEVEL, LOGGING);
        Listen                "subscriptions/listen":     row(LISTENING, CHANGES);
        GetTask               "tasks/get":                row(TASKS, OFFERS_TASKS).extension().named_by("taskId");
        CancelTask            "tasks/cancel":             row(TASKS, OFFERS_TASKS).extension().named_by("taskId");
        UpdateTask            "tasks/update":             row(EXTENSION_TASKS, OFFERS_TASKS).extension().named_by("taskId");
        GetTaskResult         "tasks/result":             row(EXPERIMENTAL_TASKS, OFFERS_TASKS).extension().requests_input();
        ListTasks             "tasks/list":               row(EXPERIMENTAL_TASKS, LISTS_TASKS).extension().lists();
        ListSkills            "skills/list":              row(ALWAYS, OFFERS_SKILLS).extension().lists();
        GetSkill              "skills/get":               row(ALWAYS, OFFERS_SKILLS).extension();
        ReadDirectory         "resources/directory/read": row(ALWAYS, READS_DIRECTORIES).extension().lists();
    }
    /// A method that this server has beyond the protocol.
    Custom(Arc<str>): row(ALWAYS, BY_EVERY_SERVER)
}

methods! {
    /// A request that a server can make of a client: as a message of its own, or as an input request of a result.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    ServerMethod: ServerRequestRow {
        Elicit        "elicitation/create":     ServerRequestRow { exists: ELICITATION, declared: |client| client.elicitation.is_some() };
        CreateMessage "sampling/createMessage": ServerRequestRow { exists: ALWAYS, declared: ClientCapabilities::samples };
        ListRoots     "roots/list":             ServerRequestRow { exists: ALWAYS, declared: ClientCapabilities::has_roots };
        Ping          "ping":                   ServerRequestRow { exists: SESSION, declared: |_| true };
        GetTask       "tasks/get":              ServerRequestRow { exists: EXPERIMENTAL_TASKS, declared: |client| client.tasks.is_some() };
        GetTaskResult "tasks/result":           ServerRequestRow { exists: EXPERIMENTAL_TASKS, declared: |client| client.tasks.is_some() };
        CancelTask    "tasks/cancel":           ServerRequestRow { exists: EXPERIMENTAL_TASKS, declared: ClientCapabilities::cancels_tasks };
        ListTasks     "tasks/list":             ServerRequestRow { exists: EXPERIMENTAL_TASKS, declared: ClientCapabilities::lists_tasks };
    }
}

methods! {
    /// A notification of either side.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    NotificationMethod: NotificationRow {
        Cancelled                 "notifications/cancelled":                  NotificationRow { client: ALWAYS, server: ALWAYS };
        Progress                  "notifications/progress":                   NotificationRow { client: SESSION, server: ALWAYS };
        Initialized               "notifications/initialized":                NotificationRow { client: SESSION, server: NEVER };
        RootsListChanged          "notifications/roots/list_changed":         NotificationRow { client: SESSION, server: NEVER };
        Log                       "notifications/message":                    NotificationRow { client: NEVER, server: ALWAYS };
        ToolsListChanged          "notifications/tools/list_changed":         NotificationRow { client: NEVER, server: ALWAYS };
        PromptsListChanged        "notifications/prompts/list_changed":       NotificationRow { client: NEVER, server: ALWAYS };
        ResourcesListChanged      "notifications/resources/list_changed":     NotificationRow { client: NEVER, server: ALWAYS };
        ResourceUpdated           "notifications/resources/updated":          NotificationRow { client: NEVER, server: ALWAYS };
        SubscriptionsAcknowledged "notifications/subscriptions/acknowledged": NotificationRow { client: NEVER, server: LISTENING };
        ElicitationComplete       "notifications/elicitation/complete":       NotificationRow { client: NEVER, server: ELICITATION_IDS };
        TaskStatus                "notifications/tasks/status":               NotificationRow { client: EXPERIMENTAL_TASKS, server: EXPERIMENTAL_TASKS };
        Task                      "notifications/tasks":                      NotificationRow { client: NEVER, server: EXTENSION_TASKS };
    }
}

/// What holds for a request of a client.
struct RequestRow {
    exists: ByRules,
    offered: ByServer,
    extension: bool,
    may_request_input: bool,
    is_list: bool,
    name_member: Option<&'static str>,
}

/// What holds for a request of a server.
struct ServerRequestRow {
    exists: ByRules,
    declared: fn(&ClientCapabilities) -> bool,
}

/// Who may send a notification, in which revisions.
struct NotificationRow {
    client: ByRules,
    server: ByRules,
}

const fn row(exists: ByRules, offered: ByServer) -> RequestRow {
    RequestRow {
        exists,
        offered,
        extension: false,
        may_request_input: false,
        is_list: false,
        name_member: None,
    }
}

impl RequestRow {
    const fn requests_input(self) -> Self {
        Self { may_request_input: true, ..self }
    }

    const fn named_by(self, member: &'static str) -> Self {
        Self { name_member: Some(member), ..self }
    }

    const fn lists(self) -> Self {
        Self { is_list: true, ..self }
    }

    const fn extension(self) -> Self {
        Self { extension: true, ..self }
    }
}

impl Method {
    /// Whether a peer under these rules may use the method at all.
    pub fn exists_in(&self, rules: &Rules) -> bool {
        (self.row().exists)(rules)
    }

    /// Whether a server with these capabilities has it.
    pub fn is_offered(&self, capabilities: &ServerCapabilities) -> bool {
        (self.row().offered)(capabilities)
    }

    /// Whether an extension defines it: a server may have it as a custom method.
    pub fn is_extension(&self) -> bool {
        self.row().extension
    }

    /// Whether its handler may request input from the client.
    pub fn may_request_input(&self) -> bool {
        self.row().may_request_input
    }

    /// The member of the parameters that names what the request is about, and that the `Mcp-Name` header repeats.
    pub fn name_member(&self) -> Option<&'static str> {
        self.row().name_member
    }

    /// Whether it gives a list, page by page.
    pub fn is_list(&self) -> bool {
        self.row().is_list
    }
}

impl ServerMethod {
    /// Whether the revision has it, as a request or as an input request.
    pub fn exists_in(self, rules: &Rules) -> bool {
        (self.row().exists)(rules)
    }

    /// Whether a client with these capabilities answers it.
    pub fn is_declared(self, capabilities: &ClientCapabilities) -> bool {
        (self.row().declared)(capabilities)
    }
}

impl NotificationMethod {
    const PREFIX: &str = "notifications/";

    /// The one that is meant by a name without `notifications/`, or with a prefix that resembles it, such as
    /// `notification/`. None for a right name.
    pub fn misnamed(name: &str) -> Option<Self> {
        let resembles =
            |prefix: &str| prefix.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("notif"));
        let bare =
            name.split_once('/').filter(|(prefix, _)| resembles(prefix)).map_or(name, |(_, rest)| rest);
        let full = Self::NAMES.iter().find(|full| full.strip_prefix(Self::PREFIX) == Some(bare))?;
        if *full == name { None } else { Self::known(full) }
    }

    /// Whether a client may send it.
    pub fn client_may_send(self, rules: &Rules) -> bool {
        (self.row().client)(rules)
    }

    /// Whether a server may send it.
    pub fn server_may_send(self, rules: &Rules) -> bool {
        (self.row().server)(rules)
    }
}

// What the rows ask of a revision.

type ByRules = fn(&Rules) -> bool;

const ALWAYS: ByRules = |_| true;
const NEVER: ByRules = |_| false;
const SESSION: ByRules = |rules| rules.lifecycle == Lifecycle::Handshake;
const STATELESS: ByRules = |rules| rules.lifecycle == Lifecycle::PerRequest;
const LISTENING: ByRules = |rules| rules.changes_by_listening;
const UNPROMPTED_CHANGES: ByRules = |rules| !rules.changes_by_listening;
const SESSION_LOG_LEVEL: ByRules = |rules| rules.log_scope == LogScope::Session;
const ELICITATION: ByRules = |rules| rules.elicitation != Elicitation::Unknown;
const ELICITATION_IDS: ByRules = |rules| rules.url_elicitation == UrlElicitation::WithId;
const TASKS: ByRules = |rules| rules.tasks != Tasks::Unknown;
const EXPERIMENTAL_TASKS: ByRules = |rules| rules.tasks == Tasks::Experimental;
const EXTENSION_TASKS: ByRules = |rules| rules.tasks == Tasks::Extension;

// What the rows ask of a server's capabilities.

type ByServer = fn(&ServerCapabilities) -> bool;

const BY_EVERY_SERVER: ByServer = |_| true;
const TOOLS: ByServer = |capabilities| capabilities.tools.is_some();
const RESOURCES: ByServer = |capabilities| capabilities.resources.is_some();
const SUBSCRIBE: ByServer =
    |capabilities| capabilities.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true));
const PROMPTS: ByServer = |capabilities| capabilities.prompts.is_some();
const COMPLETIONS: ByServer = |capabilities| capabilities.completions.is_some();
const LOGGING: ByServer = |capabilities| capabilities.logging.is_some();
/// Listening makes sense once anything can change, tasks included.
const CHANGES: ByServer = |capabilities| {
    let lists = [
        capabilities.tools.as_ref().and_then(|tools| tools.list_changed),
        capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed),
        capabilities.resources.as_ref().and_then(|resources| resources.list_changed),
    ];
    lists.contains(&Some(true)) || SUBSCRIBE(capabilities) || OFFERS_TASKS(capabilities)
};

const OFFERS_TASKS: ByServer =
    |capabilities| capabilities.tasks.is_some() || has_extension(capabilities, TASKS_EXTENSION);
const LISTS_TASKS: ByServer =
    |capabilities| capabilities.tasks.as_ref().is_some_and(|tasks| tasks.list.is_some());
const OFFERS_SKILLS: ByServer = |capabilities| has_extension(capabilities, SKILLS_EXTENSION);
const READS_DIRECTORIES: ByServer = |capabilities| {
    let skills = capabilities.extensions.as_ref().and_then(|extensions| extensions.get(SKILLS_EXTENSION));
    skills.and_then(|settings| settings.get("directoryRead")).and_then(Value::as_bool) == Some(true)
};

fn has_extension(capabilities: &ServerCapabilities, id: &str) -> bool {
    capabilities.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Revision;

    #[test]
    fn every_method_is_known_by_its_name() {
        for (index, name) in Method::NAMES.into_iter().enumerate() {
            let method = Method::known(name).unwrap();
            assert_eq!((method.name(), method.index()), (name, Some(index)));
        }
        assert_eq!(Method::known("tools/Call"), None);
        let custom = Method::Custom("x/y".into());
        assert_eq!((custom.name(), custom.index()), ("x/y", None));
        for name in NotificationMethod::NAMES {
            assert_eq!(NotificationMethod::known(name).unwrap().name(), name);
        }
        assert_eq!(
            NotificationMethod::misnamed("roots/list_changed"),
            Some(NotificationMethod::RootsListChanged)
        );
        for wrong in ["progress", "notification/progress", "Notifications/progress", "notify/progress"] {
            assert_eq!(NotificationMethod::misnamed(wrong), Some(NotificationMethod::Progress), "{wrong}");
        }
        for other in
            ["notifications/progress", "other/progress", "notifications/other", "notif", "é/progress"]
        {
            assert_eq!(NotificationMethod::misnamed(other), None, "{other}");
        }
    }

    /// The revisions in which something holds, by the last two digits of their years and their order within.
    fn revisions(holds: impl Fn(&Rules) -> bool) -> Vec<&'static str> {
        Revision::ALL.into_iter().filter(|revision| holds(revision.rules())).map(Revision::as_str).collect()
    }

    #[test]
    fn methods_exist_where_the_specification_has_them() {
        let all = Revision::ALL.map(Revision::as_str);
        let (sessions, newest) = (&all[..4], &all[4..]);
        let experimental = &all[3..4];
        for (method, expected) in [
            (Method::CallTool, &all[..]),
            (Method::Ping, sessions),
            (Method::Initialize, sessions),
            (Method::SetLevel, sessions),
            (Method::Subscribe, sessions),
            (Method::Discover, newest),
            (Method::Listen, newest),
            (Method::GetTask, &all[3..]),
            (Method::UpdateTask, newest),
            (Method::ListTasks, experimental),
        ] {
            assert_eq!(revisions(|rules| method.exists_in(rules)), expected, "{}", method.name());
        }
        for (method, expected) in [
            (ServerMethod::Elicit, &all[2..]),
            (ServerMethod::Ping, sessions),
            (ServerMethod::ListRoots, &all[..]),
        ] {
            assert_eq!(revisions(|rules| method.exists_in(rules)), expected, "{}", method.name());
        }
    }

    #[test]
    fn notifications_have_senders() {
        let all = Revision::ALL.map(Revision::as_str);
        let (sessions, newest) = (&all[..4], &all[4..]);
        for (method, client, server) in [
            (NotificationMethod::Initialized, sessions, &[][..]),
            (NotificationMethod::Progress, sessions, &all[..]),
            (NotificationMethod::Cancelled, &all[..], &all[..]),
            (NotificationMethod::Log, &[][..], &all[..]),
            (NotificationMethod::SubscriptionsAcknowledged, &[][..], newest),
            (NotificationMethod::ElicitationComplete, &[][..], &all[3..4]),
        ] {
            assert_eq!(revisions(|rules| method.client_may_send(rules)), client, "{}", method.name());
            assert_eq!(revisions(|rules| method.server_may_send(rules)), server, "{}", method.name());
        }
    }

    #[test]
    fn extensions_are_offered_by_their_declaration() {
        let mut capabilities = ServerCapabilities::default();
        assert!(!Method::GetTask.is_offered(&capabilities) && Method::GetTask.is_extension());
        let declared = serde_json::json!({ "io.modelcontextprotocol/tasks": {} });
        capabilities.extensions = declared.as_object().cloned();
        assert!(Method::GetTask.is_offered(&capabilities) && !Method::GetSkill.is_offered(&capabilities));
        for (settings, reads) in [
            (serde_json::json!({}), false),
            (serde_json::json!({ "directoryRead": false }), false),
            (serde_json::json!({ "directoryRead": true }), true),
        ] {
            capabilities.extensions = Some([(SKILLS_EXTENSION.to_owned(), settings)].into_iter().collect());
            assert!(
                Method::ListSkills.is_offered(&capabilities) && Method::GetSkill.is_offered(&capabilities)
            );
            assert_eq!(Method::ReadDirectory.is_offered(&capabilities), reads);
        }
        assert!(!ServerMethod::Elicit.is_declared(&ClientCapabilities::default()));
    }
}
