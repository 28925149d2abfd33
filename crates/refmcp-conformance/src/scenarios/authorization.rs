//! Servers that want to know who asks. Most scenarios want the same of a client, a login by whatever the server tells;
//! what differs is what the servers tell, and whether a client has to turn away.

use std::sync::Arc;

use refmcp_auth::Secret;
use refmcp_auth::client::{ClientIdentity, EnterpriseIdp, GrantKind, PreRegistered};
use refmcp_auth::jose::{Algorithm, PrivateKey};
use refmcp_auth::metadata::ClientMetadata;
use refmcp_client::Host;
use refmcp_client::auth::Authorization;
use refmcp_client::http::StreamableHttp;
use serde_json::json;
use url::Url;

use super::Fault;
use crate::assignment::Assignment;
use crate::follower::Follower;
use crate::server;

/// The document that the suite's authorization servers take for the client's.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Logs in as the server wants it, and uses what it guards.
pub(super) async fn login(assignment: Assignment) -> Result<(), Fault> {
    let ourselves = ClientIdentity { document: Some(DOCUMENT.parse()?), ..identity(None) };
    use_server(&assignment, Authorization::new(Follower).identity(ourselves)).await
}

/// Logs in as a client that was registered beforehand.
pub(super) async fn pre_registration(assignment: Assignment) -> Result<(), Fault> {
    let ourselves = identity(Some(with_secret(&assignment)?));
    use_server(&assignment, Authorization::new(Follower).identity(ourselves)).await
}

/// Speaks for itself, by its secret.
pub(super) async fn client_credentials(assignment: Assignment) -> Result<(), Fault> {
    let ourselves = identity(Some(with_secret(&assignment)?));
    let authorization =
        Authorization::without_browser().identity(ourselves).grant(GrantKind::ClientCredentials);
    use_server(&assignment, authorization).await
}

/// Speaks for itself, by its key.
pub(super) async fn client_assertion(assignment: Assignment) -> Result<(), Fault> {
    let algorithm = assignment.told("signing_algorithm")?;
    let algorithm = Algorithm::named(algorithm).ok_or_else(|| format!("no key signs by {algorithm}"))?;
    let key = PrivateKey::from_pem(algorithm, assignment.told("private_key_pem")?)?;
    let client = PreRegistered::with_key(assignment.told("client_id")?, Arc::new(key));
    let ourselves = identity(Some(client));
    let authorization =
        Authorization::without_browser().identity(ourselves).grant(GrantKind::ClientCredentials);
    use_server(&assignment, authorization).await
}

/// Is let in by the identity provider of an enterprise.
pub(super) async fn enterprise(assignment: Assignment) -> Result<(), Fault> {
    let ourselves = identity(Some(with_secret(&assignment)?));
    let way = GrantKind::EnterpriseManaged(Box::new(EnterpriseIdp {
        issuer: assignment.told("idp_issuer")?.to_owned(),
        token_endpoint: Some(assignment.told("idp_token_endpoint")?.parse()?),
        client_id: assignment.told("idp_client_id")?.to_owned(),
        client_secret: None,
        id_token: Secret::new(assignment.told("idp_id_token")?),
    }));
    use_server(&assignment, Authorization::without_browser().identity(ourselves).grant(way)).await
}

/// Is let in by what its platform signed.
pub(super) async fn workload(assignment: Assignment) -> Result<(), Fault> {
    let ourselves = identity(Some(PreRegistered::new(assignment.told("client_id")?, None)));
    let way = GrantKind::JwtBearer { assertion: Secret::new(assignment.told("valid_jwt")?) };
    use_server(&assignment, Authorization::without_browser().identity(ourselves).grant(way)).await
}

/// Logs in with tokens that are bound to its key.
pub(super) async fn proofs(assignment: Assignment) -> Result<(), Fault> {
    use_server(&assignment, Authorization::new(Follower).identity(identity(None)).dpop(true)).await
}

/// Who we are: this client, if there is one, else one that registers itself.
fn identity(registered: Option<PreRegistered>) -> ClientIdentity {
    let dynamic = registered.is_none().then(|| ClientMetadata {
        client_name: Some("refmcp-conformance-client".to_owned()),
        application_type: Some("native".to_owned()),
        ..ClientMetadata::default()
    });
    ClientIdentity { registered, document: None, dynamic }
}

fn with_secret(assignment: &Assignment) -> Result<PreRegistered, Fault> {
    let secret = Secret::new(assignment.told("client_secret")?);
    Ok(PreRegistered::new(assignment.told("client_id")?, Some(secret)))
}

/// Does two things that need a token; the second may need a better one.
async fn use_server(assignment: &Assignment, authorization: Authorization) -> Result<(), Fault> {
    let url: Url = assignment.url.parse()?;
    let connector = StreamableHttp::new(url.as_str())?.authorization(authorization);
    let client = server::connect_to(connector, assignment, Host::new()).await?;
    let tools = client.list_tools().await?;
    if let Some(tool) = tools.first() {
        server::call(&client, &tool.name, json!({})).await?;
    }
    client.close().await;
    Ok(())
}
