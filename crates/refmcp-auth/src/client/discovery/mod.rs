//! Metadata discovery: protected resource metadata, then authorization server metadata.

mod document;
mod resource;
mod server;

use document::MetadataSearch;
pub(crate) use resource::{AuthTarget, discover_resource, insecure};
pub(crate) use server::discover_server;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, Method, Request, Uri};
use url::Url;

use super::{Blame, FlowError};
use crate::fetch::FetchError;
use crate::uri::is_secure;

/// A document that exists, whatever is wrong with it. The error of the flow tells the reason.
const UNUSABLE: &str = "it is there and cannot be used";

/// The error where a party publishes nothing.
const NOTHING: &str = "there is nothing where it should tell";

/// Longest accepted URL of a document.
const MAX_URL_BYTES: usize = 4096;

/// Checks a URL that a remote party names: https, or http on loopback.
pub(crate) fn checked_url(text: &str) -> Result<Url, &'static str> {
    if text.len() > MAX_URL_BYTES {
        return Err("it is too long");
    }
    if text.chars().any(|sign| sign.is_control() || sign.is_whitespace()) {
        return Err("it is no URL");
    }
    let url = Url::parse(text).map_err(|_| "it is no URL")?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err("it names no host");
    }
    if !is_secure(&url) {
        return Err("it is not https");
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err("it has parts that do not belong there");
    }
    Uri::try_from(url.as_str()).map_err(|_| "it is no URL")?;
    Ok(url)
}

/// A request that accepts JSON.
pub(crate) fn request(
    method: Method,
    url: &Url,
    whose: Blame,
    body: Bytes,
) -> Result<Request<Bytes>, FlowError> {
    let broken = |_| FlowError::fetch(url, whose, &FetchError::Broken("it is no URL".into()));
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = Uri::try_from(url.as_str()).map_err(broken)?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    Ok(request)
}
