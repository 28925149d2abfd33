//! The input of a flow: what is requested, and what earlier flows stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, StatusCode};
use url::Url;

use super::TokenSet;
use super::identity::AuthMethod;
use crate::challenge::Challenge;
use crate::extension;
use crate::jose::PrivateKey;
use crate::metadata::{ClientMetadata, ClientRegistration};
use crate::scope::Scopes;
use crate::secret::Secret;

/// What a flow has to get, and how.
#[derive(Debug, Clone)]
pub struct FlowRequest {
    /// The MCP server.
    pub server: Url,
    /// The challenge that the server answered with. Without one, only its metadata is read.
    pub challenge: Option<UnauthorizedResponse>,
    /// Scopes that the user requests, in addition to those of the challenge.
    pub scopes: Scopes,
    /// Scopes of earlier requests, so that a step-up keeps them.
    pub previous_scopes: Scopes,
    /// The grant to use.
    pub grant_kind: GrantKind,
    /// The client identity.
    pub identity: ClientIdentity,
    /// When tokens are bound to a DPoP key.
    pub dpop: DpopPolicy,
    /// Headers for metadata requests to the server's own origin, such as the protocol version.
    pub headers: HeaderMap,
    /// Allows a server without protected resource metadata to be its own authorization server (revision 2025-03-26).
    pub legacy_discovery: bool,
    /// Requests `offline_access` where the authorization server supports it.
    pub offline_access: bool,
}

impl FlowRequest {
    /// A request for a server, with defaults for the rest.
    pub fn new(server: Url, grant_kind: GrantKind, identity: ClientIdentity) -> Self {
        Self {
            server,
            challenge: None,
            scopes: Scopes::none(),
            previous_scopes: Scopes::none(),
            grant_kind,
            identity,
            dpop: DpopPolicy::default(),
            headers: HeaderMap::new(),
            legacy_discovery: true,
            offline_access: true,
        }
    }
}

/// A 401 or 403 response with its challenges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnauthorizedResponse {
    /// 401, or 403 for insufficient scope.
    pub status: StatusCode,
    /// The challenges of `WWW-Authenticate`.
    pub challenges: Vec<Challenge>,
}

impl UnauthorizedResponse {
    /// Reads the challenges of a response head.
    pub fn read(status: StatusCode, headers: &HeaderMap) -> Self {
        let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        Self { status, challenges: texts.take(8).flat_map(Challenge::parse_all).collect() }
    }

    /// A parameter of the Bearer or `DPoP` challenges.
    pub fn get(&self, name: &str) -> Option<&str> {
        let ours = self.challenges.iter().filter(|challenge| challenge.is("Bearer") || challenge.is("DPoP"));
        ours.filter_map(|challenge| challenge.get(name)).next()
    }

    /// True if a valid token lacks scopes.
    pub fn is_insufficient_scope(&self) -> bool {
        self.get("error") == Some("insufficient_scope") || self.status == StatusCode::FORBIDDEN
    }

    /// True if only DPoP-bound tokens are accepted.
    pub fn requires_dpop(&self) -> bool {
        let has = |scheme| self.challenges.iter().any(|challenge| challenge.is(scheme));
        has("DPoP") && !has("Bearer")
    }
}

/// The grant that a flow uses.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum GrantKind {
    /// Authorization code with PKCE: the user consents in a browser.
    AuthorizationCode {
        /// The redirect URI.
        redirect_uri: Url,
    },
    /// Client credentials.
    ClientCredentials,
    /// JWT bearer assertion of a trusted issuer: workload identity. The assertion is sent only to an authorization server that
    /// its audience names, by issuer or token endpoint, or that [`PreRegistered::issuer`] names. The MCP server's word does
    /// not count.
    JwtBearer {
        /// The signed assertion.
        assertion: Secret,
    },
    /// Enterprise-managed authorization: the enterprise's identity provider issues an ID-JAG.
    EnterpriseManaged(Box<EnterpriseIdp>),
}

