//! Sending a person to the authorization server, and what their browser comes back with.

use std::sync::Arc;

use url::Url;

use super::FlowError;
use super::discovery::{Server, Target};
use super::identity::Client;
use super::step::{Step, brief};
use super::wanted::{Known, Proofs, Wanted, Way};
use crate::jose::PrivateKey;
use crate::metadata::{OAuthError, ServerMetadata};
use crate::pkce;
use crate::random::unguessable;
use crate::scope::Scopes;
use crate::secret::Secret;

/// The scope that refresh tokens are asked for with.
const OFFLINE: &str = "offline_access";

/// So much of scopes is asked for of our own accord; more would not fit into a URL.
pub(crate) const MOST_SCOPES: usize = 4096;

/// A person who was sent out and is waited for.
pub(crate) struct Pending {
    state: Secret,
    pub(crate) verifier: Secret,
    issuer: String,
    /// Whether the authorization server says that it always tells who it is.
    tells: bool,
    pub(crate) redirect_uri: Url,
    pub(crate) client: Client,
    pub(crate) asked: Scopes,
    pub(crate) key: Option<Arc<PrivateKey>>,
}

/// The scopes to ask for.
pub(crate) fn scopes(
    wanted: &Wanted,
    known: &Known,
    target: &Target,
    server: &Server,
    steps: &mut Vec<Step>,
) -> Scopes {
    let refusal = wanted.refusal.as_ref();
    let challenged = refusal.and_then(|refusal| refusal.get("scope")).map(Scopes::parse_leniently);
    let (scopes, why) = match (challenged, &target.scopes) {
        (Some(challenged), _) => (wanted.scopes.union(&challenged), "the server's refusal names them"),
        (None, _) if !wanted.scopes.is_empty() => (wanted.scopes.clone(), "they were asked for"),
        (None, Some(all)) if all.written() > MOST_SCOPES => {
            (Scopes::none(), "the server knows more than can be asked for")
        }
        (None, Some(all)) => (all.clone(), "the server knows them"),
        (None, None) => (Scopes::none(), "the server names none"),
    };
    let mut scopes = wanted.earlier.union(&scopes);
    let last = known.grant.as_ref().filter(|_| refusal.is_some_and(super::Refusal::wants_more));
    if let Some(last) = last.filter(|grant| grant.resource == target.resource) {
        scopes = last.asked.union(&last.scope).union(&scopes);
    }
    let scopes = offline(&scopes, wanted, server);
    let shown = if scopes.is_empty() { "none".to_owned() } else { brief(&scopes.to_string()) };
    steps.push(Step::new("chose the scopes", shown).then(why));
    scopes
}

/// A refresh token is asked for where, and only where, the authorization server knows how.
fn offline(scopes: &Scopes, wanted: &Wanted, server: &Server) -> Scopes {
    let listed = ServerMetadata::lists(server.metadata().scopes_supported.as_ref(), OFFLINE);
    let may = listed && wanted.offline && matches!(wanted.way, Way::Code { .. });
    if may && !scopes.is_empty() {
        // Without any other scope it would stand for fewer than what is given to whoever names none.
        return scopes.union(&[OFFLINE].into_iter().collect());
    }
    let unlisted = !listed && !wanted.scopes.contains(OFFLINE);
    scopes.iter().filter(|scope| !(unlisted && *scope == OFFLINE)).collect()
}

/// Whether the token is to be bound to a key.
pub(crate) fn is_bound(wanted: &Wanted, target: &Target) -> bool {
    let asked = || target.bound || wanted.refusal.as_ref().is_some_and(super::Refusal::wants_proofs);
    match wanted.proofs {
        Proofs::Never => false,
        Proofs::WhenAsked => asked(),
        Proofs::Always => true,
    }
}

/// The key that the token is to be bound to, if it is to be.
pub(crate) fn key(
    wanted: &Wanted,
    target: &Target,
    server: &Server,
) -> Result<Option<Arc<PrivateKey>>, FlowError> {
    if !is_bound(wanted, target) {
        return Ok(None);
    }
    let key = PrivateKey::generate().map_err(|fault| FlowError::NoKeys(fault.to_string()))?;
    let listed = server.metadata().dpop_signing_alg_values_supported.as_ref();
    if listed.is_some() && !ServerMetadata::lists(listed, key.algorithm().name()) {
        let why = format!("it takes no proofs of possession signed by {}", key.algorithm());
        return Err(FlowError::CannotProve { issuer: server.issuer().to_owned(), why });
    }
    Ok(Some(Arc::new(key)))
}

