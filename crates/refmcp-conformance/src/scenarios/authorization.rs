//! Scenarios with authorization. Most want the same login of a client; what differs is the metadata of the servers, and
//! whether the client has to refuse them.

use std::sync::Arc;

use refmcp_auth::Secret;
use refmcp_auth::client::{ClientIdentity, EnterpriseIdp, GrantKind, PreRegistered};
use refmcp_auth::jose::{Algorithm, PrivateKey};
use refmcp_auth::metadata::ClientMetadata;
use refmcp_client::auth::Authorization;
use refmcp_client::http::StreamableHttp;
use refmcp_client::{Client, Host};
use serde_json::json;

use super::BoxError;
use crate::redirect_browser::RedirectBrowser;
use crate::run_config::RunConfig;
use crate::server;

/// The document that the suite's authorization servers take for the client's.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Logs in by what the server announces.
pub(super) async fn login(config: RunConfig) -> Result<Client, BoxError> {
    let ourselves = ClientIdentity { document: Some(DOCUMENT.parse()?), ..identity(None) };
    use_server(&config, Authorization::new(RedirectBrowser).identity(ourselves)).await
}

/// Logs in as a client that was registered beforehand.
pub(super) async fn pre_registration(config: RunConfig) -> Result<Client, BoxError> {
    let ourselves = identity(Some(with_secret(&config)?));
    use_server(&config, Authorization::new(RedirectBrowser).identity(ourselves)).await
}

/// Client credentials with a secret.
pub(super) async fn client_credentials(config: RunConfig) -> Result<Client, BoxError> {
    let ourselves = identity(Some(with_secret(&config)?));
    let authorization =
        Authorization::without_browser().identity(ourselves).grant(GrantKind::ClientCredentials);
    use_server(&config, authorization).await
}

/// Client credentials with a signed assertion.
pub(super) async fn client_assertion(config: RunConfig) -> Result<Client, BoxError> {
    let algorithm = config.context_text("signing_algorithm")?;
    let algorithm = Algorithm::named(algorithm).ok_or_else(|| format!("no key signs by {algorithm}"))?;
    let key = PrivateKey::from_pem(algorithm, config.context_text("private_key_pem")?)?;
    let client = PreRegistered::with_key(config.context_text("client_id")?, Arc::new(key));
    let ourselves = identity(Some(client));
    let authorization =
        Authorization::without_browser().identity(ourselves).grant(GrantKind::ClientCredentials);
    use_server(&config, authorization).await
}

/// Enterprise-managed authorization.
pub(super) async fn enterprise(config: RunConfig) -> Result<Client, BoxError> {
    let ourselves = identity(Some(with_secret(&config)?));
    let way = GrantKind::EnterpriseManaged(Box::new(EnterpriseIdp {
        issuer: config.context_text("idp_issuer")?.to_owned(),
        token_endpoint: Some(config.context_text("idp_token_endpoint")?.parse()?),
        client_id: config.context_text("idp_client_id")?.to_owned(),
        client_secret: None,
        id_token: Secret::new(config.context_text("idp_id_token")?),
    }));
    use_server(&config, Authorization::without_browser().identity(ourselves).grant(way)).await
}

/// Workload identity: a JWT that the platform signed.
pub(super) async fn workload(config: RunConfig) -> Result<Client, BoxError> {
    let ourselves = identity(Some(PreRegistered::new(config.context_text("client_id")?, None)));
    let way = GrantKind::JwtBearer { assertion: Secret::new(config.context_text("valid_jwt")?) };
    use_server(&config, Authorization::without_browser().identity(ourselves).grant(way)).await
}

/// DPoP-bound tokens.
pub(super) async fn proofs(config: RunConfig) -> Result<Client, BoxError> {
    use_server(&config, Authorization::new(RedirectBrowser).identity(identity(None)).dpop(true)).await
}

/// The client identity: a pre-registered one, or dynamic registration.
fn identity(registered: Option<PreRegistered>) -> ClientIdentity {
    let dynamic = registered.is_none().then(|| ClientMetadata {
        client_name: Some("refmcp-conformance-client".to_owned()),
        application_type: Some("native".to_owned()),
        ..ClientMetadata::default()
    });
    ClientIdentity { registered, document: None, dynamic }
}

fn with_secret(config: &RunConfig) -> Result<PreRegistered, BoxError> {
    let secret = Secret::new(config.context_text("client_secret")?);
    Ok(PreRegistered::new(config.context_text("client_id")?, Some(secret)))
}

/// Lists and calls a tool; the call may need more scopes.
async fn use_server(config: &RunConfig, authorization: Authorization) -> Result<Client, BoxError> {
    let connector = StreamableHttp::new(&config.url)?.authorization(authorization);
    let client = server::connect_to(connector, config, Host::new()).await?;
    let tools = client.list_tools().await?;
    if let Some(tool) = tools.first() {
        server::call(&client, &tool.name, json!({})).await?;
    }
    Ok(client)
}
