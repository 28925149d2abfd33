//! The authorization server: its endpoints and their dispatch.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use refmcp_auth::fetch::{BoxFuture, Fetch, FetchError};
use refmcp_auth::jose::{Jwks, PrivateKeyError};
use refmcp_auth::metadata::ServerMetadata;
use refmcp_auth::random::random_token;
use refmcp_auth::{Scopes, Seconds, Secret};
use tokio::sync::Semaphore;
use url::Url;

use crate::clients::{self, Client};
use crate::faults::{Fault, HANG};
use crate::form::Form;
use crate::respond::ErrorResponse;
use crate::settings::Settings;
use crate::state::State;
use crate::{ABOUT, authorize, issued_tokens, metadata, respond, token};

/// Limit of a request body in bytes.
const MAX_BODY: usize = 64 << 10;

/// The client id of the resource server, for introspection.
const RESOURCE_SERVER: &str = "refmcp-resource-server";

/// An authorization server. Clones share it.
#[derive(Clone)]
pub struct Issuer(Arc<Server>);

/// The data of an authorization server.
pub(crate) struct Server {
    pub(crate) settings: Settings,
    /// The issuer identifier.
    pub(crate) name: String,
    /// The client of the resource server.
    pub(crate) resource_server: Arc<Client>,
    /// Permits to fetch client documents.
    pub(crate) fetching: Semaphore,
    state: Mutex<State>,
}

impl Server {
    /// The state. The lock must not be held across an await.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn breaks(&self, fault: Fault) -> bool {
        self.settings.faults.has(fault)
    }

    /// The resource and the scopes that a request names, or the default ones.
    pub(crate) fn requested(&self, form: &Form) -> Result<(String, Scopes), ErrorResponse> {
        let resource = self.settings.resource(form.get("resource"));
        let target = || ErrorResponse::new("invalid_target", "resource is not one of those here");
        let scopes = self.settings.scopes(form.get("scope"));
        let scope = || ErrorResponse::new("invalid_scope", "none of the scopes exists here");
        Ok((resource.ok_or_else(target)?.to_owned(), scopes.ok_or_else(scope)?))
    }

    /// Refuses a request that names another resource than the granted one.
    pub(crate) fn check_resource(&self, form: &Form, granted: &str, why: &str) -> Result<(), ErrorResponse> {
        match form.get("resource") {
            named @ Some(_) if self.settings.resource(named) != Some(granted) => {
                Err(ErrorResponse::new("invalid_target", why))
            }
            _ => Ok(()),
        }
    }
}

/// One request, as every endpoint sees it.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) server: &'a Server,
    pub(crate) head: &'a Parts,
    pub(crate) body: &'a Bytes,
    pub(crate) now: Seconds,
}

/// The response of an endpoint, or an OAuth error.
pub(crate) type EndpointResult = Result<Response<Bytes>, ErrorResponse>;

/// An endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Metadata { openid: bool },
    Jwks,
    Authorize,
    About,
    Token,
    Register,
    Revoke,
    Introspect,
}

const READ: &str = "GET, HEAD";

/// The endpoints beside the metadata: path, allowed methods, and whether other origins may use it, since clients run in
/// browsers, too.
const ENDPOINTS: [(&str, Endpoint, &str, bool); 7] = [
    ("/jwks", Endpoint::Jwks, READ, true),
    ("/authorize", Endpoint::Authorize, "GET, HEAD, POST", false),
    (ABOUT, Endpoint::About, READ, false),
    ("/token", Endpoint::Token, "POST", true),
    ("/register", Endpoint::Register, "POST", true),
    ("/revoke", Endpoint::Revoke, "POST", true),
    ("/introspect", Endpoint::Introspect, "POST", false),
];

impl Issuer {
    /// A new authorization server with a new key.
    ///
    /// # Errors
    /// The operating system provides no random bytes.
    pub fn new(settings: Settings) -> Result<Self, PrivateKeyError> {
        let secret = random_token().map_err(|_| PrivateKeyError::Random)?;
        let server = Server {
            name: settings.issuer(),
            resource_server: Arc::new(Client::with_secret(RESOURCE_SERVER, secret).without_grants()),
            fetching: Semaphore::new(clients::MAX_FETCHES),
            state: Mutex::new(State::new()?),
            settings,
        };
        Ok(Self(Arc::new(server)))
    }

    /// The issuer identifier.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The authorization server metadata.
    pub fn metadata(&self) -> ServerMetadata {
        metadata::metadata(&self.0.settings, false)
    }

    /// The published keys.
    pub fn jwks(&self) -> Jwks {
        self.0.state().keys.published()
    }

    /// The credentials of the resource server, for introspection.
    pub fn resource_credentials(&self) -> (&str, Option<&Secret>) {
        (self.0.resource_server.id(), self.0.resource_server.secret())
    }

    /// Rotates the signing key. The former one stays published.
    ///
    /// # Errors
    /// The operating system provides no random bytes.
    pub fn rotate_keys(&self) -> Result<(), PrivateKeyError> {
        self.0.state().keys.rotate()
    }

