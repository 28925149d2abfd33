//! What is done for every request: access, routing, refusals, CORS headers and metrics.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use refmcp_auth::resource::{form_names_token, is_form};
use refmcp_proto::jsonrpc::excerpt;
use refmcp_server::transport::MemoryAccount;
use tokio::time::Instant;
use tracing::Instrument;

use crate::access::caller::{Caller, Client};
use crate::access::cors;
use crate::access::forwarded::{self, ForwardedOrigin};
use crate::access::guard;
use crate::access::resource_server::ResourceServer;
use crate::endpoint::{Endpoint, EndpointState};
use crate::extra_routes::ExtraRoutes;
use crate::ops::health;
use crate::ops::refusal_log::logged_path;
use crate::options::Options;
use crate::refusal::{Reason, Refusal};
use crate::request::observed::ObservedRequest;
use crate::request::{body, get, http_sse, post, websocket};
use crate::routes::{Route, Target};

/// Bytes of a form that are searched for a token.
const FORM: usize = 64 << 10;

impl Endpoint {
    pub(crate) async fn answer(&self, client: Client, memory: &MemoryAccount, request: Request) -> Response {
        let (began, inner) = (Instant::now(), &self.inner);
        let (mut head, body) = request.into_parts();
        let resolved = forwarded::resolve(&inner.options.trusted_proxies, client, &mut head);
        let client = *resolved.as_ref().unwrap_or(&client);
        let route = inner.options.path.route(head.uri.path()).filter(|route| inner.serves(route));
        let path = route.map(|route| inner.options.path.of(route.target));
        // For the log of a refusal; without the query, which may name a session.
        let unknown_path = route.is_none().then(|| logged_path(head.uri.path()).into_boxed_str());
        let method = head.method.clone();
        let span = tracing::info_span!(
            target: "refmcp::http", "request", client = client.address.map(tracing::field::display),
            method = %head.method, path
        );
        let observed = inner.observe(client, route, &head);
        let mut origin = head.headers.get(header::ORIGIN).cloned();
        let served = match resolved.and_then(|client| inner.admit(client, &head, route)) {
            Ok(service) => {
                let (origin, observed) = (forwarded::origin(&head), observed.clone());
                let caller = Caller { client, token: None, origin, observed, memory: memory.clone() };
                inner.serve(service, caller, head, body).instrument(span.clone()).await
            }
            Err(refusal) => {
                // A page that may not use the server may not read the response, either.
                origin = origin.filter(|_| !matches!(refusal.reason, Reason::Host | Reason::Origin));
                Err(refusal)
            }
        };
        let mut response = served.unwrap_or_else(|refusal| {
            let refusal = observed.refused(refusal);
            inner.refused(client, Some(&method), path.or(unknown_path.as_deref()), &refusal);
            refusal.into_response()
        });
        if let Some(origin) = origin {
            cors::expose(&mut response, origin);
        }
        let (status, took) = (response.status(), began.elapsed());
        inner.metrics.answered(route, status, took);
        tracing::debug!(target: "refmcp::http", parent: &span, status = status.as_u16(), seconds = took.as_secs_f64(), "answered");
        observed.responded(response)
    }
}

