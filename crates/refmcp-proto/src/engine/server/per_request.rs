//! What a request without a session says about its sender, in its `_meta`.

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
pub(super) struct MetaHead<'a> {
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

/// Clients as they lately described themselves, in a request or when they opened a session: the next one usually uses
/// the same words.
///
/// The key is the whole text that a peer was made from, so nothing is ever taken over from another sender.
#[derive(Default)]
pub struct PeerCache {
    described: Mutex<VecDeque<Sender>>,
    verbatim: Mutex<Verbatim>,
}

impl fmt::Debug for PeerCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What clients say of themselves is theirs.
        f.write_str("PeerCache(..)")
    }
}

/// Whole texts of `_meta`, which for many peer_cache are the same in all their requests.
#[derive(Debug, Default)]
struct Verbatim {
    known: VecDeque<(Box<str>, RequestMeta)>,
    /// Hashes of texts that were read once: those with a trace or a number of their own never come again, and would only
    /// push out the rest.
    once: VecDeque<u64>,
}

/// What a request says about its sender and what they want to be told.
#[derive(Debug, Clone)]
pub(super) struct RequestMeta {
    pub(super) peer: Arc<Peer>,
    pub(super) log_level: Option<LogLevel>,
}

#[derive(Debug)]
struct Sender {
    version: Box<str>,
    capabilities: Box<str>,
    info: Option<Box<str>>,
    peer: Arc<Peer>,
}

/// PeerCache that are remembered.
const REMEMBERED: usize = 16;

/// Longer descriptions are not worth their room.
const LONGEST: usize = 4096;

impl PeerCache {
    /// What this `_meta` says, if one of the same words was read before.
    fn said(&self, meta: Option<&str>) -> Option<RequestMeta> {
        let meta = meta?;
        let verbatim = self.verbatim.lock().unwrap_or_else(PoisonError::into_inner);
        verbatim.known.iter().find(|(text, _)| **text == *meta).map(|(_, said)| said.clone())
    }

    /// Remembers what a `_meta` says that comes for the second time.
    fn remember_said(&self, meta: &str, said: &RequestMeta) {
        if meta.len() > LONGEST {
            return;
        }
        let mut hasher = DefaultHasher::new();
        meta.hash(&mut hasher);
        let hash = hasher.finish();
        let mut verbatim = self.verbatim.lock().unwrap_or_else(PoisonError::into_inner);
        let Verbatim { known, once } = &mut *verbatim;
        if !once.contains(&hash) {
            once.truncate(REMEMBERED - 1);
            once.push_front(hash);
        } else if known.iter().all(|(text, _)| **text != *meta) {
            known.truncate(REMEMBERED - 1);
            known.push_front((meta.into(), said.clone()));
        }
    }

    /// The peer that was made from these words.
    pub(super) fn find(&self, version: &str, capabilities: &str, info: Option<&str>) -> Option<Arc<Peer>> {
        let known = self.described.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |sender: &&Sender| {
            *sender.version == *version
                && *sender.capabilities == *capabilities
                && sender.info.as_deref() == info
        };
        known.iter().find(same).map(|sender| sender.peer.clone())
    }

    pub(super) fn remember(&self, version: &str, capabilities: &str, info: Option<&str>, peer: Arc<Peer>) {
        let sender = Sender {
            version: version.into(),
            capabilities: capabilities.into(),
            info: info.map(Into::into),
            peer,
        };
        let length = sender.capabilities.len() + sender.info.as_deref().map_or(0, str::len);
        if length > LONGEST {
            return;
        }
        let mut known = self.described.lock().unwrap_or_else(PoisonError::into_inner);
        known.truncate(REMEMBERED - 1);
        known.push_front(sender);
    }
}

impl<'a> MetaHead<'a> {
    pub(super) fn read(text: Option<&'a str>) -> Result<Self, RpcError> {
        match text {
            None => Ok(Self::default()),
            Some(text) if text.starts_with('{') => {
                read_member("params._meta", text).map_err(RpcError::invalid_params)
            }
            Some(_) => Err(RpcError::invalid_params("params._meta is not an object")),
        }
    }

    pub(super) fn names_a_revision(&self) -> bool {
        self.protocol_version.is_some()
    }

    /// Whether a message names its revision in a `_meta` that stands beside the parameters.
    pub(super) fn is_misplaced(params: &Params<'a>) -> bool {
        let head = params.misplaced_meta.and_then(|text| serde_json::from_str::<Self>(text).ok());
        head.is_some_and(|head| head.names_a_revision())
    }

