//! Health, readiness and metrics: `/healthz`, `/readyz` and `/metrics`.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use tokio::time::Instant;

use crate::access::caller::Client;
use crate::access::guard;
use crate::endpoint::{Endpoint, EndpointState};
use crate::ops::prometheus::CONTENT_TYPE;
use crate::ops::refusal_log::logged_path;
use crate::refusal::Refusal;
use crate::routes::{ROUTES, Route, Target};

/// Where `/healthz`, `/readyz` and `/metrics` are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpsRoutes {
    /// Beside the MCP endpoint. With a resource server they require an access token, as the endpoint does; load balancers
    /// have none and ask where they are separate.
    #[default]
    Public,
    /// By [`Endpoint::ops_router`] and [`Endpoint::serve_ops`] alone, without a token.
    Separate,
}

impl Endpoint {
    /// `/healthz`, `/readyz` and `/metrics` alone, for a listener that only operators reach: without access tokens and
    /// rate limits. With [`OpsRoutes::Separate`] they are nowhere else.
    pub fn ops_router(&self) -> Router {
        let serve = |State(endpoint): State<Self>, request: Request| async move {
            endpoint.answer_ops(Client::of_request(&request), &request)
        };
        let routes = ROUTES.iter().filter(|route| route.target.is_ops());
        routes
            .fold(Router::new(), |router, route| router.route(route.path, any(serve)))
            .with_state(self.clone())
    }

    pub(crate) fn answer_ops<B>(&self, client: Client, request: &axum::http::Request<B>) -> Response {
        let (began, inner) = (Instant::now(), &self.inner);
        let path = request.uri().path();
        let route = inner.options.path.route(path).filter(|route| route.target.is_ops());
        let response = inner.serve_ops(client, route, request).unwrap_or_else(|refusal| {
            let unknown = route.is_none().then(|| logged_path(path));
            let path = route.map(|route| route.path).or(unknown.as_deref());
            inner.refused(client, Some(request.method()), path, &refusal);
            refusal.into_response()
        });
        inner.metrics.answered(route, response.status(), began.elapsed());
        response
    }
}

impl EndpointState {
    /// Serves a request of an operator. A web page must not reach a listener on this machine through its visitor's
    /// browser, so `Host` and `Origin` are checked here too.
    fn serve_ops<B>(
        &self,
        client: Client,
        route: Option<&Route>,
        request: &axum::http::Request<B>,
    ) -> Result<Response, Refusal> {
        let (uri, headers) = (request.uri(), request.headers());
        guard::check(&self.options.hosts, &self.options.origins, client.local_address, uri, headers)
            .map_err(|error| Refusal::guard(error, headers))?;
        let route = route.ok_or_else(Refusal::not_found)?;
        if !route.methods.contains(&request.method().as_str()) {
            return Err(Refusal::method(route.methods, "this method is not served here"));
        }
        serve(self, route.target)
    }
}

pub(crate) fn serve(endpoint: &EndpointState, target: Target) -> Result<Response, Refusal> {
    match target {
        Target::Health => Ok(plain("alive\n".to_owned())),
        // That it is not ready is an answer to the question, and no refusal to be logged or counted.
        Target::Ready if endpoint.is_draining() => Ok(Refusal::stopping().into_response()),
        Target::Ready => Ok(match endpoint.check_running() {
            Ok(()) => plain("ready\n".to_owned()),
            Err(stopping) => stopping.into_response(),
        }),
        Target::Metrics => {
            let sessions = endpoint.sessions.count();
            let text = endpoint.metrics.text(&endpoint.options.path, &sessions, &endpoint.server);
            let mut response = plain(text);
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
            Ok(response)
        }
        _ => Err(Refusal::not_found()),
    }
}

fn plain(text: String) -> Response {
    (StatusCode::OK, [(header::CACHE_CONTROL, "no-store")], text).into_response()
}
