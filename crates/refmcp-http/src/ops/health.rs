//! For those who operate the server: whether it lives, whether it takes work, what it has done.

use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use tokio::time::Instant;

use crate::access::caller::Client;
use crate::access::guard;
use crate::endpoint::{Endpoint, Inner, nothing_here};
use crate::ops::prometheus::CONTENT_TYPE;
use crate::ops::refusal_log::logged_path;
use crate::refusal::{Reason, Refusal};
use crate::routes::{ROUTES, Target};

/// Where `/healthz`, `/readyz` and `/metrics` are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpsRoutes {
    /// Beside the protocol. With an resource_server `/metrics` wants a token, as the protocol does; the other two tell nothing
    /// that needs one, and load balancers have none.
    #[default]
    Public,
    /// By [`Endpoint::ops_router`] and [`Endpoint::serve_ops`] alone, without a token.
    Separate,
}

impl Endpoint {
    /// `/healthz`, `/readyz` and `/metrics` alone, for a listener that only operators reach: nothing asks for tokens
    /// there, nor counts how often a client asks. With [`OpsRoutes::Separate`] they are nowhere else.
    pub fn ops_router(&self) -> Router {
        let serve = |State(endpoint): State<Self>, request: Request| async move {
            endpoint.answer_ops(Client::of(&request), &request)
        };
        let routes = ROUTES.iter().filter(|route| route.target.is_ops());
        routes
            .fold(Router::new(), |router, route| router.route(route.path, any(serve)))
            .with_state(self.clone())
    }

    /// Answers a request of an operator.
    pub(crate) fn answer_ops<B>(&self, client: Client, request: &axum::http::Request<B>) -> Response {
        let (began, inner) = (Instant::now(), &self.inner);
        let path = request.uri().path();
        let route = inner.options.path.place(path).filter(|place| ROUTES[*place].target.is_ops());
        let response = inner.serve_ops(client, route, request).unwrap_or_else(|refusal| {
            let known = route.map(|place| ROUTES[place].path);
            let unknown = known.is_none().then(|| logged_path(path));
            inner.refused(client, Some(request.method()), known.or(unknown.as_deref()), &refusal);
            refusal.into_response()
        });
        inner.metrics.answered(route, response.status(), began.elapsed());
        response
    }
}

impl Inner {
    /// Serves a request of an operator. A page must not reach a listener on this machine through its visitor's browser,
    /// so names and origins count here too.
    fn serve_ops<B>(
        &self,
        client: Client,
        route: Option<usize>,
        request: &axum::http::Request<B>,
    ) -> Result<Response, Refusal> {
        let (uri, headers) = (request.uri(), request.headers());
        guard::check(&self.options.hosts, &self.options.origins, client.called, uri, headers)
            .map_err(|foreign| Refusal::foreign(foreign, headers))?;
        let route = route.and_then(|place| ROUTES.get(place)).ok_or_else(nothing_here)?;
        if !route.methods.contains(&request.method().as_str()) {
            return Err(Refusal::method(route.methods, "this method is not served here"));
        }
        match route.target {
            Target::Health => Ok(health()),
            Target::Ready => ready(self),
            Target::Metrics => Ok(metrics(self)),
            _ => Err(nothing_here()),
        }
    }
}

/// The process answers, so it lives.
pub(crate) fn health() -> Response {
    plain("alive\n".to_owned())
}

/// Whether new work is welcome.
pub(crate) fn ready(endpoint: &Inner) -> Result<Response, Refusal> {
    if endpoint.draining.load(Ordering::Relaxed) || endpoint.stop.is_cancelled() {
        return Err(Refusal::full(Reason::Stopping, "the server stops", 10));
    }
    Ok(plain("ready\n".to_owned()))
}

/// The metrics.
pub(crate) fn metrics(endpoint: &Inner) -> Response {
    let sessions = endpoint.sessions.count();
    let text = endpoint.metrics.text(&endpoint.options.path, &sessions, &endpoint.server);
    let mut response = plain(text);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    response
}

fn plain(text: String) -> Response {
    (StatusCode::OK, [(header::CACHE_CONTROL, "no-store")], text).into_response()
}
