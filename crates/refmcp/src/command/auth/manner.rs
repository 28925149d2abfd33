//! Who logs in, and how: from what was typed to what the library takes. Secrets are read where they are, when they are
//! needed.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use refmcp_auth::client::{Identity, PreRegistered, Way};
use refmcp_auth::jose::{Algorithm, PrivateKey};
use refmcp_auth::metadata::ClientMetadata;
use refmcp_auth::{Scopes, Secret};
use refmcp_client::auth::Authorization;

use crate::args::{GrantWord, Manner, UsageError};

impl Manner {
    /// The same authorization, for whoever this is about.
    ///
    /// # Errors
    ///
    /// A file or a variable is not there, or holds something else.
    pub(super) fn set(&self, authorization: Authorization) -> Result<Authorization> {
        let mut authorization = authorization.identity(self.identity()?).scopes(self.asked()?);
        if let Some(way) = self.way()? {
            authorization = authorization.way(way);
        }
        if self.dpop {
            authorization = authorization.dpop(true);
        }
        Ok(authorization)
    }

    fn identity(&self) -> Result<Identity> {
        let registered = match &self.client_id {
            Some(id) => Some(self.registered(id)?),
            None => None,
        };
        let ourselves = ClientMetadata {
            client_name: Some("refmcp".to_owned()),
            application_type: Some("native".to_owned()),
            ..ClientMetadata::default()
        };
        // Whoever says who they are does not want to be somebody else.
        let dynamic = registered.is_none().then_some(ourselves);
        Ok(Identity { registered, document: self.client_metadata_url.clone(), dynamic })
    }

    fn registered(&self, id: &str) -> Result<PreRegistered> {
        let mut client = match &self.client_key {
            Some(file) => {
                let pem = read(file)?;
                let algorithm = self.client_key_alg.unwrap_or(Algorithm::Es256);
                let key = PrivateKey::from_pem(algorithm, pem.reveal())
                    .with_context(|| format!("--client-key {}", file.display()))?;
                PreRegistered::with_key(id, Arc::new(key))
            }
            None => PreRegistered::new(id, self.secret()?),
        };
        client.issuer.clone_from(&self.client_issuer);
        Ok(client)
    }

    pub(super) fn secret(&self) -> Result<Option<Secret>> {
        if let Some(file) = &self.client_secret_file {
            return read(file).map(Some);
        }
        let Some(name) = &self.client_secret_env else { return Ok(None) };
        let secret = std::env::var(name)
            .map_err(|_| UsageError::new(format!("--client-secret-env {name}: there is no such variable")))?;
        Ok(Some(Secret::new(secret)))
    }

    fn way(&self) -> Result<Option<Way>> {
        Ok(match (self.grant, &self.assertion_file) {
            (GrantWord::ClientCredentials, _) => Some(Way::ClientCredentials),
            (GrantWord::JwtBearer, Some(file)) => Some(Way::JwtBearer { assertion: read(file)? }),
            _ => None,
        })
    }

    fn asked(&self) -> Result<Scopes> {
        let scopes = Scopes::parse(&self.scopes.join(" "));
        Ok(scopes.map_err(|fault| UsageError::new(format!("--scope: {fault}")))?)
    }

    /// Whether a person has to say yes.
    pub(super) fn needs_person(&self) -> bool {
        self.grant == GrantWord::Code
    }
}

/// What is in a file, without the line break at its end.
fn read(file: &Path) -> Result<Secret> {
    let text = std::fs::read_to_string(file).map_err(|fault| {
        let kind =
            if fault.kind() == std::io::ErrorKind::InvalidData { "not a text" } else { "cannot be read" };
        UsageError::new(format!("{}: {kind}: {fault}", file.display()))
    })?;
    Ok(Secret::new(text.trim_end_matches(['\r', '\n'])))
}
