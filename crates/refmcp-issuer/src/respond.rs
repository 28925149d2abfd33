//! Response builders.

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Response, StatusCode};
use refmcp_auth::RefusedClientCredentials;
use refmcp_auth::metadata::OAuthError;
use serde::Serialize;

/// An OAuth error response (RFC 6749 §5.2).
#[derive(Debug, Clone)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    pub(crate) error: OAuthError,
    /// Whether the client has offered credentials, which are refused.
    pub(crate) refuses_credentials: bool,
}

impl ErrorResponse {
    /// An error with the status of its code.
    pub(crate) fn new(error: &str, description: impl Into<String>) -> Self {
        let status = match error {
            "invalid_client" => StatusCode::UNAUTHORIZED,
            "server_error" => StatusCode::INTERNAL_SERVER_ERROR,
            "temporarily_unavailable" => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        };
        Self { status, error: OAuthError::new(error, description), refuses_credentials: false }
    }

    /// An error of this server.
    pub(crate) fn server_error(description: impl Into<String>) -> Self {
        Self::new("server_error", description)
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The HTTP response.
    pub(crate) fn answer(&self) -> Response<Bytes> {
        let mut response = private_json(self.status, &self.error);
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Basic realm=\"clients\", charset=\"UTF-8\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        if self.refuses_credentials {
            let why = self.error.error_description.clone().unwrap_or_else(|| self.error.error.clone());
            response.extensions_mut().insert(RefusedClientCredentials(why));
        }
        response
    }
}

/// JSON that must be revalidated: it changes when the server restarts with other faults.
pub(crate) fn json(value: &impl Serialize) -> Response<Bytes> {
    with_cache(StatusCode::OK, value, "no-cache")
}

/// JSON that must not be cached.
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

/// A response of this content type.
pub(crate) fn typed(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Redirects a browser; a form submission is followed by GET.
pub(crate) fn redirect(method: &Method, to: &str) -> Response<Bytes> {
    let status = if method == Method::POST { StatusCode::SEE_OTHER } else { StatusCode::FOUND };
    let mut response = empty(status);
    let headers = response.headers_mut();
    set(headers, header::LOCATION, to);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// The response to a method that is not allowed.
pub(crate) fn not_allowed(methods: &str) -> Response<Bytes> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    set(response.headers_mut(), header::ALLOW, methods);
    response
}

/// The response to a CORS preflight.
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

/// Allows every origin to read the response. Nothing depends on cookies.
pub(crate) fn expose(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let read = HeaderValue::from_static("DPoP-Nonce, WWW-Authenticate");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, read);
}

/// Sets a header; an invalid value is left out.
pub(crate) fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}
