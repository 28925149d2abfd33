//! What is served where. Everything that has to hold for every route is done for all of them in one place, and tests
//! of it go through this table.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use refmcp_auth::uri::PROTECTED_RESOURCE;

/// A path and what may be done there.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Route {
    /// The path, from where the endpoint is mounted; the first two are where [`EndpointPath`] has them.
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

impl Target {
    /// Whether it is for those who operate the server.
    pub(crate) fn is_ops(self) -> bool {
        matches!(self, Self::Health | Self::Ready | Self::Metrics)
    }
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

/// Where the main endpoint is, `/mcp` unless told; its WebSocket is below it, at `/ws`. Everything else stays where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointPath {
    main: Arc<str>,
    websocket: Arc<str>,
}

/// Why a path cannot be that of the main endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointPathError {
    /// It does not begin with a slash.
    #[error("a path begins with /, as in /mcp")]
    Relative,
    /// It ends with a slash.
    #[error("a path ends without /, as in /mcp")]
    Trailing,
    /// It has a part that is empty, a dot or two, or has characters that would have to be encoded.
    #[error("the parts of a path have letters, digits, - . _ ~, and are neither empty nor dots alone")]
    Part,
    /// Something else is served there.
    #[error("{0} is taken: something else is served there")]
    Taken(String),
}

impl EndpointPath {
    /// The path of the main endpoint.
    pub fn as_str(&self) -> &str {
        &self.main
    }

    /// The path of the WebSocket.
    pub fn websocket(&self) -> &str {
        &self.websocket
    }

    /// The path that leads to a target.
    pub(crate) fn of(&self, target: Target) -> &str {
        ROUTES.iter().position(|route| route.target == target).map_or("", |place| self.at(place))
    }

    /// The path of a place in the table.
    pub(crate) fn at(&self, place: usize) -> &str {
        match &ROUTES[place] {
            Route { target: Target::Mcp, .. } => &self.main,
            Route { target: Target::WebSocket, .. } => &self.websocket,
            route => route.path,
        }
    }

    /// Every path, in the order of the table.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        (0..ROUTES.len()).map(|place| self.at(place))
    }

    /// What a path leads to; to the main endpoint where it is none of ours.
    pub(crate) fn target(&self, path: &str) -> Target {
        self.place(path).map_or(Target::Mcp, |place| ROUTES[place].target)
    }

    /// The place in the table of a path.
    pub(crate) fn place(&self, path: &str) -> Option<usize> {
        self.all().position(|known| known == path).or_else(|| {
            let document = || ROUTES.iter().position(|route| route.target == Target::Document);
            is_below(path).then(document).flatten()
        })
    }
}

impl Default for EndpointPath {
    fn default() -> Self {
        Self { main: ROUTES[0].path.into(), websocket: ROUTES[1].path.into() }
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
        Ok(Self { main: path.into(), websocket: websocket.into() })
    }
}

/// Whether a path is that of a document about one of several resources.
fn is_below(path: &str) -> bool {
    path.strip_prefix(PROTECTED_RESOURCE).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_endpoint_can_be_elsewhere() {
        let paths: EndpointPath = "/api/v1/mcp".parse().unwrap();
        assert_eq!((paths.of(Target::Mcp), paths.of(Target::WebSocket)), ("/api/v1/mcp", "/api/v1/mcp/ws"));
        assert_eq!((paths.of(Target::Events), paths.of(Target::Ready)), ("/sse", "/readyz"));
        assert_eq!(paths.target("/api/v1/mcp/ws"), Target::WebSocket);
        assert_eq!((paths.place("/mcp"), paths.place("/mcp/ws")), (None, None));
        assert_eq!(paths.target("/.well-known/oauth-protected-resource/api/v1/mcp"), Target::Document);
        assert_eq!("/mcp".parse(), Ok(EndpointPath::default()));
        let root: EndpointPath = "/".parse().unwrap();
        assert_eq!((root.as_str(), root.websocket()), ("/", "/ws"));
    }

    #[test]
    fn not_every_path_will_do() {
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
