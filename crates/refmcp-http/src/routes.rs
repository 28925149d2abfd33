//! What is served where. Everything that has to hold for every route is done for all of them in one place, and tests
//! of it go through this table.

use refmcp_auth::uri::PROTECTED_RESOURCE;

/// A path and what may be done there.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Route {
    /// The path, from where the endpoint is mounted.
    pub path: &'static str,
    /// The methods.
    pub methods: &'static [&'static str],
    pub(crate) target: Target,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Mcp,
    WebSocket,
    Events,
    Messages,
    Health,
    Ready,
    Metrics,
    Document,
}

const fn route(path: &'static str, methods: &'static [&'static str], target: Target) -> Route {
    Route { path, methods, target }
}

/// Every route.
pub(crate) const ROUTES: [Route; 8] = [
    route("/mcp", &["POST", "GET", "DELETE"], Target::Mcp),
    route("/mcp/ws", &["GET"], Target::WebSocket),
    route("/sse", &["GET"], Target::Events),
    route("/messages", &["POST"], Target::Messages),
    route("/healthz", &["GET", "HEAD"], Target::Health),
    route("/readyz", &["GET", "HEAD"], Target::Ready),
    route("/metrics", &["GET", "HEAD"], Target::Metrics),
    route(PROTECTED_RESOURCE, &["GET", "HEAD"], Target::Document),
];

/// The path that leads to a target.
pub(crate) fn path(target: Target) -> &'static str {
    ROUTES.iter().find(|route| route.target == target).map_or("", |route| route.path)
}

/// What a path leads to; to the main endpoint where it is none of ours.
pub(crate) fn target(path: &str) -> Target {
    place(path).and_then(|place| ROUTES.get(place)).map_or(Target::Mcp, |route| route.target)
}

/// The place in the table of a path.
pub(crate) fn place(path: &str) -> Option<usize> {
    ROUTES.iter().position(|route| route.path == path || (route.target == Target::Document && is_below(path)))
}

/// Whether a path is that of a document about one of several resources.
fn is_below(path: &str) -> bool {
    path.strip_prefix(PROTECTED_RESOURCE).is_some_and(|rest| rest.starts_with('/'))
}
