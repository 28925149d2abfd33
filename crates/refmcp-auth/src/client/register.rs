//! Making ourselves known to an authorization server (RFC 7591).

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use url::Url;

use super::discovery::{Server, request};
use super::identity::AuthMethod;
use super::step::{brief, place};
use super::{Blame, FlowError};
use crate::fetch::Unfetched;
use crate::metadata::{ClientMetadata, OAuthError, Registered, ServerMetadata};
use crate::scope::Scopes;
use crate::uri::is_loopback;

/// The longest id that is taken.
const LONGEST: usize = 4096;

/// Whether a client gets only tokens that are bound to a key (RFC 9449).
const BOUND: &str = "dpop_bound_access_tokens";

/// Whether a client that registered itself gets only tokens that are bound to a key.
pub(crate) fn is_bound(registered: &Registered) -> bool {
    registered.metadata.more.get(BOUND) == Some(&true.into())
}

/// The request that registers us, for tokens that are bound to a key and no others, if so.
pub(crate) fn ask(
    endpoint: &Url,
    server: &Server,
    about: &ClientMetadata,
    redirect_uri: &Url,
    scopes: &Scopes,
    bound: bool,
) -> Result<Request<Bytes>, FlowError> {
    let mut about = complete(about, server, redirect_uri, scopes);
    if bound {
        about.more.insert(BOUND.to_owned(), true.into());
    }
    // A client's metadata is made of strings and lists, which JSON can hold.
    let body = serde_json::to_vec(&about).map_err(|fault| FlowError::NoKeys(fault.to_string()))?;
    let mut request = request(Method::POST, endpoint, Blame::Issuer, body.into())?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(request)
}

/// What we tell about ourselves: what we were told to, and what this flow needs.
fn complete(about: &ClientMetadata, server: &Server, redirect_uri: &Url, scopes: &Scopes) -> ClientMetadata {
    let mut about = about.clone();
    about.redirect_uris = vec![redirect_uri.to_string()];
    let native = redirect_uri.scheme() != "https" || is_loopback(redirect_uri);
    about.application_type.get_or_insert_with(|| (if native { "native" } else { "web" }).to_owned());
    about.grant_types.get_or_insert_with(|| vec!["authorization_code".into(), "refresh_token".into()]);
    about.response_types.get_or_insert_with(|| vec!["code".into()]);
    about.token_endpoint_auth_method.get_or_insert_with(|| method(server.metadata()).name().to_owned());
    if about.scope.is_none() && !scopes.is_empty() {
        about.scope = Some(scopes.to_string());
    }
    about
}

/// We keep no secret well, so we ask for none where that is possible.
fn method(metadata: &ServerMetadata) -> AuthMethod {
    let listed = metadata.token_endpoint_auth_methods_supported.as_ref();
    let order = [AuthMethod::None, AuthMethod::Basic, AuthMethod::Post];
    let fits = |method: &AuthMethod| ServerMetadata::lists(listed, method.name());
    order.into_iter().find(fits).unwrap_or(AuthMethod::None)
}

/// Reads what came back.
pub(crate) fn read(
    response: Result<Response<Bytes>, Unfetched>,
    endpoint: &Url,
    issuer: &str,
    redirect_uri: &Url,
    bound: bool,
) -> Result<Registered, FlowError> {
    let nothing = |why| FlowError::Unfetched { url: place(endpoint), whose: Blame::Issuer, why };
    let response = response.map_err(nothing)?;
    let refused =
        |why: String, redirect| FlowError::Unregistered { issuer: issuer.to_owned(), why, redirect };
    if !response.status().is_success() {
        let said = serde_json::from_slice::<OAuthError>(response.body());
        let redirect = said.as_ref().is_ok_and(|said| said.error == "invalid_redirect_uri");
        let said = said.map_or_else(|_| "it does not say why".to_owned(), |said| brief(&said.to_string()));
        return Err(refused(format!("{said} (status {})", response.status().as_u16()), redirect));
    }
    let registered = serde_json::from_slice::<Registered>(response.body());
    let mut registered = registered.map_err(|_| refused("what came is no registration".to_owned(), false))?;
    let id = &registered.client_id;
    if id.is_empty() || id.len() > LONGEST || id.chars().any(char::is_control) {
        return Err(refused("the id it gave is none".to_owned(), false));
    }
    let uris = &mut registered.metadata.redirect_uris;
    if uris.is_empty() {
        uris.push(redirect_uri.to_string());
    }
    if !uris.iter().any(|uri| uri == redirect_uri.as_str()) {
        return Err(refused("it registered other redirect URIs than ours".to_owned(), true));
    }
    let more = &mut registered.metadata.more;
    // What is not used is not kept: whoever has it can change the registration.
    more.remove("registration_access_token");
    if bound {
        // An authorization server need not repeat it.
        more.entry(BOUND).or_insert(true.into());
    }
    Ok(registered)
}
