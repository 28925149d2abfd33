//! Who logs in, and how: from what was typed to what the library takes. Secrets are read where they are, when they are
//! needed.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use refmcp_auth::client::{ClientIdentity, EnterpriseIdp, GrantKind, PreRegistered, TokenSet};
use refmcp_auth::jose::{Algorithm, PrivateKey};
use refmcp_auth::{Scopes, Secret};
use refmcp_client::auth::{Authorization, default_client_metadata};

use crate::args::{EnterpriseOptions, GrantType, LoginOptions, usage};

impl LoginOptions {
    /// The same authorization with these options.
    ///
    /// # Errors
    ///
    /// A file or a variable is not there, or holds something else.
    pub(super) fn set(&self, authorization: Authorization) -> Result<Authorization> {
        let mut authorization = authorization.identity(self.identity()?).scopes(self.asked()?);
        if let Some(way) = self.grant_kind()? {
            authorization = authorization.grant(way);
        }
        if self.dpop {
            authorization = authorization.dpop(true);
        }
        Ok(authorization)
    }

    /// Who this is about, to authorization servers.
    ///
    /// # Errors
    ///
    /// A file or a variable is not there, or holds something else.
    pub(super) fn identity(&self) -> Result<ClientIdentity> {
        let registered = match &self.client_id {
            Some(id) => Some(self.registered(id)?),
            None => None,
        };
        // A registered client does not register again.
        let dynamic = registered.is_none().then(default_client_metadata);
        Ok(ClientIdentity { registered, document: self.client_metadata_url.clone(), dynamic })
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

    fn secret(&self) -> Result<Option<Secret>> {
        secret(self.client_secret_file.as_deref(), ("--client-secret-env", self.client_secret_env.as_deref()))
    }

    /// The same, where a client that others registered belongs to the issuer of this grant: what proves who it is goes
    /// nowhere else from now on.
    pub(super) fn settled(&self, grant: &TokenSet) -> Self {
        let mut settled = self.clone();
        if settled.client_id.is_some() && settled.client_id == grant.client_id {
            settled.client_issuer = Some(grant.issuer.clone());
        }
        settled
    }

    fn grant_kind(&self) -> Result<Option<GrantKind>> {
        Ok(match (self.grant, &self.assertion_file) {
            (GrantType::ClientCredentials, _) => Some(GrantKind::ClientCredentials),
            (GrantType::JwtBearer, Some(file)) => Some(GrantKind::JwtBearer { assertion: read(file)? }),
            (GrantType::Enterprise, _) => {
                Some(GrantKind::EnterpriseManaged(Box::new(self.enterprise.read()?)))
            }
            _ => None,
        })
    }

    fn asked(&self) -> Result<Scopes> {
        let scopes = Scopes::parse(&self.scopes.join(" "));
        Ok(scopes.map_err(|error| usage!("--scope: {error}"))?)
    }

    /// Whether a person has to say yes.
    pub(super) fn needs_person(&self) -> bool {
        self.grant == GrantType::AuthorizationCode
    }
}

impl EnterpriseOptions {
    fn read(&self) -> Result<EnterpriseIdp> {
        let need = |text: &Option<String>, option: &str| {
            text.clone().with_context(|| format!("--grant enterprise: {option} is missing"))
        };
        let id_token =
            self.id_token_file.as_deref().context("--grant enterprise: --id-token-file is missing")?;
        let variable = ("--idp-client-secret-env", self.idp_client_secret_env.as_deref());
        Ok(EnterpriseIdp {
            issuer: need(&self.idp_issuer, "--idp-issuer")?,
            token_endpoint: self.idp_token_endpoint.clone(),
            client_id: need(&self.idp_client_id, "--idp-client-id")?,
            client_secret: secret(self.idp_client_secret_file.as_deref(), variable)?,
            id_token: read(id_token)?,
        })
    }
}

/// A secret, from a file or else from the variable that an option names.
fn secret(file: Option<&Path>, (option, variable): (&str, Option<&str>)) -> Result<Option<Secret>> {
    if let Some(file) = file {
        return read(file).map(Some);
    }
    let Some(name) = variable else { return Ok(None) };
    let secret = std::env::var(name).map_err(|_| usage!("{option} {name}: there is no such variable"))?;
    Ok(Some(Secret::new(secret)))
}

/// What is in a file, without the line break at its end.
fn read(file: &Path) -> Result<Secret> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        let kind =
            if error.kind() == std::io::ErrorKind::InvalidData { "not a text" } else { "cannot be read" };
        usage!("{}: {kind}: {error}", file.display())
    })?;
    Ok(Secret::new(text.trim_end_matches(['\r', '\n'])))
}
