//! Client ID metadata documents.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use refmcp_auth::fetch::Fetch;
use refmcp_auth::metadata::ClientMetadata;
use refmcp_auth::{Seconds, uri};
use serde::Deserialize;
use tokio::sync::Semaphore;
use url::Url;

use super::{Client, Origin, register};
use crate::faults::Fault;
use crate::form::media_type;
use crate::serve::Server;

/// Limit of a document in bytes. Authors are told that 5 KiB are safe; keys take more.
const MAX_DOCUMENT_BYTES: usize = 8 << 10;

/// Limit of a client id in bytes.
const MAX_ID_BYTES: usize = 2_000;

/// Seconds for which a document, or a failure, is cached.
const REMEMBERED: Seconds = 300;
const REMEMBERED_FAILURE: Seconds = 10;

/// Limit of concurrent fetches, which any request can trigger.
pub(crate) const MAX_FETCHES: usize = 16;

/// The known client of an id. A client with a document counts only after a user has allowed it. Nothing is fetched, so that a
/// page cannot probe the network through the response.
pub(crate) fn known(server: &Server, id: &str, now: Seconds) -> Option<Arc<Client>> {
    if let Some(known) = without_document(server, id, now) {
        return Some(known);
    }
    let state = server.state();
    let allowed = state.clients.documented(id, now)?;
    // The document may have changed since.
    let newer = state.documents.get(id, now).and_then(|fetched| fetched.as_ref().ok());
    Some(newer.cloned().unwrap_or(allowed))
}

/// The client of an id without a document.
fn without_document(server: &Server, id: &str, now: Seconds) -> Option<Arc<Client>> {
    if let Some(known) = server.settings.clients.iter().find(|client| client.id == id) {
        return Some(Arc::new(known.clone()));
    }
    if id == server.resource_server.id {
        return Some(Arc::clone(&server.resource_server));
    }
    server.state().clients.get(id, now)
}

/// The client of an id; its document is fetched if necessary. The reason of a failure is shown to the user in the browser and
/// to no one else.
pub(crate) async fn find(server: &Server, id: &str, now: Seconds) -> Result<Arc<Client>, String> {
    if let Some(known) = without_document(server, id, now) {
        return Ok(known);
    }
    let unknown = || "the client is not known here".to_owned();
    let fetch = server.settings.fetch.as_ref().filter(|_| !server.breaks(Fault::NoClientDocuments));
    let fetch = fetch.ok_or_else(unknown)?;
    if !(id.starts_with("https://") || id.starts_with("http://")) {
        return Err(unknown());
    }
    let url = check_url(id, server.settings.near_documents)?;
    if let Some(remembered) = server.state().documents.get(id, now) {
        return remembered.clone();
    }
    let found = fetch_document(fetch.as_ref(), &server.fetching, id, &url).await;
    let seconds = if found.is_ok() { REMEMBERED } else { REMEMBERED_FAILURE };
    server.state().documents.insert(id, found.clone(), now + seconds, now);
    found
}

/// The URL of a client id, if it is valid.
fn check_url(id: &str, near: bool) -> Result<Url, String> {
    let wrong = |what: &str| Err(format!("the client's id is a URL, and {what}"));
    if id.len() > MAX_ID_BYTES {
        return wrong("it is too long");
    }
    let Ok(url) = Url::parse(id) else {
        return wrong("it is not one that makes sense");
    };
    // Another spelling of the same URL would be another client.
    if url.as_str() != id {
        return wrong("it is not written in its normal form");
    }
    if url.scheme() != "https" && !(near && uri::is_secure(&url)) {
        return wrong("it is not https");
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return wrong("it has a user name or a fragment");
    }
    if url.path() == "/" {
        return wrong("it has no path");
    }
    Ok(url)
}

