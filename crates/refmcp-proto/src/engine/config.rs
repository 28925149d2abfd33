//! Configuration of a server engine: what it offers, limits, timeouts, policy.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::jsonrpc::Limits;
use crate::model::{CacheScope, Implementation, LogLevel, ServerCapabilities};
use crate::revision::{Lifecycle, Revision};

/// The settings of a server's engines; shared by all of them.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// The server's name and version.
    pub server_info: Arc<Implementation>,
    /// The same in short, for the `_meta` of every result.
    pub stamp: Arc<Implementation>,
    /// What the server offers. Capabilities beyond the protocol stand in `extra` for sessions and in `extensions` for
    /// revisions without them.
    pub capabilities: ServerCapabilities,
    /// Advice for the model on the other side.
    pub instructions: Option<String>,
    /// The supported revisions.
    pub revisions: Vec<Revision>,
    /// Methods beyond the protocol.
    pub custom_methods: BTreeSet<Arc<str>>,
    /// Methods beyond the protocol that need a session.
    pub session_methods: BTreeSet<Arc<str>>,
    /// Whether calls are forwarded to another server: methods that the protocol does not have and `logging/setLevel` are
    /// calls too, and [`Output::Listening`](super::Output::Listening) reports what is listened for.
    pub forwards: bool,
    /// What happens to peers that break rules.
    pub policy: Policy,
    /// How large messages may be.
    pub limits: Limits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Bytes of the capabilities and the `clientInfo` of a client.
    pub max_client_bytes: usize,
    /// Requests one session may have running.
    pub max_in_flight: usize,
    /// Bytes of the parameters of these, and of the client's responses to what they have asked.
    pub max_in_flight_bytes: usize,
    /// Resources one session may subscribe to, and streams of changes it may listen to.
    pub max_subscriptions: usize,
    /// Bytes of the responses to batches that are not complete, of one session.
    pub max_batch_bytes: usize,
    /// Bytes of the URIs of these resources, and as many of those of the streams.
    pub max_subscription_bytes: usize,
    /// Input rounds of one call.
    pub max_rounds: u32,
    /// Bytes of a sealed state.
    pub max_state_bytes: usize,
    /// Bytes of a session's facts, where several processes serve one session; `None` where a session stays in its process.
    pub max_facts_bytes: Option<usize>,
    /// The log level of a session that has set none.
    pub log_level: LogLevel,
    /// How long lists and resources may be cached, and by which clients, unless a handler says otherwise.
    pub cache: (Duration, CacheScope),
    /// Chooses the revision of sessions, where it is not the one that the client requests.
    pub version_choice: Option<VersionChoice>,
    /// Seals the state that clients carry.
    pub sealer: Arc<dyn Sealer>,
}

/// Chooses the revision of a session, given the client and the revision that the negotiation gives.
#[derive(Clone)]
pub struct VersionChoice(Arc<ChooseVersion>);

type ChooseVersion = dyn Fn(&Implementation, Revision) -> Revision + Send + Sync;

impl VersionChoice {
    /// A choice by this function; a revision that the server does not support for sessions is not taken.
    pub fn new(choose: impl Fn(&Implementation, Revision) -> Revision + Send + Sync + 'static) -> Self {
        Self(Arc::new(choose))
    }

    pub(super) fn choose(&self, client: &Implementation, negotiated: Revision) -> Revision {
        (self.0)(client, negotiated)
    }
}

impl fmt::Debug for VersionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VersionChoice").finish_non_exhaustive()
    }
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
            forwards: false,
            policy: Policy::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            max_client_bytes: 64 << 10,
            max_in_flight: 1024,
            max_in_flight_bytes: 32 << 20,
            max_subscriptions: 1024,
            max_batch_bytes: 8 << 20,
            max_subscription_bytes: 256 << 10,
            max_rounds: 10,
            max_state_bytes: 64 << 10,
            max_facts_bytes: None,
            log_level: LogLevel::Info,
            cache: (Duration::ZERO, CacheScope::Private),
            version_choice: None,
            sealer,
        }
    }

    /// Whether several processes serve one session.
    pub fn shares_sessions(&self) -> bool {
        self.max_facts_bytes.is_some()
    }

    /// The supported revisions with this lifecycle, newest first.
    pub fn supported_revisions(&self, lifecycle: Lifecycle) -> impl Iterator<Item = Revision> {
        Revision::with(lifecycle).filter(|revision| self.revisions.contains(revision))
    }
}

/// What happens to peers that break rules which do no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Requests before `initialized`.
    pub early_requests: EarlyRequests,
    /// Ids that are already in flight.
    pub duplicate_ids: DuplicateIds,
    /// Whether a session may be initialized again, as gateways do that carry several clients over one pipe. Calls in
    /// flight go on; later ones are those of the client that was described last.
    pub repeated_initialize: bool,
    /// Whether `$/cancelRequest` is understood as a cancellation.
    pub foreign_cancel: bool,
    /// Whether a cancellation announces the end of a `subscriptions/listen` stream, as pipes need it.
    pub announce_end: bool,
    /// Whether an error without a request id carries `"id": null` in every revision, as JSON-RPC wants it and all
    /// bodies over HTTP have it. Otherwise the schema of the revision decides.
    pub null_error_id: bool,
}

impl Policy {
    /// Refuse what the specification does not allow; the default.
    pub const STRICT: Self = Self {
        early_requests: EarlyRequests::Refuse,
        duplicate_ids: DuplicateIds::Refuse,
        repeated_initialize: false,
        foreign_cancel: false,
        announce_end: true,
        null_error_id: false,
    };

    /// Serve what can be understood.
    pub const LENIENT: Self = Self {
        early_requests: EarlyRequests::Serve,
        repeated_initialize: true,
        foreign_cancel: true,
        ..Self::STRICT
    };

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
    /// Silence after which a session is pinged; `None` means never.
    #[doc(alias = "ping_interval")]
    pub ping_after: Option<Duration>,
    /// The response to a ping; a session without one is ended.
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

/// Seals state that a client carries: the client cannot read or change it, or use it for another purpose.
pub trait Sealer: Send + Sync + fmt::Debug {
    /// Seals a text for one purpose.
    fn seal(&self, purpose: &[u8], content: &[u8]) -> String;

    /// The content, if `sealed` was made here for exactly this purpose.
    fn open(&self, purpose: &[u8], sealed: &str) -> Option<Vec<u8>>;
}
