//! The introspection endpoint (RFC 7662) and the revocation endpoint (RFC 7009).
//!
//! On loopback introspection answers without client authentication, since the caller has the token already and
//! trying it by hand is its purpose. Elsewhere it answers authenticated clients, of which the resource server is one.

use http::{StatusCode, header};
use refmcp_auth::claims::Claims;
use refmcp_auth::dpop::token_digest;
use refmcp_auth::jose::{Algorithm, Jws};
use refmcp_auth::uri;
use serde::Serialize;

use crate::clients::authenticate;
use crate::form::{self, Form};
use crate::respond::{self, ErrorResponse};
use crate::serve::{EndpointResult, Exchange};
use crate::state::State;

#[derive(Serialize)]
struct IntrospectionResponse {
    active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_type: Option<&'static str>,
    #[serde(flatten)]
    claims: Option<Claims>,
}

/// Answers an introspection request.
pub(crate) fn introspect(exchange: Exchange<'_>) -> EndpointResult {
    let Exchange { server, now, .. } = exchange;
    let form = form::read(exchange)?;
    let token = form.need("token")?;
    check_client_access(exchange, &form)?;
    let state = server.state();
    let access = name_of(&state, token).and_then(|name| state.access.get(&name, now));
    let claims =
        access.filter(|access| state.is_alive(&access.family, now)).map(|access| access.claims.clone());
    let bound = claims.as_ref().is_some_and(|claims| claims.cnf.is_some());
    let token_type = claims.is_some().then_some(if bound { "DPoP" } else { "Bearer" });
    let response = IntrospectionResponse { active: claims.is_some(), token_type, claims };
    Ok(respond::private_json(StatusCode::OK, &response))
}

fn check_client_access(exchange: Exchange<'_>, form: &Form) -> Result<(), ErrorResponse> {
    let anonymous = !exchange.head.headers.contains_key(header::AUTHORIZATION)
        && form.get("client_id").is_none()
        && form.get("client_assertion").is_none();
    let open = uri::is_loopback(&exchange.server.settings.origin);
    if anonymous && open {
        return Ok(());
    }
    if authenticate(exchange, form)?.is_public() && !open {
        let what = "only clients with credentials may ask about tokens";
        return Err(ErrorResponse::new("invalid_client", what));
    }
    Ok(())
}

/// Revokes a token. The response does not tell whether it existed.
pub(crate) fn revoke(exchange: Exchange<'_>) -> EndpointResult {
    let Exchange { server, now, .. } = exchange;
    let form = form::read(exchange)?;
    let token = form.need("token")?;
    let client = authenticate(exchange, &form)?;
    let mut state = server.state();
    if let Some(refresh) = state.refresh.get(&token_digest(token), now) {
        // A refresh token revokes its whole family.
        if refresh.granted.client_id == client.id {
            let family = refresh.granted.family.clone();
            state.revoke(&family, now);
        }
    } else if let Some(name) = name_of(&state, token) {
        let access = state.access.get(&name, now);
        if access.is_some_and(|access| access.claims.client_id.as_deref() == Some(client.id.as_str())) {
            state.access.remove(&name);
        }
    }
    Ok(respond::empty(StatusCode::OK))
}

/// The name under which an issued access token is stored.
fn name_of(state: &State, token: &str) -> Option<String> {
    let Ok(jws) = Jws::parse(token) else {
        return Some(token_digest(token));
    };
    // Tokens signed by a fault's unpublished key are not active.
    jws.verify::<Claims>(&state.keys.published(), &[Algorithm::Es256]).ok()?.jti
}
