//! The forms that answers have.

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Response, StatusCode};
use refmcp_auth::metadata::OAuthError;
use serde::Serialize;

/// A refusal in JSON, as RFC 6749 has them.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) error: OAuthError,
}

impl Refusal {
    /// A refusal that blames the request.
    pub(crate) fn new(error: &str, description: impl Into<String>) -> Self {
        let status =
            if error == "invalid_client" { StatusCode::UNAUTHORIZED } else { StatusCode::BAD_REQUEST };
        Self { status, error: OAuthError::new(error, description) }
    }

    /// A refusal that blames this server.
    pub(crate) fn own_fault(description: impl Into<String>) -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            error: OAuthError::new("server_error", description),
        }
    }

    /// A refusal that blames nobody: it may go better later.
    pub(crate) fn busy(description: impl Into<String>) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            error: OAuthError::new("temporarily_unavailable", description),
        }
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The answer that it makes.
    pub(crate) fn answer(&self) -> Response<Bytes> {
        let mut response = private_json(self.status, &self.error);
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Basic realm=\"clients\", charset=\"UTF-8\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// JSON that changes when the server is started anew with other faults: nobody uses it without asking again.
pub(crate) fn json(value: &impl Serialize) -> Response<Bytes> {
    with_cache(StatusCode::OK, value, "no-cache")
}

/// JSON that nobody may keep.
pub(crate) fn private_json(status: StatusCode, value: &impl Serialize) -> Response<Bytes> {
    with_cache(status, value, "no-store")
}

fn with_cache(status: StatusCode, value: &impl Serialize, cache: &'static str) -> Response<Bytes> {
    let Ok(text) = serde_json::to_vec(value) else {
        return empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let mut response = typed(status, "application/json", text);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    response
}

/// An answer of this type.
pub(crate) fn typed(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// An answer that has a status and nothing to say.
pub(crate) fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Sends a browser elsewhere: with what it has done when it sent a form, and not again.
pub(crate) fn redirect(method: &Method, to: &str) -> Response<Bytes> {
    let status = if method == Method::POST { StatusCode::SEE_OTHER } else { StatusCode::FOUND };
    let mut response = empty(status);
    let headers = response.headers_mut();
    set(headers, header::LOCATION, to);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Tells which methods there are.
pub(crate) fn not_allowed(methods: &str) -> Response<Bytes> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    set(response.headers_mut(), header::ALLOW, methods);
    response
}

/// The answer to a browser that asks what a page may do here.
pub(crate) fn preflight(methods: &str) -> Response<Bytes> {
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    set(headers, header::ALLOW, methods);
    set(headers, header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let sent = "authorization, content-type, dpop, mcp-protocol-version";
    set(headers, header::ACCESS_CONTROL_ALLOW_HEADERS, sent);
    set(headers, header::ACCESS_CONTROL_MAX_AGE, "600");
    response
}

/// Lets every page read the answer. Nothing here depends on who a browser is, and no cookie is sent along.
pub(crate) fn expose(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let read = HeaderValue::from_static("DPoP-Nonce, WWW-Authenticate");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, read);
}

/// Sets a header; a value that no header can have is left out.
pub(crate) fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}
