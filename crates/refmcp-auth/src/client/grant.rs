//! What a flow ends with, and what is kept of it.

use serde::{Deserialize, Serialize};
use url::Url;

use super::identity::AuthMethod;
use crate::Seconds;
use crate::jose::{Algorithm, BadPrivateKey, PrivateKey};
use crate::jose::{decode, encode};
use crate::metadata::Registered;
use crate::scope::Scopes;
use crate::secret::Secret;

/// A token with all that is needed to use it and to get the next one. It belongs to one issuer and one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// Who gave it.
    pub issuer: String,
    /// What it is for, by the name that the resource gives itself.
    pub resource: String,
    /// Whom it was given to; nobody named, where an assertion was enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The secret of a client that registered itself. Secrets of clients that others registered are not kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// How the client proves who it is.
    pub method: AuthMethod,
    /// The token.
    pub token: Secret,
    /// How it is presented.
    pub token_type: TokenType,
    /// What it is good for, as far as that is known.
    pub scope: Scopes,
    /// What was asked for.
    #[serde(default)]
    pub asked: Scopes,
    /// When it ends, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Seconds>,
    /// What brings the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
    /// Where the next one is had.
    pub token_endpoint: Url,
    /// Where it is given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<Url>,
    /// The key that the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<BoundKey>,
}

impl Grant {
    /// Whether the token is over, or will be within so many seconds.
    pub fn ends_within(&self, seconds: Seconds, now: Seconds) -> bool {
        self.expires_at.is_some_and(|end| end <= now.saturating_add(seconds))
    }
}

/// How a token is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenType {
    /// By whoever has it.
    Bearer,
    /// With a proof of possession of its key.
    #[serde(rename = "DPoP")]
    Dpop,
}

impl TokenType {
    /// The name, which is the scheme of the `Authorization` header as well.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }
}

/// A key that tokens are bound to, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundKey {
    /// What it signs by.
    pub algorithm: Algorithm,
    /// The key in PKCS #8, in base64url.
    pub pkcs8: Secret,
}

impl BoundKey {
    /// Keeps a key.
    pub fn of(key: &PrivateKey) -> Self {
        Self { algorithm: key.algorithm(), pkcs8: Secret::from(encode(key.reveal_pkcs8())) }
    }

    /// The key.
    ///
    /// # Errors
    /// What was kept is no key.
    pub fn open(&self) -> Result<PrivateKey, BadPrivateKey> {
        PrivateKey::from_pkcs8(self.algorithm, &decode(self.pkcs8.reveal()).unwrap_or_default())
    }
}

/// What has to be kept before the flow goes on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Save {
    /// Who we are to an issuer from now on; it takes the place of what was known of us there.
    Registration {
        /// The issuer.
        issuer: String,
        /// The registration.
        registered: Box<Registered>,
    },
    /// That a registration is not to be used for another login, if it is still this one that is kept. A person is sent
    /// out with it: if the authorization server no longer knows it, nobody will ever come back to say so. When somebody
    /// has, it is kept again.
    NoRegistration {
        /// The issuer.
        issuer: String,
        /// Who we were there.
        client_id: String,
    },
    /// A grant, which takes the place of the server's earlier one. What refreshes it may work only once, so it must not
    /// be lost.
    Grant(Box<Grant>),
}
