//! Authorization requests.

use std::sync::Arc;

use refmcp_auth::{Scopes, pkce};

use super::DEFAULT_USER;
use crate::clients::{self, Client};
use crate::form::Form;
use crate::respond::ErrorResponse;
use crate::serve::{Exchange, Server};
use crate::subject;
use crate::token::CODE;

/// Limit of a request in bytes.
const MAX_REQUEST_BYTES: usize = 16 << 10;

/// A valid authorization request.
#[derive(Clone)]
pub(crate) struct AuthorizationRequest {
    pub(crate) client: Arc<Client>,
    pub(crate) place: RedirectTarget,
    pub(crate) resource: String,
    pub(crate) scopes: Scopes,
    pub(crate) challenge: String,
    /// The user who is expected to log in.
    pub(crate) login_hint: Option<String>,
    /// The thumbprint of the DPoP key (`dpop_jkt`).
    pub(crate) jkt: Option<String>,
}

impl AuthorizationRequest {
    /// The user who is expected to log in, or the default one.
    pub(crate) fn expected_user(&self) -> String {
        let hint = self.login_hint.as_deref().and_then(subject::person);
        hint.unwrap_or_else(|| DEFAULT_USER.to_owned())
    }
}

/// Where the response is sent.
#[derive(Clone)]
pub(crate) struct RedirectTarget {
    pub(crate) redirect_uri: String,
    pub(crate) state: Option<String>,
}

/// Why a request is refused.
pub(crate) enum RequestError {
    /// The client or the redirect URI is not valid: an error page is shown, and nothing is sent to the redirect URI.
    Untrusted(String),
    /// The client gets an error.
    Refused(RedirectTarget, ErrorResponse),
}

/// Reads a request.
pub(crate) async fn read(exchange: Exchange<'_>) -> Result<AuthorizationRequest, RequestError> {
    let Exchange { server, now, .. } = exchange;
    let query = exchange.head.uri.query().unwrap_or_default();
    let unproven = |what: &str| RequestError::Untrusted(what.to_owned());
    if query.len() > MAX_REQUEST_BYTES {
        return Err(unproven("the request is too long"));
    }
    let form =
        Form::parse(query.as_bytes()).ok_or_else(|| unproven("the request has too many parameters"))?;
    let id = form.get("client_id").ok_or_else(|| unproven("client_id is missing, or there twice"))?;
    let client = clients::find(server, id, now).await.map_err(|what| {
        tracing::debug!(why = what, "a client is not known");
        RequestError::Untrusted(what)
    })?;
    if form.is_repeated("redirect_uri") {
        return Err(unproven("redirect_uri is there twice"));
    }
    let redirect_uri = client.redirects.choose(form.get("redirect_uri")).map_err(unproven)?;
    let place = RedirectTarget { redirect_uri, state: form.get("state").map(str::to_owned) };
    match rest(server, client, &form) {
        Ok(rest) => Ok(AuthorizationRequest { place, ..rest }),
        Err(refusal) => Err(RequestError::Refused(place, refusal)),
    }
}

/// Reads the parameters of a known client, without the redirect target.
fn rest(server: &Server, client: Arc<Client>, form: &Form) -> Result<AuthorizationRequest, ErrorResponse> {
    form.check_repeated()?;
    if form.need("response_type")? != "code" {
        return Err(ErrorResponse::new("unsupported_response_type", "the only response_type is code"));
    }
    if form.get("response_mode").is_some_and(|mode| mode != "query") {
        return Err(ErrorResponse::new("invalid_request", "the only response_mode is query"));
    }
    if form.get("request").is_some() || form.get("request_uri").is_some() {
        return Err(ErrorResponse::new("request_not_supported", "requests in a token are not taken"));
    }
    if !client.may_use(CODE) {
        let what = "the client has not registered authorization_code";
        return Err(ErrorResponse::new("unauthorized_client", what));
    }
    let challenge = form.need("code_challenge")?;
    if form.get("code_challenge_method") != Some(pkce::S256) {
        return Err(ErrorResponse::new("invalid_request", "code_challenge_method must be S256"));
    }
    if !pkce::is_challenge(challenge) {
        return Err(ErrorResponse::new("invalid_request", "code_challenge is not a digest"));
    }
    let (resource, scopes) = server.requested(form)?;
    let jkt = form.get("dpop_jkt");
    if jkt.is_some_and(|jkt| !pkce::is_challenge(jkt)) {
        return Err(ErrorResponse::new("invalid_request", "dpop_jkt is not a fingerprint"));
    }
    Ok(AuthorizationRequest {
        client,
        place: RedirectTarget { redirect_uri: String::new(), state: None },
        resource,
        scopes,
        challenge: challenge.to_owned(),
        login_hint: form.get("login_hint").map(str::to_owned),
        jkt: jkt.map(str::to_owned),
    })
}
