//! Client authentication.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderMap};
use refmcp_auth::client::AuthMethod;
use refmcp_auth::jose::{Algorithm, Jws};
use refmcp_auth::{Seconds, Secret};
use url::form_urlencoded;

use super::{Client, Origin, known};
use crate::form::Form;
use crate::respond::ErrorResponse;
use crate::serve::Exchange;
use crate::state::State;
use crate::token::Assertion;

const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Tolerated clock difference in seconds.
pub(crate) const SKEW: Seconds = 60;

/// Limit of the lifetime of a client assertion in seconds.
const MAX_LIFETIME: Seconds = 3600;

/// The credentials of a request.
enum Proof {
    Nothing,
    /// Decoded and as written: many clients forget to form-encode it.
    Basic(Secret, Secret),
    Post(Secret),
    Assertion(Secret),
}

/// Authenticates the client of a request. A client without credentials is accepted if it [is public](Client::is_public).
pub(crate) fn authenticate(exchange: Exchange<'_>, form: &Form) -> Result<Arc<Client>, ErrorResponse> {
    let refuses_credentials = exchange.head.headers.contains_key(header::AUTHORIZATION)
        || ["client_secret", "client_assertion"].iter().any(|name| form.get(name).is_some());
    check(exchange, form).map_err(|refusal| ErrorResponse { refuses_credentials, ..refusal })
}

fn check(exchange: Exchange<'_>, form: &Form) -> Result<Arc<Client>, ErrorResponse> {
    let Exchange { server, now, .. } = exchange;
    let (id, proof) = read(&exchange.head.headers, form)?;
    // Any origin may read the response, so it does not depend on what is at the URL of a client id.
    let client = known(server, &id, now).ok_or_else(|| unproven("the client is not known here"))?;
    let takes = |method| client.methods.contains(&method);
    match &proof {
        Proof::Nothing if takes(AuthMethod::None) => {}
        Proof::Basic(decoded, raw) if takes(AuthMethod::Basic) => check_secret(&client, &[decoded, raw])?,
        Proof::Post(given) if takes(AuthMethod::Post) => check_secret(&client, &[given])?,
        Proof::Assertion(assertion) if takes(AuthMethod::PrivateKey) => {
            check_assertion(exchange, &client, assertion.reveal())?;
        }
        _ => return Err(unproven("the client proves who it is in another way than it has registered")),
    }
    server.state().clients.touch(&client.id, now);
    Ok(client)
}

fn check_secret(client: &Client, given: &[&Secret]) -> Result<(), ErrorResponse> {
    let right = client.secret.as_ref().is_some_and(|secret| given.contains(&secret));
    if right { Ok(()) } else { Err(unproven("the client's secret is wrong")) }
}

fn unproven(what: impl Into<String>) -> ErrorResponse {
    ErrorResponse::new("invalid_client", what)
}

fn contradictory(what: &str) -> ErrorResponse {
    ErrorResponse::new("invalid_request", what)
}

fn read(headers: &HeaderMap, form: &Form) -> Result<(String, Proof), ErrorResponse> {
    let named = form.get("client_id");
    let mut found: Vec<(String, Proof)> = Vec::new();
    if let Some(credentials) = basic(headers)? {
        found.push(credentials);
    }
    if let Some(secret) = form.get("client_secret") {
        found.push((form.need("client_id")?.to_owned(), Proof::Post(Secret::new(secret))));
    }
    if let Some(assertion) = form.get("client_assertion") {
        if form.get("client_assertion_type") != Some(JWT_BEARER) {
            return Err(contradictory("client_assertion_type is not known"));
        }
        let id = match named {
            Some(id) => id.to_owned(),
            None => subject_of(assertion)?,
        };
        found.push((id, Proof::Assertion(Secret::new(assertion))));
    }
    if found.len() > 1 {
        return Err(contradictory("the client proves who it is in more than one way"));
    }
    match (found.pop(), named) {
        (Some((id, _)), Some(named)) if id != named => {
            Err(contradictory("client_id is another than in the Authorization header"))
        }
        (Some(found), _) => Ok(found),
        (None, Some(named)) => Ok((named.to_owned(), Proof::Nothing)),
        (None, None) => Err(unproven("the request does not say which client it comes from")),
    }
}

