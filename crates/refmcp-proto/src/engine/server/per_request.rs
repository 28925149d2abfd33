//! What a request without a session says about its sender, in its `_meta`.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ServerEngine;
use crate::jsonrpc::{Params, ProgressToken, RpcError, code, excerpt, without_place};
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

/// A sender as one request described it, kept while the next ones use the same words.
///
/// The key is the whole text that the peer was made from, so nothing is ever taken over from another request.
#[derive(Debug)]
pub(super) struct Sender {
    version: Box<str>,
    capabilities: Box<str>,
    info: Option<Box<str>>,
    peer: Arc<Peer>,
}

impl<'a> MetaHead<'a> {
    pub(super) fn read(text: Option<&'a str>) -> Result<Self, RpcError> {
        match text {
            None => Ok(Self::default()),
            Some(text) if text.starts_with('{') => serde_json::from_str(text).map_err(|fault| {
                RpcError::invalid_params(format!("params._meta: {}", without_place(&fault)))
            }),
            Some(_) => Err(RpcError::invalid_params("params._meta is not an object")),
        }
    }

    pub(super) fn names_a_revision(&self) -> bool {
        self.protocol_version.is_some()
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

/// The revision that a request names for itself, if it is one that stands for itself: either nothing of what such a
/// request must carry is there, or all of it.
pub fn stated_revision(params: &Params<'_>) -> Result<Option<String>, RpcError> {
    let head = MetaHead::read(params.meta)?;
    match (head.protocol_version, head.client_capabilities) {
        (None, None) => Ok(None),
        (Some(version), Some(capabilities)) => {
            let _: ClientCapabilities = member(capabilities, keys::CLIENT_CAPABILITIES)?;
            member(version, keys::PROTOCOL_VERSION).map(Some)
        }
        _ => Err(MetaHead::missing()),
    }
}

/// The error for a request that should stand for itself and does not say who sends it.
pub fn unstated_revision() -> RpcError {
    MetaHead::missing()
}

fn member<'a, T: Deserialize<'a>>(text: &'a RawValue, key: &str) -> Result<T, RpcError> {
    serde_json::from_str(text.get()).map_err(|fault| {
        RpcError::invalid_params(format!("params._meta[\"{key}\"]: {}", without_place(&fault)))
    })
}

impl ServerEngine {
    /// The peer that a request describes.
    pub(super) fn sender(&mut self, head: &MetaHead<'_>) -> Result<Arc<Peer>, RpcError> {
        let (Some(version), Some(capabilities)) = (head.protocol_version, head.client_capabilities) else {
            return Err(MetaHead::missing());
        };
        let info = head.client_info.map(RawValue::get);
        if let Some(last) = &self.last_sender
            && *last.version == *version.get()
            && *last.capabilities == *capabilities.get()
            && last.info.as_deref() == info
        {
            return Ok(last.peer.clone());
        }
        let peer = Arc::new(self.read_sender(version, capabilities, head.client_info)?);
        self.last_sender = Some(Sender {
            version: version.get().into(),
            capabilities: capabilities.get().into(),
            info: info.map(Into::into),
            peer: peer.clone(),
        });
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
