//! Client identities and client authentication at the token endpoint.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::json;
use url::Url;

use super::flow_step::excerpt;
use super::registration::is_bound;
use super::{
    ClientIdentity, FlowError, FlowErrorKind, FlowRequest, GrantKind, PreRegistered, StoredState, TokenSet,
};
use crate::Seconds;
use crate::basic;
use crate::jose::{Header, PrivateKey};
use crate::metadata::{ClientMetadata, ClientRegistration, ServerMetadata};
use crate::random::random_token;
use crate::secret::Secret;

named_enum! {
    /// A client authentication method.
    pub enum AuthMethod {
        /// HTTP Basic with client id and secret.
        Basic = "client_secret_basic",
        /// Client id and secret in the request body.
        Post = "client_secret_post",
        /// A JWT signed with the client's key.
        PrivateKey = "private_key_jwt",
        /// No authentication: a public client.
        None = "none",
    }
}

impl AuthMethod {
    /// True if a client with a secret or a key, or neither, can use the method.
    const fn is_possible(self, has_secret: bool, has_key: bool) -> bool {
        match self {
            Self::Basic | Self::Post => has_secret,
            Self::PrivateKey => has_key,
            Self::None => true,
        }
    }
}

/// Form fields.
pub(crate) type Form = Vec<(&'static str, String)>;

/// Lifetime of a client assertion.
const ASSERTION_LIFE: Seconds = 120;

/// The client as one authorization server knows it.
#[derive(Clone)]
pub(crate) struct OAuthClient {
    pub(crate) id: Option<String>,
    pub(crate) method: AuthMethod,
    pub(crate) secret: Option<Secret>,
    key: Option<Arc<PrivateKey>>,
    kid: Option<String>,
    /// True for a dynamic registration, whose secret is stored and which can be renewed.
    pub(crate) dynamic: bool,
}

/// The result of choosing a client identity.
pub(crate) enum ClientChoice<'a> {
    /// A client that exists already, with the reason of the choice.
    Existing(OAuthClient, &'static str),
    /// A new registration at this endpoint.
    Register { endpoint: Url, about: &'a ClientMetadata, redirect_uri: &'a Url },
}

impl OAuthClient {
    /// A request without a client id.
    pub(crate) fn anonymous() -> Self {
        Self { id: None, method: AuthMethod::None, secret: None, key: None, kid: None, dynamic: false }
    }

    /// A client with or without a secret, not registered by this program.
    pub(crate) fn plain(id: &str, secret: Option<Secret>) -> Self {
        let method = if secret.is_some() { AuthMethod::Basic } else { AuthMethod::None };
        Self { id: Some(id.to_owned()), method, secret, ..Self::anonymous() }
    }

    fn pre_registered(client: &PreRegistered, metadata: &ServerMetadata) -> Self {
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

    /// A dynamically registered client.
    pub(crate) fn registered(client: &ClientRegistration, metadata: &ServerMetadata) -> Self {
        let said = client.metadata.token_endpoint_auth_method.as_deref().and_then(AuthMethod::named);
        let has_secret = client.client_secret.is_some();
        let said = said.filter(|method| method.is_possible(has_secret, false));
        let listed = metadata.token_endpoint_auth_methods_supported.as_ref();
        Self {
            method: said.unwrap_or_else(|| method(listed, has_secret, false)),
            secret: client.client_secret.clone(),
            dynamic: true,
            ..Self::plain(&client.client_id, None)
        }
    }

    /// The client that tokens were issued to, if it can still authenticate.
    pub(crate) fn of_tokens(grant: &TokenSet, identity: &ClientIdentity) -> Option<Self> {
        let before = identity.registered.as_ref();
        let before = before.filter(|client| Some(&client.client_id) == grant.client_id.as_ref());
        // Credentials of one issuer are never sent to another.
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
        client.method.is_possible(client.secret.is_some(), client.key.is_some()).then_some(client)
    }

    /// Adds client authentication to a token request.
    pub(crate) fn prove(
        &self,
        issuer: &str,
        form: &mut Form,
        headers: &mut HeaderMap,
        now: Seconds,
    ) -> Result<(), FlowError> {
        let cannot = |why: &str| FlowError::client_authentication(&excerpt(issuer), why);
        let Some(id) = &self.id else { return Ok(()) };
        let secret = || self.secret.as_ref().ok_or_else(|| cannot("there is no secret"));
        // Also beside HTTP Basic: some authorization servers look for the client id only in the body.
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

    /// Checks that the authorization server accepts the algorithm of the client's key.
    pub(crate) fn check_algorithm(&self, server: &ServerMetadata) -> Result<(), FlowError> {
        let listed = server.token_endpoint_auth_signing_alg_values_supported.as_ref();
        match (&self.key, listed) {
            (Some(key), Some(listed))
                if self.method == AuthMethod::PrivateKey
                    && !ServerMetadata::lists(Some(listed), key.algorithm().name()) =>
            {
                let why = format!("it takes no signatures by {}", key.algorithm());
                Err(FlowError::client_authentication(&server.issuer, why))
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
    let jti = random_token().map_err(FlowError::crypto)?;
    let end = now.saturating_add(ASSERTION_LIFE);
    let claims = json!({ "iss": id, "sub": id, "aud": issuer, "jti": jti, "iat": now, "exp": end });
    let header = Header { kid: kid.map(str::to_owned), ..Header::of_type("JWT") };
    key.sign(header, &claims).map_err(FlowError::crypto)
}

/// Chooses an authentication method that the authorization server lists and the client is capable of.
fn method(listed: Option<&Vec<String>>, has_secret: bool, has_key: bool) -> AuthMethod {
    let able = |method: &AuthMethod| method.is_possible(has_secret, has_key);
    let fits = |method: &AuthMethod| able(method) && ServerMetadata::lists(listed, method.name());
    let fitting = AuthMethod::ALL.into_iter().find(fits);
    fitting.or_else(|| AuthMethod::ALL.into_iter().find(able)).unwrap_or(AuthMethod::None)
}

/// Chooses the client identity for an authorization server, for DPoP-bound tokens or not.
pub(crate) fn choose<'a>(
    flow_request: &'a FlowRequest,
    stored: &StoredState,
    server: &ServerMetadata,
    bound: bool,
    now: Seconds,
) -> Result<ClientChoice<'a>, FlowError> {
    let FlowRequest { identity, grant_kind, .. } = flow_request;
    let issuer = server.issuer.as_str();
    let unknown = |why: &str| {
        let message = format!("the authorization server {issuer} does not know this client: {why}");
        FlowError::new(FlowErrorKind::NoClientIdentity, message)
    };
    if let Some(client) = &identity.registered {
        check_owner(client, stored, issuer)?;
        let client = OAuthClient::pre_registered(client, server);
        client.check_algorithm(server)?;
        return Ok(ClientChoice::Existing(client, "it was registered beforehand"));
    }
    let GrantKind::AuthorizationCode { redirect_uri } = grant_kind else {
        return match grant_kind {
            GrantKind::JwtBearer { .. } => {
                Ok(ClientChoice::Existing(OAuthClient::anonymous(), "the assertion is enough"))
            }
            _ => Err(unknown("this grant is only for clients that were registered beforehand")),
        };
    };
    if let Some(document) = &identity.document
        && server.client_id_metadata_document_supported == Some(true)
    {
        if document.scheme() != "https" || document.path() == "/" {
            return Err(unknown("the URL of our own document is not https with a path"));
        }
        let client = OAuthClient::plain(document.as_str(), None);
        return Ok(ClientChoice::Existing(client, "the authorization server reads our own document"));
    }
    // A registration for DPoP-bound tokens is of no use for others.
    let fits = |one: &&ClientRegistration| is_good(one, redirect_uri, now) && (bound || !is_bound(one));
    if let Some(registered) = stored.registrations.get(issuer).filter(fits) {
        let client = OAuthClient::registered(registered, server);
        return Ok(ClientChoice::Existing(client, "it registered here earlier"));
    }
    match (server.registration_url()?, &identity.dynamic) {
        (Some(endpoint), Some(about)) => Ok(ClientChoice::Register { endpoint, about, redirect_uri }),
        (Some(_), None) => Err(unknown("it would register this client, which was not to be done")),
        (None, _) if identity.document.is_some() => {
            Err(unknown("it registers no clients by itself and reads no documents of clients"))
        }
        (None, _) => Err(unknown("it registers no clients by itself")),
    }
}

/// Checks that a pre-registered client belongs to this authorization server.
fn check_owner(client: &PreRegistered, stored: &StoredState, issuer: &str) -> Result<(), FlowError> {
    let Some(owner) = stored.owner(client).filter(|owner| *owner != issuer) else { return Ok(()) };
    let (client_id, owner) = (excerpt(&client.client_id), excerpt(owner));
    let message = format!(
        "the client {client_id} is registered with {owner} and not with {issuer}, which the server trusts now"
    );
    Err(FlowError::new(FlowErrorKind::ClientOfOtherIssuer, message))
}

/// True if a registration is usable.
fn is_good(registered: &ClientRegistration, redirect_uri: &Url, now: Seconds) -> bool {
    let end = registered.client_secret_expires_at.unwrap_or(0);
    let over = registered.client_secret.is_some() && end != 0 && end <= now;
    !over && registered.metadata.redirect_uris.iter().any(|stored| stored == redirect_uri.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_authentication_method_suits_both_sides() {
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
