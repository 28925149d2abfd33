//! Health, readiness and metrics: `/healthz`, `/readyz` and `/metrics`.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use tokio::time::{Instant, timeout};

use crate::access::caller::Client;
use crate::access::guard;
use crate::endpoint::{Endpoint, EndpointState};
use crate::ops::prometheus::CONTENT_TYPE;
use crate::ops::refusal_log::logged_path;
use crate::refusal::Refusal;
use crate::routes::{ROUTES, Route, Target};

/// For how long readiness waits for the backplane: shorter than load balancers wait.
const BACKPLANE_TIMEOUT: Duration = Duration::from_secs(1);

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
            let client = Client::of_request(&request);
            endpoint.answer_ops(client, &request.into_parts().0).await
        };
        let routes = ROUTES.iter().filter(|route| route.target.is_ops());
        routes
            .fold(Router::new(), |router, route| router.route(route.path, any(serve)))
            .with_state(self.clone())
    }

    pub(crate) async fn answer_ops(&self, client: Client, head: &Parts) -> Response {
        let (began, inner) = (Instant::now(), &self.inner);
        let path = head.uri.path();
        let route = inner.options.path.route(path).filter(|route| route.target.is_ops());
        let response = match inner.admit_ops(client, route, head) {
            Ok(target) => serve(inner, target).await,
            Err(refusal) => Err(refusal),
        };
        let response = response.unwrap_or_else(|refusal| {
            let unknown = route.is_none().then(|| logged_path(path));
            let path = route.map(|route| route.path).or(unknown.as_deref());
            inner.refused(client, Some(&head.method), path, &refusal);
            refusal.into_response()
        });
        inner.metrics.answered(route, response.status(), began.elapsed());
        response
    }
}

impl EndpointState {
    /// Checks a request of an operator. A web page must not reach a listener on this machine through its visitor's
    /// browser, so `Host` and `Origin` are checked here too.
    fn admit_ops(&self, client: Client, route: Option<&Route>, head: &Parts) -> Result<Target, Refusal> {
        let (uri, headers) = (&head.uri, &head.headers);
        guard::check(&self.options.hosts, &self.options.origins, client.local_address, uri, headers)
            .map_err(|error| Refusal::guard(error, headers))?;
        let route = route.ok_or_else(Refusal::not_found)?;
        if !route.methods.contains(&head.method.as_str()) {
            return Err(Refusal::method(route.methods, "this method is not served here"));
        }
        Ok(route.target)
    }

    /// Whether the state that replicas share can be reached; state in memory always can.
    async fn reaches_backplane(&self) -> bool {
        if !self.sessions.is_shared {
            return true;
        }
        match timeout(BACKPLANE_TIMEOUT, self.sessions.backplane.latest()).await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "not ready");
                false
            }
            Err(_) => {
                tracing::warn!("not ready: the shared state does not answer");
                false
            }
        }
    }
}

/// The answer to a request of an operator.
pub(crate) async fn serve(endpoint: &EndpointState, target: Target) -> Result<Response, Refusal> {
    match target {
        Target::Health => Ok(plain("alive\n".to_owned())),
        // That it is not ready is an answer to the question, and no refusal to be logged or counted.
        Target::Ready if endpoint.is_draining() => Ok(Refusal::stopping().into_response()),
        Target::Ready => Ok(match endpoint.check_running() {
            // Boxed: connections need no memory for it.
            Ok(()) if Box::pin(endpoint.reaches_backplane()).await => plain("ready\n".to_owned()),
            Ok(()) => Refusal::no_backplane().into_response(),
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