    /// The number of stored registrations.
    #[cfg(test)]
    pub(crate) fn registered_clients(&self) -> usize {
        self.0.state().clients.len()
    }

    /// The paths that this server answers.
    pub fn paths(&self) -> Vec<String> {
        self.0.endpoints().map(|(path, ..)| path).collect()
    }

    /// Answers a request. Other paths than [`paths`](Self::paths) are not found.
    pub fn answer(&self, request: Request<Bytes>, now: Seconds) -> BoxFuture<'static, Response<Bytes>> {
        let server = Arc::clone(&self.0);
        Box::pin(async move { server.answer(request, now).await })
    }
}

impl Server {
    fn endpoints(&self) -> impl Iterator<Item = (String, Endpoint, &'static str, bool)> {
        let metadata = metadata::places(&self.settings).into_iter();
        let metadata = metadata.map(|(path, openid)| (path, Endpoint::Metadata { openid }, READ, true));
        let registers = !self.breaks(Fault::NoRegistration);
        let others = ENDPOINTS.into_iter().filter(move |row| registers || row.1 != Endpoint::Register);
        metadata
            .chain(others.map(|(path, endpoint, methods, cors)| (path.to_owned(), endpoint, methods, cors)))
    }

    async fn answer(&self, request: Request<Bytes>, now: Seconds) -> Response<Bytes> {
        if let Some(delay) = self.settings.faults.delay() {
            tokio::time::sleep(delay).await;
        }
        let (head, body) = request.into_parts();
        let found = self.endpoints().find(|(path, ..)| path == head.uri.path());
        let Some((_, endpoint, methods, cors)) = found else {
            return respond::empty(StatusCode::NOT_FOUND);
        };
        let mut response = if head.method == Method::OPTIONS && cors {
            respond::preflight(methods)
        } else if !methods.split(", ").any(|method| head.method.as_str() == method) {
            respond::not_allowed(methods)
        } else if body.len() > MAX_BODY {
            respond::empty(StatusCode::PAYLOAD_TOO_LARGE)
        } else {
            let exchange = Exchange { server: self, head: &head, body: &body, now };
            exchange.answer(endpoint).await.unwrap_or_else(|refusal| refusal.answer())
        };
        if cors {
            respond::expose(response.headers_mut());
        }
        response
    }
}

impl Exchange<'_> {
    async fn answer(self, endpoint: Endpoint) -> EndpointResult {
        let server = self.server;
        match endpoint {
            Endpoint::Metadata { openid } => Ok(metadata::answer(&server.settings, openid)),
            Endpoint::Jwks => Ok(respond::json(&server.state().keys.published())),
            Endpoint::About => Ok(authorize::about(&server.settings)),
            Endpoint::Authorize => Ok(authorize::answer(self).await),
            Endpoint::Token => {
                if server.breaks(Fault::HangingToken) {
                    tokio::time::sleep(HANG).await;
                }
                Ok(token::answer(self))
            }
            Endpoint::Register => clients::register(self),
            Endpoint::Revoke => issued_tokens::revoke(self),
            Endpoint::Introspect => issued_tokens::introspect(self),
        }
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("name", &self.0.name).finish_non_exhaustive()
    }
}

/// Fetches from an authorization server in this process, and everything else with another fetcher. A resource server gets the
/// keys of its own authorization server without a socket, a proxy or a certificate in between.
#[derive(Debug, Clone)]
pub struct InProcessFetch {
    issuer: Issuer,
    elsewhere: Option<Arc<dyn Fetch>>,
}

impl InProcessFetch {
    /// A fetcher for this server, and for others if `elsewhere` is given.
    pub fn new(issuer: Issuer, elsewhere: Option<Arc<dyn Fetch>>) -> Self {
        Self { issuer, elsewhere }
    }
}

impl Fetch for InProcessFetch {
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, FetchError>> {
        let asked = Url::parse(&request.uri().to_string()).ok();
        if asked.is_some_and(|url| url.origin() == self.issuer.settings().origin.origin()) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let answer = self.issuer.answer(request, now);
            return Box::pin(async move { Ok(answer.await) });
        }
        match &self.elsewhere {
            Some(elsewhere) => elsewhere.fetch(request),
            None => {
                let why = "only the authorization server of this process is asked".to_owned();
                Box::pin(async move { Err(FetchError::Forbidden(why)) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::tests::{ORIGIN, world};

    #[test]
    fn in_process_fetch_reaches_this_server_only() {
        let near = InProcessFetch::new(world().issuer, None);
        let fetch = |url: String| {
            let request = Request::get(url).body(Bytes::new()).unwrap();
            match pin!(near.fetch(request)).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => answer,
                Poll::Pending => panic!("the answer does not come at once"),
            }
        };
        let keys = fetch(format!("{ORIGIN}/jwks")).unwrap();
        assert!(keys.body().starts_with(b"{\"keys\":["));
        for other in
            ["http://127.0.0.1:3001/jwks", "https://127.0.0.1:3000/jwks", "http://localhost:3000/jwks"]
        {
            assert!(matches!(fetch(other.to_owned()), Err(FetchError::Forbidden(_))), "{other}");
        }
    }
}
