//! Logins that an enterprise decides about, as they are typed.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use url::Url;

use super::UsageError;
use super::value::absolute;

// The enterprise's identity provider, and what it gave when somebody signed on there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub(crate) struct EnterpriseOptions {
    /// The enterprise's identity provider, for `--grant enterprise`.
    #[arg(long, value_name = "ISSUER", help_heading = "Login")]
    pub(crate) idp_issuer: Option<String>,

    /// Where the identity provider exchanges tokens; looked up if left out.
    #[arg(long, value_name = "URL", requires = "idp_issuer", help_heading = "Login")]
    pub(crate) idp_token_endpoint: Option<Url>,

    /// The client's id at the identity provider.
    #[arg(long, value_name = "ID", requires = "idp_issuer", help_heading = "Login")]
    pub(crate) idp_client_id: Option<String>,

    /// The file with the client's secret at the identity provider.
    #[arg(long, value_name = "FILE", requires = "idp_client_id", help_heading = "Login")]
    pub(crate) idp_client_secret_file: Option<PathBuf>,

    /// The variable of the environment with the client's secret at the identity provider.
    #[arg(
        long,
        value_name = "NAME",
        requires = "idp_client_id",
        conflicts_with = "idp_client_secret_file",
        help_heading = "Login"
    )]
    pub(crate) idp_client_secret_env: Option<String>,

    /// The file with what the identity provider gave when somebody signed on (an ID token).
    #[arg(long, value_name = "FILE", requires = "idp_issuer", help_heading = "Login")]
    pub(crate) id_token_file: Option<PathBuf>,
}

impl EnterpriseOptions {
    /// Whether they are there where they are needed, and only there.
    pub(super) fn check(&self, needed: bool) -> Result<(), UsageError> {
        let complete =
            self.idp_issuer.is_some() && self.idp_client_id.is_some() && self.id_token_file.is_some();
        match needed {
            true if !complete => Err(UsageError::new(
                "--grant enterprise: needs --idp-issuer, --idp-client-id and --id-token-file",
            )),
            false if self.idp_issuer.is_some() => {
                Err(UsageError::new("--idp-issuer: only for --grant enterprise"))
            }
            _ => Ok(()),
        }
    }

    /// The same, with paths that stay right in another folder.
    pub(super) fn settled(mut self) -> Self {
        for file in [&mut self.idp_client_secret_file, &mut self.id_token_file] {
            *file = file.as_deref().map(absolute);
        }
        self
    }
}
