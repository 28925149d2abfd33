//! Who we are to an authorization server, and how we prove it.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::discovery::Server;
use super::register::is_bound;
use super::step::brief;
use super::{FlowError, Grant, Identity, Known, PreRegistered, Wanted, Way};
use crate::Seconds;
use crate::basic;
use crate::jose::{Header, PrivateKey};
use crate::metadata::{Registered, ServerMetadata};
use crate::random::unguessable;
use crate::secret::Secret;

/// How a client proves who it is at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuthMethod {
    /// By id and secret in the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// By id and secret in the body.
    #[serde(rename = "client_secret_post")]
    Post,
    /// By something signed with its key.
    #[serde(rename = "private_key_jwt")]
    PrivateKey,
    /// Not at all.
    #[serde(rename = "none")]
    None,
}

impl AuthMethod {
    /// Every one, what is used first first.
    pub const ALL: [Self; 4] = [Self::Basic, Self::Post, Self::PrivateKey, Self::None];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKey => "private_key_jwt",
            Self::None => "none",
        }
    }

    /// The method of this name, if it is one that is understood.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// A form's fields.
pub(crate) type Form = Vec<(&'static str, String)>;

/// How long something that proves who we are is good.
const ASSERTION_LIFE: Seconds = 120;

/// Who we are to one authorization server.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) id: Option<String>,
    pub(crate) method: AuthMethod,
    pub(crate) secret: Option<Secret>,
    key: Option<Arc<PrivateKey>>,
    kid: Option<String>,
    /// Whether it registered itself, so that its secret is ours to keep and it can register again.
    pub(crate) dynamic: bool,
}

/// Who we are, or where we have to register first.
pub(crate) enum Who {
    /// We are this one, for this reason.
    Known(Client, &'static str),
    /// Nobody yet.
    Register(Url),
}

impl Client {
    /// Nobody in particular.
    pub(crate) fn unnamed() -> Self {
        Self { id: None, method: AuthMethod::None, secret: None, key: None, kid: None, dynamic: false }
    }

    /// A client with a secret or without, known by other means than registration.
    pub(crate) fn plain(id: &str, secret: Option<Secret>) -> Self {
        let method = if secret.is_some() { AuthMethod::Basic } else { AuthMethod::None };
        Self { id: Some(id.to_owned()), method, secret, ..Self::unnamed() }
    }

    fn registered_before(client: &PreRegistered, metadata: &ServerMetadata) -> Self {
        let (has_secret, has_key) = (client.secret.is_some(), client.key.is_some());
        let listed = metadata.token_endpoint_auth_methods_supported.as_ref();
        Self {
            id: Some(client.client_id.clone()),
            method: client.method.unwrap_or_else(|| method(listed, has_secret, has_key)),
            secret: client.secret.clone(),
            key: client.key.clone(),
            kid: client.kid.clone(),
            dynamic: false,
        }
    }

    /// A client that registered itself.
    pub(crate) fn registered(client: &Registered, metadata: &ServerMetadata) -> Self {
        let said = client.metadata.token_endpoint_auth_method.as_deref().and_then(AuthMethod::named);
        let said = said.filter(|method| match method {
            AuthMethod::Basic | AuthMethod::Post => client.client_secret.is_some(),
            AuthMethod::PrivateKey => false,
            AuthMethod::None => true,
        });
        let listed = metadata.token_endpoint_auth_methods_supported.as_ref();
        Self {
            method: said.unwrap_or_else(|| method(listed, client.client_secret.is_some(), false)),
            secret: client.client_secret.clone(),
            dynamic: true,
            ..Self::plain(&client.client_id, None)
        }
    }

