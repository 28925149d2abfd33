//! Clients of the authorization server.

use std::sync::Arc;

use refmcp_auth::client::AuthMethod;
use refmcp_auth::jose::Jwks;
use refmcp_auth::{ExpiringMap, Seconds, Secret};

mod authenticate;
mod document;
mod redirect;
mod register;

pub(crate) use authenticate::{SKEW, authenticate};
pub(crate) use document::{MAX_FETCHES, find, known};
pub use redirect::Redirects;
pub(crate) use register::register;

/// A client.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) redirects: Redirects,
    /// How it may authenticate.
    pub(crate) methods: Vec<AuthMethod>,
    pub(crate) secret: Option<Secret>,
    pub(crate) keys: Jwks,
    /// Allowed grant types; empty: all that fit.
    pub(crate) grants: Option<Vec<String>>,
    /// True if all tokens are DPoP-bound.
    pub(crate) bound_tokens: bool,
    pub(crate) origin: Origin,
}

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Pre-registered.
    Settings,
    /// Dynamically registered.
    Registration,
    /// The id is the URL of a client ID metadata document.
    Document,
}

impl Client {
    fn new(id: impl Into<String>, methods: &[AuthMethod]) -> Self {
        Self {
            id: id.into(),
            name: None,
            redirects: Redirects::AnyLoopback,
            methods: methods.to_vec(),
            secret: None,
            keys: Jwks::default(),
            grants: None,
            bound_tokens: false,
            origin: Origin::Settings,
        }
    }

    /// A public client. Without redirect URIs, any loopback URI is allowed and no other.
    pub fn public(id: impl Into<String>) -> Self {
        Self::new(id, &[AuthMethod::None])
    }

    /// A client with a secret.
    pub fn with_secret(id: impl Into<String>, secret: impl Into<Box<str>>) -> Self {
        Self { secret: Some(Secret::new(secret)), ..Self::new(id, &[AuthMethod::Basic, AuthMethod::Post]) }
    }

    /// A client with keys for assertions.
    pub fn with_keys(id: impl Into<String>, keys: Jwks) -> Self {
        Self { keys, ..Self::new(id, &[AuthMethod::PrivateKey]) }
    }

    /// Sets the display name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the redirect URIs.
    #[must_use]
    pub fn redirecting_to<T: Into<String>>(mut self, addresses: impl IntoIterator<Item = T>) -> Self {
        self.redirects = Redirects::Exactly(addresses.into_iter().map(Into::into).collect());
        self
    }

    /// Removes all grants: the client may only introspect.
    pub(crate) fn without_grants(mut self) -> Self {
        self.grants = Some(Vec::new());
        self
    }

    /// The client id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The client secret.
    pub fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    /// True if the client has no credentials.
    pub(crate) fn is_public(&self) -> bool {
        self.methods == [AuthMethod::None]
    }

    /// True if the client may use a grant type.
    pub(crate) fn may_use(&self, grant: &str) -> bool {
        self.grants.as_ref().is_none_or(|grants| grants.iter().any(|known| known == grant))
    }
}

/// Limit of clients of each kind.
const MAX_CLIENTS: usize = 1_000;

/// Registered clients. Clients that no user has allowed evict each other, and never those that a user has allowed. So a flood
/// of registrations takes nothing from active clients.
///
/// A client with a document is stored once a user has allowed it.
pub(crate) struct Registry {
    fresh: ExpiringMap<String, Arc<Client>>,
    allowed: ExpiringMap<String, Arc<Client>>,
    documented: ExpiringMap<String, Arc<Client>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            fresh: ExpiringMap::new(MAX_CLIENTS),
            allowed: ExpiringMap::new(MAX_CLIENTS),
            documented: ExpiringMap::new(MAX_CLIENTS),
        }
    }

    /// Stores a new client.
    pub(crate) fn insert(&mut self, client: Client, now: Seconds) {
        let id = client.id.clone();
        self.fresh.insert(&id, Arc::new(client), Seconds::MAX, now);
    }

    /// The registered client of an id.
    pub(crate) fn get(&self, id: &str, now: Seconds) -> Option<Arc<Client>> {
        self.allowed.get(id, now).or_else(|| self.fresh.get(id, now)).cloned()
    }

    /// The client of a document, as it was when a user last allowed it.
    pub(crate) fn documented(&self, id: &str, now: Seconds) -> Option<Arc<Client>> {
        self.documented.get(id, now).cloned()
    }

    /// Records that a user has allowed a client. It may have been evicted in the meantime.
    pub(crate) fn allow(&mut self, client: &Arc<Client>, now: Seconds) {
        let memory = match client.origin {
            Origin::Settings => return,
            Origin::Registration => {
                self.fresh.remove(&client.id);
                &mut self.allowed
            }
            Origin::Document => &mut self.documented,
        };
        memory.insert(&client.id, Arc::clone(client), Seconds::MAX, now);
    }

    /// Records that a client is active, so that it is evicted last.
    pub(crate) fn touch(&mut self, id: &str, now: Seconds) {
        for memory in [&mut self.allowed, &mut self.documented] {
            if let Some(client) = memory.remove(id) {
                memory.insert(id, client, Seconds::MAX, now);
            }
        }
    }

    /// The number of clients.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.fresh.len() + self.allowed.len()
    }
}
