//! Dynamic client registration (RFC 7591).

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response};
use url::Url;

use super::discovery::request;
use super::flow::FlowIo;
use super::flow_step::{FlowStep, excerpt};
use super::identity::AuthMethod;
use super::{Blame, FlowError, FlowErrorKind};
use crate::metadata::{ClientMetadata, ClientRegistration, OAuthError, ServerMetadata};
use crate::scope::Scopes;
use crate::uri::is_loopback;

/// Longest accepted client id.
const MAX_CLIENT_ID_BYTES: usize = 4096;

/// The metadata member that demands DPoP-bound tokens (RFC 9449).
const BOUND: &str = "dpop_bound_access_tokens";

/// True if a registered client gets only DPoP-bound tokens.
pub(crate) fn is_bound(registered: &ClientRegistration) -> bool {
    registered.metadata.more.get(BOUND) == Some(&true.into())
}

/// Registers the client; `bound` demands DPoP-bound tokens.
pub(crate) async fn register(
    io: &FlowIo,
    endpoint: &Url,
    server: &ServerMetadata,
    about: &ClientMetadata,
    redirect_uri: &Url,
    scopes: &Scopes,
    bound: bool,
) -> Result<ClientRegistration, FlowError> {
    let mut about = complete(about, server, redirect_uri, scopes);
    if bound {
        about.more.insert(BOUND.to_owned(), true.into());
    }
    // Client metadata consists of strings and lists, which JSON can hold.
    let body = serde_json::to_vec(&about).map_err(FlowError::crypto)?;
    let mut request = request(Method::POST, endpoint, Blame::AuthorizationServer, body.into())?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let response = io.fetch(request, endpoint, Blame::AuthorizationServer).await;
    let read = response.and_then(|response| read(&response, &server.issuer, redirect_uri, bound));
    let came = match &read {
        Ok(registered) => format!("the client id is {}", excerpt(&registered.client_id)),
        Err(_) => "the registration failed".to_owned(),
    };
    io.step(FlowStep::new("registered at", came).at(endpoint));
    read
}

/// Completes the client metadata with what this flow needs.
fn complete(
    about: &ClientMetadata,
    server: &ServerMetadata,
    redirect_uri: &Url,
    scopes: &Scopes,
) -> ClientMetadata {
    let mut about = about.clone();
    about.redirect_uris = vec![redirect_uri.to_string()];
    let native = redirect_uri.scheme() != "https" || is_loopback(redirect_uri);
    about.application_type.get_or_insert_with(|| (if native { "native" } else { "web" }).to_owned());
    about.grant_types.get_or_insert_with(|| vec!["authorization_code".into(), "refresh_token".into()]);
    about.response_types.get_or_insert_with(|| vec!["code".into()]);
    about.token_endpoint_auth_method.get_or_insert_with(|| method(server).name().to_owned());
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
fn read(
    response: &Response<Bytes>,
    issuer: &str,
    redirect_uri: &Url,
    bound: bool,
) -> Result<ClientRegistration, FlowError> {
    let refused = |kind, why: &str| {
        let message = format!("the authorization server {issuer} did not register this client: {why}");
        Err(FlowError::new(kind, message))
    };
    if !response.status().is_success() {
        let said = serde_json::from_slice::<OAuthError>(response.body());
        let kind = match &said {
            Ok(said) if said.error == "invalid_redirect_uri" => FlowErrorKind::RedirectUriRefused,
            _ => FlowErrorKind::RegistrationFailed,
        };
        let said = said.map_or_else(|_| "it does not say why".to_owned(), |said| excerpt(&said.to_string()));
        return refused(kind, &format!("{said} (status {})", response.status().as_u16()));
    }
    let Ok(mut registered) = serde_json::from_slice::<ClientRegistration>(response.body()) else {
        return refused(FlowErrorKind::RegistrationFailed, "what came is no registration");
    };
    let id = &registered.client_id;
    if id.is_empty() || id.len() > MAX_CLIENT_ID_BYTES || id.chars().any(char::is_control) {
        return refused(FlowErrorKind::RegistrationFailed, "the id it gave is none");
    }
    let uris = &mut registered.metadata.redirect_uris;
    if uris.is_empty() {
        uris.push(redirect_uri.to_string());
    }
    if !uris.iter().any(|uri| uri == redirect_uri.as_str()) {
        return refused(FlowErrorKind::RedirectUriRefused, "it registered other redirect URIs than ours");
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
