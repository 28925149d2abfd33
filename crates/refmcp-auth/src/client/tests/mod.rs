//! Whole flows, without a socket: servers are tables of answers.

mod authorize;
mod discovery;
mod fake_servers;
mod grant_kinds;
mod hostile;
mod identity;
mod refresh;
mod registration_check;
mod token;

use serde_json::{Value, json};
use url::Url;

use super::*;
use crate::Scopes;
use crate::metadata::ClientMetadata;
use crate::secret::Secret;
use fake_servers::FakeServers;

const NOW: crate::Seconds = 1_000_000;
const SERVER: &str = "https://mcp.example/mcp";
const ISSUER: &str = "https://as.example";
const PATH_METADATA: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
const ROOT_METADATA: &str = "https://mcp.example/.well-known/oauth-protected-resource";
const SERVER_METADATA: &str = "https://as.example/.well-known/oauth-authorization-server";
const OPENID_METADATA: &str = "https://as.example/.well-known/openid-configuration";
const REDIRECT: &str = "http://127.0.0.1:7777/callback";

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn scopes(text: &str) -> Scopes {
    Scopes::parse(text).unwrap()
}

/// What the server tells.
fn resource() -> Value {
    json!({ "resource": SERVER, "authorization_servers": [ISSUER] })
}

/// What an authorization server tells.
fn server_at(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn server() -> Value {
    server_at(ISSUER)
}

/// Something with more members or other ones.
fn with(mut value: Value, changes: &Value) -> Value {
    for (name, change) in changes.as_object().unwrap() {
        if change.is_null() {
            value.as_object_mut().unwrap().remove(name);
        } else {
            value[name] = change.clone();
        }
    }
    value
}

fn tokens() -> Value {
    json!({ "access_token": "hush-token", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "hush-refresh" })
}

/// Everybody is there and works.
fn servers() -> FakeServers {
    let mut servers = FakeServers::default();
    servers.json(PATH_METADATA, &resource());
    servers.json(SERVER_METADATA, &server());
    servers.json("https://as.example/register", &json!({ "client_id": "dynamic" }));
    servers.json("https://as.example/token", &tokens());
    servers
}

/// A client that registers itself, for a person at a browser.
fn flow_request() -> FlowRequest {
    let identity = ClientIdentity { dynamic: Some(ClientMetadata::default()), ..ClientIdentity::default() };
    FlowRequest::new(url(SERVER), GrantKind::AuthorizationCode { redirect_uri: url(REDIRECT) }, identity)
}

/// Why a flow ended.
fn kind(ended: Result<TokenSet, FlowError>) -> FlowErrorKind {
    ended.unwrap_err().kind()
}

/// Why a flow cannot go on.
fn failure(next: FlowAction) -> FlowErrorKind {
    match next {
        FlowAction::Failed(error) => error.kind(),
        other => panic!("{other:?}"),
    }
}

fn refused(status: u16, challenge: &str) -> Option<UnauthorizedResponse> {
    let challenges = crate::Challenge::parse_all(challenge);
    Some(UnauthorizedResponse { status: http::StatusCode::from_u16(status).unwrap(), challenges })
}

fn challenged(challenge: &str) -> FlowRequest {
    FlowRequest { challenge: refused(401, challenge), ..flow_request() }
}
