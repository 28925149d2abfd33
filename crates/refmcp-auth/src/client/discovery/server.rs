//! Authorization server metadata and its checks.

use url::Url;

use super::super::flow::FlowIo;
use super::super::flow_step::{FlowStep, excerpt, redacted_url};
use super::super::{Blame, FlowError, FlowErrorKind, FlowRequest, GrantKind};
use super::resource::no_authorization_server;
use super::{MetadataSearch, NOTHING, UNUSABLE, checked_url};
use crate::metadata::ServerMetadata;
use crate::pkce::S256;
use crate::uri::server_metadata;

/// Finds and checks the metadata of an authorization server. A server that is `alone`, taken for its own authorization
/// server, may have none.
pub(crate) async fn discover_server(
    io: &FlowIo,
    what: &'static str,
    issuer: &str,
    alone: bool,
    flow_request: &FlowRequest,
) -> Result<ServerMetadata, FlowError> {
    let places = places(issuer, flow_request)?;
    let search = MetadataSearch { io, what, whose: Blame::AuthorizationServer, flow_request };
    let (metadata, url) = match search.find(places).await? {
        Ok(found) => found,
        Err(None) if alone => {
            let step =
                FlowStep::new("found no metadata of an authorization server", "it may be of the oldest kind");
            io.step(step.next("/authorize, /token and /register are taken for its endpoints"));
            return Ok(legacy_server(issuer));
        }
        Err(wrong) => {
            let (issuer, why) = (excerpt(issuer), wrong.unwrap_or_else(|| NOTHING.to_owned()));
            let message = format!("the authorization server {issuer} has no usable metadata: {why}");
            return Err(FlowError::new(FlowErrorKind::NoServerMetadata, message));
        }
    };
    let server = read_server(metadata, &url, issuer, alone, &flow_request.grant_kind);
    let came = match &server {
        Ok(server) => format!("it is {} and can be used", server.issuer),
        Err(_) => UNUSABLE.to_owned(),
    };
    io.step(search.step(&url, came));
    server
}

/// The URLs where authorization server metadata may be.
fn places(issuer: &str, flow_request: &FlowRequest) -> Result<Vec<Url>, FlowError> {
    let bad = |why: &str| {
        let server = redacted_url(&flow_request.server);
        no_authorization_server(&format!("{server} ({}, {why})", excerpt(issuer)))
    };
    let url = checked_url(issuer).map_err(bad)?;
    if url.query().is_some() {
        return Err(bad("it has parts that do not belong there"));
    }
    Ok(server_metadata(&url))
}

/// Checks authorization server metadata.
fn read_server(
    metadata: ServerMetadata,
    url: &Url,
    issuer: &str,
    alone: bool,
    grant_kind: &GrantKind,
) -> Result<ServerMetadata, FlowError> {
    // A fallback to the server's origin has no configured issuer, so a trailing slash may differ.
    let same = metadata.issuer == issuer || (alone && metadata.issuer.strip_suffix('/') == Some(issuer));
    if !same {
        let (url, named, issuer) = (redacted_url(url), excerpt(&metadata.issuer), excerpt(issuer));
        let message =
            format!("the metadata at {url} is of the authorization server {named:?} and not of {issuer:?}");
        return Err(FlowError::new(FlowErrorKind::IssuerMismatch, message));
    }
    metadata.token_url()?;
    if matches!(grant_kind, GrantKind::AuthorizationCode { .. }) {
        if !ServerMetadata::lists(metadata.code_challenge_methods_supported.as_ref(), S256) {
            let message =
                format!("the authorization server {} does not announce PKCE with S256", metadata.issuer);
            return Err(FlowError::new(FlowErrorKind::PkceUnsupported, message));
        }
        metadata.authorization_url()?;
    }
    Ok(metadata)
}

/// Default endpoints of a server without metadata (revision 2025-03-26).
fn legacy_server(issuer: &str) -> ServerMetadata {
    let endpoint = |path: &str| Some(format!("{issuer}{path}"));
    ServerMetadata {
        issuer: issuer.to_owned(),
        authorization_endpoint: endpoint("/authorize"),
        token_endpoint: endpoint("/token"),
        registration_endpoint: endpoint("/register"),
        ..ServerMetadata::default()
    }
}

impl ServerMetadata {
    /// The authorization endpoint, checked.
    pub(crate) fn authorization_url(&self) -> Result<Url, FlowError> {
        self.endpoint("authorization endpoint", self.authorization_endpoint.as_deref())
    }

    /// The token endpoint, checked.
    pub(crate) fn token_url(&self) -> Result<Url, FlowError> {
        self.endpoint("token endpoint", self.token_endpoint.as_deref())
    }

    /// The registration endpoint, if there is one.
    pub(crate) fn registration_url(&self) -> Result<Option<Url>, FlowError> {
        let named = self.registration_endpoint.as_deref();
        named.map(|named| self.endpoint("registration endpoint", Some(named))).transpose()
    }

    /// The revocation endpoint, if there is a usable one.
    pub(crate) fn revocation_url(&self) -> Option<Url> {
        self.revocation_endpoint.as_deref().and_then(|named| checked_url(named).ok())
    }

    fn endpoint(&self, what: &'static str, named: Option<&str>) -> Result<Url, FlowError> {
        let url = named.ok_or("it has none").and_then(checked_url);
        url.map_err(|why| {
            let issuer = &self.issuer;
            let message = format!("the {what} of the authorization server {issuer} cannot be used: {why}");
            FlowError::new(FlowErrorKind::InvalidEndpoint, message)
        })
    }
}
