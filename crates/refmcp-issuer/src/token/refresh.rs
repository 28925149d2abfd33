//! The refresh token grant with rotation.

use refmcp_auth::Scopes;
use refmcp_auth::dpop::token_digest;
use refmcp_auth::metadata::TokenResponse;

use super::{TokenRequest, issue, proof};
use crate::clients::Client;
use crate::faults::Fault;
use crate::respond::ErrorResponse;
use crate::serve::Server;
use crate::state::Authorization;

fn invalid(what: &str) -> ErrorResponse {
    ErrorResponse::new("invalid_grant", what)
}

/// Issues new tokens and invalidates the refresh token. A second use means that it leaked, and revokes the whole family.
pub(super) fn grant(
    server: &Server,
    client: &Client,
    request: &TokenRequest<'_>,
) -> Result<TokenResponse, ErrorResponse> {
    let (form, now) = (request.form, request.now);
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
    let named = form.get("resource");
    if named.is_some() && server.settings.resource(named) != Some(granted.resource.as_str()) {
        return Err(ErrorResponse::new("invalid_target", "the refresh token is for another resource"));
    }
    let scopes = narrowed(&granted.scopes, form.get("scope"))?;
    proof::use_once(&mut state.proofs, request.proof.as_ref(), now)?;
    if let Some(refresh) = state.refresh.get_mut(&digest, now) {
        refresh.spent = true;
    }
    let granted = Authorization { jkt: request.jkt(), ..granted };
    issue::issue(server, &mut state, &granted, &scopes, now)
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
