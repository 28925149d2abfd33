//! What the server tells: which authorization servers it trusts, and under which name.

use bytes::Bytes;
use http::Request;
use url::Url;

use super::super::step::{Step, brief, place};
use super::super::{Blame, FlowError, Known, Wanted};
use super::{Search, usable};
use crate::metadata::ResourceMetadata;
use crate::scope::Scopes;
use crate::uri::{PROTECTED_RESOURCE, canonical, is_confidential, resource_metadata};

/// What a token is wanted for, and whom to ask for it.
pub(crate) struct Target {
    /// The server by the name that it gives itself, byte for byte.
    pub(crate) resource: String,
    /// The authorization server, byte for byte.
    pub(crate) issuer: String,
    /// The scopes that the server knows.
    pub(crate) scopes: Option<Scopes>,
    /// Whether it takes only tokens that are bound to a key.
    pub(crate) bound: bool,
    /// Whether the server told nothing, so that it may be its own authorization server.
    pub(crate) alone: bool,
}

/// Begins to look for what the server tells.
pub(crate) fn search_resource(
    wanted: &mut Wanted,
    steps: &mut Vec<Step>,
) -> Result<(Search, Request<Bytes>), FlowError> {
    as_http(&mut wanted.server);
    // URLs that can hold no password have none; one that is there is for the server and not for its documents.
    let _ = wanted.server.set_username("").and_then(|()| wanted.server.set_password(None));
    let server = &wanted.server;
    if !is_confidential(server) {
        return Err(FlowError::Insecure(place(server)));
    }
    let mut places = Vec::new();
    match wanted.refusal.as_ref().map(|refusal| refusal.get("resource_metadata")) {
        Some(Some(named)) => {
            let step = Step::new("read the server's refusal", format!("its metadata is at {}", brief(named)));
            steps.push(match usable(named) {
                Ok(url) => {
                    places.push(url);
                    step.then("that is asked for first")
                }
                Err(why) => step.then(format!("that is not asked for, because {why}")),
            });
        }
        Some(None) => {
            let step = Step::new("read the server's refusal", "it does not say where its metadata is");
            steps.push(step.then("the usual places are tried"));
        }
        None => {}
    }
    for url in resource_metadata(server) {
        if !places.contains(&url) {
            places.push(url);
        }
    }
    Search::begin("the server's metadata", Blame::Server, places, wanted)
}

/// The server may be spoken to over a WebSocket; its documents are not.
fn as_http(server: &mut Url) {
    let scheme = match server.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return,
    };
    let text = server.as_str().split_once(':').map(|(_, rest)| format!("{scheme}:{rest}"));
    if let Some(url) = text.and_then(|text| Url::parse(&text).ok()) {
        *server = url;
    }
}

/// Reads what the server tells.
pub(crate) fn read_resource(
    metadata: &ResourceMetadata,
    url: &Url,
    wanted: &Wanted,
    known: &Known,
) -> Result<Target, FlowError> {
    if !names(url, &wanted.server).contains(&metadata.resource) {
        return Err(FlowError::OtherResource {
            url: place(url),
            named: brief(&metadata.resource),
            server: canonical(&wanted.server),
        });
    }
    let issuers = &metadata.authorization_servers;
    // Where our client belongs to one of them, no other will do.
    let owner = wanted.identity.registered.as_ref().and_then(|client| known.owner(client));
    let is_owner = |issuer: &&String| owner == Some(issuer.as_str());
    let is_known = |issuer: &&String| {
        known.grant.as_ref().is_some_and(|grant| grant.issuer == **issuer)
            || known.registrations.contains_key(*issuer)
    };
    let issuer = issuers.iter().find(is_owner).or_else(|| issuers.iter().find(is_known));
    let issuer = issuer.or_else(|| issuers.first());
    let issuer = issuer.ok_or_else(|| FlowError::NoIssuer(place(url)))?;
    Ok(Target {
        resource: metadata.resource.clone(),
        issuer: issuer.clone(),
        scopes: metadata.scopes_supported.as_ref().map(|all| all.iter().map(String::as_str).collect()),
        bound: metadata.dpop_bound_access_tokens_required == Some(true),
        alone: false,
    })
}

/// The names that a document at this place may give the server: the server's own URL, and the name that the place of the
/// document is made from, when that is the server or what contains it.
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

/// Whether a path is another one or leads to it.
fn contains(path: &str, other: &str) -> bool {
    let path = path.trim_end_matches('/');
    other.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_names_the_server_or_what_its_place_is_made_from() {
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
