//! Tokens for a refresh token, which is good for one time.

use refmcp_auth::Scopes;
use refmcp_auth::dpop::token_digest;
use refmcp_auth::metadata::TokenResponse;

use super::{Ask, issue, proof};
use crate::clients::Client;
use crate::faults::Fault;
use crate::respond::Refusal;
use crate::serve::Server;
use crate::state::Granted;

fn invalid(what: &str) -> Refusal {
    Refusal::new("invalid_grant", what)
}

/// Gives new tokens for a refresh token, which ends with it. One that comes again is in two hands: everything that came of
/// the same agreement is taken back.
pub(super) fn grant(server: &Server, client: &Client, ask: &Ask<'_>) -> Result<TokenResponse, Refusal> {
    let (form, now) = (ask.form, ask.now);
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
    // A client with credentials proves by them that the token is its own, and may change its key (RFC 9449, 5).
    if client.is_public() && granted.jkt.is_some() && granted.jkt != ask.jkt() {
        return Err(invalid("the refresh token is bound to another key"));
    }
    let named = form.get("resource");
    if named.is_some() && server.settings.resource(named) != Some(granted.resource.as_str()) {
        return Err(Refusal::new("invalid_target", "the refresh token is for another resource"));
    }
    let scopes = narrowed(&granted.scopes, form.get("scope"))?;
    proof::use_once(&mut state.proofs, ask.proof.as_ref(), now)?;
    if let Some(refresh) = state.refresh.get_mut(&digest, now) {
        refresh.spent = true;
    }
    let granted = Granted { jkt: ask.jkt(), ..granted };
    issue::issue(server, &mut state, &granted, &scopes, now)
}

/// The scopes that are wanted, which may be fewer and not others.
fn narrowed(granted: &Scopes, wanted: Option<&str>) -> Result<Scopes, Refusal> {
    let Some(wanted) = wanted else {
        return Ok(granted.clone());
    };
    let refusal = || Refusal::new("invalid_scope", "a refresh cannot give scopes that were not granted");
    let wanted = Scopes::parse(wanted).map_err(|_| refusal())?;
    if granted.cover(&wanted) { Ok(wanted) } else { Err(refusal()) }
}
