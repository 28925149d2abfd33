//! The authorization code grant.

use refmcp_auth::dpop::token_digest;
use refmcp_auth::metadata::TokenResponse;
use refmcp_auth::pkce;

use super::{TokenRequest, issue, proof};
use crate::clients::Client;
use crate::respond::ErrorResponse;
use crate::serve::Server;
use crate::state::Authorization;

fn invalid(what: &str) -> ErrorResponse {
    ErrorResponse::new("invalid_grant", what)
}

/// Redeems a code.
pub(super) fn grant(
    server: &Server,
    client: &Client,
    request: &TokenRequest<'_>,
) -> Result<TokenResponse, ErrorResponse> {
    let (form, now) = (request.form, request.now);
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
    let named = form.get("resource");
    if named.is_some() && server.settings.resource(named) != Some(code.granted.resource.as_str()) {
        return Err(ErrorResponse::new(
            "invalid_target",
            "resource is another than in the request for authorization",
        ));
    }
    proof::use_once(&mut state.proofs, request.proof.as_ref(), now)?;
    code.spent = true;
    let granted = Authorization { jkt: request.jkt(), ..code.granted.clone() };
    issue::issue(server, state, &granted, &granted.scopes, now)
}