    /// The client that a grant was given to, if it can still prove who it is.
    pub(crate) fn of_grant(grant: &Grant, identity: &Identity) -> Option<Self> {
        let before = identity.registered.as_ref();
        let before = before.filter(|client| Some(&client.client_id) == grant.client_id.as_ref());
        // What belongs to one issuer is not shown to another, whatever was kept.
        if before.and_then(|client| client.issuer.as_ref()).is_some_and(|owner| *owner != grant.issuer) {
            return None;
        }
        let client = Self {
            id: grant.client_id.clone(),
            method: grant.method,
            secret: grant.client_secret.clone().or_else(|| before.and_then(|client| client.secret.clone())),
            key: before.and_then(|client| client.key.clone()),
            kid: before.and_then(|client| client.kid.clone()),
            dynamic: before.is_none(),
        };
        let able = match client.method {
            AuthMethod::Basic | AuthMethod::Post => client.secret.is_some(),
            AuthMethod::PrivateKey => client.key.is_some(),
            AuthMethod::None => true,
        };
        able.then_some(client)
    }

    /// Proves who we are in a request to a token endpoint.
    pub(crate) fn prove(
        &self,
        issuer: &str,
        form: &mut Form,
        headers: &mut HeaderMap,
        now: Seconds,
    ) -> Result<(), FlowError> {
        let cannot = |why: &str| FlowError::CannotProve { issuer: brief(issuer), why: why.to_owned() };
        let Some(id) = &self.id else { return Ok(()) };
        let secret = || self.secret.as_ref().ok_or_else(|| cannot("there is no secret"));
        // Also beside a header that says it: some authorization servers look for it nowhere else.
        form.push(("client_id", id.clone()));
        match self.method {
            AuthMethod::Basic => {
                let value = basic::credentials(id, secret()?);
                headers.insert(AUTHORIZATION, value.map_err(|_| cannot("its secret fits into no header"))?);
            }
            AuthMethod::Post => form.push(("client_secret", secret()?.reveal().to_owned())),
            AuthMethod::PrivateKey => {
                let key = self.key.as_ref().ok_or_else(|| cannot("there is no key"))?;
                form.push(("client_assertion_type", ASSERTION_TYPE.to_owned()));
                form.push(("client_assertion", assertion(key, self.kid.as_deref(), id, issuer, now)?));
            }
            AuthMethod::None => {}
        }
        Ok(())
    }

