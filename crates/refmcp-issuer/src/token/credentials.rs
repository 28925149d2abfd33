//! Tokens for a client itself.

use refmcp_auth::metadata::TokenResponse;
use refmcp_auth::random::random_token;

use super::{Ask, fewer, issue, proof};
use crate::clients::Client;
use crate::respond::Refusal;
use crate::serve::Server;
use crate::state::Granted;
use crate::subject;

/// Gives a client a token of its own, without a refresh token: it can come again at any time.
pub(super) fn grant(server: &Server, client: &Client, ask: &Ask<'_>) -> Result<TokenResponse, Refusal> {
    if client.is_public() {
        return Err(Refusal::new("unauthorized_client", "the client has no credentials"));
    }
    let granted = granted(server, client.id.clone(), subject::client(&client.id), ask)?;
    let mut state = server.state();
    proof::use_once(&mut state.proofs, ask.proof.as_ref(), ask.now)?;
    issue::issue(server, &mut state, &granted, &granted.scopes, ask.now)
}

/// A grant of what the request names, which nobody had to agree to.
pub(super) fn granted(
    server: &Server,
    client_id: String,
    subject: String,
    ask: &Ask<'_>,
) -> Result<Granted, Refusal> {
    let resource = server.settings.resource(ask.form.get("resource"));
    let resource =
        resource.ok_or_else(|| Refusal::new("invalid_target", "resource is not one of those here"))?;
    let scopes = server.settings.scopes(ask.form.get("scope"));
    let scopes = scopes.ok_or_else(|| Refusal::new("invalid_scope", "none of the scopes exists here"))?;
    Ok(Granted {
        client_id,
        subject,
        resource: resource.to_owned(),
        scopes: fewer(server, scopes),
        jkt: ask.jkt(),
        refreshable: false,
        family: new_family()?,
    })
}

/// A name for what comes of one grant.
pub(super) fn new_family() -> Result<String, Refusal> {
    random_token().map_err(|fault| Refusal::own_fault(fault.to_string()))
}
