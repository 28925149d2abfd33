//! Tokens without a person in the browser: what is asked for, by which grant.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use url::Url;

use super::discovery::{Server, Target};
use super::identity::{Client, Form};
use super::token::Errand;
use super::{Enterprise, FlowError, Grant, Identity, JWT_BEARER};
use crate::Seconds;
use crate::jose::PrivateKey;
use crate::metadata::TokenResponse;
use crate::scope::Scopes;
use crate::secret::Secret;

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// What an authorization server is asked for.
pub(crate) fn errand(
    what: &'static str,
    server: &Server,
    client: Client,
    form: Form,
    key: Option<Arc<PrivateKey>>,
) -> Result<Errand, FlowError> {
    let (issuer, endpoint) = (server.issuer().to_owned(), server.token_endpoint()?);
    Ok(Errand { what, issuer, endpoint, client, form, key, nonce: None })
}

/// A code for a token.
pub(crate) fn with_code(code: &Secret, verifier: &Secret, redirect_uri: &Url, resource: &str) -> Form {
    vec![
        ("grant_type", "authorization_code".to_owned()),
        ("code", code.reveal().to_owned()),
        ("code_verifier", verifier.reveal().to_owned()),
        ("redirect_uri", redirect_uri.to_string()),
        ("resource", resource.to_owned()),
    ]
}

/// Nothing but ourselves for a token.
pub(crate) fn with_credentials(resource: &str, scopes: &Scopes) -> Form {
    named(vec![("grant_type", "client_credentials".to_owned())], resource, scopes)
}

/// What somebody else signed for a token.
pub(crate) fn with_assertion(assertion: &Secret, resource: &str, scopes: &Scopes) -> Form {
    let form = vec![("grant_type", JWT_BEARER.to_owned()), ("assertion", assertion.reveal().to_owned())];
    named(form, resource, scopes)
}

fn named(mut form: Form, resource: &str, scopes: &Scopes) -> Form {
    form.push(("resource", resource.to_owned()));
    if !scopes.is_empty() {
        form.push(("scope", scopes.to_string()));
    }
    form
}

/// What an enterprise's identity provider is asked for: something that vouches for us at the authorization server.
pub(crate) fn with_identity(
    enterprise: &Enterprise,
    endpoint: Url,
    target: &Target,
    server: &Server,
    scopes: &Scopes,
) -> Errand {
    let form = vec![
        ("grant_type", TOKEN_EXCHANGE.to_owned()),
        ("requested_token_type", ID_JAG.to_owned()),
        ("audience", server.issuer().to_owned()),
        ("subject_token", enterprise.id_token.reveal().to_owned()),
        ("subject_token_type", ID_TOKEN.to_owned()),
    ];
    let form = named(form, &target.resource, scopes);
    let client = Client::plain(&enterprise.client_id, enterprise.client_secret.clone());
    let issuer = enterprise.issuer.clone();
    Errand { what: "something that vouches for us", issuer, endpoint, client, form, key: None, nonce: None }
}

/// What the identity provider gave, if it is what was asked for.
pub(crate) fn vouched(errand: &Errand, tokens: TokenResponse) -> Result<Secret, FlowError> {
    if tokens.issued_token_type.as_deref() != Some(ID_JAG) {
        return Err(errand.bad("a token of another type than the one that was asked for"));
    }
    // It opens nothing by itself, and says so.
    if !tokens.token_type.eq_ignore_ascii_case("N_A") {
        return Err(errand.bad("a token that says it is for access"));
    }
    Ok(tokens.access_token)
}

fn client_of(grant: &Grant, identity: &Identity) -> Result<Client, FlowError> {
    Client::of_grant(grant, identity).ok_or_else(|| FlowError::CannotProve {
        issuer: grant.issuer.clone(),
        why: "its secret or key is not at hand".to_owned(),
    })
}

/// What renews a grant.
pub(crate) fn renewal(grant: &Grant, identity: &Identity) -> Result<Errand, FlowError> {
    let refresh =
        grant.refresh_token.as_ref().ok_or_else(|| FlowError::NotRenewable(grant.issuer.clone()))?;
    let client = client_of(grant, identity)?;
    let key = grant.key.as_ref().map(super::BoundKey::open).transpose();
    let key = key.map_err(|fault| FlowError::NoKeys(fault.to_string()))?.map(Arc::new);
    let form = vec![
        ("grant_type", "refresh_token".to_owned()),
        ("refresh_token", refresh.reveal().to_owned()),
        ("resource", grant.resource.clone()),
    ];
    let (issuer, endpoint) = (grant.issuer.clone(), grant.token_endpoint.clone());
    Ok(Errand { what: "a new token for the old login", issuer, endpoint, client, form, key, nonce: None })
}

/// The requests that give a grant back (RFC 7009), for whoever logs out: first what renews it, then the token. The client
/// proves who it is in each as it does at the token endpoint, by its secret or by its key, whichever the grant was given
/// to. There are none where the issuer takes nothing back.
///
/// # Errors
/// We cannot prove who we are: the secret or key that the grant was given to is not in `identity`.
pub fn revocations(
    grant: &Grant,
    identity: &Identity,
    now: Seconds,
) -> Result<Vec<Request<Bytes>>, FlowError> {
    let Some(endpoint) = &grant.revocation_endpoint else { return Ok(Vec::new()) };
    let client = client_of(grant, identity)?;
    let tokens = [("refresh_token", grant.refresh_token.as_ref()), ("access_token", Some(&grant.token))];
    let tokens = tokens.into_iter().filter_map(|(hint, token)| Some((hint, token?)));
    let requests = tokens.map(|(hint, token)| {
        let form = vec![("token", token.reveal().to_owned()), ("token_type_hint", hint.to_owned())];
        let (issuer, endpoint, client) = (grant.issuer.clone(), endpoint.clone(), client.clone());
        let errand = Errand { what: "an end", issuer, endpoint, client, form, key: None, nonce: None };
        errand.request(now)
    });
    requests.collect()
}
