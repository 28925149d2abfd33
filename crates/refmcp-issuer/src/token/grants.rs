//! The authorization code, refresh token and client credentials grants.

use refmcp_auth::dpop::token_digest;
use refmcp_auth::metadata::TokenResponse;
use refmcp_auth::{Scopes, pkce};

use super::issue::{fewer, issue, new_family};
use super::{TokenRequest, invalid};
use crate::clients::Client;
use crate::faults::Fault;
use crate::respond::ErrorResponse;
use crate::serve::Exchange;
use crate::state::Authorization;
use crate::subject;

/// Redeems a code.
pub(super) fn code(client: &Client, request: &TokenRequest<'_>) -> Result<TokenResponse, ErrorResponse> {
    let (form, Exchange { server, now, .. }) = (request.form, request.exchange);
    let digest = token_digest(form.need("code")?);
    let verifier = form.need("code_verifier")?;
    let mut state = server.state();
    let state = &mut *state;
    let code = state.codes.get_mut(&digest, now).ok_or_else(|| invalid("the code is not known"))?;
    if code.granted.client_id != client.id {
        return Err(invalid("the code was given to another client"));
    }
    if code.spent {
        // The code leaked. Which of the two uses was legitimate is unknown, so the family is revoked.
        let family = code.granted.family.clone();
        state.revoke(&family, now);
        return Err(invalid("the code was used before; what it gave is taken back"));
    }
    if now >= code.ends {
        return Err(invalid("the code has expired"));
    }
    if form.get("redirect_uri").is_some_and(|named| named != code.redirect_uri) {
        return Err(invalid("redirect_uri is another than in the request for authorization"));
    }
    if !pkce::proves(verifier, &code.challenge) {
        return Err(invalid("code_verifier is wrong"));
    }
    if code.granted.jkt.is_some() && code.granted.jkt != request.jkt() {
        return Err(invalid("the code is bound to another key"));
    }
    let other = "resource is another than in the request for authorization";
    server.check_resource(form, &code.granted.resource, other)?;
    request.use_proof(&mut state.proofs)?;
    code.spent = true;
    let granted = Authorization { jkt: request.jkt(), ..code.granted.clone() };
    issue(server, state, &granted, &granted.scopes, now)
}

/// Issues new tokens and invalidates the refresh token. A second use means that it leaked, and revokes the whole family.
pub(super) fn refresh(client: &Client, request: &TokenRequest<'_>) -> Result<TokenResponse, ErrorResponse> {
    let (form, Exchange { server, now, .. }) = (request.form, request.exchange);
    let digest = token_digest(form.need("refresh_token")?);
    if server.breaks(Fault::RefuseRefresh) {
        return Err(invalid("refresh tokens are refused on request"));
    }
    let mut state = server.state();
    let refresh = state.refresh.get(&digest, now).ok_or_else(|| invalid("the refresh token is not known"))?;
    let granted = refresh.granted.clone();
    if granted.client_id != client.id {
        return Err(invalid("the refresh token was given to another client"));
    }
    if refresh.spent {
        state.revoke(&granted.family, now);
        return Err(invalid(
            "the refresh token was used before; all that came of the same login are taken back",
        ));
    }
    if !state.is_alive(&granted.family, now) {
        return Err(invalid("the refresh token was taken back"));
    }
    // A confidential client proves its ownership by its credentials and may change its key (RFC 9449 §5).
    if client.is_public() && granted.jkt.is_some() && granted.jkt != request.jkt() {
        return Err(invalid("the refresh token is bound to another key"));
    }
    server.check_resource(form, &granted.resource, "the refresh token is for another resource")?;
    let scopes = narrowed(&granted.scopes, form.get("scope"))?;
    request.use_proof(&mut state.proofs)?;
    if let Some(refresh) = state.refresh.get_mut(&digest, now) {
        refresh.spent = true;
    }
    let granted = Authorization { jkt: request.jkt(), ..granted };
    issue(server, &mut state, &granted, &scopes, now)
}

/// The requested scopes, which may be fewer and not others.
fn narrowed(granted: &Scopes, wanted: Option<&str>) -> Result<Scopes, ErrorResponse> {
    let Some(wanted) = wanted else {
        return Ok(granted.clone());
    };
    let refusal =
        || ErrorResponse::new("invalid_scope", "a refresh cannot give scopes that were not granted");
    let wanted = Scopes::parse(wanted).map_err(|_| refusal())?;
    if granted.cover(&wanted) { Ok(wanted) } else { Err(refusal()) }
}

/// Issues an access token without a refresh token, since the client can repeat the request at any time.
pub(super) fn client_credentials(
    client: &Client,
    request: &TokenRequest<'_>,
) -> Result<TokenResponse, ErrorResponse> {
    if client.is_public() {
        return Err(ErrorResponse::new("unauthorized_client", "the client has no credentials"));
    }
    let requested = request.exchange.server.requested(request.form)?;
    issue_once(&without_consent(client.id.clone(), subject::client(&client.id), requested, request)?, request)
}

/// Issues the tokens of an authorization that comes of this request alone.
pub(super) fn issue_once(
    granted: &Authorization,
    request: &TokenRequest<'_>,
) -> Result<TokenResponse, ErrorResponse> {
    let Exchange { server, now, .. } = request.exchange;
    let mut state = server.state();
    request.use_proof(&mut state.proofs)?;
    issue(server, &mut state, granted, &granted.scopes, now)
}

/// The authorization of a request that needs no consent.
pub(super) fn without_consent(
    client_id: String,
    subject: String,
    (resource, scopes): (String, Scopes),
    request: &TokenRequest<'_>,
) -> Result<Authorization, ErrorResponse> {
    Ok(Authorization {
        client_id,
        subject,
        resource,
        scopes: fewer(request.exchange.server, scopes),
        jkt: request.jkt(),
        refreshable: false,
        family: new_family()?,
    })
}
