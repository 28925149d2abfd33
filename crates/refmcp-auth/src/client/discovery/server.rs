//! What an authorization server tells, and whether it may be used.

use bytes::Bytes;
use http::Request;
use url::Url;

use super::super::step::{brief, place};
use super::super::{Blame, FlowError, Wanted, Way};
use super::{Search, usable};
use crate::metadata::ServerMetadata;
use crate::pkce::S256;
use crate::uri::server_metadata;

/// An authorization server whose metadata was checked.
pub(crate) struct Server {
    metadata: ServerMetadata,
}

/// Begins to look for what an authorization server tells.
pub(crate) fn search_server(
    issuer: &str,
    what: &'static str,
    wanted: &Wanted,
) -> Result<(Search, Request<Bytes>), FlowError> {
    let bad =
        |why: &str| FlowError::NoIssuer(format!("{} ({}, {why})", place(&wanted.server), brief(issuer)));
    let url = usable(issuer).map_err(bad)?;
    if url.query().is_some() {
        return Err(bad("it has parts that do not belong there"));
    }
    Search::begin(what, Blame::Issuer, server_metadata(&url), wanted)
}

/// Checks what an authorization server tells.
pub(crate) fn read_server(
    metadata: ServerMetadata,
    url: &Url,
    issuer: &str,
    alone: bool,
    way: &Way,
) -> Result<Server, FlowError> {
    // A server that is asked only because it is there may end its own name in a slash or not: nobody named it.
    let same = metadata.issuer == issuer || (alone && metadata.issuer.strip_suffix('/') == Some(issuer));
    if !same {
        return Err(FlowError::OtherIssuer {
            url: place(url),
            named: brief(&metadata.issuer),
            issuer: brief(issuer),
        });
    }
    let server = Server { metadata };
    server.token_endpoint()?;
    if matches!(way, Way::Code { .. }) {
        if !ServerMetadata::lists(server.metadata.code_challenge_methods_supported.as_ref(), S256) {
            return Err(FlowError::NoPkce(server.issuer().to_owned()));
        }
        server.authorization_endpoint()?;
    }
    Ok(server)
}

/// What an authorization server is taken to be that tells nothing, by the oldest rules.
pub(crate) fn guess_server(issuer: &str) -> Server {
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
    /// Its name.
    pub(crate) fn issuer(&self) -> &str {
        &self.metadata.issuer
    }

    /// All that it tells.
    pub(crate) fn metadata(&self) -> &ServerMetadata {
        &self.metadata
    }

    /// Where people are sent.
    pub(crate) fn authorization_endpoint(&self) -> Result<Url, FlowError> {
        self.endpoint("authorization endpoint", self.metadata.authorization_endpoint.as_deref())
    }

    /// Where tokens are had.
    pub(crate) fn token_endpoint(&self) -> Result<Url, FlowError> {
        self.endpoint("token endpoint", self.metadata.token_endpoint.as_deref())
    }

    /// Where clients register, if they may.
    pub(crate) fn registration_endpoint(&self) -> Result<Option<Url>, FlowError> {
        let named = self.metadata.registration_endpoint.as_deref();
        named.map(|named| self.endpoint("registration endpoint", Some(named))).transpose()
    }

    /// Where tokens are given back, if they can be.
    pub(crate) fn revocation_endpoint(&self) -> Option<Url> {
        self.metadata.revocation_endpoint.as_deref().and_then(|named| usable(named).ok())
    }

    fn endpoint(&self, what: &'static str, named: Option<&str>) -> Result<Url, FlowError> {
        let url = named.ok_or("it has none").and_then(usable);
        url.map_err(|why| FlowError::BadEndpoint {
            what,
            issuer: self.issuer().to_owned(),
            why: why.to_owned(),
        })
    }
}
