//! The revocation endpoint (RFC 7009).

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use refmcp_auth::Seconds;
use refmcp_auth::dpop::token_digest;

use crate::clients::authenticate;
use crate::form;
use crate::introspect;
use crate::respond::{self, ErrorResponse};
use crate::serve::Server;

/// Revokes a token. The response does not tell whether it existed.
pub(crate) fn answer(server: &Server, head: &Parts, body: &Bytes, now: Seconds) -> Response<Bytes> {
    match revoke(server, head, body, now) {
        Ok(()) => respond::empty(StatusCode::OK),
        Err(refusal) => refusal.answer(),
    }
}

fn revoke(server: &Server, head: &Parts, body: &Bytes, now: Seconds) -> Result<(), ErrorResponse> {
    let form = form::read(head, body)?;
    let token = form.need("token")?;
    let client = authenticate(server, &head.headers, &form, now)?;
    let mut state = server.state();
    if let Some(refresh) = state.refresh.get(&token_digest(token), now) {
        // A refresh token revokes its whole family.
        if refresh.granted.client_id == client.id {
            let family = refresh.granted.family.clone();
            state.revoke(&family, now);
        }
        return Ok(());
    }
    let Some(name) = introspect::name_of(&state, token) else {
        return Ok(());
    };
    let access = state.access.get(&name, now);
    if access.is_some_and(|access| access.claims.client_id.as_deref() == Some(client.id.as_str())) {
        state.access.remove(&name);
    }
    Ok(())
}