/// HTTP Basic credentials, each form-encoded (RFC 6749 §2.3.1).
fn basic(headers: &HeaderMap) -> Result<Option<(String, Proof)>, ErrorResponse> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        let several = headers.contains_key(header::AUTHORIZATION);
        let refusal = || contradictory("there is more than one Authorization header");
        return if several { Err(refusal()) } else { Ok(None) };
    };
    let wrong = || unproven("the Authorization header is not that of a client");
    let text = value.to_str().map_err(|_| wrong())?;
    let (scheme, encoded) = text.split_once(' ').ok_or_else(wrong)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(wrong());
    }
    let joined = STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let joined = joined.ok_or_else(wrong)?;
    let (id, secret) = joined.split_once(':').ok_or_else(wrong)?;
    Ok(Some((decode(id), Proof::Basic(Secret::from(decode(secret)), Secret::new(secret)))))
}

fn decode(text: &str) -> String {
    // Decoded as a parameter value. A text with `&` was not encoded and stays as it is.
    let form = format!("a={text}");
    let first = form_urlencoded::parse(form.as_bytes()).next();
    first.map_or_else(|| text.to_owned(), |(_, value)| value.into_owned())
}

fn subject_of(assertion: &str) -> Result<String, ErrorResponse> {
    let claims = Jws::parse(assertion).and_then(|jws| jws.claims_unchecked::<Assertion>());
    claims
        .map(|claims| claims.sub)
        .map_err(|error| unproven(format!("the client's assertion is bad: {error}")))
}

fn check_assertion(exchange: Exchange<'_>, client: &Client, assertion: &str) -> Result<(), ErrorResponse> {
    let Exchange { server, now, .. } = exchange;
    let bad = |what: &str| unproven(format!("the client's assertion is bad: {what}"));
    let jws = Jws::parse(assertion).map_err(|error| bad(&error.to_string()))?;
    let claims: Assertion =
        jws.verify(&client.keys, &Algorithm::ALL).map_err(|error| bad(&error.to_string()))?;
    if claims.iss != client.id || claims.sub != client.id {
        return Err(bad("iss and sub must be the client's id"));
    }
    let endpoint = server.settings.endpoint("/token");
    let ours = |audience: &str| audience == server.name || audience == endpoint;
    if !claims.aud.iter().all(ours) || !claims.aud.iter().any(ours) {
        return Err(bad("aud must be this issuer"));
    }
    if now >= claims.exp.saturating_add(SKEW) || claims.nbf.unwrap_or(0) > now.saturating_add(SKEW) {
        return Err(bad("it is not good now"));
    }
    if claims.exp > now.saturating_add(MAX_LIFETIME) {
        return Err(bad("it is good for more than an hour"));
    }
    let jti = claims.jti.ok_or_else(|| bad("it has no jti"))?;
    if jti.len() > 256 {
        return Err(bad("its jti is too long"));
    }
    let mut state = server.state();
    let State { assertions, other_assertions, .. } = &mut *state;
    let memory = if client.origin == Origin::Settings { assertions } else { other_assertions };
    let signer = format!("client {}", client.id);
    memory.take(&signer, &jti, claims.exp.saturating_add(SKEW), now).map_err(|why| why.answer(bad))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_credentials_are_decoded() {
        let headers = |text: &str| {
            let value = format!("basic {}", STANDARD.encode(text));
            HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())])
        };
        let read = |text: &str| match basic(&headers(text)) {
            Ok(Some((id, Proof::Basic(decoded, raw)))) => {
                (id, decoded.reveal().to_owned(), raw.reveal().to_owned())
            }
            _ => panic!("nothing was read"),
        };
        assert_eq!(read("a%3Ab+c:x%25y%3Dz"), ("a:b c".into(), "x%y=z".into(), "x%25y%3Dz".into()));
        // Not encoded.
        assert_eq!(read("id:p+w=1:%"), ("id".into(), "p w=1:%".into(), "p+w=1:%".into()));
        assert!(basic(&headers("no colon")).is_err());
        assert!(matches!(basic(&HeaderMap::new()), Ok(None)));
    }
}
