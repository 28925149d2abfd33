//! The requests a server can get: in which revisions, and what a server must offer for them.

use std::sync::Arc;

use super::{Lifecycle, Rules};
use crate::model::ServerCapabilities;

/// A request that a client can make of a server.
///
/// A new method is a variant here with its line of the table below, parameters and a result in `model/`, and a handler in
/// `refmcp-server/src/method/`, to which `start` leads. Everything else reads the table, metrics and HTTP headers too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// `initialize`
    Initialize,
    /// `ping`
    Ping,
    /// `server/discover`
    Discover,
    /// `tools/list`
    ListTools,
    /// `tools/call`
    CallTool,
    /// `resources/list`
    ListResources,
    /// `resources/templates/list`
    ListResourceTemplates,
    /// `resources/read`
    ReadResource,
    /// `resources/subscribe`
    Subscribe,
    /// `resources/unsubscribe`
    Unsubscribe,
    /// `prompts/list`
    ListPrompts,
    /// `prompts/get`
    GetPrompt,
    /// `completion/complete`
    Complete,
    /// `logging/setLevel`
    SetLevel,
    /// `subscriptions/listen`
    Listen,
    /// A method that this server has beyond the protocol.
    Custom(Arc<str>),
}

/// One line of the method table.
struct Row {
    method: Method,
    name: &'static str,
    lifecycle: Option<Lifecycle>,
    offered: fn(&ServerCapabilities) -> bool,
    may_request_input: bool,
    name_member: Option<&'static str>,
}

const ANY: Option<Lifecycle> = None;
const SESSION: Option<Lifecycle> = Some(Lifecycle::Handshake);
const STATELESS: Option<Lifecycle> = Some(Lifecycle::PerRequest);

/// Every method of the protocol, the most frequent first. None has come or gone between two session revisions, so the
/// lifecycle says it all.
#[rustfmt::skip]
static TABLE: [Row; Method::COUNT] = [
    Row { method: Method::CallTool,              name: "tools/call",               lifecycle: ANY,       offered: tools,       may_request_input: true,  name_member: Some("name") },
    Row { method: Method::ListTools,             name: "tools/list",               lifecycle: ANY,       offered: tools,       may_request_input: false, name_member: None },
    Row { method: Method::ReadResource,          name: "resources/read",           lifecycle: ANY,       offered: resources,   may_request_input: true,  name_member: Some("uri") },
    Row { method: Method::ListResources,         name: "resources/list",           lifecycle: ANY,       offered: resources,   may_request_input: false, name_member: None },
    Row { method: Method::ListResourceTemplates, name: "resources/templates/list", lifecycle: ANY,       offered: resources,   may_request_input: false, name_member: None },
    Row { method: Method::Subscribe,             name: "resources/subscribe",      lifecycle: SESSION,   offered: subscribe,   may_request_input: false, name_member: None },
    Row { method: Method::Unsubscribe,           name: "resources/unsubscribe",    lifecycle: SESSION,   offered: subscribe,   may_request_input: false, name_member: None },
    Row { method: Method::GetPrompt,             name: "prompts/get",              lifecycle: ANY,       offered: prompts,     may_request_input: true,  name_member: Some("name") },
    Row { method: Method::ListPrompts,           name: "prompts/list",             lifecycle: ANY,       offered: prompts,     may_request_input: false, name_member: None },
    Row { method: Method::Complete,              name: "completion/complete",      lifecycle: ANY,       offered: completions, may_request_input: false, name_member: None },
    Row { method: Method::Ping,                  name: "ping",                     lifecycle: SESSION,   offered: always,      may_request_input: false, name_member: None },
    Row { method: Method::Initialize,            name: "initialize",               lifecycle: SESSION,   offered: always,      may_request_input: false, name_member: None },
    Row { method: Method::Discover,              name: "server/discover",          lifecycle: STATELESS, offered: always,      may_request_input: false, name_member: None },
    Row { method: Method::SetLevel,              name: "logging/setLevel",         lifecycle: SESSION,   offered: logging,     may_request_input: false, name_member: None },
    Row { method: Method::Listen,                name: "subscriptions/listen",     lifecycle: STATELESS, offered: changes,     may_request_input: false, name_member: None },
];

