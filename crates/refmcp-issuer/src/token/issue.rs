//! Token issuance.

use refmcp_auth::claims::{Audience, Claims, Confirmation};
use refmcp_auth::dpop::token_digest;
use refmcp_auth::jose::{Header, PrivateKeyError};
use refmcp_auth::metadata::TokenResponse;
use refmcp_auth::random::{RandomError, random_token};
use refmcp_auth::{Scopes, Seconds, Secret};
use serde_json::Map;

use crate::faults::{Fault, SHORT};
use crate::metadata::OTHER_ISSUER;
use crate::respond::ErrorResponse;
use crate::serve::Server;
use crate::state::Named;
use crate::state::{Access, Authorization, Family, Refresh, State};

const OTHER_RESOURCE: &str = "https://other-resource.example/mcp";

/// The granted scopes: all, unless a fault reduces them.
pub(crate) fn fewer(server: &Server, scopes: Scopes) -> Scopes {
    if !server.breaks(Fault::RefusedScopes) {
        return scopes;
    }
    let count = scopes.iter().count();
    scopes.iter().take(count.saturating_sub(1)).collect()
}

/// Issues the tokens of an authorization with these scopes.
pub(crate) fn issue(
    server: &Server,
    state: &mut State,
    granted: &Authorization,
    scopes: &Scopes,
    now: Seconds,
) -> Result<TokenResponse, ErrorResponse> {
    let usual = server.settings.lifetime.as_secs();
    let lifetime = if server.breaks(Fault::ShortExpiry) { SHORT } else { usual };
    let claims = claims(server, granted, scopes, now.saturating_add(lifetime), now).map_err(no_random)?;
    let jti = claims.jti.clone().unwrap_or_default();
    let opaque = server.breaks(Fault::OpaqueTokens);
    let token = if opaque { random_token().map_err(no_random)? } else { sign(server, state, &claims)? };
    // Opaque tokens are stored by digest.
    let name = if opaque { token_digest(&token) } else { jti };
    let refresh = refresh_token(server, state, granted, now).map_err(no_random)?;
    let lasting = if refresh.is_some() { server.settings.refresh_lifetime.as_secs() } else { lifetime };
    let revoked = state.families.get(&granted.family, now).is_some_and(|family| family.revoked);
    state.families.insert(
        &granted.family,
        Family { revoked },
        now.saturating_add(lasting.max(lifetime)),
        now,
    );
    let access = Access { family: granted.family.clone(), claims };
    state.access.insert(&name, access, now.saturating_add(lifetime), now);
    Ok(TokenResponse {
        access_token: Secret::from(token),
        token_type: if granted.jkt.is_some() { "DPoP" } else { "Bearer" }.to_owned(),
        expires_in: Some(lifetime),
        refresh_token: refresh,
        scope: Some(scopes.clone()),
        issued_token_type: None,
    })
}

/// A new token family id.
pub(crate) fn new_family() -> Result<String, ErrorResponse> {
    random_token().map_err(no_random)
}

fn no_random(error: RandomError) -> ErrorResponse {
    ErrorResponse::server_error(error.to_string())
}

fn claims(
    server: &Server,
    granted: &Authorization,
    scopes: &Scopes,
    ends: Seconds,
    now: Seconds,
) -> Result<Claims, RandomError> {
    let issuer = if server.breaks(Fault::WrongIssuerToken) { OTHER_ISSUER } else { &server.name };
    let audience = if server.breaks(Fault::WrongAudience) { OTHER_RESOURCE } else { &granted.resource };
    Ok(Claims {
        iss: issuer.to_owned(),
        sub: granted.subject.clone(),
        aud: Audience::One(audience.to_owned()),
        exp: ends,
        nbf: None,
        iat: Some(now),
        jti: Some(random_token()?),
        client_id: Some(granted.client_id.clone()),
        scope: scopes.clone(),
        cnf: granted.jkt.clone().map(|jkt| Confirmation { jkt: Some(jkt) }),
        more: Map::new(),
    })
}

fn sign(server: &Server, state: &mut State, claims: &Claims) -> Result<String, ErrorResponse> {
    let own = |error: PrivateKeyError| ErrorResponse::server_error(error.to_string());
    let signed = |named: &Named| {
        let header = Header { kid: Some(named.kid.clone()), ..Header::of_type("at+jwt") };
        named.key.sign(header, claims).map_err(own)
    };
    if server.breaks(Fault::UnknownKid) {
        return signed(&Named::generate().map_err(own)?);
    }
    if server.breaks(Fault::RotatedKeys) {
        state.keys.rotate().map_err(own)?;
    }
    signed(state.keys.current())
}

fn refresh_token(
    server: &Server,
    state: &mut State,
    granted: &Authorization,
    now: Seconds,
) -> Result<Option<Secret>, RandomError> {
    if !granted.refreshable || server.breaks(Fault::NoRefreshToken) {
        return Ok(None);
    }
    let token = random_token()?;
    let until = now.saturating_add(server.settings.refresh_lifetime.as_secs());
    let refresh = Refresh { granted: granted.clone(), spent: false };
    state.refresh.insert(token_digest(&token), refresh, until, now);
    Ok(Some(Secret::from(token)))
}
