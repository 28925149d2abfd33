//! The client credentials grant.

use refmcp_auth::metadata::TokenResponse;
use refmcp_auth::random::random_token;

use super::{TokenRequest, fewer, issue, proof};
use crate::clients::Client;
use crate::respond::ErrorResponse;
use crate::serve::Server;
use crate::state::Authorization;
use crate::subject;

/// Issues an access token without a refresh token, since the client can repeat the request at any time.
pub(super) fn grant(
    server: &Server,
    client: &Client,
    request: &TokenRequest<'_>,
) -> Result<TokenResponse, ErrorResponse> {
    if client.is_public() {
        return Err(ErrorResponse::new("unauthorized_client", "the client has no credentials"));
    }
    let granted = granted(server, client.id.clone(), subject::client(&client.id), request)?;
    let mut state = server.state();
    proof::use_once(&mut state.proofs, request.proof.as_ref(), request.now)?;
    issue::issue(server, &mut state, &granted, &granted.scopes, request.now)
}

/// The authorization of a request that needs no consent.
pub(super) fn granted(
    server: &Server,
    client_id: String,
    subject: String,
    request: &TokenRequest<'_>,
) -> Result<Authorization, ErrorResponse> {
    let resource = server.settings.resource(request.form.get("resource"));
    let resource =
        resource.ok_or_else(|| ErrorResponse::new("invalid_target", "resource is not one of those here"))?;
    let scopes = server.settings.scopes(request.form.get("scope"));
    let scopes =
        scopes.ok_or_else(|| ErrorResponse::new("invalid_scope", "none of the scopes exists here"))?;
    Ok(Authorization {
        client_id,
        subject,
        resource: resource.to_owned(),
        scopes: fewer(server, scopes),
        jkt: request.jkt(),
        refreshable: false,
        family: new_family()?,
    })
}

/// A new token family id.
pub(super) fn new_family() -> Result<String, ErrorResponse> {
    random_token().map_err(|fault| ErrorResponse::server_error(fault.to_string()))
}
