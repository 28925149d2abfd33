//! `_meta` of requests: the progress token and the log level; in stateless requests also the client and its protocol
//! version, which takes the place of protocol version negotiation.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ServerEngine;
use crate::engine::EngineConfig;
use crate::jsonrpc::{Params, ProgressToken, RpcError, code, excerpt, read_member};
use crate::model::{ClientCapabilities, Implementation, LogLevel, UnsupportedVersionData, keys};
use crate::peer::Peer;
use crate::revision::{Lifecycle, Revision};

/// The members of a request's `_meta` that the protocol defines, unread.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RawRequestMeta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    client_info: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<&'a RawValue>,
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
}

/// Peers by the text that described them lately, in `_meta` or in `initialize`: the next request usually has the same.
///
/// The key is the whole text, so a client never gets the peer of another.
#[derive(Default)]
pub struct PeerCache {
    peers: Mutex<VecDeque<CachedPeer>>,
    contexts: Mutex<ContextCache>,
}

impl fmt::Debug for PeerCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Descriptions of clients are not for logs.
        f.write_str("PeerCache(..)")
    }
}

/// Contexts by the whole text of `_meta`, which many clients repeat in all their requests.
#[derive(Debug, Default)]
struct ContextCache {
    known: VecDeque<(Box<str>, RequestContext)>,
    /// Hashes of texts that were read once: those with a trace id never come again, and would only push out the rest.
    once: VecDeque<u64>,
}

/// What `_meta` of a request says: the client, and the log messages that it wants.
#[derive(Debug, Clone)]
pub(super) struct RequestContext {
    pub(super) peer: Arc<Peer>,
    pub(super) log_level: Option<LogLevel>,
}

#[derive(Debug)]
struct CachedPeer {
    version: Box<str>,
    capabilities: Box<str>,
    info: Option<Box<str>>,
    peer: Arc<Peer>,
}

/// Entries of each cache.
const REMEMBERED: usize = 16;

/// Longer texts are not cached.
const LONGEST: usize = 4096;

impl PeerCache {
    /// The context of this `_meta`, if the same text was read before.
    fn context(&self, meta: Option<&str>) -> Option<RequestContext> {
        let meta = meta?;
        let contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.known.iter().find(|(text, _)| **text == *meta).map(|(_, context)| context.clone())
    }

    /// Remembers the context of a `_meta` that comes for the second time.
    fn remember_context(&self, meta: &str, context: &RequestContext) {
        if meta.len() > LONGEST {
            return;
        }
        let mut hasher = DefaultHasher::new();
        meta.hash(&mut hasher);
        let hash = hasher.finish();
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        let ContextCache { known, once } = &mut *contexts;
        if !once.contains(&hash) {
            once.truncate(REMEMBERED - 1);
            once.push_front(hash);
        } else if known.iter().all(|(text, _)| **text != *meta) {
            known.truncate(REMEMBERED - 1);
            known.push_front((meta.into(), context.clone()));
        }
    }

    /// The peer that was made from these texts.
    pub(super) fn find(&self, version: &str, capabilities: &str, info: Option<&str>) -> Option<Arc<Peer>> {
        let known = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |sender: &&CachedPeer| {
            *sender.version == *version
                && *sender.capabilities == *capabilities
                && sender.info.as_deref() == info
        };
        known.iter().find(same).map(|sender| sender.peer.clone())
    }

    pub(super) fn remember(&self, version: &str, capabilities: &str, info: Option<&str>, peer: Arc<Peer>) {
        let sender = CachedPeer {
            version: version.into(),
            capabilities: capabilities.into(),
            info: info.map(Into::into),
            peer,
        };
        let length = sender.capabilities.len() + sender.info.as_deref().map_or(0, str::len);
        if length > LONGEST {
            return;
        }
        let mut known = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        known.truncate(REMEMBERED - 1);
        known.push_front(sender);
    }
}

impl<'a> RawRequestMeta<'a> {
    pub(super) fn read(text: Option<&'a str>) -> Result<Self, RpcError> {
        match text {
            None => Ok(Self::default()),
            Some(text) if text.starts_with('{') => {
                read_member("params._meta", text).map_err(RpcError::invalid_params)
            }
            Some(_) => Err(RpcError::invalid_params("params._meta is not an object")),
        }
    }

    pub(super) fn has_protocol_version(&self) -> bool {
        self.protocol_version.is_some()
    }

    /// Whether a message names its revision in a `_meta` beside the parameters.
    pub(super) fn is_misplaced(params: &Params<'a>) -> bool {
        let head = params.misplaced_meta.and_then(|text| serde_json::from_str::<Self>(text).ok());
        head.is_some_and(|head| head.has_protocol_version())
    }

    /// Whether the request describes its client, as only stateless requests do.
    pub(super) fn describes_client(&self) -> bool {
        self.client_capabilities.is_some() || self.client_info.is_some()
    }

    pub(super) fn log_level(&self) -> Result<Option<LogLevel>, RpcError> {
        self.log_level.map(|level| member(level, keys::LOG_LEVEL)).transpose()
    }

    pub(super) fn progress_token(&self) -> Result<Option<ProgressToken>, RpcError> {
        let Some(token) = self.progress_token else { return Ok(None) };
        match ProgressToken::from_json(token.get()) {
            Some(token) => Ok(Some(token)),
            None => {
                let key = keys::PROGRESS_TOKEN;
                Err(RpcError::invalid_params(format!(
                    "params._meta[\"{key}\"] is neither a string nor an integer"
                )))
            }
        }
    }

