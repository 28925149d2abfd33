//! Protected resource metadata: the resource identifier and its authorization server.

use url::Url;

use super::super::flow::FlowIo;
use super::super::flow_step::{FlowStep, excerpt, redacted_url};
use super::super::{Blame, FlowError, FlowErrorKind, FlowRequest, StoredState};
use super::{MetadataSearch, NOTHING, UNUSABLE, checked_url};
use crate::metadata::ResourceMetadata;
use crate::scope::Scopes;
use crate::uri::{PROTECTED_RESOURCE, as_http, canonical, is_secure, resource_metadata};

/// The resource and its authorization server.
pub(crate) struct AuthTarget {
    /// The resource identifier, byte for byte.
    pub(crate) resource: String,
    /// The issuer, byte for byte.
    pub(crate) issuer: String,
    /// The scopes that the resource lists.
    pub(crate) scopes: Option<Scopes>,
    /// True if only DPoP-bound tokens are accepted.
    pub(crate) bound: bool,
    /// True if the server has no metadata and is taken as its own authorization server.
    pub(crate) alone: bool,
}

/// Finds the resource and its authorization server, by protected resource metadata.
pub(crate) async fn discover_resource(
    io: &FlowIo,
    flow_request: &mut FlowRequest,
    stored: &StoredState,
) -> Result<AuthTarget, FlowError> {
    let places = places(io, flow_request)?;
    let search = MetadataSearch { io, what: "the server's metadata", whose: Blame::Server, flow_request };
    let (metadata, url) = match search.find(places).await? {
        Ok(found) => found,
        Err(wrong) => return alone(io, flow_request, wrong),
    };
    let target = read_resource(&metadata, &url, flow_request, stored);
    let came = match &target {
        Ok(target) => format!("it is {} and trusts {}", excerpt(&target.resource), excerpt(&target.issuer)),
        Err(_) => UNUSABLE.to_owned(),
    };
    io.step(search.step(&url, came));
    target
}

/// The URLs where protected resource metadata may be.
fn places(io: &FlowIo, flow_request: &mut FlowRequest) -> Result<Vec<Url>, FlowError> {
    flow_request.server = as_http(&flow_request.server);
    // Credentials in the URL are for the server, not for its metadata. A URL that cannot hold any has none.
    let _ = flow_request.server.set_username("").and_then(|()| flow_request.server.set_password(None));
    let server = &flow_request.server;
    if !is_secure(server) {
        return Err(insecure(&redacted_url(server)));
    }
    let mut places = Vec::new();
    match flow_request.challenge.as_ref().map(|refusal| refusal.get("resource_metadata")) {
        Some(Some(named)) => {
            let step =
                FlowStep::new("read the server's refusal", format!("its metadata is at {}", excerpt(named)));
            io.step(match checked_url(named) {
                Ok(url) => {
                    places.push(url);
                    step.next("that is asked for first")
                }
                Err(why) => step.next(format!("that is not asked for, because {why}")),
            });
        }
        Some(None) => {
            let step = FlowStep::new("read the server's refusal", "it does not say where its metadata is");
            io.step(step.next("the usual places are tried"));
        }
        None => {}
    }
    for url in resource_metadata(server) {
        if !places.contains(&url) {
            places.push(url);
        }
    }
    Ok(places)
}

/// The error for a URL that others could listen at.
pub(crate) fn insecure(url: &str) -> FlowError {
    let message = format!("{url} is not https: a token sent there could be read by others");
    FlowError::new(FlowErrorKind::Insecure, message)
}

/// A server without any metadata may be its own authorization server (revision 2025-03-26). A server with broken metadata,
/// or whose challenge names metadata that is missing, is not.
fn alone(io: &FlowIo, flow_request: &FlowRequest, wrong: Option<String>) -> Result<AuthTarget, FlowError> {
    let named =
        flow_request.challenge.as_ref().is_some_and(|challenge| challenge.get("resource_metadata").is_some());
    let why = match wrong {
        Some(wrong) => Some(wrong),
        None if named => Some("its refusal names a place where there is nothing".to_owned()),
        None if !flow_request.legacy_discovery => Some(NOTHING.to_owned()),
        None => None,
    };
    if let Some(why) = why {
        let server = redacted_url(&flow_request.server);
        let message = format!("{server} has no usable protected resource metadata: {why}");
        return Err(FlowError::new(FlowErrorKind::NoResourceMetadata, message));
    }
    let issuer = flow_request.server.origin().ascii_serialization();
    let step = FlowStep::new("found no metadata of the server", "it may be of the oldest kind");
    io.step(step.next(format!("{issuer} is taken for its own authorization server")));
    let resource = canonical(&flow_request.server);
    Ok(AuthTarget { resource, issuer, scopes: None, bound: false, alone: true })
}

