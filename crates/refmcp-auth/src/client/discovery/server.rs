//! Authorization server metadata and its checks.

use bytes::Bytes;
use http::Request;
use url::Url;

use super::super::flow_step::{excerpt, redacted_url};
use super::super::{Blame, FlowError, FlowRequest, GrantKind};
use super::{MetadataSearch, checked_url};
use crate::metadata::ServerMetadata;
use crate::pkce::S256;
use crate::uri::server_metadata;

/// Checked authorization server metadata.
pub(crate) struct Server {
    metadata: ServerMetadata,
}

/// Starts the search for authorization server metadata.
pub(crate) fn search_server(
    issuer: &str,
    what: &'static str,
    flow_request: &FlowRequest,
) -> Result<(MetadataSearch, Request<Bytes>), FlowError> {
    let bad = |why: &str| {
        FlowError::NoAuthorizationServer(format!(
            "{} ({}, {why})",
            redacted_url(&flow_request.server),
            excerpt(issuer)
        ))
    };
    let url = checked_url(issuer).map_err(bad)?;
    if url.query().is_some() {
        return Err(bad("it has parts that do not belong there"));
    }
    MetadataSearch::begin(what, Blame::AuthorizationServer, server_metadata(&url), flow_request)
}

/// Checks authorization server metadata.
pub(crate) fn read_server(
    metadata: ServerMetadata,
    url: &Url,
    issuer: &str,
    alone: bool,
    grant_kind: &GrantKind,
) -> Result<Server, FlowError> {
    // A fallback to the server's origin has no configured issuer, so a trailing slash may differ.
    let same = metadata.issuer == issuer || (alone && metadata.issuer.strip_suffix('/') == Some(issuer));
    if !same {
        return Err(FlowError::IssuerMismatch {
            url: redacted_url(url),
            named: excerpt(&metadata.issuer),
            issuer: excerpt(issuer),
        });
    }
    let server = Server { metadata };
    server.token_endpoint()?;
    if matches!(grant_kind, GrantKind::AuthorizationCode { .. }) {
        if !ServerMetadata::lists(server.metadata.code_challenge_methods_supported.as_ref(), S256) {
            return Err(FlowError::PkceUnsupported(server.issuer().to_owned()));
        }
        server.authorization_endpoint()?;
    }
    Ok(server)
}

/// Default endpoints of a server without metadata (revision 2025-03-26).
pub(crate) fn legacy_server(issuer: &str) -> Server {
    let endpoint = |path: &str| Some(format!("{issuer}{path}"));
    let metadata = ServerMetadata {
        issuer: issuer.to_owned(),
        authorization_endpoint: endpoint("/authorize"),
        token_endpoint: endpoint("/token"),
        registration_endpoint: endpoint("/register"),
        ..ServerMetadata::default()
    };
    Server { metadata }
}

impl Server {
    /// The issuer.
    pub(crate) fn issuer(&self) -> &str {
        &self.metadata.issuer
    }

    /// The metadata.
    pub(crate) fn metadata(&self) -> &ServerMetadata {
        &self.metadata
    }

    /// The authorization endpoint.
    pub(crate) fn authorization_endpoint(&self) -> Result<Url, FlowError> {
        self.endpoint("authorization endpoint", self.metadata.authorization_endpoint.as_deref())
    }

    /// The token endpoint.
    pub(crate) fn token_endpoint(&self) -> Result<Url, FlowError> {
        self.endpoint("token endpoint", self.metadata.token_endpoint.as_deref())
    }

    /// The registration endpoint, if there is one.
    pub(crate) fn registration_endpoint(&self) -> Result<Option<Url>, FlowError> {
        let named = self.metadata.registration_endpoint.as_deref();
        named.map(|named| self.endpoint("registration endpoint", Some(named))).transpose()
    }

    /// The revocation endpoint, if there is a usable one.
    pub(crate) fn revocation_endpoint(&self) -> Option<Url> {
        self.metadata.revocation_endpoint.as_deref().and_then(|named| checked_url(named).ok())
    }

    fn endpoint(&self, what: &'static str, named: Option<&str>) -> Result<Url, FlowError> {
        let url = named.ok_or("it has none").and_then(checked_url);
        url.map_err(|why| FlowError::InvalidEndpoint {
            what,
            issuer: self.issuer().to_owned(),
            why: why.to_owned(),
        })
    }
}
