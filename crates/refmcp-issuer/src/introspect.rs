//! Asking about tokens (RFC 7662).
//!
//! A server that only this machine reaches answers everybody: whoever asks has the token already, and trying things out
//! by hand is what it is for. Others answer clients that prove who they are, of which the resource server is one.

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode, header};
use refmcp_auth::claims::Claims;
use refmcp_auth::dpop::token_digest;
use refmcp_auth::jose::{Algorithm, Jws};
use refmcp_auth::{Seconds, uri};
use serde::Serialize;

use crate::clients::authenticate;
use crate::form::{self, Form};
use crate::respond::{self, Refusal};
use crate::serve::Server;
use crate::state::State;

#[derive(Serialize)]
struct Told {
    active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_type: Option<&'static str>,
    #[serde(flatten)]
    claims: Option<Claims>,
}

/// Tells what a token is good for.
pub(crate) fn answer(server: &Server, head: &Parts, body: &Bytes, now: Seconds) -> Response<Bytes> {
    match introspect(server, head, body, now) {
        Ok(told) => respond::private_json(StatusCode::OK, &told),
        Err(refusal) => refusal.answer(),
    }
}

fn introspect(server: &Server, head: &Parts, body: &Bytes, now: Seconds) -> Result<Told, Refusal> {
    let form = form::read(head, body)?;
    let token = form.need("token")?;
    check_asker(server, head, &form, now)?;
    let state = server.state();
    let access = name_of(&state, token).and_then(|name| state.access.get(&name, now));
    let claims =
        access.filter(|access| state.is_alive(&access.family, now)).map(|access| access.claims.clone());
    let bound = claims.as_ref().is_some_and(|claims| claims.cnf.is_some());
    let token_type = claims.is_some().then_some(if bound { "DPoP" } else { "Bearer" });
    Ok(Told { active: claims.is_some(), token_type, claims })
}

fn check_asker(server: &Server, head: &Parts, form: &Form, now: Seconds) -> Result<(), Refusal> {
    let anonymous = !head.headers.contains_key(header::AUTHORIZATION)
        && form.get("client_id").is_none()
        && form.get("client_assertion").is_none();
    let open = uri::is_loopback(&server.settings.origin);
    if anonymous && open {
        return Ok(());
    }
    let client = authenticate(server, &head.headers, form, now)?;
    if client.is_public() && !open {
        return Err(Refusal::new("invalid_client", "only clients with credentials may ask about tokens"));
    }
    Ok(())
}

/// The name under which an access token is remembered, if we have issued it.
pub(crate) fn name_of(state: &State, token: &str) -> Option<String> {
    let Ok(jws) = Jws::parse(token) else {
        return Some(token_digest(token));
    };
    // Tokens of faults are signed by keys that nobody knows: those are not good, and not known.
    jws.verify::<Claims>(&state.keys.published(), &[Algorithm::Es256]).ok()?.jti
}
