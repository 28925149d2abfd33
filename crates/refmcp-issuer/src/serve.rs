//! The server: which path is answered by what.

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use refmcp_auth::fetch::BoxFuture;
use refmcp_auth::jose::{Jwks, PrivateKeyError};
use refmcp_auth::metadata::ServerMetadata;
use refmcp_auth::random::random_token;
use refmcp_auth::{Seconds, Secret};

use crate::clients::{self, Client};
use crate::faults::{Fault, HANG};
use crate::settings::Settings;
use crate::state::State;
use crate::{ABOUT, authorize, introspect, metadata, respond, revoke, token};

/// Bytes of a request's body that are read.
const LONGEST_BODY: usize = 64 << 10;

/// The id of the resource server, for asking about tokens.
const RESOURCE_SERVER: &str = "refmcp-resource-server";

/// An authorization server. Cloning it gives the same one.
#[derive(Clone)]
pub struct Issuer(Arc<Server>);

/// What an authorization server is.
pub(crate) struct Server {
    pub(crate) settings: Settings,
    /// Its name.
    pub(crate) name: String,
    /// The resource server that it belongs to.
    pub(crate) resource_server: Arc<Client>,
    /// Documents that are being fetched.
    pub(crate) fetching: AtomicUsize,
    state: Mutex<State>,
}

impl Server {
    /// What is remembered. Not to be held while something is awaited.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // No step leaves a state that the next cannot go on from.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn breaks(&self, fault: Fault) -> bool {
        self.settings.faults.has(fault)
    }
}

/// What is at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Metadata { openid: bool },
    Jwks,
    Authorize,
    About,
    Token,
    Register,
    Revoke,
    Introspect,
}

impl Place {
    const fn methods(self) -> &'static str {
        match self {
            Self::Metadata { .. } | Self::Jwks | Self::About => "GET, HEAD",
            Self::Authorize => "GET, HEAD, POST",
            Self::Token | Self::Register | Self::Revoke | Self::Introspect => "POST",
        }
    }

    /// Whether pages of other origins may use it: clients that run in browsers do.
    const fn is_for_pages(self) -> bool {
        matches!(self, Self::Metadata { .. } | Self::Jwks | Self::Token | Self::Register | Self::Revoke)
    }
}

impl Issuer {
    /// A new authorization server with a new key.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(settings: Settings) -> Result<Self, PrivateKeyError> {
        let secret = random_token().map_err(|_| PrivateKeyError::Random)?;
        let server = Server {
            name: settings.issuer(),
            resource_server: Arc::new(Client::with_secret(RESOURCE_SERVER, secret).without_grants()),
            fetching: AtomicUsize::new(0),
            state: Mutex::new(State::new()?),
            settings,
        };
        Ok(Self(Arc::new(server)))
    }

    /// The server's name, which tokens have in `iss` and resources list.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it was told when it started.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// What it tells about itself.
    pub fn metadata(&self) -> ServerMetadata {
        metadata::metadata(&self.0.settings, false)
    }

    /// The keys that are published now.
    pub fn jwks(&self) -> Jwks {
        self.0.state().keys.published()
    }

    /// The id and the secret with which the resource server may ask about tokens.
    pub fn resource_credentials(&self) -> (&str, Option<&Secret>) {
        (self.0.resource_server.id(), self.0.resource_server.secret())
    }

    /// Signs with a new key from now on. The one before stays published.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn rotate_keys(&self) -> Result<(), PrivateKeyError> {
        self.0.state().keys.rotate()
    }

    /// How many clients have registered and are not forgotten.
    #[cfg(test)]
    pub(crate) fn remembered_clients(&self) -> usize {
        self.0.state().clients.len()
    }

    /// The paths that it answers.
    pub fn paths(&self) -> Vec<String> {
        self.0.places().into_iter().map(|(path, _)| path).collect()
    }

    /// Answers a request. Paths that are not among [`paths`](Self::paths) are not found.
    pub fn answer(&self, request: Request<Bytes>, now: Seconds) -> BoxFuture<'static, Response<Bytes>> {
        let server = Arc::clone(&self.0);
        Box::pin(async move { server.answer(request, now).await })
    }
}

impl Server {
    fn places(&self) -> Vec<(String, Place)> {
        let places = metadata::places(&self.settings).into_iter();
        let mut places: Vec<_> = places.map(|(path, openid)| (path, Place::Metadata { openid })).collect();
        let fixed = [
            ("/jwks", Place::Jwks),
            ("/authorize", Place::Authorize),
            (ABOUT, Place::About),
            ("/token", Place::Token),
            ("/register", Place::Register),
            ("/revoke", Place::Revoke),
            ("/introspect", Place::Introspect),
        ];
        let there = |place| place != Place::Register || !self.breaks(Fault::NoRegistration);
        places.extend(
            fixed
                .into_iter()
                .filter(|(_, place)| there(*place))
                .map(|(path, place)| (path.to_owned(), place)),
        );
        places
    }

    async fn answer(&self, request: Request<Bytes>, now: Seconds) -> Response<Bytes> {
        if let Some(delay) = self.settings.faults.delay() {
            tokio::time::sleep(delay).await;
        }
        let (head, body) = request.into_parts();
        let found = self.places().into_iter().find(|(path, _)| path == head.uri.path());
        let Some((_, place)) = found else {
            return respond::empty(StatusCode::NOT_FOUND);
        };
        let methods = place.methods();
        let mut response = if head.method == Method::OPTIONS && place.is_for_pages() {
            respond::preflight(methods)
        } else if !methods.split(", ").any(|method| head.method.as_str() == method) {
            respond::not_allowed(methods)
        } else if body.len() > LONGEST_BODY {
            respond::empty(StatusCode::PAYLOAD_TOO_LARGE)
        } else {
            self.answer_at(place, &head, &body, now).await
        };
        if place.is_for_pages() {
            respond::expose(response.headers_mut());
        }
        response
    }

    async fn answer_at(&self, place: Place, head: &Parts, body: &Bytes, now: Seconds) -> Response<Bytes> {
        match place {
            Place::Metadata { openid } => metadata::answer(&self.settings, openid),
            Place::Jwks => respond::json(&self.state().keys.published()),
            Place::About => authorize::about(&self.settings),
            Place::Authorize => authorize::answer(self, head, body, now).await,
            Place::Token => {
                if self.breaks(Fault::HangingToken) {
                    tokio::time::sleep(HANG).await;
                }
                token::answer(self, head, body, now)
            }
            Place::Register => clients::register(self, head, body, now),
            Place::Revoke => revoke::answer(self, head, body, now),
            Place::Introspect => introspect::answer(self, head, body, now),
        }
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("name", &self.0.name).finish_non_exhaustive()
    }
}
