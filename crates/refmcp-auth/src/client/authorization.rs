//! The authorization request and the redirect that answers it (RFC 6749 §4.1, RFC 9207).

use std::sync::Arc;

use url::Url;

use super::discovery::AuthTarget;
use super::flow_step::excerpt;
use super::request::{DpopPolicy, FlowRequest, GrantKind, StoredState};
use super::{FlowError, FlowErrorKind};
use crate::dpop;
use crate::jose::PrivateKey;
use crate::metadata::{OAuthError, ServerMetadata};
use crate::pkce;
use crate::random::random_token;
use crate::scope::Scopes;
use crate::secret::Secret;

/// The scope that requests a refresh token.
const OFFLINE: &str = "offline_access";

/// Limit of scopes requested without the user naming them; more would not fit into a URL.
pub(crate) const MAX_SCOPE_BYTES: usize = 4096;

/// An authorization request whose redirect is awaited.
pub(crate) struct PendingAuthorization {
    state: Secret,
    pub(crate) verifier: Secret,
    issuer: String,
    /// True if the authorization server announces that its responses always carry `iss`.
    tells: bool,
    pub(crate) redirect_uri: Url,
}

/// Chooses the scopes to request, and tells why.
pub(crate) fn choose_scopes(
    flow_request: &FlowRequest,
    stored: &StoredState,
    target: &AuthTarget,
    server: &ServerMetadata,
) -> (Scopes, &'static str) {
    let refusal = flow_request.challenge.as_ref();
    let challenged = refusal.and_then(|refusal| refusal.get("scope")).map(Scopes::parse_leniently);
    let (scopes, why) = match (challenged, &target.scopes) {
        (Some(challenged), _) => (flow_request.scopes.union(&challenged), "the server's refusal names them"),
        (None, _) if !flow_request.scopes.is_empty() => (flow_request.scopes.clone(), "they were asked for"),
        (None, Some(all)) if all.written() > MAX_SCOPE_BYTES => {
            (Scopes::none(), "the server knows more than can be asked for")
        }
        (None, Some(all)) => (all.clone(), "the server knows them"),
        (None, None) => (Scopes::none(), "the server names none"),
    };
    let mut scopes = flow_request.previous_scopes.union(&scopes);
    let last = stored
        .tokens
        .as_ref()
        .filter(|_| refusal.is_some_and(super::UnauthorizedResponse::is_insufficient_scope));
    if let Some(last) = last.filter(|grant| grant.resource == target.resource) {
        scopes = last.requested_scope.union(&last.scope).union(&scopes);
    }
    (with_offline_access(&scopes, flow_request, server), why)
}

/// Adds `offline_access` where the authorization server supports it, and only there.
fn with_offline_access(scopes: &Scopes, flow_request: &FlowRequest, server: &ServerMetadata) -> Scopes {
    let listed = ServerMetadata::lists(server.scopes_supported.as_ref(), OFFLINE);
    let may = listed
        && flow_request.offline_access
        && matches!(flow_request.grant_kind, GrantKind::AuthorizationCode { .. });
    if may && !scopes.is_empty() {
        // Alone, it would narrow the default scopes of a request without `scope`.
        return scopes.union(&[OFFLINE].into_iter().collect());
    }
    let unlisted = !listed && !flow_request.scopes.contains(OFFLINE);
    scopes.iter().filter(|scope| !(unlisted && *scope == OFFLINE)).collect()
}

/// True if the token will be bound to a DPoP key.
pub(crate) fn uses_dpop(flow_request: &FlowRequest, target: &AuthTarget) -> bool {
    let asked = || {
        target.bound
            || flow_request.challenge.as_ref().is_some_and(super::UnauthorizedResponse::requires_dpop)
    };
    match flow_request.dpop {
        DpopPolicy::Never => false,
        DpopPolicy::WhenRequired => asked(),
        DpopPolicy::Always => true,
    }
}

/// The DPoP key of a flow that uses one.
pub(crate) fn dpop_key(
    flow_request: &FlowRequest,
    target: &AuthTarget,
    server: &ServerMetadata,
) -> Result<Option<Arc<PrivateKey>>, FlowError> {
    if !uses_dpop(flow_request, target) {
        return Ok(None);
    }
    let key = PrivateKey::generate().map_err(FlowError::crypto)?;
    let listed = server.dpop_signing_alg_values_supported.as_ref();
    if listed.is_some() && !ServerMetadata::lists(listed, key.algorithm().name()) {
        let why = format!("it takes no proofs of possession signed by {}", key.algorithm());
        return Err(FlowError::client_authentication(&server.issuer, why));
    }
    Ok(Some(Arc::new(key)))
}

