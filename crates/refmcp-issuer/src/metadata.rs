//! Authorization server metadata of this server (RFC 8414).

use bytes::Bytes;
use http::Response;
use refmcp_auth::extension::ID_JAG_PROFILE;
use refmcp_auth::jose::Algorithm;
use refmcp_auth::metadata::ServerMetadata;
use refmcp_auth::{pkce, uri};
use serde_json::{Map, Value, json};

use crate::faults::Fault;
use crate::respond;
use crate::settings::Settings;
use crate::token::{CLIENT_CREDENTIALS, CODE, JWT_BEARER, REFRESH};

/// The issuer that faults name instead of this one.
pub(crate) const OTHER_ISSUER: &str = "https://other-issuer.example";

/// Supported client authentication methods.
pub(crate) const METHODS: [&str; 4] =
    ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"];

/// The paths of the metadata, and whether each serves `OpenID` provider metadata.
pub(crate) fn places(settings: &Settings) -> Vec<(String, bool)> {
    let (plain, openid) = (uri::AUTHORIZATION_SERVER, uri::OPENID);
    let faults = &settings.faults;
    let Some(tenant) = settings.tenant() else {
        let mut places = vec![(openid.to_owned(), true)];
        if !faults.has(Fault::OidcOnly) {
            places.insert(0, (plain.to_owned(), false));
        }
        return places;
    };
    if faults.has(Fault::IssuerPathAppended) {
        vec![(format!("{tenant}{openid}"), true)]
    } else if faults.has(Fault::IssuerPathOidc) || faults.has(Fault::OidcOnly) {
        vec![(format!("{openid}{tenant}"), true)]
    } else {
        vec![(format!("{plain}{tenant}"), false)]
    }
}

/// The metadata response.
pub(crate) fn answer(settings: &Settings, openid: bool) -> Response<Bytes> {
    respond::json(&metadata(settings, openid))
}

/// The metadata.
pub(crate) fn metadata(settings: &Settings, openid: bool) -> ServerMetadata {
    let faults = &settings.faults;
    let at = |path: &str| Some(settings.endpoint(path));
    let lists = |values: &[&str]| Some(values.iter().map(ToString::to_string).collect::<Vec<_>>());
    let algorithms: Vec<&str> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
    let issuer =
        if faults.has(Fault::WrongIssuerMetadata) { OTHER_ISSUER.to_owned() } else { settings.issuer() };
    let documents = settings.fetch.is_some() && !faults.has(Fault::NoClientDocuments);
    let mut grants = vec![CODE, CLIENT_CREDENTIALS];
    if !faults.has(Fault::NoRefreshToken) {
        grants.push(REFRESH);
    }
    if !(settings.identity_providers.is_empty() && settings.workload_issuers.is_empty()) {
        grants.push(JWT_BEARER);
    }
    ServerMetadata {
        issuer,
        authorization_endpoint: at("/authorize"),
        token_endpoint: at("/token"),
        registration_endpoint: at("/register").filter(|_| !faults.has(Fault::NoRegistration)),
        revocation_endpoint: at("/revoke"),
        introspection_endpoint: at("/introspect"),
        jwks_uri: at("/jwks"),
        scopes_supported: Some(settings.scopes.iter().map(str::to_owned).collect()),
        response_types_supported: lists(&["code"]),
        response_modes_supported: lists(&["query"]),
        grant_types_supported: lists(&grants),
        subject_types_supported: lists(&["public"]).filter(|_| openid),
        id_token_signing_alg_values_supported: lists(&["ES256"]).filter(|_| openid),
        token_endpoint_auth_methods_supported: lists(&METHODS),
        token_endpoint_auth_signing_alg_values_supported: lists(&algorithms),
        code_challenge_methods_supported: lists(&[pkce::S256])
            .filter(|_| !faults.has(Fault::NoPkceInMetadata)),
        client_id_metadata_document_supported: Some(documents),
        authorization_response_iss_parameter_supported: Some(true),
        dpop_signing_alg_values_supported: lists(&algorithms),
        more: more(settings),
    }
}

fn more(settings: &Settings) -> Map<String, Value> {
    let mut more = Map::new();
    more.insert("service_documentation".into(), settings.endpoint(crate::ABOUT).into());
    more.insert("revocation_endpoint_auth_methods_supported".into(), json!(METHODS));
    let open = uri::is_loopback(&settings.origin);
    let methods: Vec<&str> = METHODS.into_iter().filter(|method| open || *method != "none").collect();
    more.insert("introspection_endpoint_auth_methods_supported".into(), json!(methods));
    if !settings.identity_providers.is_empty() {
        more.insert("authorization_grant_profiles_supported".into(), json!([ID_JAG_PROFILE]));
    }
    more
}