async fn fetch_document(
    fetch: &dyn Fetch,
    fetching: &Semaphore,
    id: &str,
    url: &Url,
) -> Result<Arc<Client>, String> {
    let _permit = fetching.try_acquire().map_err(|_| "too many documents are being fetched; try again")?;
    let request = Request::get(url.as_str()).header(header::ACCEPT, "application/json").body(Bytes::new());
    let request = request.map_err(|_| "the client's id is not a URL that can be fetched")?;
    let response = fetch.fetch(request).await;
    let read = response.map_err(|error| (error.to_string(), true)).and_then(|response| {
        // What a program on this machine answers is no more to be told than whether there is one.
        read(id, &response).map_err(|why| (why, uri::is_loopback(url)))
    });
    read.map(Arc::new).map_err(|(why, is_hidden)| {
        if !is_hidden {
            return why;
        }
        tracing::info!(client = id, why, "the document of a client cannot be used");
        "the client's document could not be fetched; the log of this server says why".to_owned()
    })
}

#[derive(Deserialize)]
struct Document {
    client_id: String,
    #[serde(flatten)]
    metadata: ClientMetadata,
}

/// Reads the client of a document.
fn read(id: &str, response: &Response<Bytes>) -> Result<Client, String> {
    let wrong = |what: &str| format!("the client's document {what}");
    if response.status() != StatusCode::OK {
        return Err(wrong(&format!("is answered with {}", response.status().as_u16())));
    }
    let kind = media_type(response.headers());
    if !(kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json")) {
        return Err(wrong("is not application/json"));
    }
    if response.body().len() > MAX_DOCUMENT_BYTES {
        return Err(wrong(&format!("has more than {MAX_DOCUMENT_BYTES} bytes")));
    }
    let document: Document = serde_json::from_slice(response.body())
        .map_err(|_| wrong("lacks client_id, or is not the metadata of a client in JSON"))?;
    if document.client_id != id {
        return Err(wrong("is about another client_id than its own URL"));
    }
    let mut metadata = document.metadata;
    if metadata.client_name.as_ref().is_none_or(|name| name.trim().is_empty()) {
        return Err(wrong("lacks client_name"));
    }
    if metadata.more.contains_key("client_secret") {
        return Err(wrong("has a secret, which everybody can read there"));
    }
    let method = metadata.token_endpoint_auth_method.get_or_insert_with(|| "none".to_owned());
    if !matches!(method.as_str(), "none" | "private_key_jwt") {
        return Err(wrong("asks for a method of authentication that needs a secret"));
    }
    register::read(id.to_owned(), Origin::Document, &metadata)
        .map_err(|refusal| wrong(&format!("is not good: {}", refusal.error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_ids_are_normalised_urls() {
        assert!(check_url("https://app.example/client.json", false).is_ok());
        assert!(check_url("https://app.example:8443/a/b?c=d", false).is_ok());
        for id in [
            "https://app.example",
            "https://app.example/",
            "https://app.example/a/../b",
            "https://app.example/%2e%2e/b",
            "https://APP.example/a",
            "https://app.example:443/a",
            "https://user@app.example/a",
            "https://app.example/a#b",
            "http://app.example/a",
            "http://127.0.0.1/a",
            "https:///a",
        ] {
            assert!(check_url(id, false).is_err(), "{id}");
        }
        assert!(check_url("http://127.0.0.1:1/a", true).is_ok());
        assert!(check_url("http://app.example/a", true).is_err());
        assert!(check_url(&format!("https://app.example/{}", "a".repeat(MAX_ID_BYTES)), false).is_err());
    }

    #[tokio::test]
    async fn a_document_is_not_fetched_beside_too_many_others() {
        let fetch = crate::InProcessFetch::new(crate::tests::world().issuer, None);
        let (fetching, url) = (Semaphore::new(1), Url::parse("https://app.example/client.json").unwrap());
        let held = fetching.try_acquire().unwrap();
        let refused = fetch_document(&fetch, &fetching, url.as_str(), &url).await.unwrap_err();
        assert!(refused.starts_with("too many documents"), "{refused}");
        drop(held);
        let failed = fetch_document(&fetch, &fetching, url.as_str(), &url).await.unwrap_err();
        assert!(failed.contains("could not be fetched"), "{failed}");
        assert_eq!(fetching.available_permits(), 1);
    }
}