    /// Whether the request says who asks, as only requests without a session do.
    pub(super) fn describes_a_sender(&self) -> bool {
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

    /// The error for a request that lacks what a request without a session must have.
    pub(super) fn missing() -> RpcError {
        RpcError::invalid_params(format!(
            "params._meta must have {} and {}",
            keys::PROTOCOL_VERSION,
            keys::CLIENT_CAPABILITIES
        ))
    }
}

impl EngineConfig {
    /// What this `_meta` says, if it is known and its revision is spoken here.
    pub(super) fn said(&self, meta: Option<&str>) -> Option<RequestMeta> {
        self.peer_cache.said(meta).filter(|said| self.revisions.contains(&said.peer.revision))
    }
}

/// The revision that a request names for itself, if it is one that stands for itself: either nothing of what such a
/// request must carry is there, or all of it.
pub fn requested_revision(
    config: &EngineConfig,
    params: &Params<'_>,
) -> Result<Option<Cow<'static, str>>, RpcError> {
    if let Some(said) = config.said(params.meta) {
        return Ok(Some(said.peer.revision.as_str().into()));
    }
    let head = MetaHead::read(params.meta)?;
    match (head.protocol_version, head.client_capabilities) {
        (None, None) if MetaHead::is_misplaced(params) => Err(MetaHead::missing()),
        (None, None) => Ok(None),
        (Some(version), Some(capabilities)) => {
            let info = head.client_info.map(RawValue::get);
            if let Some(peer) = config.peer_cache.find(version.get(), capabilities.get(), info) {
                return Ok(Some(peer.revision.as_str().into()));
            }
            let _: ClientCapabilities = member(capabilities, keys::CLIENT_CAPABILITIES)?;
            member::<String>(version, keys::PROTOCOL_VERSION).map(|version| Some(version.into()))
        }
        _ => Err(MetaHead::missing()),
    }
}

/// The error for a request that should stand for itself and does not say who sends it.
pub fn missing_request_meta() -> RpcError {
    MetaHead::missing()
}

fn member<'a, T: Deserialize<'a>>(text: &'a RawValue, key: &str) -> Result<T, RpcError> {
    read_member(&format!("params._meta[\"{key}\"]"), text.get()).map_err(RpcError::invalid_params)
}

impl ServerEngine {
    /// What a request says about its sender.
    pub(super) fn read_said(&self, meta: Option<&str>, head: &MetaHead<'_>) -> Result<RequestMeta, RpcError> {
        let said = RequestMeta { peer: self.sender(head)?, log_level: head.log_level()? };
        // A token is no part of what is remembered.
        if let Some(meta) = meta.filter(|_| head.progress_token.is_none()) {
            self.config.peer_cache.remember_said(meta, &said);
        }
        Ok(said)
    }

    /// The peer that a request describes.
    fn sender(&self, head: &MetaHead<'_>) -> Result<Arc<Peer>, RpcError> {
        let (Some(version), Some(capabilities)) = (head.protocol_version, head.client_capabilities) else {
            return Err(MetaHead::missing());
        };
        let info = head.client_info.map(RawValue::get);
        let peer_cache = &self.config.peer_cache;
        if let Some(peer) = peer_cache.find(version.get(), capabilities.get(), info) {
            return Ok(peer);
        }
        let peer = Arc::new(self.read_sender(version, capabilities, head.client_info)?);
        peer_cache.remember(version.get(), capabilities.get(), info, peer.clone());
        Ok(peer)
    }

    fn read_sender(
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
    fn only_what_is_said_again_is_remembered() {
        let peer_cache = PeerCache::default();
        let (revision, capabilities, info) = (Revision::LATEST, ClientCapabilities::default(), None);
        let said = RequestMeta { peer: Arc::new(Peer { revision, capabilities, info }), log_level: None };
        let is_known = |meta: &str| peer_cache.said(Some(meta)).is_some();
        for (times, known) in [false, true, true].into_iter().enumerate() {
            peer_cache.remember_said("again", &said);
            assert_eq!(is_known("again"), known, "{times}");
        }
        for number in 0..100 {
            peer_cache.remember_said(&format!("only once: {number}"), &said);
            assert!(!is_known(&format!("only once: {number}")));
        }
        assert!(is_known("again") && peer_cache.said(None).is_none());
        assert!(!is_known("agai") && !is_known("again "));
        let long = "x".repeat(LONGEST + 1);
        (0..3).for_each(|_| peer_cache.remember_said(&long, &said));
        assert!(!is_known(&long));
        assert_eq!(peer_cache.verbatim.lock().unwrap().known.len(), 1, "once is enough");
    }
}
