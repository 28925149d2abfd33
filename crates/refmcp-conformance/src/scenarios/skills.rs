//! Scenarios about skills: what is listed is not fetched, and what is fetched is verified.

use refmcp_client::{Client, Host, SkillList};

use super::BoxError;
use crate::run_config::RunConfig;
use crate::server;

/// Lists the skills and reads nothing.
pub(super) async fn list(config: RunConfig) -> Result<Client, BoxError> {
    let (client, _) = listed(&config).await?;
    Ok(client)
}

/// Loads each skill, and reads its files once its `SKILL.md` is verified.
pub(super) async fn load(config: RunConfig) -> Result<Client, BoxError> {
    let (client, list) = listed(&config).await?;
    for skill in list.skills {
        let loaded = skill.load().await?;
        for (_, path, _) in skill.entry().files() {
            loaded.read(path).await?;
        }
    }
    Ok(client)
}

async fn listed(config: &RunConfig) -> Result<(Client, SkillList), BoxError> {
    let client = server::connect(config, Host::new()).await?;
    let list = client.skills().list().await?;
    match list.refused.first() {
        Some(fault) => Err(fault.clone().into()),
        None => Ok((client, list)),
    }
}
