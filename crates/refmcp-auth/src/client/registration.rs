//! Dynamic client registration (RFC 7591).

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use url::Url;

use super::discovery::{Server, request};
use super::flow_step::{excerpt, redacted_url};
use super::identity::AuthMethod;
use super::{Blame, FlowError};
use crate::fetch::FetchError;
use crate::metadata::{ClientMetadata, ClientRegistration, OAuthError, ServerMetadata};
use crate::scope::Scopes;
use crate::uri::is_loopback;

/// Longest accepted client id.
const LONGEST: usize = 4096;

/// The metadata member that demands DPoP-bound tokens (RFC 9449).
const BOUND: &str = "dpop_bound_access_tokens";

/// True if a registered client gets only DPoP-bound tokens.
pub(crate) fn is_bound(registered: &ClientRegistration) -> bool {
    registered.metadata.more.get(BOUND) == Some(&true.into())
}

/// Builds the registration request; `bound` demands DPoP-bound tokens.
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
    // Client metadata consists of strings and lists, which JSON can hold.
    let body = serde_json::to_vec(&about).map_err(|fault| FlowError::Crypto(fault.to_string()))?;
    let mut request = request(Method::POST, endpoint, Blame::AuthorizationServer, body.into())?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(request)
}

/// Completes the client metadata with what this flow needs.
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

/// A native client keeps no secret well, so it asks for none where possible.
fn method(metadata: &ServerMetadata) -> AuthMethod {
    let listed = metadata.token_endpoint_auth_methods_supported.as_ref();
    let order = [AuthMethod::None, AuthMethod::Basic, AuthMethod::Post];
    let fits = |method: &AuthMethod| ServerMetadata::lists(listed, method.name());
    order.into_iter().find(fits).unwrap_or(AuthMethod::None)
}

/// Reads the registration response.
pub(crate) fn read(
    response: Result<Response<Bytes>, FetchError>,
    endpoint: &Url,
    issuer: &str,
    redirect_uri: &Url,
    bound: bool,
) -> Result<ClientRegistration, FlowError> {
    let nothing =
        |why| FlowError::Fetch { url: redacted_url(endpoint), whose: Blame::AuthorizationServer, why };
    let response = response.map_err(nothing)?;
    let refused =
        |why: String, redirect| FlowError::RegistrationFailed { issuer: issuer.to_owned(), why, redirect };
    if !response.status().is_success() {
        let said = serde_json::from_slice::<OAuthError>(response.body());
        let redirect = said.as_ref().is_ok_and(|said| said.error == "invalid_redirect_uri");
        let said = said.map_or_else(|_| "it does not say why".to_owned(), |said| excerpt(&said.to_string()));
        return Err(refused(format!("{said} (status {})", response.status().as_u16()), redirect));
    }
    let registered = serde_json::from_slice::<ClientRegistration>(response.body());
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
    // It is not used, and its holder can change the registration.
    more.remove("registration_access_token");
    if bound {
        // The response need not repeat it.
        more.entry(BOUND).or_insert(true.into());
    }
    Ok(registered)
}
