//! Routes of another service on the same port, such as an authorization server.

use std::fmt;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Method, Request, header};
use axum::response::Response;
use bytes::Bytes;
use refmcp_auth::RefusedClientCredentials;
use refmcp_auth::fetch::BoxFuture;
use refmcp_auth::uri::OPENID;

use crate::access::caller::Caller;
use crate::access::cors;
use crate::endpoint::EndpointState;
use crate::refusal::Refusal;
use crate::request::body;

/// Bytes of a request's body.
const BODY: usize = 64 << 10;

/// Serves further paths behind the same guard and rate limit. Their requests need no access token.
pub trait ExtraRoutes: Send + Sync + fmt::Debug {
    /// The paths.
    fn paths(&self) -> Vec<String>;

    /// Answers a request, whose body has at most 64 KiB. [`RefusedClientCredentials`] in the extensions of the response are
    /// logged as a warning.
    fn answer(&self, request: Request<Bytes>) -> BoxFuture<'_, axum::http::Response<Bytes>>;

    /// Whether pages of any origin may call this path, not only those that may use the server.
    ///
    /// By default these are the paths of an authorization server that pages of its clients call: metadata and keys are
    /// public, and requests for tokens or registration are authenticated by their content, not by the browser; cookies
    /// do not count there. On all other paths people decide, and a foreign page must not act for them.
    fn allows_any_origin(&self, path: &str) -> bool {
        // The metadata of an issuer with a path may follow that path.
        path.starts_with("/.well-known/")
            || path.ends_with(OPENID)
            || ["/jwks", "/token", "/register", "/revoke"].contains(&path)
    }
}

impl EndpointState {
    /// Serves a request of an extra route.
    pub(crate) async fn answer_extra(
        &self,
        extra: &dyn ExtraRoutes,
        caller: &Caller,
        head: Parts,
        body: Body,
    ) -> Result<Response, Refusal> {
        if head.method == Method::OPTIONS {
            return Ok(cors::preflight(&["GET", "POST"], &head.headers));
        }
        let _counted = self.acquire_in_flight()?;
        let body = body::read(self, &caller.memory, body, BODY).await?;
        let (method, path) = (head.method.clone(), head.uri.path().to_owned());
        let answered = extra.answer(Request::from_parts(head, body.bytes.clone())).await;
        let mut response = answered.map(Body::from);
        if let Some(RefusedClientCredentials(why)) = response.extensions_mut().remove() {
            let refusal = Refusal::client_credentials(response.status(), why);
            self.refused(caller.client, Some(&method), Some(&path), &refusal);
        }
        // CORS headers are set in one place for all routes.
        response.headers_mut().remove(header::ACCESS_CONTROL_ALLOW_ORIGIN);
        response.headers_mut().remove(header::ACCESS_CONTROL_EXPOSE_HEADERS);
        Ok(response)
    }
}
