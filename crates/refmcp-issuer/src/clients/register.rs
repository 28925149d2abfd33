//! The registration endpoint (RFC 7591).

use http::StatusCode;
use refmcp_auth::client::AuthMethod;
use refmcp_auth::metadata::{ClientMetadata, ClientRegistration};
use refmcp_auth::random::random_token;
use refmcp_auth::{Secret, uri};
use serde_json::Map;

use super::{Client, Origin, Redirects, redirect};
use crate::form::media_type;
use crate::respond::{self, ErrorResponse};
use crate::serve::{EndpointResult, Exchange};
use crate::token::{CODE, REFRESH};

/// Limit of a registration in bytes.
const MAX_BYTES: usize = 16 << 10;

/// Limit of redirect URIs and of keys of a client.
const MAX_URIS: usize = 16;

/// Limit of a client name in characters.
const MAX_NAME: usize = 200;

/// The metadata member that demands DPoP-bound tokens.
const BOUND: &str = "dpop_bound_access_tokens";

/// Registers a client.
pub(crate) fn register(exchange: Exchange<'_>) -> EndpointResult {
    let Exchange { server, head, body, now } = exchange;
    if media_type(&head.headers) != "application/json" {
        let what = "the body must be application/json";
        return Err(unfit(what).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    if body.len() > MAX_BYTES {
        let what = format!("a registration has at most {MAX_BYTES} bytes");
        return Err(unfit(what).with_status(StatusCode::PAYLOAD_TOO_LARGE));
    }
    let asked: ClientMetadata = serde_json::from_slice(body)
        .map_err(|error| unfit(format!("the body is not the metadata of a client ({})", place(&error))))?;
    let random = || random_token().map_err(|error| ErrorResponse::server_error(error.to_string()));
    let mut client = read(random()?, Origin::Registration, &asked)?;
    if client.methods.iter().any(|method| matches!(method, AuthMethod::Basic | AuthMethod::Post)) {
        client.secret = Some(Secret::from(random()?));
    }
    // Unknown members are not registered.
    let mut more = Map::new();
    if client.bound_tokens {
        more.insert(BOUND.to_owned(), true.into());
    }
    let registered = ClientRegistration {
        client_id: client.id.clone(),
        client_secret_expires_at: client.secret.as_ref().map(|_| 0),
        client_secret: client.secret.clone(),
        client_id_issued_at: Some(now),
        metadata: ClientMetadata {
            grant_types: client.grants.clone(),
            response_types: client.may_use(CODE).then(|| vec!["code".to_owned()]),
            token_endpoint_auth_method: Some(method_of(&asked).to_owned()),
            more,
            ..asked
        },
    };
    server.state().clients.insert(client, now);
    tracing::debug!(client = registered.client_id, "a client has registered");
    Ok(respond::private_json(StatusCode::CREATED, &registered))
}

/// The position of a JSON error; the text is not quoted.
fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

fn unfit(what: impl Into<String>) -> ErrorResponse {
    ErrorResponse::new("invalid_client_metadata", what)
}

fn method_of(asked: &ClientMetadata) -> &str {
    asked.token_endpoint_auth_method.as_deref().unwrap_or("client_secret_basic")
}

/// Reads the client of metadata. It has no secret yet.
pub(super) fn read(id: String, origin: Origin, asked: &ClientMetadata) -> Result<Client, ErrorResponse> {
    let method = AuthMethod::named(method_of(asked))
        .ok_or_else(|| unfit("token_endpoint_auth_method is not one of those that are supported"))?;
    if method == AuthMethod::PrivateKey && asked.jwks.as_ref().is_none_or(|keys| keys.keys.is_empty()) {
        return Err(unfit("private_key_jwt needs keys in jwks; jwks_uri is not fetched here"));
    }
    if asked.jwks.as_ref().is_some_and(|keys| keys.keys.len() > MAX_URIS)
        || asked.redirect_uris.len() > MAX_URIS
    {
        return Err(unfit(format!("a client has at most {MAX_URIS} keys and {MAX_URIS} redirect URIs")));
    }
    if asked.client_name.as_ref().is_some_and(|name| name.chars().count() > MAX_NAME) {
        return Err(unfit(format!("client_name has at most {MAX_NAME} characters")));
    }
    let grants = grants(asked)?;
    if grants.iter().any(|grant| grant == CODE) && asked.redirect_uris.is_empty() {
        return Err(ErrorResponse::new("invalid_redirect_uri", "authorization_code needs redirect_uris"));
    }
    let application = asked.application_type.as_deref();
    if !matches!(application, None | Some("web" | "native")) {
        return Err(unfit("application_type is web or native"));
    }
    for address in &asked.redirect_uris {
        let url =
            redirect::check(address).map_err(|what| ErrorResponse::new("invalid_redirect_uri", what))?;
        if application == Some("web") && uri::is_loopback(&url) {
            let what = "an application of the type web is not on a loopback host: native ones are";
            return Err(ErrorResponse::new("invalid_redirect_uri", what));
        }
    }
    let bound = asked.more.get(BOUND).and_then(serde_json::Value::as_bool);
    Ok(Client {
        name: asked.client_name.clone(),
        redirects: Redirects::Exactly(asked.redirect_uris.clone()),
        keys: asked.jwks.clone().unwrap_or_default(),
        grants: Some(grants),
        bound_tokens: bound.unwrap_or(false),
        origin,
        ..Client::new(id, &[method])
    })
}

/// The requested grant types that strangers may use: those with a user's consent. Grants without one need a pre-registered
/// client.
fn grants(asked: &ClientMetadata) -> Result<Vec<String>, ErrorResponse> {
    let Some(wanted) = &asked.grant_types else {
        return Ok(vec![CODE.to_owned()]);
    };
    let known = [CODE, REFRESH];
    let granted = known.iter().filter(|grant| wanted.iter().any(|wanted| wanted == *grant));
    let granted: Vec<String> = granted.map(ToString::to_string).collect();
    if granted.is_empty() {
        return Err(unfit("none of the grant_types is one that clients can register for"));
    }
    let wants_code = granted.iter().any(|grant| grant == CODE);
    if wants_code
        && asked.response_types.as_ref().is_some_and(|types| !types.iter().any(|kind| kind == "code"))
    {
        return Err(unfit("authorization_code needs the response type code"));
    }
    Ok(granted)
}
