//! The JWT bearer grant: an identity provider's assertion about an employee (ID-JAG), or a platform's about a workload.

use refmcp_auth::claims::Audience;
use refmcp_auth::jose::{Algorithm, Jws};
use refmcp_auth::metadata::TokenResponse;
use refmcp_auth::{Scopes, Seconds};
use serde::Deserialize;

use super::{JWT_BEARER, TokenRequest, grants, invalid};
use crate::clients::{Client, SKEW};
use crate::respond::ErrorResponse;
use crate::serve::{Exchange, Server};
use crate::settings::TrustedIssuer;
use crate::state::Authorization;
use crate::subject;

/// The `typ` of an ID-JAG.
const ID_JAG: &str = "oauth-id-jag+jwt";

/// The claims of an assertion: the grant, or what a client authenticates itself with.
#[derive(Deserialize)]
pub(crate) struct Assertion {
    pub(crate) iss: String,
    pub(crate) sub: String,
    pub(crate) aud: Audience,
    pub(crate) exp: Seconds,
    pub(crate) nbf: Option<Seconds>,
    iat: Option<Seconds>,
    pub(crate) jti: Option<String>,
    client_id: Option<String>,
    resource: Option<Audience>,
    scope: Option<String>,
}

/// Issues tokens for an assertion.
pub(super) fn grant(request: &TokenRequest<'_>) -> Result<TokenResponse, ErrorResponse> {
    let form = request.form;
    let jws = Jws::parse(form.need("assertion")?);
    let jws = jws.map_err(|error| invalid(format!("the assertion is bad: {error}")))?;
    let about_employee = jws.header().is_one_of(&[ID_JAG]);
    let named = form.get("client_id").is_some()
        || form.get("client_assertion").is_some()
        || request.exchange.head.headers.contains_key(http::header::AUTHORIZATION);
    // A workload is identified by its assertion and needs no client id.
    let client = (about_employee || named).then(|| request.client(JWT_BEARER)).transpose()?;
    let granted = match client.as_deref() {
        Some(client) if about_employee => employee(client, &jws, request)?,
        client => workload(client, &jws, request)?,
    };
    grants::issue_once(&granted, request)
}

/// Verifies an assertion of a trusted issuer.
fn check(
    jws: &Jws<'_>,
    trusted: &[TrustedIssuer],
    is_ours: impl Fn(&str) -> bool,
    now: Seconds,
) -> Result<Assertion, ErrorResponse> {
    let bad = |what: &str| invalid(format!("the assertion is bad: {what}"));
    let told: Assertion = jws.claims_unchecked().map_err(|error| bad(&error.to_string()))?;
    let known = trusted.iter().find(|known| known.issuer == told.iss);
    let known = known.ok_or_else(|| bad("its issuer is not trusted here"))?;
    let claims: Assertion =
        jws.verify(&known.keys, &Algorithm::ALL).map_err(|error| bad(&error.to_string()))?;
    if !(claims.aud.iter().any(&is_ours) && claims.aud.iter().all(&is_ours)) {
        return Err(bad("its aud is not this authorization server"));
    }
    if now >= claims.exp.saturating_add(SKEW) {
        return Err(bad("it has expired"));
    }
    if claims.nbf.max(claims.iat).unwrap_or(0) > now.saturating_add(SKEW) {
        return Err(bad("it is not valid yet"));
    }
    if claims.sub.is_empty() || claims.sub.len() > 256 {
        return Err(bad("its sub is empty or too long"));
    }
    Ok(claims)
}

/// The authorization of an ID-JAG.
fn employee(
    client: &Client,
    jws: &Jws<'_>,
    request: &TokenRequest<'_>,
) -> Result<Authorization, ErrorResponse> {
    let Exchange { server, now, .. } = request.exchange;
    if client.is_public() {
        return Err(ErrorResponse::new("unauthorized_client", "the client has no credentials"));
    }
    let trusted = &server.settings.identity_providers;
    let claims = check(jws, trusted, |audience| audience == server.name, now)?;
    let bad = |what: &str| invalid(format!("the assertion is bad: {what}"));
    if claims.client_id.as_deref() != Some(client.id.as_str()) {
        return Err(bad("it was given to another client"));
    }
    let resource = resource(server, claims.resource.as_ref());
    let resource = resource.ok_or_else(|| bad("its resource is not one of those here"))?;
    server.check_resource(request.form, resource, "resource is another than in the assertion")?;
    let scopes = employee_scopes(server, claims.scope.as_deref(), request.form.get("scope"))?;
    let jti = claims.jti.as_deref().filter(|jti| jti.len() <= 256).ok_or_else(|| bad("it has no jti"))?;
    let signer = format!("provider {}", claims.iss);
    let until = claims.exp.saturating_add(SKEW);
    server.state().assertions.take(&signer, jti, until, now).map_err(|why| why.answer(bad))?;
    let subject = subject::employee(&claims.iss, &claims.sub);
    grants::without_consent(client.id.clone(), subject, (resource.to_owned(), scopes), request)
}

/// The resource of an ID-JAG. Tokens are for one: several names of one resource are accepted, several resources are not.
fn resource<'a>(server: &'a Server, named: Option<&Audience>) -> Option<&'a str> {
    let Some(named) = named else {
        return server.settings.resource(None);
    };
    let mut found = named.iter().map(|name| server.settings.resource(Some(name)));
    let first = found.next()??;
    found.all(|other| other == Some(first)).then_some(first)
}

/// The scopes that the identity provider allows and the client requests.
fn employee_scopes(
    server: &Server,
    allowed: Option<&str>,
    wanted: Option<&str>,
) -> Result<Scopes, ErrorResponse> {
    let refusal = || ErrorResponse::new("invalid_scope", "none of the scopes exists here");
    let allowed = server.settings.scopes(allowed).ok_or_else(refusal)?;
    let Some(wanted) = wanted else {
        return Ok(allowed);
    };
    let scopes = Scopes::parse(wanted).map_err(|_| refusal())?.intersection(&allowed);
    if scopes.is_empty() { Err(refusal()) } else { Ok(scopes) }
}

/// The authorization of a workload. Platforms hand out assertions that are used until they expire.
fn workload(
    client: Option<&Client>,
    jws: &Jws<'_>,
    request: &TokenRequest<'_>,
) -> Result<Authorization, ErrorResponse> {
    let Exchange { server, now, .. } = request.exchange;
    let endpoint = server.settings.endpoint("/token");
    let trusted = &server.settings.workload_issuers;
    let is_ours = |audience: &str| audience == server.name || audience == endpoint;
    let claims = check(jws, trusted, is_ours, now)?;
    let subject = subject::workload(&claims.iss, &claims.sub);
    // Without a client id, the workload is its own client; no registration can have that name.
    let client_id = client.map_or_else(|| subject.clone(), |client| client.id.clone());
    grants::without_consent(client_id, subject, server.requested(request.form)?, request)
}