impl GrantKind {
    /// The `grant_type` of the token request.
    pub fn grant_type(&self) -> &'static str {
        match self {
            Self::AuthorizationCode { .. } => "authorization_code",
            Self::ClientCredentials => "client_credentials",
            Self::JwtBearer { .. } | Self::EnterpriseManaged(_) => super::JWT_BEARER,
        }
    }

    /// The identifier of the MCP extension. The authorization code grant is part of the core protocol, and workload identity
    /// has no identifier yet.
    pub fn extension(&self) -> Option<&'static str> {
        match self {
            Self::AuthorizationCode { .. } | Self::JwtBearer { .. } => None,
            Self::ClientCredentials => Some(extension::CLIENT_CREDENTIALS),
            Self::EnterpriseManaged(_) => Some(extension::ENTERPRISE),
        }
    }
}

/// The enterprise's identity provider and the ID token of the user.
#[derive(Debug, Clone)]
pub struct EnterpriseIdp {
    /// The issuer; its metadata is fetched where the token endpoint is not given.
    pub issuer: String,
    /// The token endpoint for token exchange.
    pub token_endpoint: Option<Url>,
    /// The client id at the identity provider.
    pub client_id: String,
    /// The client secret at the identity provider.
    pub client_secret: Option<Secret>,
    /// The ID token.
    pub id_token: Secret,
}

/// Client identities in order of preference.
#[derive(Debug, Clone, Default)]
pub struct ClientIdentity {
    /// A pre-registered client.
    pub registered: Option<PreRegistered>,
    /// The URL of a client ID metadata document.
    pub document: Option<Url>,
    /// Metadata for dynamic registration; without it, the client does not register.
    pub dynamic: Option<ClientMetadata>,
}

/// A client that was registered beforehand.
#[derive(Debug, Clone)]
pub struct PreRegistered {
    /// The authorization server that it is registered with; no other is told its id.
    pub issuer: Option<String>,
    /// The client id.
    pub client_id: String,
    /// The client secret.
    pub secret: Option<Secret>,
    /// The key of client assertions.
    pub key: Option<Arc<PrivateKey>>,
    /// The key id.
    pub kid: Option<String>,
    /// The authentication method; by default one that the authorization server lists.
    pub method: Option<AuthMethod>,
}

impl PreRegistered {
    /// A client with or without a secret.
    pub fn new(client_id: impl Into<String>, secret: Option<Secret>) -> Self {
        Self { issuer: None, client_id: client_id.into(), secret, key: None, kid: None, method: None }
    }

    /// A client with a key (`private_key_jwt`).
    pub fn with_key(client_id: impl Into<String>, key: Arc<PrivateKey>) -> Self {
        Self { key: Some(key), ..Self::new(client_id, None) }
    }
}

/// When tokens are bound to a DPoP key (RFC 9449).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DpopPolicy {
    /// Never.
    Never,
    /// When the server accepts no other tokens.
    #[default]
    WhenRequired,
    /// Always; an unbound token is an error.
    Always,
}

/// What earlier flows stored for this server.
#[derive(Debug, Clone, Default)]
pub struct StoredState {
    /// The last tokens.
    pub tokens: Option<TokenSet>,
    /// Dynamic registrations by issuer.
    pub registrations: BTreeMap<String, ClientRegistration>,
    /// The client of the last tokens. A pre-registered client without a configured issuer is bound to this issuer. A caller
    /// that withholds [`tokens`](Self::tokens) to force a new login sets this nevertheless, with [`LastClient::of_tokens`]. Beside
    /// tokens it is optional.
    pub last_client: Option<LastClient>,
}

impl StoredState {
    /// The issuer that a client belongs to, if it is known: the configured one, else the one of its last tokens.
    pub(crate) fn owner<'a>(&'a self, client: &'a PreRegistered) -> Option<&'a str> {
        let granted =
            self.tokens.as_ref().filter(|grant| grant.client_id.as_ref() == Some(&client.client_id));
        let used = self.last_client.as_ref().filter(|used| used.client_id == client.client_id);
        let before = || granted.map(|grant| &grant.issuer).or_else(|| used.map(|used| &used.issuer));
        client.issuer.as_ref().or_else(before).map(String::as_str)
    }
}

/// A client and the issuer of its last tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastClient {
    /// The client id.
    pub client_id: String,
    /// The issuer.
    pub issuer: String,
}

impl LastClient {
    /// The client that tokens were issued to. Tokens of a bare assertion have none.
    pub fn of_tokens(grant: &TokenSet) -> Option<Self> {
        Some(Self { client_id: grant.client_id.clone()?, issuer: grant.issuer.clone() })
    }
}
