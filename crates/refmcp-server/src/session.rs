//! What the server keeps of one connection.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use refmcp_proto::engine::{Change, Dispatch, Note};
use refmcp_proto::finding::Finding;
use refmcp_transport::{Link, Running, Service};
use tokio::time::Instant;

use crate::catalog::Catalog;
use crate::method;
use crate::server::Server;
use crate::values::Values;

/// How a client is connected.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// The kind of transport, for people.
    pub transport: &'static str,
    /// Whether the client is on this machine.
    pub local: bool,
    /// Who was authenticated, if anybody.
    pub principal: Option<Arc<str>>,
    /// Headers that came with the connection, where there are any.
    pub headers: Vec<(String, String)>,
}

/// One connection: its own values, its own additions to the lists.
pub struct Session {
    number: u64,
    server: Server,
    connection: Connection,
    started: Instant,
    values: Values,
    pub(crate) catalog: RwLock<Catalog>,
    link: OnceLock<Link>,
    roots_changes: AtomicU64,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Session {
    pub(crate) fn new(server: Server, connection: Connection) -> Arc<Self> {
        Arc::new(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            server,
            connection,
            started: Instant::now(),
            values: Values::default(),
            catalog: RwLock::default(),
            link: OnceLock::new(),
            roots_changes: AtomicU64::new(0),
        })
    }

    /// A number for logs; it means nothing outside of this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How the client is connected.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// How long the connection has lasted.
    pub fn age(&self) -> std::time::Duration {
        self.started.elapsed()
    }

    /// How often the client has said that its roots have changed.
    pub fn roots_changes(&self) -> u64 {
        self.roots_changes.load(Ordering::Relaxed)
    }

    /// The session's value of this type, made when it is first asked for.
    pub fn value<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.values.get()
    }

    /// Changes the lists of this session alone; the client is told.
    pub async fn change_lists(&self, change: impl FnOnce(&mut Catalog) -> Option<Change>) {
        let changed = change(&mut self.catalog.write().unwrap_or_else(PoisonError::into_inner));
        if let (Some(change), Some(link)) = (changed, self.link.get()) {
            link.changed(change).await;
        }
    }

    /// Tells the client of a change.
    pub async fn changed(&self, change: Change) {
        if let Some(link) = self.link.get() {
            link.changed(change).await;
        }
    }

    /// Sends the client a log message that belongs to no call.
    pub async fn log(&self, note: Note) {
        if let Some(link) = self.link.get() {
            link.log(None, note).await;
        }
    }

    /// Tells the session the way to its engine.
    pub fn connect(&self, link: Link) {
        // A session has one connection; were there a second, the first would go on being the one that is told.
        let _ = self.link.set(link);
    }
}

/// The part of a session that runs its calls.
#[derive(Debug)]
pub struct Runner(pub(crate) Arc<Session>);

impl Service for Runner {
    fn start(&self, call: Box<Dispatch>, link: &Link) -> Running {
        method::start(&self.0.server, &self.0, call, link)
    }

    fn roots_changed(&self) {
        self.0.roots_changes.fetch_add(1, Ordering::Relaxed);
    }

    fn noted(&self, finding: &Finding) {
        tracing::info!(session = self.0.number, rule = finding.rule, "{}", finding.what);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("number", &self.number).finish_non_exhaustive()
    }
}