impl Method {
    /// How many methods the protocol has.
    pub const COUNT: usize = 15;

    /// The names of the protocol's methods, the most frequent first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|row| row.name)
    }

    /// The place among [`names`](Self::names); a custom method has none.
    pub fn index(&self) -> Option<usize> {
        TABLE.iter().position(|row| row.method == *self)
    }

    /// The protocol's method of this name, in whichever revision.
    pub fn known(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.method.clone())
    }

    /// The name on the wire.
    pub fn name(&self) -> &str {
        match self {
            Self::Custom(name) => name,
            known => known.row().map_or("", |row| row.name),
        }
    }

    /// Whether a peer under these rules may use the method at all.
    pub fn exists_in(&self, rules: &Rules) -> bool {
        self.row().is_none_or(|row| row.lifecycle.is_none_or(|lifecycle| lifecycle == rules.lifecycle))
    }

    /// Whether a server with these capabilities has it.
    pub fn is_offered(&self, capabilities: &ServerCapabilities) -> bool {
        self.row().is_none_or(|row| (row.offered)(capabilities))
    }

    /// Whether its handler may request input from the client.
    pub fn may_request_input(&self) -> bool {
        self.row().is_some_and(|row| row.may_request_input)
    }

    /// The member of the parameters that names what the request is about, and that the `Mcp-Name` header repeats.
    pub fn name_member(&self) -> Option<&'static str> {
        self.row().and_then(|row| row.name_member)
    }

    /// Whether it gives a list, page by page.
    pub fn is_list(&self) -> bool {
        matches!(
            self,
            Self::ListTools | Self::ListResources | Self::ListResourceTemplates | Self::ListPrompts
        )
    }

    fn row(&self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.method == *self)
    }
}

fn always(_: &ServerCapabilities) -> bool {
    true
}

fn tools(capabilities: &ServerCapabilities) -> bool {
    capabilities.tools.is_some()
}

fn resources(capabilities: &ServerCapabilities) -> bool {
    capabilities.resources.is_some()
}

fn subscribe(capabilities: &ServerCapabilities) -> bool {
    capabilities.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true))
}

fn prompts(capabilities: &ServerCapabilities) -> bool {
    capabilities.prompts.is_some()
}

fn completions(capabilities: &ServerCapabilities) -> bool {
    capabilities.completions.is_some()
}

fn logging(capabilities: &ServerCapabilities) -> bool {
    capabilities.logging.is_some()
}

/// Listening makes sense once anything can change.
fn changes(capabilities: &ServerCapabilities) -> bool {
    let lists = [
        capabilities.tools.as_ref().and_then(|tools| tools.list_changed),
        capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed),
        capabilities.resources.as_ref().and_then(|resources| resources.list_changed),
    ];
    lists.contains(&Some(true)) || subscribe(capabilities)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Revision;

    #[test]
    fn every_method_finds_its_row() {
        for row in &TABLE {
            assert_eq!(Method::known(row.name), Some(row.method.clone()));
            assert_eq!(row.method.name(), row.name);
        }
        assert_eq!(Method::known("tools/Call"), None);
        assert_eq!(Method::Custom("x/y".into()).name(), "x/y");
    }

    #[test]
    fn methods_belong_to_their_lifecycle() {
        let exists = |method: &Method, revision: Revision| method.exists_in(revision.rules());
        for method in [Method::Ping, Method::Initialize, Method::SetLevel, Method::Subscribe] {
            assert!(exists(&method, Revision::V2025_11_25));
            assert!(!exists(&method, Revision::V2026_07_28));
        }
        for method in [Method::Discover, Method::Listen] {
            assert!(!exists(&method, Revision::V2025_11_25));
            assert!(exists(&method, Revision::V2026_07_28));
        }
    }
}
