//! The table of routes. What holds for every route is done for all of them in one place, and its tests go through this
//! table.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use refmcp_auth::uri::PROTECTED_RESOURCE;

/// A path and its methods.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Route {
    /// The path below the mount point; the first two are the defaults of [`EndpointPath`].
    pub path: &'static str,
    /// The methods.
    pub methods: &'static [&'static str],
    pub(crate) target: Target,
}

/// What is served at a path; the index of its route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Mcp,
    WebSocket,
    Events,
    Messages,
    Health,
    Ready,
    Metrics,
    Metadata,
}

impl Target {
    /// Whether it is for operators.
    pub(crate) fn is_ops(self) -> bool {
        matches!(self, Self::Health | Self::Ready | Self::Metrics)
    }
}

const fn route(path: &'static str, methods: &'static [&'static str], target: Target) -> Route {
    Route { path, methods, target }
}

/// Every route, in the order of [`Target`].
pub(crate) static ROUTES: [Route; 8] = [
    route("/mcp", &["POST", "GET", "DELETE"], Target::Mcp),
    route("/mcp/ws", &["GET"], Target::WebSocket),
    route("/sse", &["GET"], Target::Events),
    route("/messages", &["POST"], Target::Messages),
    route("/healthz", &["GET", "HEAD"], Target::Health),
    route("/readyz", &["GET", "HEAD"], Target::Ready),
    route("/metrics", &["GET", "HEAD"], Target::Metrics),
    route(PROTECTED_RESOURCE, &["GET", "HEAD"], Target::Metadata),
];

/// The path of the MCP endpoint, `/mcp` by default; its WebSocket is at `/ws` below it. Other routes are fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointPath {
    /// Empty where it is not served, as the others.
    main: Arc<str>,
    websocket: Arc<str>,
    events: Arc<str>,
}

/// A path that cannot be that of the MCP endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointPathError {
    /// It does not begin with a slash.
    #[error("a path begins with /, as in /mcp")]
    Relative,
    /// It ends with a slash.
    #[error("a path ends without /, as in /mcp")]
    Trailing,
    /// A part of it is empty or a dot or two, or has characters that would have to be encoded.
    #[error("the parts of a path have letters, digits, - . _ ~, and are neither empty nor dots alone")]
    Part,
    /// Another route has it.
    #[error("{0} is taken: something else is served there")]
    Taken(String),
}

impl EndpointPath {
    /// A WebSocket at this path, and no other transport.
    ///
    /// # Errors
    /// As parsing a path.
    pub fn websocket_only(path: &str) -> Result<Self, EndpointPathError> {
        let Self { main, .. } = path.parse()?;
        Ok(Self { main: "".into(), websocket: main, events: "".into() })
    }

    /// HTTP+SSE with its stream at this path, and no other transport.
    ///
    /// # Errors
    /// As parsing a path.
    pub fn http_sse_only(path: &str) -> Result<Self, EndpointPathError> {
        let events = if path == ROUTES[Target::Events as usize].path {
            path.into()
        } else {
            path.parse::<Self>()?.main
        };
        Ok(Self { main: "".into(), websocket: "".into(), events })
    }

    /// The path of the MCP endpoint.
    pub fn as_str(&self) -> &str {
        &self.main
    }

    /// The path of the WebSocket.
    pub fn websocket(&self) -> &str {
        &self.websocket
    }

    /// The path of a target.
    pub(crate) fn of(&self, target: Target) -> &str {
        match target {
            Target::Mcp => &self.main,
            Target::WebSocket => &self.websocket,
            Target::Events => &self.events,
            target => ROUTES[target as usize].path,
        }
    }

    /// The route of a path.
    pub(crate) fn route(&self, path: &str) -> Option<&'static Route> {
        let metadata = || is_below_metadata(path).then_some(&ROUTES[Target::Metadata as usize]);
        // A request without a path is for none of them, nor for one that is not served.
        ROUTES.iter().find(|route| !path.is_empty() && self.of(route.target) == path).or_else(metadata)
    }

    /// The target of a path; the MCP endpoint for unknown paths.
    pub(crate) fn target(&self, path: &str) -> Target {
        self.route(path).map_or(Target::Mcp, |route| route.target)
    }
}

