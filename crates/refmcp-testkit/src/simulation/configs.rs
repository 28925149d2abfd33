//! Settings of the engines. All conversations share them: making them anew costs more than a conversation.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use refmcp_proto::engine::client::{ClientConfig, TransportKind, VersionPolicy};
use refmcp_proto::engine::{DuplicateIds, EarlyRequests, EngineConfig, Sealer, Timeouts};
use refmcp_proto::model::{ClientCapabilities, Implementation};
use refmcp_proto::revision::Revision;
use serde_json::json;

use super::plan::{Plan, Transport};
use crate::engine::full_config;
use crate::sealer::InsecureTestSealer;

/// How long the server waits for input.
const CLIENT_RESPONSE: Duration = Duration::from_secs(20);

/// The server's settings for this conversation.
pub(super) fn server(plan: &Plan) -> Arc<EngineConfig> {
    static ALL: LazyLock<Vec<Arc<EngineConfig>>> = LazyLock::new(|| {
        let revisions = Revision::ALL.into_iter();
        let kinds = [Transport::Pipe, Transport::Http].into_iter();
        let all = kinds.flat_map(|transport| [false, true].map(|pings| (transport, pings)));
        all.flat_map(|(transport, pings)| {
            revisions.clone().map(move |newest| Arc::new(server_config(transport, pings, newest)))
        })
        .collect()
    });
    let newest = if plan.negotiates { plan.revision } else { Revision::LATEST };
    let kind = 2 * usize::from(plan.transport == Transport::Http) + usize::from(plan.pings);
    ALL[kind * Revision::ALL.len() + index_of(newest)].clone()
}

fn server_config(transport: Transport, pings: bool, newest: Revision) -> EngineConfig {
    let mut config = full_config();
    config.sealer = Arc::new(RepeatableSealer);
    config.revisions = Revision::ALL.into_iter().filter(|revision| *revision <= newest).collect();
    config.timeouts = Timeouts {
        client_response: CLIENT_RESPONSE,
        ping_after: pings.then_some(Duration::from_secs(5)),
        pong: Duration::from_secs(15),
        ..Timeouts::default()
    };
    if transport == Transport::Http {
        config.policy.early_requests = EarlyRequests::Hold(Duration::from_secs(1));
        config.policy.duplicate_ids = DuplicateIds::RefuseUnlessLenient;
        config.policy.announce_end = false;
        config.policy.null_error_id = true;
    }
    config
}

/// Seals the same in every conversation, however many there were before.
#[derive(Debug)]
struct RepeatableSealer;

impl Sealer for RepeatableSealer {
    fn seal(&self, purpose: &[u8], content: &[u8]) -> String {
        InsecureTestSealer::new(1).seal(purpose, content)
    }

    fn open(&self, purpose: &[u8], sealed: &str) -> Option<Vec<u8>> {
        InsecureTestSealer::new(1).open(purpose, sealed)
    }
}

/// The clients' settings for this conversation.
pub(super) fn client(plan: &Plan) -> Arc<ClientConfig> {
    static ALL: LazyLock<Vec<Arc<ClientConfig>>> = LazyLock::new(|| {
        let policies: Vec<VersionPolicy> = Revision::ALL.map(VersionPolicy::Exactly).into();
        let policies = [policies, vec![VersionPolicy::Auto]].concat().into_iter();
        let kinds = [TransportKind::Pipe, TransportKind::Http].into_iter();
        kinds
            .flat_map(|kind| policies.clone().map(move |policy| Arc::new(client_config(kind, policy))))
            .collect()
    });
    let policy = if plan.negotiates { Revision::ALL.len() } else { index_of(plan.revision) };
    ALL[usize::from(plan.transport == Transport::Http) * (Revision::ALL.len() + 1) + policy].clone()
}

fn client_config(transport: TransportKind, version_policy: VersionPolicy) -> ClientConfig {
    let capabilities: ClientCapabilities = serde_json::from_value(json!({
        "roots": {}, "sampling": {}, "elicitation": { "form": {} }
    }))
    .unwrap_or_default();
    ClientConfig {
        capabilities,
        version_policy,
        transport,
        ..ClientConfig::new(Implementation::new("simulated", "1"))
    }
}

fn index_of(revision: Revision) -> usize {
    Revision::ALL.iter().position(|other| *other == revision).unwrap_or(0)
}
