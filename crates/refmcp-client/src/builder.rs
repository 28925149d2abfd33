//! `ClientBuilder`: the settings of a client, and connecting.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_proto::engine::client::{
    CallOptions, ClientConfig, ClientTaskConfig, OpenError, TaskIds, TransportError, TransportKind,
    VersionPolicy,
};
use refmcp_proto::model::{Implementation, JsonObject};
use refmcp_proto::revision::{Lifecycle, Revision};
use refmcp_transport::clock::Clock;
use refmcp_transport::observer::{Observed, Observer, Side};
use tokio::time::{Instant, timeout_at};

use crate::client::Client;
use crate::driver::ClientDriver;
use crate::error::ConnectError;
use crate::host::Host;
use crate::transport::Connector;

/// A client that is not connected yet.
///
/// ```no_run
/// # #[cfg(feature = "child")]
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use refmcp_client::{Client, child::ChildProcess};
///
/// let server = ChildProcess::new("refmcp").args(["stdio"]);
/// let client = Client::builder("my-app", "1.0").connect(server).await?;
/// let result = client.call_tool("echo", serde_json::json!({ "message": "hello" })).await?;
/// println!("{:?}", result.content);
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ClientBuilder {
    config: ClientConfig,
    host: Host,
    options: CallOptions,
    observer: Option<Arc<dyn Observer>>,
    /// Revisions of servers that were connected before, by their names; clones share them.
    known_revisions: Arc<Mutex<HashMap<String, Revision>>>,
}

