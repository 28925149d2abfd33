//! What is wanted of a flow, and what is known beforehand.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, StatusCode};
use url::Url;

use super::Grant;
use super::identity::AuthMethod;
use crate::challenge::Challenge;
use crate::extension;
use crate::jose::PrivateKey;
use crate::metadata::{ClientMetadata, Registered};
use crate::scope::Scopes;
use crate::secret::Secret;

/// What a flow is to get, and how.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The server to get in to.
    pub server: Url,
    /// How it refused; without, it is only asked for what it tells of its own accord.
    pub refusal: Option<Refusal>,
    /// Scopes that a person asks for; what the server challenges for is added.
    pub scopes: Scopes,
    /// Scopes that were asked for earlier, so that stepping up loses none.
    pub earlier: Scopes,
    /// How the token is got.
    pub way: Way,
    /// Who we are.
    pub identity: Identity,
    /// Whether tokens are bound to a key.
    pub proofs: Proofs,
    /// More headers for the documents on the server's own origin, such as the protocol's version.
    pub headers: HeaderMap,
    /// Whether a server that tells nothing of its authorization servers may be one itself, as it once was the rule.
    pub legacy: bool,
    /// Whether to ask for a refresh token by its scope where the authorization server knows that scope.
    pub offline: bool,
}

impl Wanted {
    /// A token for a server, got this way, with nothing else said.
    pub fn new(server: Url, way: Way, identity: Identity) -> Self {
        Self {
            server,
            refusal: None,
            scopes: Scopes::none(),
            earlier: Scopes::none(),
            way,
            identity,
            proofs: Proofs::default(),
            headers: HeaderMap::new(),
            legacy: true,
            offline: true,
        }
    }
}

/// How a server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// 401, or 403 when the token was good and not enough.
    pub status: StatusCode,
    /// What it said.
    pub challenges: Vec<Challenge>,
}

impl Refusal {
    /// Reads a refusal from a response's head.
    pub fn read(status: StatusCode, headers: &HeaderMap) -> Self {
        let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        Self { status, challenges: texts.take(8).flat_map(Challenge::parse_all).collect() }
    }

    /// A parameter of the challenges that are about tokens.
    pub fn get(&self, name: &str) -> Option<&str> {
        let ours = self.challenges.iter().filter(|challenge| challenge.is("Bearer") || challenge.is("DPoP"));
        ours.filter_map(|challenge| challenge.get(name)).next()
    }

    /// Whether a token is good, and not good enough.
    pub fn wants_more(&self) -> bool {
        self.get("error") == Some("insufficient_scope") || self.status == StatusCode::FORBIDDEN
    }

    /// Whether only tokens that are bound to a key are taken.
    pub fn wants_proofs(&self) -> bool {
        let has = |scheme| self.challenges.iter().any(|challenge| challenge.is(scheme));
        has("DPoP") && !has("Bearer")
    }
}

/// How a token is got.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Way {
    /// A person says yes in a browser.
    Code {
        /// Where the browser is sent back to.
        redirect_uri: Url,
    },
    /// The client speaks for itself.
    ClientCredentials,
    /// Somebody whom the authorization server trusts vouches for us: workload identity. What they signed is sent only to
    /// an authorization server that it names as its audience, by its issuer or its token endpoint, or to the one that is
    /// named as [`PreRegistered::issuer`]; whom the MCP server names does not count.
    JwtBearer {
        /// What they signed.
        assertion: Secret,
    },
    /// The enterprise's own identity provider decides.
    Enterprise(Box<Enterprise>),
}

impl Way {
    /// The type of grant that tokens are asked for with.
    pub fn grant_type(&self) -> &'static str {
        match self {
            Self::Code { .. } => "authorization_code",
            Self::ClientCredentials => "client_credentials",
            Self::JwtBearer { .. } | Self::Enterprise(_) => super::JWT_BEARER,
        }
    }

    /// The extension of MCP that it is, by its identifier. A person in a browser is the core protocol, and what others
    /// vouch for about workloads has no name yet.
    pub fn extension(&self) -> Option<&'static str> {
        match self {
            Self::Code { .. } | Self::JwtBearer { .. } => None,
            Self::ClientCredentials => Some(extension::CLIENT_CREDENTIALS),
            Self::Enterprise(_) => Some(extension::ENTERPRISE),
        }
    }
}

