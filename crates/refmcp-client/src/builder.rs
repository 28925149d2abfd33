//! What a client is told before it connects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_proto::engine::client::{
    CallOptions, ClientConfig, OpenError, TransportError, TransportKind, VersionPolicy,
};
use refmcp_proto::model::{Implementation, JsonObject};
use refmcp_proto::revision::{Lifecycle, Revision};

use crate::client::Client;
use crate::driver::ClientDriver;
use crate::error::ConnectError;
use crate::host::Host;
use crate::transport::Connector;
use tokio::time::{Instant, timeout_at};

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
pub struct ClientBuilder {
    config: ClientConfig,
    host: Host,
    options: CallOptions,
    /// What servers spoke that were connected before, by their names; clones share it.
    spoken: Arc<Mutex<HashMap<String, Revision>>>,
}

impl ClientBuilder {
    pub(crate) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let config = ClientConfig::new(Implementation::new(name, version));
        Self { config, host: Host::new(), options: CallOptions::default(), spoken: Arc::default() }
    }

    /// Says more about the client than its name and version.
    #[must_use]
    pub fn info(mut self, info: Implementation) -> Self {
        self.config.info = info;
        self
    }

    /// What the application does for servers.
    #[must_use]
    pub fn host(mut self, host: Host) -> Self {
        self.host = host;
        self
    }

    /// Which revisions may be spoken; the newest that the server knows unless this says otherwise.
    #[must_use]
    pub fn era(mut self, era: VersionPolicy) -> Self {
        self.config.version_policy = era;
        self
    }

    /// Remembers what the server of this name spoke, as [`Connector::name`] gives it: one that needs a session is then
    /// not asked first whether it knows a newer revision, unless that fails. Servers that were connected from this
    /// builder are remembered by themselves.
    #[must_use]
    pub fn known_revision(self, server: &str, revision: Revision) -> Self {
        self.spoken.lock().insert(server.to_owned(), revision);
        self
    }

    /// How long the server may be silent about a request, unless the request says otherwise: a minute.
    #[must_use]
    pub fn timeout(mut self, idle: Duration) -> Self {
        self.options.idle = idle;
        self
    }

    /// How long a request may take in all, unless it says otherwise: ten minutes.
    #[must_use]
    pub fn total_timeout(mut self, total: Duration) -> Self {
        self.options.total = total;
        self
    }

    /// Members of `_meta` that every request has, such as a trace context.
    #[must_use]
    pub fn meta(mut self, members: JsonObject) -> Self {
        self.options.meta.extend(members);
        self
    }

    /// How long the opening may take in all, with the connection and every revision that is tried: a minute. The time
    /// in which a person logs in does not count.
    #[must_use]
    pub fn open_timeout(mut self, timeout: Duration) -> Self {
        self.config.open_timeout = timeout;
        self
    }

    /// How long a server that may not know the newest revision has to answer in it, before an older one is tried: five
    /// seconds, and at most half of the time for the opening.
    #[must_use]
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.config.probe_timeout = timeout;
        self
    }

    /// How often one request may be asked for input.
    #[must_use]
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.config.max_rounds = rounds;
        self
    }

    /// Connects to a server and opens a driver.
    ///
    /// # Errors
    /// When the server cannot be reached, or no common revision is found.
    pub async fn connect(&self, server: impl Connector) -> Result<Client, ConnectError> {
        self.connect_to(Arc::new(server)).await
    }

    /// The same, for a server that is only known at run time.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_to(&self, server: Arc<dyn Connector>) -> Result<Client, ConnectError> {
        let name = server.name();
        let mut time = OpeningTime::begin(self.config.open_timeout);
        let spoken = self.spoken.lock().get(&name).copied();
        if self.config.version_policy == VersionPolicy::Auto
            && spoken.is_some_and(|it| it.lifecycle() == Lifecycle::Handshake)
        {
            match self.clone().era(VersionPolicy::Legacy).connect_afresh(&server, &mut time).await {
                // It may speak something else by now.
                Err(fault) if !fault.needs_authorization() => drop(self.spoken.lock().remove(&name)),
                done => return done,
            }
        }
        let client = self.connect_afresh(&server, &mut time).await?;
        self.spoken.lock().insert(name, client.server().revision);
        Ok(client)
    }

    async fn connect_afresh(
        &self,
        server: &Arc<dyn Connector>,
        time: &mut OpeningTime,
    ) -> Result<Client, ConnectError> {
        let why = match self.attempt_patiently(server, time).await {
            Ok(client) => return Ok(client),
            Err(why) => why,
        };
        let name = server.name();
        let sessions =
            self.config.version_policy.revisions().iter().any(|it| it.lifecycle() == Lifecycle::Handshake);
        let older = server.fallback().filter(|_| sessions && speaks_something_older(&why));
        let Some(older) = older else { return Err(ConnectError::Failed { server: name, why }) };
        match self.attempt_patiently(&older, time).await {
            Ok(client) => Ok(client),
            Err(older) => Err(ConnectError::BothFailed { server: name, why, older }),
        }
    }

    /// Opens a driver, as often as it takes until nobody but the server is waited for.
    async fn attempt_patiently(
        &self,
        server: &Arc<dyn Connector>,
        time: &mut OpeningTime,
    ) -> Result<Client, OpenError> {
        loop {
            match self.attempt(server, time).await {
                Err(OpenError::TimedOut { after_millis }) => match server.pending_login() {
                    Some(login) => {
                        login.await?;
                        *time = OpeningTime::begin(self.config.open_timeout);
                    }
                    None => return Err(OpenError::TimedOut { after_millis }),
                },
                done => return done,
            }
        }
    }

    async fn attempt(&self, server: &Arc<dyn Connector>, time: &OpeningTime) -> Result<Client, OpenError> {
        let kind = if server.probe_may_be_ignored() { TransportKind::Pipe } else { TransportKind::Http };
        let version_policy = match self.config.version_policy {
            VersionPolicy::Auto if server.sessions_only() => VersionPolicy::Legacy,
            policy => policy,
        };
        let mut capabilities = self.host.capabilities();
        for (id, settings) in server.extensions() {
            // What the application says of one goes before.
            capabilities.extensions.get_or_insert_default().entry(id).or_insert(settings);
        }
        let config = ClientConfig { version_policy, transport: kind, capabilities, ..self.config.clone() };
        let driver = ClientDriver::new(config, Arc::new(self.host.clone()));
        let connecting = server.connect(driver.sink());
        let transport = if server.logs_in_first() {
            connecting.await?
        } else {
            timeout_at(time.until, connecting).await.map_err(|_| time.over())??
        };
        driver.open(transport);
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

/// The time of one opening, whatever is tried in it.
#[derive(Debug, Clone, Copy)]
struct OpeningTime {
    since: Instant,
    until: Instant,
}

impl OpeningTime {
    fn begin(lasts: Duration) -> Self {
        let since = Instant::now();
        // A time that no clock can show is as good as none.
        let until = since.checked_add(lasts).unwrap_or_else(|| since + Duration::from_secs(365 * 24 * 3600));
        // The engine's own deadline, which says more, comes first where both are due.
        Self { since, until: until + Duration::from_millis(20) }
    }

    fn over(&self) -> OpenError {
        let after = self.since.elapsed().as_millis();
        OpenError::TimedOut { after_millis: u64::try_from(after).unwrap_or(u64::MAX) }
    }
}

/// Whether a refusal may mean that the server knows only the older transport.
fn speaks_something_older(why: &OpenError) -> bool {
    matches!(why, OpenError::Transport(TransportError::Refused { status: 400 | 404 | 405, .. }))
}