impl ClientBuilder {
    pub(crate) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let mut config = ClientConfig::new(Implementation::new(name, version));
        config.tasks = Some(ClientTaskConfig::new(TaskIds::new(random_id)));
        Self {
            config,
            host: Host::new(),
            options: CallOptions::default(),
            observer: None,
            known_revisions: Arc::default(),
        }
    }

    /// Says more about the client than its name and version.
    pub fn info(mut self, info: Implementation) -> Self {
        self.config.info = info;
        self
    }

    /// The handlers for requests of servers: sampling, elicitation, roots.
    #[doc(alias = "handler")]
    pub fn host(mut self, host: Host) -> Self {
        self.host = host;
        self
    }

    /// Which revisions are tried; by default the newest that the server knows.
    #[doc(alias = "protocol_version")]
    pub fn version_policy(mut self, policy: VersionPolicy) -> Self {
        self.config.version_policy = policy;
        self
    }

    /// The revision that a server spoke before, by its [`Connector::name`]: a server with sessions is then not probed for a
    /// newer revision first, unless that fails. Servers that were connected from this builder are known by themselves.
    pub fn known_revision(self, server: &str, revision: Revision) -> Self {
        self.known_revisions.lock().insert(server.to_owned(), revision);
        self
    }

    /// How long a request may go without progress, unless it says otherwise: a minute.
    pub fn timeout(mut self, idle: Duration) -> Self {
        self.options.idle = idle;
        self
    }

    /// How long a request may take in all, unless it says otherwise: ten minutes.
    pub fn total_timeout(mut self, total: Duration) -> Self {
        self.options.total = total;
        self
    }

    /// Members of `_meta` that every request has, such as a trace context.
    pub fn meta(mut self, members: JsonObject) -> Self {
        self.options.meta.extend(members);
        self
    }

    /// How long opening may take in all, with the connection and every revision that is tried: a minute. The time in which
    /// a person logs in does not count.
    pub fn open_timeout(mut self, timeout: Duration) -> Self {
        self.config.open_timeout = timeout;
        self
    }

    /// How long a server has to answer in the newest revision before an older one is tried: five seconds, and at most half
    /// of the time for opening.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.config.probe_timeout = timeout;
        self
    }

    /// How many rounds of input one request may take.
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.config.max_rounds = rounds;
        self
    }

    /// Changes the limits and lifetimes of the tasks that the client runs for a server: sampling and elicitation in 2025-11-25.
    /// [`Host::without_tasks`] has none at all.
    ///
    /// ```
    /// use std::time::Duration;
    /// use refmcp_client::Client;
    ///
    /// let builder = Client::builder("my-app", "1.0").client_tasks(|tasks| {
    ///     tasks.max_tasks = 100;
    ///     tasks.ttl = Duration::from_secs(120);
    /// });
    /// ```
    pub fn client_tasks(mut self, change: impl FnOnce(&mut ClientTaskConfig)) -> Self {
        change(self.config.tasks.get_or_insert_with(|| ClientTaskConfig::new(TaskIds::new(random_id))));
        self
    }

    /// Is called with each message, HTTP head and finding as it passes.
    ///
    /// ```no_run
    /// # #[cfg(feature = "http")]
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use refmcp_client::observer::{EventContext, MessageEvent, Observer};
    /// use refmcp_client::{Client, http::StreamableHttp};
    ///
    /// struct Print;
    /// impl Observer for Print {
    ///     fn message(&self, context: &EventContext<'_>, message: &MessageEvent<'_>) {
    ///         println!("{:?} {:?} {}", context.connection, message.direction, message.bytes.len());
    ///     }
    /// }
    /// let server = StreamableHttp::new("http://127.0.0.1:3000/mcp")?;
    /// let client = Client::builder("my-app", "1.0").observer(Arc::new(Print)).connect(server).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "trace")]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Connects to a server and opens a session.
    ///
    /// # Errors
    /// The server cannot be reached, or has no revision in common.
    pub async fn connect(&self, server: impl Connector) -> Result<Client, ConnectError> {
        self.connect_to(Arc::new(server)).await
    }

    /// The same, for a server that is only known at run time.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_to(&self, server: Arc<dyn Connector>) -> Result<Client, ConnectError> {
        let name = server.name();
        let mut time = OpenDeadline::begin(self.config.open_timeout);
        let known = self.known_revisions.lock().get(&name).copied();
        if self.config.version_policy == VersionPolicy::Auto
            && known.is_some_and(|it| it.lifecycle() == Lifecycle::Handshake)
        {
            match self
                .clone()
                .version_policy(VersionPolicy::Legacy)
                .connect_or_fall_back(&server, &mut time)
                .await
            {
                // It may speak another revision by now.
                Err(error) if !error.needs_authorization() => drop(self.known_revisions.lock().remove(&name)),
                done => return done,
            }
        }
        let client = self.connect_or_fall_back(&server, &mut time).await?;
        self.known_revisions.lock().insert(name, client.server().revision);
        Ok(client)
    }

    /// The same, and where any revision would do in this one or an older one if the server has one. For gateways, which then
    /// have nothing to translate.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_preferring(
        &self,
        revision: Revision,
        server: Arc<dyn Connector>,
    ) -> Result<Client, ConnectError> {
        if self.config.version_policy != VersionPolicy::Auto {
            return self.connect_to(server).await;
        }
        let preferring = self.clone().version_policy(VersionPolicy::AtMost(revision));
        match preferring.connect_to(server.clone()).await {
            Err(error) if is_about_revision(error.why()) => self.connect_to(server).await,
            done => done,
        }
    }

    async fn connect_or_fall_back(
        &self,
        server: &Arc<dyn Connector>,
        time: &mut OpenDeadline,
    ) -> Result<Client, ConnectError> {
        let why = match self.connect_with_login(server, time).await {
            Ok(client) => return Ok(client),
            Err(why) => why,
        };
        let name = server.name();
        let sessions =
            self.config.version_policy.revisions().iter().any(|it| it.lifecycle() == Lifecycle::Handshake);
        let fallback = server.fallback().filter(|_| sessions && may_need_fallback(&why));
        let Some(fallback) = fallback else { return Err(ConnectError::Failed { server: name, why }) };
        match self.connect_with_login(&fallback, time).await {
            Ok(client) => Ok(client),
            Err(older) => Err(ConnectError::BothFailed { server: name, why, older }),
        }
    }

    /// Connects, and once more after a login that took longer than the time for opening.
    async fn connect_with_login(
        &self,
        server: &Arc<dyn Connector>,
        time: &mut OpenDeadline,
    ) -> Result<Client, OpenError> {
        loop {
            match self.attempt(server, time).await {
                Err(OpenError::TimedOut { after_millis }) => match server.pending_login() {
                    Some(login) => {
                        login.await?;
                        *time = OpenDeadline::begin(self.config.open_timeout);
                    }
                    None => return Err(OpenError::TimedOut { after_millis }),
                },
                done => return done,
            }
        }
    }

    async fn attempt(&self, server: &Arc<dyn Connector>, time: &OpenDeadline) -> Result<Client, OpenError> {
        let kind = if server.probe_may_be_ignored() { TransportKind::Pipe } else { TransportKind::Http };
        let version_policy = match self.config.version_policy {
            VersionPolicy::Auto if server.sessions_only() => VersionPolicy::Legacy,
            policy => policy,
        };
        let mut capabilities = self.host.capabilities();
        for (id, settings) in server.extensions() {
            // The settings of the application take precedence.
            capabilities.extensions.get_or_insert_default().entry(id).or_insert(settings);
        }
        let config = ClientConfig { version_policy, transport: kind, capabilities, ..self.config.clone() };
        let observed = self.observer.clone().map(|observer| {
            Observed::open(observer, Side::Client, server.transport(), server.name(), Clock::new())
        });
        let driver = ClientDriver::new(config, Arc::new(self.host.clone()), observed.unwrap_or_default());
        let connecting = server.connect(driver.sink());
        let connected = if server.logs_in_first() {
            connecting.await.map_err(OpenError::from)
        } else {
            let connected = timeout_at(time.until, connecting).await;
            connected.map_err(|_| time.over()).and_then(|connected| Ok(connected?))
        };
        driver.open(connected.inspect_err(|why| driver.observed.closed(why))?);
        let opened = timeout_at(time.until, driver.opened()).await;
        match opened.unwrap_or_else(|_| Err(time.over())) {
            Ok(facts) => Ok(Client::new(driver, facts, server.name(), kind, self.options.clone())),
            Err(why) => {
                driver.close().await;
                Err(why)
            }
        }
    }
}