/// Sends a person out.
pub(crate) fn send(
    server: &Server,
    resource: &str,
    redirect_uri: &Url,
    client: Client,
    asked: Scopes,
    key: Option<Arc<PrivateKey>>,
) -> Result<(Pending, Url), FlowError> {
    let no_random = |fault: crate::random::NoRandom| FlowError::NoKeys(fault.to_string());
    let state = Secret::from(unguessable().map_err(no_random)?);
    let verifier = pkce::verifier().map_err(no_random)?;
    let mut parameters = vec![
        ("response_type", "code".to_owned()),
        ("client_id", client.id.clone().unwrap_or_default()),
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
        // Providers of OpenID give refresh tokens only to people who were asked.
        parameters.push(("prompt", "consent".to_owned()));
    }
    if let Some(key) = &key {
        let print = key.public().thumbprint().map_err(|fault| FlowError::NoKeys(fault.to_string()))?;
        parameters.push(("dpop_jkt", print));
    }
    let mut url = server.authorization_endpoint()?;
    // Parameters that the endpoint's own URL has stay, unless they are ours to say.
    let own: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let own = own.into_iter().filter(|(name, _)| !parameters.iter().any(|(ours, _)| ours == name));
    let own: Vec<(String, String)> = own.collect();
    url.query_pairs_mut().clear().extend_pairs(own).extend_pairs(&parameters);
    let tells = server.metadata().authorization_response_iss_parameter_supported == Some(true);
    let (issuer, redirect_uri) = (server.issuer().to_owned(), redirect_uri.clone());
    Ok((Pending { state, verifier, issuer, tells, redirect_uri, client, asked, key }, url))
}

impl Pending {
    /// Whether a browser that was sent back here is the one that was sent out.
    pub(crate) fn awaits(&self, redirect: &Url) -> bool {
        let state = once(redirect, "state").ok().flatten();
        is_at(redirect, &self.redirect_uri) && state.is_some_and(|state| self.state.is(&state))
    }

    /// The code that the browser came back with. Who sends it is checked before anything of it is believed, a refusal
    /// included.
    pub(crate) fn code(&self, redirect: &Url) -> Result<Secret, FlowError> {
        if !is_at(redirect, &self.redirect_uri) {
            return Err(FlowError::NotOurs("it came to another place than the one we named"));
        }
        let state = once(redirect, "state")?.ok_or(FlowError::NotOurs("it has no state"))?;
        if !self.state.is(&state) {
            return Err(FlowError::NotOurs("its state is not the one we gave"));
        }
        let wrong = |silent| FlowError::WrongIssuer { issuer: self.issuer.clone(), silent };
        match once(redirect, "iss")? {
            Some(issuer) if issuer != self.issuer => return Err(wrong(false)),
            None if self.tells => return Err(wrong(true)),
            _ => {}
        }
        if let Some(error) = once(redirect, "error")? {
            let error_description = once(redirect, "error_description")?.map(|text| brief(&text));
            let refusal = OAuthError { error: brief(&error), error_description };
            return Err(FlowError::Denied { issuer: self.issuer.clone(), refusal });
        }
        let code = once(redirect, "code")?.filter(|code| !code.is_empty());
        code.map(Secret::from).ok_or(FlowError::NotOurs("it has neither a code nor a refusal"))
    }
}

/// The value of a parameter that may be there once.
fn once(url: &Url, name: &str) -> Result<Option<String>, FlowError> {
    let mut values =
        url.query_pairs().filter(|(known, _)| known == name).map(|(_, value)| value.into_owned());
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(FlowError::NotOurs("it says the same thing twice")),
    }
}

/// Whether a URL is another one but for its query and fragment.
fn is_at(url: &Url, place: &Url) -> bool {
    let bare = |url: &Url| {
        let mut url = url.clone();
        url.set_query(None);
        url.set_fragment(None);
        url
    };
    bare(url) == bare(place)
}
