//! The clients: who they are, and where their answers may go.

mod authenticate;
mod document;
mod redirect;
mod register;
mod registry;

pub(crate) use authenticate::{SKEW, authenticate};
pub(crate) use document::{find, known};
pub use redirect::Redirects;
pub(crate) use register::register;
pub(crate) use registry::Registry;

use refmcp_auth::Secret;
use refmcp_auth::jose::Jwks;

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// It does not: anybody can say that they are it.
    None,
    /// By its secret in the `Authorization` header.
    Basic,
    /// By its secret in the body.
    Post,
    /// By its secret in either place.
    BasicOrPost,
    /// By an assertion that it has signed.
    PrivateKeyJwt,
}

impl Method {
    /// The method of this name on the wire.
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
    /// What it may ask tokens for; nothing: everything that fits.
    pub(crate) grants: Option<Vec<String>>,
    /// Whether its tokens are bound to a key, always.
    pub(crate) bound_tokens: bool,
    pub(crate) origin: Origin,
}

/// Where a client is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was known beforehand.
    Settings,
    /// It has registered itself.
    Registration,
    /// Its id is the URL of a document about it.
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

    /// A client without a secret. Until it is told otherwise, answers go to any address on the machine of whoever uses
    /// it, and nowhere else.
    pub fn public(id: impl Into<String>) -> Self {
        Self::new(id, Method::None)
    }

    /// A client with a secret.
    pub fn with_secret(id: impl Into<String>, secret: impl Into<Box<str>>) -> Self {
        Self { secret: Some(Secret::new(secret)), ..Self::new(id, Method::BasicOrPost) }
    }

    /// A client that signs assertions with one of these keys.
    pub fn with_keys(id: impl Into<String>, keys: Jwks) -> Self {
        Self { keys, ..Self::new(id, Method::PrivateKeyJwt) }
    }

    /// The same with a name for people.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same, whose answers go to these addresses only.
    #[must_use]
    pub fn redirecting_to<T: Into<String>>(mut self, addresses: impl IntoIterator<Item = T>) -> Self {
        self.redirects = Redirects::Exactly(addresses.into_iter().map(Into::into).collect());
        self
    }

    /// The same, which may ask about tokens and have none.
    pub(crate) fn without_grants(mut self) -> Self {
        self.grants = Some(Vec::new());
        self
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its secret.
    pub fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    /// Whether anybody can say that they are it.
    pub(crate) fn is_public(&self) -> bool {
        self.method == Method::None
    }

    /// Whether it may ask for tokens in this way.
    pub(crate) fn may_use(&self, grant: &str) -> bool {
        self.grants.as_ref().is_none_or(|grants| grants.iter().any(|known| known == grant))
    }
}