/// The id of a task that cannot be guessed: 144 random bits.
fn random_id() -> Option<Arc<str>> {
    let mut bits = [0; 18];
    getrandom::fill(&mut bits).ok()?;
    let mut id = String::with_capacity(2 * bits.len());
    for byte in bits {
        // Writing into memory does not fail.
        let _ = write!(id, "{byte:02x}");
    }
    Some(id.into())
}

/// The deadline of one opening, with all that is tried in it.
#[derive(Debug, Clone, Copy)]
struct OpenDeadline {
    since: Instant,
    until: Instant,
}

impl OpenDeadline {
    fn begin(lasts: Duration) -> Self {
        let since = Instant::now();
        // A time beyond the clock's range is none.
        let until = since.checked_add(lasts).unwrap_or_else(|| since + Duration::from_secs(365 * 24 * 3600));
        // The engine's own deadline has the better message, so it comes first.
        Self { since, until: until + Duration::from_millis(20) }
    }

    fn over(&self) -> OpenError {
        let after = self.since.elapsed().as_millis();
        OpenError::TimedOut { after_millis: u64::try_from(after).unwrap_or(u64::MAX) }
    }
}

/// Whether a server that refused one revision may speak another.
fn is_about_revision(why: &OpenError) -> bool {
    matches!(why, OpenError::NoCommonRevision { .. } | OpenError::Refused(_) | OpenError::Protocol(_))
        || matches!(why, OpenError::Transport(TransportError::Refused { .. }))
}

/// True if the server may only know the older transport.
fn may_need_fallback(why: &OpenError) -> bool {
    matches!(why, OpenError::Transport(TransportError::Refused { status: 400 | 404 | 405, .. }))
}