impl Default for EndpointPath {
    fn default() -> Self {
        let [main, websocket, events] = [0, 1, 2].map(|index: usize| ROUTES[index].path.into());
        Self { main, websocket, events }
    }
}

impl fmt::Display for EndpointPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.main)
    }
}

impl FromStr for EndpointPath {
    type Err = EndpointPathError;

    fn from_str(path: &str) -> Result<Self, EndpointPathError> {
        let rest = path.strip_prefix('/').ok_or(EndpointPathError::Relative)?;
        if rest.ends_with('/') {
            return Err(EndpointPathError::Trailing);
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(plain) && part != "." && part != "..";
        if !rest.is_empty() && !rest.split('/').all(is_part) {
            return Err(EndpointPathError::Part);
        }
        let websocket = format!("/{rest}{}ws", if rest.is_empty() { "" } else { "/" });
        let fixed = &ROUTES[2..];
        for path in [path, &websocket] {
            if path.starts_with("/.well-known/") || fixed.iter().any(|route| route.path == path) {
                return Err(EndpointPathError::Taken(path.to_owned()));
            }
        }
        Ok(Self { main: path.into(), websocket: websocket.into(), events: Self::default().events })
    }
}

/// Whether a path is that of the metadata of one of several resources.
fn is_below_metadata(path: &str) -> bool {
    path.strip_prefix(PROTECTED_RESOURCE).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mcp_endpoint_can_have_another_path() {
        let paths: EndpointPath = "/api/v1/mcp".parse().unwrap();
        assert_eq!((paths.of(Target::Mcp), paths.of(Target::WebSocket)), ("/api/v1/mcp", "/api/v1/mcp/ws"));
        assert_eq!((paths.of(Target::Events), paths.of(Target::Ready)), ("/sse", "/readyz"));
        assert_eq!(paths.target("/api/v1/mcp/ws"), Target::WebSocket);
        assert_eq!(
            (paths.target("/mcp"), paths.route("/mcp").is_none(), paths.route("/mcp/ws").is_none()),
            (Target::Mcp, true, true)
        );
        assert_eq!(paths.target("/.well-known/oauth-protected-resource/api/v1/mcp"), Target::Metadata);
        assert_eq!("/mcp".parse(), Ok(EndpointPath::default()));
        let root: EndpointPath = "/".parse().unwrap();
        assert_eq!((root.as_str(), root.websocket()), ("/", "/ws"));
    }

    #[test]
    fn one_transport_can_be_served_alone() {
        let socket = EndpointPath::websocket_only("/socket").unwrap();
        assert_eq!(socket.target("/socket"), Target::WebSocket);
        assert!(["/mcp", "/sse", "/ws", ""].iter().all(|path| socket.route(path).is_none()));
        for path in ["/sse", "/events", "/"] {
            let events = EndpointPath::http_sse_only(path).unwrap();
            assert_eq!(events.target(path), Target::Events);
            assert!(events.route("/messages").is_some() && events.route("/mcp").is_none());
        }
        assert!(EndpointPath::http_sse_only("/messages").is_err());
    }

    #[test]
    fn routes_have_the_order_of_their_targets() {
        for (index, route) in ROUTES.iter().enumerate() {
            assert_eq!(route.target as usize, index, "{route:?}");
        }
    }

    #[test]
    fn paths_are_checked() {
        for (path, why) in [
            ("", EndpointPathError::Relative),
            ("mcp", EndpointPathError::Relative),
            ("/mcp/", EndpointPathError::Trailing),
            ("//", EndpointPathError::Trailing),
            ("//mcp", EndpointPathError::Part),
            ("/a/../b", EndpointPathError::Part),
            ("/mcp?x=1", EndpointPathError::Part),
            ("/mcp#x", EndpointPathError::Part),
            ("/{id}", EndpointPathError::Part),
            ("/%2e", EndpointPathError::Part),
            ("/a b", EndpointPathError::Part),
            ("/sse", EndpointPathError::Taken("/sse".to_owned())),
            ("/readyz", EndpointPathError::Taken("/readyz".to_owned())),
            ("/.well-known/mcp", EndpointPathError::Taken("/.well-known/mcp".to_owned())),
        ] {
            assert_eq!(path.parse::<EndpointPath>(), Err(why), "{path}");
        }
    }
}
