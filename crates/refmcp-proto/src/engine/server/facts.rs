//! Facts of a session: what the client and the server have agreed on and set, as data. Several processes serve one
//! session when each has an engine with the same facts.
//!
//! Requests in flight are no facts: a call stays in the process that runs it. Other processes hand it what concerns it
//! ([`SharedOutput`](crate::engine::SharedOutput)).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ServerEngine;
use super::input_rounds::{MAX_EPOCH, ServerRequests};
use crate::engine::EngineConfig;
use crate::jsonrpc::RpcError;
use crate::model::LogLevel;
use crate::peer::Peer;
use crate::revision::{Lifecycle, Revision};
use crate::time::Timestamp;

/// What a client and a server have agreed on and set in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFacts {
    /// The client, with the revision that was agreed on.
    pub peer: Peer,
    /// Whether the client has sent `initialized`.
    pub ready: bool,
    /// The log level.
    pub log_level: LogLevel,
    /// The URIs of `resources/subscribe`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub subscriptions: BTreeSet<String>,
}

/// Why an engine cannot go on with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// The session's revision is not supported here.
    #[error("this server does not support the session's revision, {0}")]
    Revision(Revision),
    /// Too many engines have served the session.
    #[error("the session has moved too often")]
    Epoch,
}

impl SessionFacts {
    /// The facts of a session whose client has sent `initialize`.
    pub(super) fn opening(peer: &Peer, log_level: LogLevel) -> Self {
        Self { peer: peer.clone(), ready: false, log_level, subscriptions: BTreeSet::new() }
    }
}

/// A change of a session's facts. Engines of one session tell changes and not all facts, so that none undoes what another
/// has changed meanwhile. Making a change twice is making it once.
#[derive(Debug, Clone, PartialEq)]
pub enum FactsChange {
    /// The client has sent `initialize`.
    Initialized {
        /// The client, with the revision that was agreed on.
        peer: Box<Peer>,
        /// The log level, if the session has none yet.
        log_level: LogLevel,
    },
    /// The client has sent `initialized`.
    Ready,
    /// The log level was set.
    LogLevel(LogLevel),
    /// The client has subscribed to a resource.
    Subscribed(String),
    /// The client has ended a subscription.
    Unsubscribed(String),
}

impl FactsChange {
    /// Makes the change. Before `initialize` there are no facts, and no other change.
    pub fn apply(&self, facts: &mut Option<SessionFacts>) {
        match (self, facts) {
            (Self::Initialized { peer, .. }, Some(facts)) => facts.peer.clone_from(peer),
            (Self::Initialized { peer, log_level }, none) => {
                *none = Some(SessionFacts::opening(peer, *log_level));
            }
            (_, None) => {}
            (Self::Ready, Some(facts)) => facts.ready = true,
            (Self::LogLevel(level), Some(facts)) => facts.log_level = *level,
            (Self::Subscribed(uri), Some(facts)) => drop(facts.subscriptions.insert(uri.clone())),
            (Self::Unsubscribed(uri), Some(facts)) => drop(facts.subscriptions.remove(uri)),
        }
    }
}

impl ServerEngine {
    /// An engine that goes on with a session, as the one of this epoch: engines of one session have different ones, and
    /// the first has 0. `facts` are `None` before `initialize`.
    pub fn resume(
        config: Arc<EngineConfig>,
        principal: Option<Arc<str>>,
        now: Timestamp,
        epoch: u32,
        facts: Option<&SessionFacts>,
    ) -> Result<Self, ResumeError> {
        if epoch > MAX_EPOCH {
            return Err(ResumeError::Epoch);
        }
        let mut engine = Self::new(config, principal);
        engine.server_requests = ServerRequests::of_epoch(epoch);
        facts.map_or(Ok(()), |facts| engine.adopt(now, facts))?;
        Ok(engine)
    }

    /// The facts of the session; `None` before `initialize`.
    pub fn facts(&self) -> Option<SessionFacts> {
        Some(SessionFacts {
            peer: Peer::clone(self.phase.peer()?),
            ready: self.is_ready(),
            log_level: self.log_level,
            subscriptions: self.subscriptions.clone(),
        })
    }

    /// Takes over what has changed at another process.
    pub fn adopt(&mut self, now: Timestamp, facts: &SessionFacts) -> Result<(), ResumeError> {
        if self.phase.peer().is_none_or(|peer| **peer != facts.peer) {
            let revision = facts.peer.revision;
            if revision.lifecycle() != Lifecycle::Handshake || !self.config.revisions.contains(&revision) {
                return Err(ResumeError::Revision(revision));
            }
            self.set_peer(now, Arc::new(facts.peer.clone()));
        }
        self.log_level = facts.log_level;
        self.subscriptions.clone_from(&facts.subscriptions);
        if facts.ready {
            self.set_ready();
            self.serve_early_requests(now);
        }
        Ok(())
    }

    /// Refuses facts that would be larger than they may be.
    pub(super) fn check_facts_size(
        &self,
        facts: impl FnOnce(&Self) -> Option<SessionFacts>,
    ) -> Result<(), RpcError> {
        let Some(most) = self.config.max_facts_bytes else { return Ok(()) };
        let Some(facts) = facts(self) else { return Ok(()) };
        match serde_json::to_vec(&facts) {
            Ok(bytes) if bytes.len() <= most => Ok(()),
            Ok(bytes) => Err(RpcError::invalid_request(format!(
                "this session would have {} bytes of capabilities, client information and subscriptions; \
                 at most {most} are kept",
                bytes.len()
            ))),
            Err(_) => Err(RpcError::internal("the session cannot be kept")),
        }
    }
}