enum Service<'a> {
    Route(&'static Route),
    Extra(&'a dyn ExtraRoutes),
}

impl EndpointState {
    /// A request that an observer sees, if there is one: messages, and what was meant to be some. Extra routes have secrets of
    /// their own.
    fn observe(&self, client: Client, route: Option<&'static Route>, head: &Parts) -> ObservedRequest {
        let Some(observer) = self.server.observer() else { return ObservedRequest::default() };
        let is_seen = match route {
            Some(route) => !route.target.is_ops() && route.target != Target::Metadata,
            None => !self.extra_paths.iter().any(|path| path == head.uri.path()),
        };
        let is_wanted = || {
            let of_session = self.sessions.is_observed(head);
            of_session.unwrap_or_else(|| observer.wants_connection(self.clock.now()))
        };
        if !is_seen || !is_wanted() {
            return ObservedRequest::default();
        }
        ObservedRequest::new(observer.clone(), self.clock, client, head)
    }

    /// Checks the size of the head, `Host`, `Origin`, the rate limit, the path and the method, before the body is read.
    fn admit(
        &self,
        client: Client,
        head: &Parts,
        route: Option<&'static Route>,
    ) -> Result<Service<'_>, Refusal> {
        let Options { hosts, origins, extra_routes, resource_server, .. } = &self.options;
        let (uri, headers, local) = (&head.uri, &head.headers, client.local_address);
        check_head_size(head, self.options.head_bytes)?;
        let refuse = |error| Refusal::guard(error, headers);
        guard::check_host(hosts, local, uri, headers).map_err(refuse)?;
        let forwarded = head.extensions.get::<ForwardedOrigin>();
        if let Some(host) = forwarded.and_then(|forwarded| forwarded.host.as_deref()) {
            // In addition to `Host`: pages can send this header, and not every proxy replaces it.
            guard::check_forwarded_host(hosts, local, host)
                .map_err(|error| refuse(error).with_detail(excerpt(host)))?;
        }
        let is_extra = || self.extra_paths.iter().any(|path| path == uri.path());
        let extra = || extra_routes.as_deref().filter(|_| is_extra()).map(Service::Extra);
        let service = route.map(Service::Route).or_else(extra);
        let public = match &service {
            // The metadata of the resource is public.
            Some(Service::Route(route)) => route.target == Target::Metadata && resource_server.is_some(),
            Some(Service::Extra(extra)) => extra.allows_any_origin(uri.path()),
            None => false,
        };
        if !public {
            guard::check_origin(hosts, origins, local, headers).map_err(refuse)?;
        }
        if let (Some(rates), Some(address)) = (&self.rates, client.rate_key())
            && (self.options.rate_on_loopback || !client.is_local())
            && let Err(seconds) = rates.take(address, self.clock.now())
        {
            return Err(Refusal::too_many(Reason::Rate, "too many requests from this client", seconds));
        }
        if let Some(Service::Route(route)) = &service
            && head.method != Method::OPTIONS
            && !route.methods.contains(&head.method.as_str())
        {
            let why = http_sse::wrong_method(&self.options.path, route.target, head);
            return Err(Refusal::method(route.methods, why));
        }
        service.ok_or_else(|| Refusal::not_found().with_hint(&self.options.path))
    }

    /// Serves a request that was admitted, with its access token where one is required.
    async fn serve(
        self: &Arc<Self>,
        service: Service<'_>,
        caller: Caller,
        head: Parts,
        body: Body,
    ) -> Result<Response, Refusal> {
        let route = match service {
            Service::Route(route) => route,
            Service::Extra(extra) => return Box::pin(self.answer_extra(extra, &caller, head, body)).await,
        };
        if head.method == Method::OPTIONS {
            return Ok(cors::preflight(route.methods, &head.headers));
        }
        match (route.target, &self.options.resource_server) {
            (target, None) if target.is_ops() => health::serve(self, target).await,
            (Target::Metadata, Some(resource_server)) => resource_server.metadata_response(&head),
            (Target::Metadata, None) => Err(Refusal::not_found()),
            // Boxed: without a resource server, connections need no memory for it.
            (_, Some(resource_server)) => {
                Box::pin(self.serve_authorized(resource_server, route, caller, head, body)).await
            }
            (_, None) => {
                let _counted = self.acquire_in_flight()?;
                if route.target == Target::Mcp && head.method == Method::POST && !self.sessions.is_shared {
                    // Most requests are; the whole answer has a box, and this needs none of its own.
                    return post::post(self, caller, head, body).await;
                }
                self.serve_route(route, caller, head, body).await
            }
        }
    }

    async fn serve_authorized(
        self: &Arc<Self>,
        resource_server: &ResourceServer,
        route: &'static Route,
        caller: Caller,
        head: Parts,
        body: Body,
    ) -> Result<Response, Refusal> {
        let authorized = resource_server.authorize(&head, || self.acquire_in_flight()).await;
        let (token, _counted) = match authorized {
            Ok(authorized) => authorized,
            Err(refusal) if refusal.reason == Reason::InFlight => return Err(refusal),
            // A token in a form gets a refusal that says so.
            Err(refusal) if is_form(&head.headers) => {
                return Err(match body::read(self, &caller.memory, body, FORM).await {
                    Ok(body) if refusal.reason == Reason::Unauthorized && form_names_token(&body.bytes) => {
                        resource_server.refuse_form(&head)
                    }
                    _ => refusal,
                });
            }
            Err(refusal) => return Err(body::refuse_unread(&head.headers, body, refusal).await),
        };
        let caller = Caller { token: Some(token.clone()), ..caller };
        let response = self.serve_route(route, caller, head, body).await?;
        Ok(resource_server.end_with_token(response, &token))
    }

    /// Serves an authorized request. Boxed, so that a connection that only reads a stream does not hold the memory of the
    /// largest handler.
    fn serve_route<'a>(
        self: &'a Arc<Self>,
        route: &'static Route,
        caller: Caller,
        head: Parts,
        body: Body,
    ) -> Pin<Box<dyn Future<Output = Result<Response, Refusal>> + Send + 'a>> {
        if self.sessions.is_shared {
            return Box::pin(self.serve_as_replica(route, caller, head, body));
        }
        self.serve_here(route, caller, head, body)
    }

    /// Serves a request whose session is up to date with the backplane.
    pub(crate) fn serve_here<'a>(
        self: &'a Arc<Self>,
        route: &Route,
        caller: Caller,
        head: Parts,
        body: Body,
    ) -> Pin<Box<dyn Future<Output = Result<Response, Refusal>> + Send + 'a>> {
        match (route.target, &head.method) {
            (Target::Messages, _) => Box::pin(http_sse::message(self, caller, head, body)),
            (Target::Events, _) => Box::pin(http_sse::open(self, caller, head)),
            (Target::Mcp, &Method::POST) => Box::pin(post::post(self, caller, head, body)),
            (Target::Mcp, &Method::DELETE) => Box::pin(get::delete(self, caller, head.headers)),
            (Target::Mcp, _) if !websocket::is_upgrade(&head.headers) => {
                Box::pin(get::get(self, caller, head))
            }
            (Target::Mcp | Target::WebSocket, _) => Box::pin(ready(websocket::upgrade(self, &caller, head))),
            (target, _) => Box::pin(health::serve(self, target)),
        }
    }
}

/// Refuses a head of more than so many bytes. hyper and h2 have limits of their own, which are less exact, or answer without a
/// line in the log.
fn check_head_size(head: &Parts, most: usize) -> Result<(), Refusal> {
    let fields = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let bytes = head.uri.path_and_query().map_or(0, |path| path.as_str().len()) + fields.sum::<usize>();
    if bytes <= most {
        return Ok(());
    }
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    Err(Refusal::new(status, Reason::HeadSize, format!("a head of {bytes} bytes; at most {most} are read")))
}