/// Builds the authorization URL.
pub(crate) fn authorization_request(
    server: &ServerMetadata,
    resource: &str,
    redirect_uri: Url,
    client_id: Option<&str>,
    asked: &Scopes,
    key: Option<&PrivateKey>,
) -> Result<(PendingAuthorization, Url), FlowError> {
    let state = Secret::from(random_token().map_err(FlowError::crypto)?);
    let verifier = pkce::verifier().map_err(FlowError::crypto)?;
    let mut parameters = vec![
        ("response_type", "code".to_owned()),
        ("client_id", client_id.unwrap_or_default().to_owned()),
        ("redirect_uri", redirect_uri.to_string()),
        ("state", state.reveal().to_owned()),
        ("code_challenge", pkce::challenge(verifier.reveal())),
        ("code_challenge_method", pkce::S256.to_owned()),
        ("resource", resource.to_owned()),
    ];
    if !asked.is_empty() {
        parameters.push(("scope", asked.to_string()));
    }
    if asked.contains(OFFLINE) {
        // `OpenID` providers issue refresh tokens only after a consent prompt.
        parameters.push(("prompt", "consent".to_owned()));
    }
    if let Some(key) = key {
        parameters.push(("dpop_jkt", key.public().thumbprint().map_err(FlowError::crypto)?));
    }
    let mut url = server.authorization_url()?;
    // Parameters of the endpoint's own URL stay, unless the request sets them.
    let own: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let own = own.into_iter().filter(|(name, _)| !parameters.iter().any(|(ours, _)| ours == name));
    let own: Vec<(String, String)> = own.collect();
    url.query_pairs_mut().clear().extend_pairs(own).extend_pairs(&parameters);
    let tells = server.authorization_response_iss_parameter_supported == Some(true);
    let issuer = server.issuer.clone();
    Ok((PendingAuthorization { state, verifier, issuer, tells, redirect_uri }, url))
}

impl PendingAuthorization {
    /// True if a redirect answers this request.
    pub(crate) fn awaits(&self, redirect: &Url) -> bool {
        let state = once(redirect, "state").ok().flatten();
        is_at(redirect, &self.redirect_uri) && state.is_some_and(|state| self.state.is(&state))
    }

    /// The authorization code of a redirect, or the error of the authorization endpoint. The sender is checked before anything
    /// else is believed, an error response included.
    pub(crate) fn code(&self, redirect: &Url) -> Result<Result<Secret, OAuthError>, FlowError> {
        let invalid = FlowError::invalid_redirect;
        if !is_at(redirect, &self.redirect_uri) {
            return Err(invalid("it came to another place than the one we named"));
        }
        let state = once(redirect, "state")?.ok_or_else(|| invalid("it has no state"))?;
        if !self.state.is(&state) {
            return Err(invalid("its state is not the one we gave"));
        }
        let wrong = |came: &str| {
            FlowError::new(FlowErrorKind::RedirectIssuer, format!("the browser {came} {}", self.issuer))
        };
        match once(redirect, "iss")? {
            Some(issuer) if issuer != self.issuer => {
                return Err(wrong("came back from another authorization server than"));
            }
            None if self.tells => {
                return Err(wrong("does not say from where it came back, as it would from"));
            }
            _ => {}
        }
        if let Some(error) = once(redirect, "error")? {
            let error_description = once(redirect, "error_description")?.map(|text| excerpt(&text));
            return Ok(Err(OAuthError { error: excerpt(&error), error_description }));
        }
        let code = once(redirect, "code")?.filter(|code| !code.is_empty());
        Ok(Ok(code.ok_or_else(|| invalid("it has neither a code nor a refusal"))?.into()))
    }
}

/// The value of a parameter that may occur once.
fn once(url: &Url, name: &str) -> Result<Option<String>, FlowError> {
    let mut values =
        url.query_pairs().filter(|(stored, _)| stored == name).map(|(_, value)| value.into_owned());
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(FlowError::invalid_redirect("it says the same thing twice")),
    }
}

/// Compares two URLs without query and fragment.
fn is_at(url: &Url, place: &Url) -> bool {
    dpop::target(url) == dpop::target(place)
}