    /// Whether the authorization server takes signatures of our key's kind.
    pub(crate) fn check_algorithm(&self, server: &Server) -> Result<(), FlowError> {
        let listed = server.metadata().token_endpoint_auth_signing_alg_values_supported.as_ref();
        match (&self.key, listed) {
            (Some(key), Some(listed))
                if self.method == AuthMethod::PrivateKey
                    && !ServerMetadata::lists(Some(listed), key.algorithm().name()) =>
            {
                let why = format!("it takes no signatures by {}", key.algorithm());
                Err(FlowError::CannotProve { issuer: server.issuer().to_owned(), why })
            }
            _ => Ok(()),
        }
    }
}

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

fn assertion(
    key: &PrivateKey,
    kid: Option<&str>,
    id: &str,
    issuer: &str,
    now: Seconds,
) -> Result<String, FlowError> {
    let jti = unguessable().map_err(|fault| FlowError::NoKeys(fault.to_string()))?;
    let end = now.saturating_add(ASSERTION_LIFE);
    let claims = json!({ "iss": id, "sub": id, "aud": issuer, "jti": jti, "iat": now, "exp": end });
    let header = Header { kid: kid.map(str::to_owned), ..Header::of_type("JWT") };
    key.sign(header, &claims).map_err(|fault| FlowError::NoKeys(fault.to_string()))
}

/// How to prove who we are, of what an authorization server lists and what we have.
fn method(listed: Option<&Vec<String>>, has_secret: bool, has_key: bool) -> AuthMethod {
    let able = |method: &AuthMethod| match method {
        AuthMethod::Basic | AuthMethod::Post => has_secret,
        AuthMethod::PrivateKey => has_key,
        AuthMethod::None => true,
    };
    let fits = |method: &AuthMethod| able(method) && ServerMetadata::lists(listed, method.name());
    let fitting = AuthMethod::ALL.into_iter().find(fits);
    fitting.or_else(|| AuthMethod::ALL.into_iter().find(able)).unwrap_or(AuthMethod::None)
}

/// Decides who we are to an authorization server, for tokens that are bound to a key or not.
pub(crate) fn choose(
    wanted: &Wanted,
    known: &Known,
    server: &Server,
    bound: bool,
    now: Seconds,
) -> Result<Who, FlowError> {
    let Wanted { identity, way, .. } = wanted;
    let (issuer, metadata) = (server.issuer(), server.metadata());
    if let Some(client) = &identity.registered {
        belongs(client, known, issuer)?;
        let client = Client::registered_before(client, metadata);
        client.check_algorithm(server)?;
        return Ok(Who::Known(client, "it was registered beforehand"));
    }
    let Way::Code { redirect_uri } = way else {
        return match way {
            Way::JwtBearer { .. } => Ok(Who::Known(Client::unnamed(), "the assertion is enough")),
            _ => Err(no_identity(issuer, "this grant is only for clients that were registered beforehand")),
        };
    };
    let reads = metadata.client_id_metadata_document_supported == Some(true);
    match &identity.document {
        Some(document) if reads => {
            if document.scheme() != "https" || document.path() == "/" {
                return Err(no_identity(issuer, "the URL of our own document is not https with a path"));
            }
            let client = Client::plain(document.as_str(), None);
            return Ok(Who::Known(client, "the authorization server reads our own document"));
        }
        _ => {}
    }
    // A client that gets only bound tokens is of no use where they are not to be bound.
    let fits = |one: &&Registered| is_good(one, redirect_uri, now) && (bound || !is_bound(one));
    if let Some(registered) = known.registrations.get(issuer).filter(fits) {
        return Ok(Who::Known(Client::registered(registered, metadata), "it registered here earlier"));
    }
    let endpoint = server.registration_endpoint()?;
    match (endpoint, &identity.dynamic) {
        (Some(endpoint), Some(_)) => Ok(Who::Register(endpoint)),
        (Some(_), None) => {
            Err(no_identity(issuer, "it would register this client, which was not to be done"))
        }
        (None, _) if identity.document.is_some() => {
            Err(no_identity(issuer, "it registers no clients by itself and reads no documents of clients"))
        }
        (None, _) => Err(no_identity(issuer, "it registers no clients by itself")),
    }
}

fn no_identity(issuer: &str, why: &str) -> FlowError {
    FlowError::NoIdentity { issuer: issuer.to_owned(), why: why.to_owned() }
}

/// A client that was registered with one authorization server is not shown to another.
fn belongs(client: &PreRegistered, known: &Known, issuer: &str) -> Result<(), FlowError> {
    match known.owner(client) {
        Some(owner) if owner != issuer => Err(FlowError::OtherClient {
            client_id: brief(&client.client_id),
            of: brief(owner),
            issuer: issuer.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Whether a registration can still be used.
fn is_good(registered: &Registered, redirect_uri: &Url, now: Seconds) -> bool {
    let end = registered.client_secret_expires_at.unwrap_or(0);
    let over = registered.client_secret.is_some() && end != 0 && end <= now;
    !over && registered.metadata.redirect_uris.iter().any(|known| known == redirect_uri.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_is_one_that_both_can() {
        let listed = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        for (names, has_secret, has_key, expected) in [
            (listed(&["client_secret_post", "client_secret_basic"]), true, false, AuthMethod::Basic),
            (listed(&["none", "client_secret_post"]), true, true, AuthMethod::Post),
            (listed(&["none", "private_key_jwt"]), true, true, AuthMethod::PrivateKey),
            (listed(&["none"]), true, false, AuthMethod::None),
            (listed(&["client_secret_jwt"]), true, false, AuthMethod::Basic),
            (listed(&["client_secret_basic"]), false, false, AuthMethod::None),
            (None, true, false, AuthMethod::Basic),
            (None, false, true, AuthMethod::PrivateKey),
            (None, false, false, AuthMethod::None),
        ] {
            assert_eq!(method(names.as_ref(), has_secret, has_key), expected, "{names:?}");
        }
    }
}
