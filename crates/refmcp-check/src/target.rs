//! The server that is checked: how it is reached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use refmcp_client::child::ChildProcess;
use refmcp_client::http::{Address, Dialer, HttpSettings, HttpSse, UrlError};
use refmcp_client::redact;
use refmcp_client::transport::Connector;
use refmcp_proto::revision::Revision;
use refmcp_proto::rule;
use url::Url;

use crate::connection::{EventListener, Http, OpenSessions};

/// How long a program may take to exit after it is told to terminate.
const TERMINATED_WITHIN: Duration = Duration::from_secs(2);

/// A server to check.
#[derive(Clone)]
pub struct Target {
    pub(crate) transport: TargetTransport,
    events: Option<EventListener>,
}

#[derive(Debug, Clone)]
pub(crate) enum TargetTransport {
    /// One stream each way.
    Pipe(Arc<dyn Connector>),
    /// A program that is started.
    Child(ChildProcess),
    /// Streamable HTTP.
    Http(HttpTarget),
    /// HTTP+SSE: messages go by the connector, single requests to the address.
    Sse(Arc<dyn Connector>, HttpTarget),
}

/// Where a server over HTTP is.
#[derive(Clone)]
pub(crate) struct HttpTarget {
    pub(crate) url: Url,
    pub(crate) dialer: Arc<Dialer>,
    /// Header fields of every request; their values are secrets.
    pub(crate) headers: Vec<(String, String)>,
    /// Gets what passes over its connections.
    pub(crate) events: Option<EventListener>,
    pub(crate) open_sessions: OpenSessions,
}

impl Target {
    /// A program that is started as often as needed.
    pub fn child(child: ChildProcess) -> Self {
        Self { transport: TargetTransport::Child(child), events: None }
    }

    /// A server that is connected to as often as needed by this connector: a WebSocket, a pipe in memory.
    pub fn pipe(connector: Arc<dyn Connector>) -> Self {
        Self { transport: TargetTransport::Pipe(connector), events: None }
    }

    /// A server over streamable HTTP, with header fields for every request.
    ///
    /// # Errors
    /// The text is no URL of `http` or `https`.
    pub fn http(url: &str, settings: HttpSettings, headers: Vec<(String, String)>) -> Result<Self, UrlError> {
        Ok(Self { transport: TargetTransport::Http(HttpTarget::new(url, settings, headers)?), events: None })
    }

    /// A server over HTTP+SSE, with header fields for every request. Those that the transport sets itself are left out.
    ///
    /// # Errors
    /// The text is no URL of `http` or `https`.
    pub fn http_sse(
        url: &str,
        settings: HttpSettings,
        headers: Vec<(String, String)>,
    ) -> Result<Self, UrlError> {
        let mut connector = HttpSse::new(url)?.settings(settings.clone());
        for (name, value) in &headers {
            connector = connector.clone().header(name, value).unwrap_or(connector);
        }
        let http = HttpTarget::new(url, settings, headers)?;
        Ok(Self { transport: TargetTransport::Sse(Arc::new(connector), http), events: None })
    }

    /// The same server; a listener gets what passes over its connections.
    #[must_use]
    pub fn observed_by(mut self, events: EventListener) -> Self {
        if let TargetTransport::Http(http) | TargetTransport::Sse(_, http) = &mut self.transport {
            http.events = Some(events.clone());
        }
        self.events = Some(events);
        self
    }

    /// What gets what passes.
    pub(crate) fn events(&self) -> Option<EventListener> {
        self.events.clone()
    }

    /// The name of the server, without secrets: its URL or its command line.
    pub fn name(&self) -> String {
        match &self.transport {
            TargetTransport::Pipe(connector) | TargetTransport::Sse(connector, _) => connector.name(),
            TargetTransport::Child(child) => child.name(),
            TargetTransport::Http(http) => redact::url(http.url.as_str()),
        }
    }

    /// The transport: `stdio`, `http`, `http+sse`, `websocket` or `memory`.
    pub fn transport(&self) -> &'static str {
        match &self.transport {
            TargetTransport::Pipe(connector) => connector.transport(),
            TargetTransport::Child(child) => child.transport(),
            TargetTransport::Http(_) => "http",
            TargetTransport::Sse(..) => "http+sse",
        }
    }

    /// A command line that judges one rule again, or makes one probe again: `--only RULE`, `--probe NAME`.
    pub(crate) fn check_command(&self, what: &str, revision: Revision) -> String {
        let options = format!("refmcp check {what} --revision {}", revision.as_str());
        match &self.transport {
            TargetTransport::Child(child) => format!("{options} -- {}", child.name()),
            TargetTransport::Sse(..) => format!("{options} --transport sse {}", self.name()),
            _ => format!("{options} {}", self.name()),
        }
    }

    /// The same, with this time for a program to exit after its input has ended.
    pub(crate) fn with_grace(&self, grace: Duration) -> Self {
        match &self.transport {
            TargetTransport::Child(child) => Self {
                transport: TargetTransport::Child(child.clone().grace(grace, TERMINATED_WITHIN)),
                ..self.clone()
            },
            _ => self.clone(),
        }
    }

    /// Ends the sessions that were left open.
    pub(crate) async fn end_sessions(&self) {
        if let TargetTransport::Http(http) = &self.transport {
            Http::beside(http).delete_all().await;
        }
    }

    /// Whether a revision has this transport. WebSocket is of none, and taken for a pipe.
    pub(crate) fn is_of(&self, revision: Revision) -> bool {
        match &self.transport {
            TargetTransport::Pipe(_) | TargetTransport::Child(_) => true,
            TargetTransport::Http(_) => {
                rule::HTTP_06.revisions.contains(revision) || rule::MHTTP_01.revisions.contains(revision)
            }
            TargetTransport::Sse(..) => rule::SSE_01.revisions.contains(revision),
        }
    }
}

impl HttpTarget {
    fn new(url: &str, settings: HttpSettings, headers: Vec<(String, String)>) -> Result<Self, UrlError> {
        let dialer = Arc::new(Dialer::http1(Address::http(url)?, settings));
        let url = Url::parse(url).map_err(|error| UrlError::NotAUrl(error.to_string()))?;
        Ok(Self { url, dialer, headers, events: None, open_sessions: OpenSessions::default() })
    }

    /// The path and the query.
    pub(crate) fn path(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("transport", &self.transport).finish_non_exhaustive()
    }
}

/// Header fields are secrets.
impl fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTarget").field("url", &self.url).finish_non_exhaustive()
    }
}