/// An enterprise's identity provider, and what it gave when a person signed on.
#[derive(Debug, Clone)]
pub struct Enterprise {
    /// Its name; where its token endpoint is not known, it is looked up there.
    pub issuer: String,
    /// Where it exchanges tokens.
    pub token_endpoint: Option<Url>,
    /// Who we are there.
    pub client_id: String,
    /// The secret we have there, if there is one.
    pub client_secret: Option<Secret>,
    /// What tells who signed on.
    pub id_token: Secret,
}

/// Who we are to authorization servers. What stands first is used first.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// A client that somebody registered beforehand.
    pub registered: Option<PreRegistered>,
    /// The URL of a document about us, where authorization servers read such.
    pub document: Option<Url>,
    /// What we tell when we register ourselves; without, we do not.
    pub dynamic: Option<ClientMetadata>,
}

/// A client that an authorization server knows already.
#[derive(Debug, Clone)]
pub struct PreRegistered {
    /// The authorization server that knows it; no other is told of it.
    pub issuer: Option<String>,
    /// Its id.
    pub client_id: String,
    /// Its secret.
    pub secret: Option<Secret>,
    /// Its key, where it signs what proves who it is.
    pub key: Option<Arc<PrivateKey>>,
    /// The key's name there.
    pub kid: Option<String>,
    /// How it proves who it is; else what the authorization server takes.
    pub method: Option<AuthMethod>,
}

impl PreRegistered {
    /// A client with a secret or without.
    pub fn new(client_id: impl Into<String>, secret: Option<Secret>) -> Self {
        Self { issuer: None, client_id: client_id.into(), secret, key: None, kid: None, method: None }
    }

    /// A client that signs.
    pub fn with_key(client_id: impl Into<String>, key: Arc<PrivateKey>) -> Self {
        Self { key: Some(key), ..Self::new(client_id, None) }
    }
}

/// Whether tokens are bound to a key (RFC 9449).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Proofs {
    /// Never.
    Never,
    /// Where the server takes no others.
    #[default]
    WhenAsked,
    /// Always; a token that is not bound is not taken.
    Always,
}

/// What was kept of earlier flows for this server.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The last grant.
    pub grant: Option<Grant>,
    /// Our registrations, by the issuer that knows them.
    pub registrations: BTreeMap<String, Registered>,
    /// Which client was let in by whom the last time. A client that others registered, with its secret, is from then on
    /// shown to that issuer alone, though nobody named its issuer. Whoever hides [`grant`](Self::grant) because a new
    /// login is wanted fills this all the same, from the grant that it hides ([`Used::of`]); beside a grant that is
    /// shown, it may be left out.
    pub used: Option<Used>,
}

impl Known {
    /// The issuer that a client belongs to, as far as that is known: who is named for it, else who let it in before.
    pub(crate) fn owner<'a>(&'a self, client: &'a PreRegistered) -> Option<&'a str> {
        let granted = self.grant.as_ref().filter(|grant| grant.client_id.as_ref() == Some(&client.client_id));
        let used = self.used.as_ref().filter(|used| used.client_id == client.client_id);
        let before = || granted.map(|grant| &grant.issuer).or_else(|| used.map(|used| &used.issuer));
        client.issuer.as_ref().or_else(before).map(String::as_str)
    }
}

/// A client that an issuer let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// The client.
    pub client_id: String,
    /// Who let it in.
    pub issuer: String,
}

impl Used {
    /// Who was let in when this was granted; nobody, where an assertion was enough.
    pub fn of(grant: &Grant) -> Option<Self> {
        Some(Self { client_id: grant.client_id.clone()?, issuer: grant.issuer.clone() })
    }
}
