//! What else is served on the same port: an authorization server, for one.

use std::fmt;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use bytes::Bytes;
use refmcp_auth::fetch::BoxFuture;
use refmcp_auth::uri::OPENID;

use crate::access::cors;
use crate::endpoint::Inner;
use crate::refusal::{Reason, Refusal};
use crate::request::post::read_at_most;

/// Bytes of a body that is not ours to read.
const BODY: usize = 64 << 10;

/// Answers on further paths, behind the same guard: of the names that the server may be called by, of the pages that may
/// call it, and of the rate of each client. Whoever asks needs no token.
pub trait ExtraRoutes: Send + Sync + fmt::Debug {
    /// The paths.
    fn paths(&self) -> Vec<String>;

    /// Answers a request, whose body was read whole; it has at most 64 KiB.
    fn answer(&self, request: axum::http::Request<Bytes>) -> BoxFuture<'_, axum::http::Response<Bytes>>;

    /// Whether any web page may call this path, not only those that may use the server.
    ///
    /// That is so where an authorization server is called by the pages of its clients: its metadata and keys are public,
    /// and whoever asks for tokens or registers proves by what it sends who it is, not by the browser that it sends it
    /// from; no cookie counts there. Where people decide, which is everywhere else, a foreign page must not speak for
    /// them.
    fn allows_any_origin(&self, path: &str) -> bool {
        // What is well known of an issuer with a path of its own may come after that path.
        path.starts_with("/.well-known/")
            || path.ends_with(OPENID)
            || ["/jwks", "/token", "/register", "/revoke"].contains(&path)
    }
}

impl Inner {
    /// Leads a request to whoever else is served here.
    pub(crate) async fn answer_extra(
        &self,
        extra: &dyn ExtraRoutes,
        request: Request,
    ) -> Result<Response, Refusal> {
        if request.method() == Method::OPTIONS {
            return Ok(cors::preflight(&["GET", "POST"], request.headers()));
        }
        let full = || Refusal::full(Reason::InFlight, "too many requests are being answered", 1);
        let _counted = self.metrics.in_flight.enter(self.options.max_in_flight).ok_or_else(full)?;
        let (parts, body) = request.into_parts();
        let body = read_at_most(self, body, BODY).await?;
        let answered = extra.answer(axum::http::Request::from_parts(parts, body)).await;
        let mut response = answered.map(Body::from);
        forget_cors(response.headers_mut());
        Ok(response)
    }
}

/// Which pages may read an answer is decided in one place, for everything that is served here.
fn forget_cors(headers: &mut HeaderMap) {
    use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS};
    headers.remove(ACCESS_CONTROL_ALLOW_ORIGIN);
    headers.remove(ACCESS_CONTROL_EXPOSE_HEADERS);
}
