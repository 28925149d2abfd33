//! What an engine is told once: who we are, what we offer, how patient we are.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::server::PeerCache;
use crate::jsonrpc::Limits;
use crate::model::{CacheScope, Implementation, LogLevel, ServerCapabilities};
use crate::revision::{Lifecycle, Revision};

/// The settings of a server's engines; shared by all of them.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Who we are.
    pub server_info: Arc<Implementation>,
    /// Who we are, in as few words as every single result may carry.
    pub stamp: Arc<Implementation>,
    /// What we offer. Capabilities beyond the protocol stand in `extra` for sessions and in `extensions` for
    /// revisions without them.
    pub capabilities: ServerCapabilities,
    /// Advice for the model on the other side.
    pub instructions: Option<String>,
    /// The revisions we speak.
    pub revisions: Vec<Revision>,
    /// Methods beyond the protocol.
    pub custom_methods: BTreeSet<Arc<str>>,
    /// Methods beyond the protocol that need a session.
    pub session_methods: BTreeSet<Arc<str>>,
    /// How strict we are.
    pub policy: Policy,
    /// How large messages may be.
    pub limits: Limits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Requests one session may have running.
    pub max_in_flight: usize,
    /// Resources one session may subscribe to, and streams of changes it may listen to.
    pub max_subscriptions: usize,
    /// How often one call may ask.
    pub max_rounds: u32,
    /// Bytes of a sealed state.
    pub max_state_bytes: usize,
    /// The log level of a session that has set none.
    pub log_level: LogLevel,
    /// For how long lists and resources may be kept, and by whom, unless a handler says otherwise.
    pub cache: (Duration, CacheScope),
    /// Seals what a client has to carry for us.
    pub sealer: Arc<dyn Sealer>,
    /// Who asked lately without a session.
    pub peer_cache: Arc<PeerCache>,
}

impl EngineConfig {
    /// Settings with the usual defaults.
    pub fn new(
        server_info: Implementation,
        capabilities: ServerCapabilities,
        sealer: Arc<dyn Sealer>,
    ) -> Self {
        let stamp = Implementation::new(&server_info.name, &server_info.version);
        Self {
            server_info: Arc::new(server_info),
            stamp: Arc::new(stamp),
            capabilities,
            instructions: None,
            revisions: Revision::ALL.to_vec(),
            custom_methods: BTreeSet::new(),
            session_methods: BTreeSet::new(),
            policy: Policy::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            max_in_flight: 1024,
            max_subscriptions: 1024,
            max_rounds: 10,
            max_state_bytes: 64 << 10,
            log_level: LogLevel::Info,
            cache: (Duration::ZERO, CacheScope::Private),
            sealer,
            peer_cache: Arc::default(),
        }
    }

    /// The revisions we speak that open in this way, newest first.
    pub fn spoken(&self, lifecycle: Lifecycle) -> impl Iterator<Item = Revision> {
        Revision::with(lifecycle).filter(|revision| self.revisions.contains(revision))
    }
}

/// What happens to peers that break rules which one can live with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Requests between the answer to `initialize` and `initialized`.
    pub early_requests: EarlyRequests,
    /// Ids that are already in flight.
    pub duplicate_ids: DuplicateIds,
    /// Whether foreign spellings of a cancellation are understood.
    pub foreign_cancel: bool,
    /// Whether the end of a listening stream is also announced by a cancellation, as pipes need it.
    pub announce_end: bool,
}

impl Policy {
    /// Refuse what the specification does not allow; the default.
    pub const STRICT: Self = Self {
        early_requests: EarlyRequests::Refuse,
        duplicate_ids: DuplicateIds::Refuse,
        foreign_cancel: false,
        announce_end: true,
    };

    /// Serve what can be understood.
    pub const LENIENT: Self =
        Self { early_requests: EarlyRequests::Serve, foreign_cancel: true, ..Self::STRICT };

    /// The end of every message that refuses what the lenient policy serves: the operator reads there what to do.
    pub const LENIENT_SERVES: &str = "--policy lenient serves it";
}

impl Default for Policy {
    fn default() -> Self {
        Self::STRICT
    }
}

/// What happens to requests that come before `initialized`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyRequests {
    /// Refused.
    Refuse,
    /// Kept for a while, since `initialized` may have been overtaken.
    Hold(Duration),
    /// Served.
    Serve,
}

/// What happens to a request whose id is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateIds {
    /// Refused; the first goes on.
    Refuse,
    /// Refused, on a transport where the lenient policy serves it; the error says so.
    RefuseUnlessLenient,
    /// Served: each has an exchange of its own.
    Serve,
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// A response of the client to an input request; people are slow.
    pub client_response: Duration,
    /// A sealed state that a client carries.
    pub state: Duration,
    /// Silence after which a session is pinged; `None` never pings.
    pub ping_after: Option<Duration>,
    /// The answer to a ping; a session without one is ended.
    pub pong: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            client_response: Duration::from_secs(600),
            state: Duration::from_secs(900),
            ping_after: None,
            pong: Duration::from_secs(30),
        }
    }
}

/// Seals what a client carries for us: nobody else can read or change it, and it fits only what it was made for.
pub trait Sealer: Send + Sync + fmt::Debug {
    /// Seals a text for one purpose.
    fn seal(&self, purpose: &[u8], content: &[u8]) -> String;

    /// The content, if `sealed` was made here for exactly this purpose.
    fn open(&self, purpose: &[u8], sealed: &str) -> Option<Vec<u8>>;
}
