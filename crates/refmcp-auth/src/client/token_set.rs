//! Tokens with everything needed to use and refresh them, and updates of the token store.

use serde::{Deserialize, Serialize};
use url::Url;

use super::identity::AuthMethod;
use crate::Seconds;
use crate::jose::{Algorithm, PrivateKey, PrivateKeyError};
use crate::jose::{decode, encode};
use crate::metadata::ClientRegistration;
use crate::scope::Scopes;
use crate::secret::Secret;

json_struct! {
    /// An access token with everything needed to use and refresh it. It belongs to one issuer and one resource.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct TokenSet {
        /// The issuer.
        issuer: String,
        /// The resource identifier, byte for byte as the resource names itself.
        resource: String,
        /// The client id; absent where an assertion was sent without one.
        client_id?: String,
        /// The secret of a dynamic registration. Secrets of pre-registered clients are not stored here.
        client_secret?: Secret,
        /// The client authentication method.
        method: AuthMethod,
        /// The access token.
        token: Secret,
        /// The token type.
        token_type: TokenType,
        /// The granted scopes, as far as they are known.
        scope: Scopes,
        /// The requested scopes.
        #[serde(default)]
        requested_scope: Scopes,
        /// The expiration time, if the server told it.
        expires_at?: Seconds,
        /// The refresh token.
        refresh_token?: Secret,
        /// The token endpoint.
        token_endpoint: Url,
        /// The revocation endpoint.
        revocation_endpoint?: Url,
        /// The DPoP key.
        key?: BoundKey,
    }
}

impl TokenSet {
    /// True if the token expires within this many seconds.
    pub fn ends_within(&self, seconds: Seconds, now: Seconds) -> bool {
        self.expires_at.is_some_and(|end| end <= now.saturating_add(seconds))
    }
}

named_enum! {
    /// A token type, which is also the scheme of the `Authorization` header.
    pub enum TokenType {
        /// A bearer token.
        Bearer = "Bearer",
        /// A DPoP-bound token.
        Dpop = "DPoP",
    }
}

/// A DPoP key in storable form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundKey {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The PKCS #8 key in base64url.
    pub pkcs8: Secret,
}

impl BoundKey {
    /// Converts a key.
    pub fn from_key(key: &PrivateKey) -> Self {
        Self { algorithm: key.algorithm(), pkcs8: Secret::from(encode(key.reveal_pkcs8())) }
    }

    /// Restores the key.
    ///
    /// # Errors
    /// The stored text is not a key.
    pub fn open(&self) -> Result<PrivateKey, PrivateKeyError> {
        PrivateKey::from_pkcs8(self.algorithm, &decode(self.pkcs8.reveal()).unwrap_or_default())
    }
}

/// An update of the token store, written before the flow continues.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StoreUpdate {
    /// A registration, which replaces the stored one of this issuer.
    Registration {
        /// The issuer.
        issuer: String,
        /// The registration.
        registered: Box<ClientRegistration>,
    },
    /// Forgets a registration, unless another has replaced it. The browser is opened with it: an authorization server that
    /// no longer knows the client shows an error page and never redirects back. The registration is stored again after the
    /// redirect.
    ForgetRegistration {
        /// The issuer.
        issuer: String,
        /// The client id.
        client_id: String,
    },
    /// Tokens, which replace the stored ones of this server. A refresh token may work only once, so this must not get lost.
    Tokens(Box<TokenSet>),
}