/// Checks protected resource metadata and chooses the authorization server.
fn read_resource(
    metadata: &ResourceMetadata,
    url: &Url,
    flow_request: &FlowRequest,
    stored: &StoredState,
) -> Result<AuthTarget, FlowError> {
    if !names(url, &flow_request.server).contains(&metadata.resource) {
        let (named, server) = (excerpt(&metadata.resource), canonical(&flow_request.server));
        let message =
            format!("the metadata at {} is about {named:?} and not about {server}", redacted_url(url));
        return Err(FlowError::new(FlowErrorKind::ResourceMismatch, message));
    }
    let issuers = &metadata.authorization_servers;
    // A pre-registered client belongs to one authorization server.
    let owner = flow_request.identity.registered.as_ref().and_then(|client| stored.owner(client));
    let is_owner = |issuer: &&String| owner == Some(issuer.as_str());
    let is_known = |issuer: &&String| {
        stored.tokens.as_ref().is_some_and(|grant| grant.issuer == **issuer)
            || stored.registrations.contains_key(*issuer)
    };
    let issuer = issuers.iter().find(is_owner).or_else(|| issuers.iter().find(is_known));
    let issuer = issuer.or_else(|| issuers.first());
    let issuer = issuer.ok_or_else(|| no_authorization_server(&redacted_url(url)))?;
    Ok(AuthTarget {
        resource: metadata.resource.clone(),
        issuer: issuer.clone(),
        scopes: metadata.scopes_supported.as_ref().map(|all| all.iter().map(String::as_str).collect()),
        bound: metadata.dpop_bound_access_tokens_required == Some(true),
        alone: false,
    })
}

/// The error for a server that names no usable authorization server.
pub(super) fn no_authorization_server(server: &str) -> FlowError {
    let message = format!("{server} names no authorization server that can be used");
    FlowError::new(FlowErrorKind::NoAuthorizationServer, message)
}

/// Valid resource identifiers of a document: the server's own URL, and the URL that the document's path is derived from, if
/// it contains the server.
fn names(document: &Url, server: &Url) -> Vec<String> {
    let mut typed = server.clone();
    typed.set_fragment(None);
    let mut names = vec![canonical(server), typed.into()];
    if document.origin() == server.origin()
        && let Some(path) = document.path().strip_prefix(PROTECTED_RESOURCE)
        && (path.is_empty() || path.starts_with('/'))
        && contains(path, server.path())
    {
        let origin = server.origin().ascii_serialization();
        names.push(format!("{origin}{path}"));
        if path.is_empty() {
            names.push(format!("{origin}/"));
        }
    }
    names
}

/// True if a path equals another or is a parent of it.
fn contains(path: &str, other: &str) -> bool {
    let path = path.trim_end_matches('/');
    other.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_resource_metadata_names_the_server_or_its_parent() {
        let url = |text: &str| Url::parse(text).unwrap();
        let server = url("https://h/a/mcp");
        let fits = |document: &str, name: &str| names(&url(document), &server).contains(&name.to_owned());
        let root = "https://h/.well-known/oauth-protected-resource";
        assert!(fits(root, "https://h") && fits(root, "https://h/") && fits(root, "https://h/a/mcp"));
        assert!(fits(&format!("{root}/a"), "https://h/a") && !fits(&format!("{root}/a"), "https://h"));
        assert!(!fits(&format!("{root}/a/m"), "https://h/a/m") && !fits(&format!("{root}/b"), "https://h/b"));
        assert!(!fits("https://h/custom", "https://h") && fits("https://h/custom", "https://h/a/mcp"));
        let elsewhere = "https://o/.well-known/oauth-protected-resource";
        assert!(
            !fits(elsewhere, "https://o")
                && !fits(elsewhere, "https://h")
                && fits(elsewhere, "https://h/a/mcp")
        );
        assert!(
            !fits(root, "https://H/a/mcp")
                && !fits(root, "https://h:443/a/mcp")
                && !fits(root, "https://h/a/mcp/")
        );
        assert!(names(&url(root), &url("https://h/mcp/#x")).contains(&"https://h/mcp/".to_owned()));
    }
}