    /// The error for a stateless request without a required member.
    pub(super) fn missing() -> RpcError {
        RpcError::invalid_params(format!(
            "params._meta must have {} and {}",
            keys::PROTOCOL_VERSION,
            keys::CLIENT_CAPABILITIES
        ))
    }
}

impl EngineConfig {
    /// The cached context of this `_meta`, if its revision is supported.
    pub(super) fn context(&self, meta: Option<&str>) -> Option<RequestContext> {
        self.peer_cache.context(meta).filter(|context| self.revisions.contains(&context.peer.revision))
    }
}

/// The revision that a stateless request names; `None` for one of a session. A request has all that a stateless one must
/// have, or none of it.
pub fn requested_revision(
    config: &EngineConfig,
    params: &Params<'_>,
) -> Result<Option<Cow<'static, str>>, RpcError> {
    if let Some(context) = config.context(params.meta) {
        return Ok(Some(context.peer.revision.as_str().into()));
    }
    let head = RawRequestMeta::read(params.meta)?;
    match (head.protocol_version, head.client_capabilities) {
        (None, None) if RawRequestMeta::is_misplaced(params) => Err(RawRequestMeta::missing()),
        (None, None) => Ok(None),
        (Some(version), Some(capabilities)) => {
            let info = head.client_info.map(RawValue::get);
            if let Some(peer) = config.peer_cache.find(version.get(), capabilities.get(), info) {
                return Ok(Some(peer.revision.as_str().into()));
            }
            let _: ClientCapabilities = member(capabilities, keys::CLIENT_CAPABILITIES)?;
            member::<String>(version, keys::PROTOCOL_VERSION).map(|version| Some(version.into()))
        }
        _ => Err(RawRequestMeta::missing()),
    }
}

/// The error for a request that should be stateless and does not describe its client.
pub fn missing_request_meta() -> RpcError {
    RawRequestMeta::missing()
}

fn member<'a, T: Deserialize<'a>>(text: &'a RawValue, key: &str) -> Result<T, RpcError> {
    read_member(&format!("params._meta[\"{key}\"]"), text.get()).map_err(RpcError::invalid_params)
}

impl ServerEngine {
    /// Reads the context of a request.
    pub(super) fn read_context(
        &self,
        meta: Option<&str>,
        head: &RawRequestMeta<'_>,
    ) -> Result<RequestContext, RpcError> {
        let context = RequestContext { peer: self.described_peer(head)?, log_level: head.log_level()? };
        // A progress token is not part of the context, so its request is not cached.
        if let Some(meta) = meta.filter(|_| head.progress_token.is_none()) {
            self.config.peer_cache.remember_context(meta, &context);
        }
        Ok(context)
    }

    /// The client that a stateless request describes, from the cache if it did so before.
    fn described_peer(&self, head: &RawRequestMeta<'_>) -> Result<Arc<Peer>, RpcError> {
        let (Some(version), Some(capabilities)) = (head.protocol_version, head.client_capabilities) else {
            return Err(RawRequestMeta::missing());
        };
        let info = head.client_info.map(RawValue::get);
        let peer_cache = &self.config.peer_cache;
        if let Some(peer) = peer_cache.find(version.get(), capabilities.get(), info) {
            return Ok(peer);
        }
        let peer = Arc::new(self.read_peer(version, capabilities, head.client_info)?);
        peer_cache.remember(version.get(), capabilities.get(), info, peer.clone());
        Ok(peer)
    }

    /// Reads the client of a stateless request, and checks its protocol version; the error names the supported ones.
    fn read_peer(
        &self,
        version: &RawValue,
        capabilities: &RawValue,
        info: Option<&RawValue>,
    ) -> Result<Peer, RpcError> {
        let version: String = member(version, keys::PROTOCOL_VERSION)?;
        let capabilities: ClientCapabilities = member(capabilities, keys::CLIENT_CAPABILITIES)?;
        let info: Option<Implementation> = match info {
            Some(info) => member(info, keys::CLIENT_INFO)?,
            None => None,
        };
        let revision = version.parse::<Revision>().ok().filter(|revision| {
            revision.lifecycle() == Lifecycle::PerRequest && self.config.revisions.contains(revision)
        });
        let Some(revision) = revision else {
            let data = UnsupportedVersionData {
                supported: self.supported_versions(),
                requested: Some(version.clone()),
                ..Default::default()
            };
            let text = format!("unsupported protocol version {}", excerpt(&version));
            let mut error = RpcError::new(code::UNSUPPORTED_VERSION, text);
            error.data = serde_json::to_value(data).ok();
            return Err(error);
        };
        Ok(Peer { revision, capabilities, info })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_cache_keeps_only_repeated_meta() {
        let peer_cache = PeerCache::default();
        let (revision, capabilities, info) = (Revision::LATEST, ClientCapabilities::default(), None);
        let context =
            RequestContext { peer: Arc::new(Peer { revision, capabilities, info }), log_level: None };
        let is_known = |meta: &str| peer_cache.context(Some(meta)).is_some();
        for (times, known) in [false, true, true].into_iter().enumerate() {
            peer_cache.remember_context("again", &context);
            assert_eq!(is_known("again"), known, "{times}");
        }
        for number in 0..100 {
            peer_cache.remember_context(&format!("only once: {number}"), &context);
            assert!(!is_known(&format!("only once: {number}")));
        }
        assert!(is_known("again") && peer_cache.context(None).is_none());
        assert!(!is_known("agai") && !is_known("again "));
        let long = "x".repeat(LONGEST + 1);
        (0..3).for_each(|_| peer_cache.remember_context(&long, &context));
        assert!(!is_known(&long));
        assert_eq!(peer_cache.contexts.lock().unwrap().known.len(), 1, "once is enough");
    }
}
