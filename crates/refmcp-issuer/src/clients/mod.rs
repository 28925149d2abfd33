//! Clients of the authorization server.

mod authenticate;
mod document;
mod redirect;
mod register;
mod registry;

pub(crate) use authenticate::{SKEW, authenticate};
pub(crate) use document::{MOST_FETCHES, find, known};
pub use redirect::Redirects;
pub(crate) use register::register;
pub(crate) use registry::Registry;

use refmcp_auth::Secret;
use refmcp_auth::jose::Jwks;

/// A client authentication method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// None: a public client.
    None,
    /// The secret in the `Authorization` header.
    Basic,
    /// The secret in the body.
    Post,
    /// The secret in either place.
    BasicOrPost,
    /// A signed assertion.
    PrivateKeyJwt,
}

impl Method {
    /// The method of a registered name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "client_secret_basic" => Some(Self::Basic),
            "client_secret_post" => Some(Self::Post),
            "private_key_jwt" => Some(Self::PrivateKeyJwt),
            _ => None,
        }
    }
}

/// A client.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) redirects: Redirects,
    pub(crate) method: Method,
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
    fn new(id: impl Into<String>, method: Method) -> Self {
        Self {
            id: id.into(),
            name: None,
            redirects: Redirects::AnyLoopback,
            method,
            secret: None,
            keys: Jwks::default(),
            grants: None,
            bound_tokens: false,
            origin: Origin::Settings,
        }
    }

    /// A public client. Without redirect URIs, any loopback URI is allowed and no other.
    pub fn public(id: impl Into<String>) -> Self {
        Self::new(id, Method::None)
    }

    /// A client with a secret.
    pub fn with_secret(id: impl Into<String>, secret: impl Into<Box<str>>) -> Self {
        Self { secret: Some(Secret::new(secret)), ..Self::new(id, Method::BasicOrPost) }
    }

    /// A client with keys for assertions.
    pub fn with_keys(id: impl Into<String>, keys: Jwks) -> Self {
        Self { keys, ..Self::new(id, Method::PrivateKeyJwt) }
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
        self.method == Method::None
    }

    /// True if the client may use a grant type.
    pub(crate) fn may_use(&self, grant: &str) -> bool {
        self.grants.as_ref().is_none_or(|grants| grants.iter().any(|known| known == grant))
    }
}
