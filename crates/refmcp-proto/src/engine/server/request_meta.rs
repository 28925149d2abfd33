//! `_meta` of requests: the progress token and the log level; in stateless requests also the client and its protocol
//! version, which takes the place of protocol version negotiation.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;

use super::ServerEngine;
use crate::jsonrpc::{Meta, Params, ProgressToken, RpcError, code, excerpt, read_member};
use crate::model::{ClientCapabilities, Implementation, LogLevel, UnsupportedVersionData, keys};
use crate::peer::Peer;
use crate::revision::{Lifecycle, Revision};
use crate::rule;

/// Peers by the text that described them lately, in `_meta` or in `initialize`: the next request, or the next copy of a
/// program, usually has the same. It belongs to a connection, or to an endpoint with all of its sessions and requests.
///
/// The key is the whole text, so a client never gets the peer of another.
#[derive(Default)]
pub struct PeerCache {
    peers: Mutex<VecDeque<CachedPeer>>,
}

impl fmt::Debug for PeerCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Descriptions of clients are not for logs.
        f.write_str("PeerCache(..)")
    }
}

#[derive(Debug)]
struct CachedPeer {
    version: Box<str>,
    capabilities: Box<str>,
    info: Option<Box<str>>,
    peer: Arc<Peer>,
}

/// Entries of the cache.
const REMEMBERED: usize = 16;

/// Longer texts are not cached.
const MAX_CACHED_BYTES: usize = 4096;

impl PeerCache {
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
        if length > MAX_CACHED_BYTES {
            return;
        }
        let mut known = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        known.truncate(REMEMBERED - 1);
        known.push_front(sender);
    }
}

/// The revision that a stateless request names; `None` for a message of a session. A request has all that a stateless one
/// must have, or none of it.
pub(crate) fn requested_revision<'a>(
    peers: &PeerCache,
    params: &Params<'a>,
) -> Result<Option<Cow<'a, str>>, RpcError> {
    let meta = check_object(&params.meta)?;
    match (meta.protocol_version, meta.client_capabilities) {
        (None, None) if is_misplaced(params) => Err(missing_request_meta()),
        (None, None) => Ok(None),
        (Some(version), Some(capabilities)) => {
            if peers.find(version, capabilities, meta.client_info).is_none() {
                let _: ClientCapabilities = member(capabilities, keys::CLIENT_CAPABILITIES)?;
            }
            match version.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
                Some(plain) if !plain.contains('\\') => Ok(Some(plain.into())),
                _ => member(version, keys::PROTOCOL_VERSION).map(|text: String| Some(text.into())),
            }
        }
        _ => Err(missing_request_meta()),
    }
}

/// The error for a request that should be stateless and does not describe its client.
pub fn missing_request_meta() -> RpcError {
    RpcError::invalid_params(format!(
        "params._meta must have {} and {}",
        keys::PROTOCOL_VERSION,
        keys::CLIENT_CAPABILITIES
    ))
}

/// Refuses a `_meta` that is no object.
pub(super) fn check_object<'m, 'a>(meta: &'m Meta<'a>) -> Result<&'m Meta<'a>, RpcError> {
    match meta.text {
        Some(text) if !text.starts_with('{') => {
            Err(RpcError::invalid_params("params._meta is not an object"))
        }
        _ => Ok(meta),
    }
}

/// Whether a message names its revision in a `_meta` beside the parameters.
pub(super) fn is_misplaced(params: &Params<'_>) -> bool {
    params.misplaced_version
}

pub(super) fn log_level(meta: &Meta<'_>) -> Result<Option<LogLevel>, RpcError> {
    meta.log_level.map_or(Ok(None), |level| member(level, keys::LOG_LEVEL))
}

fn member<'a, T: Deserialize<'a>>(text: &'a str, key: &str) -> Result<T, RpcError> {
    read_member(&meta_member(key), text).map_err(RpcError::invalid_params)
}

/// The name of a member of `_meta` in errors.
fn meta_member(key: &str) -> String {
    format!("params._meta[\"{key}\"]")
}

impl ServerEngine {
    /// The progress token of a request, if it has one.
    pub(super) fn progress_token(&mut self, meta: &Meta<'_>) -> Result<Option<ProgressToken>, RpcError> {
        let Some(json) = meta.progress_token else { return Ok(None) };
        let member = meta_member(keys::PROGRESS_TOKEN);
        let token = self.check_name_size(&member, json).and_then(|()| {
            let wrong = || RpcError::invalid_params(format!("{member} is neither a string nor an integer"));
            ProgressToken::from_json(json).ok_or_else(wrong)
        });
        let refuse =
            |error| self.refuse(&rule::PROG_01, error, "send a string or an integer as progressToken");
        token.map(Some).map_err(refuse)
    }

    /// The client that a stateless request describes, from the cache if it did so before.
    pub(super) fn described_peer(&mut self, meta: &Meta<'_>) -> Result<Arc<Peer>, RpcError> {
        let (Some(version), Some(capabilities)) = (meta.protocol_version, meta.client_capabilities) else {
            return Err(missing_request_meta());
        };
        let known = self.peers().find(version, capabilities, meta.client_info);
        if let Some(peer) = known.filter(|peer| self.config.revisions.contains(&peer.revision)) {
            return Ok(peer);
        }
        self.check_client_size([
            (&meta_member(keys::CLIENT_CAPABILITIES), capabilities),
            (&meta_member(keys::CLIENT_INFO), meta.client_info.unwrap_or_default()),
        ])?;
        let peer = Arc::new(self.read_peer(version, capabilities, meta.client_info)?);
        self.peers().remember(version, capabilities, meta.client_info, peer.clone());
        Ok(peer)
    }

    /// Reads the client of a stateless request, and checks its protocol version; the error names the supported ones.
    fn read_peer(&self, version: &str, capabilities: &str, info: Option<&str>) -> Result<Peer, RpcError> {
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
