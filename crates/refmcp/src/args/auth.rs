//! `auth`: logging in, as it is typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Subcommand, ValueEnum};
use refmcp_auth::jose::Algorithm;
use serde::{Deserialize, Serialize};
use url::Url;

use super::enterprise::EnterpriseOptions;
use super::examples;
use super::value::{absolute, seconds};
use super::{ClientCommand, SharedOptions, Target, UsageError};

// What to do about logins. (A doc comment would become what the command says of itself.)
#[derive(Debug, Subcommand)]
pub(super) enum AuthWords {
    /// Log in to a server, and keep its tokens for the other commands.
    #[command(after_help = examples::LOGIN)]
    Login(Box<LoginWords>),
    /// Show where you are logged in; never the tokens.
    #[command(after_help = examples::STATUS)]
    Status(StatusWords),
    /// Give the tokens for a server back, and forget them.
    #[command(after_help = examples::LOGOUT)]
    Logout(LogoutWords),
    /// Seal the file of tokens with a key that the system's keyring keeps, or show whether it is.
    #[command(after_help = examples::KEYRING)]
    Keyring(KeyringWords),
}

#[derive(Debug, clap::Args)]
pub(super) struct LoginWords {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    target: String,
    #[command(flatten)]
    manner: LoginOptions,
    #[command(flatten)]
    visit: BrowserOptions,
    #[command(flatten)]
    shared: SharedOptions,
}

#[derive(Debug, clap::Args)]
pub(super) struct StatusWords {
    /// The server; every one if left out.
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    #[command(flatten)]
    shared: SharedOptions,
}

#[derive(Debug, clap::Args)]
pub(super) struct LogoutWords {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    target: String,
    #[command(flatten)]
    shared: SharedOptions,
}

#[derive(Debug, clap::Args)]
pub(super) struct KeyringWords {
    /// Whether it is to be sealed; shows whether it is if left out.
    #[arg(value_name = "on|off", value_parser = ["on", "off"], hide_possible_values = true)]
    state: Option<String>,
    /// Who speaks to the keyring: docker-credential-NAME; that of this system's own if left out.
    #[arg(long, value_name = "NAME", requires = "state")]
    helper: Option<String>,
    #[command(flatten)]
    shared: SharedOptions,
}

/// What to do about logins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuthCommand {
    /// Log in to a server.
    Login { target: Target, manner: Box<LoginOptions>, visit: BrowserOptions },
    /// Show where somebody is logged in.
    Status { target: Option<Target> },
    /// Give tokens back and forget them.
    Logout { target: Target },
    /// Seal what is kept, or not.
    Keyring { action: KeyringAction },
}

/// What to do about the keyring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyringAction {
    /// Show whether it is used.
    Show,
    /// Use it, by way of this helper or of the system's own.
    On { helper: Option<String> },
    /// Use it no more.
    Off,
}

// Who logs in, and how. It is kept with the tokens, so that they can be renewed; secrets are read anew each time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub(crate) struct LoginOptions {
    /// How to get a token.
    #[arg(long, value_enum, default_value_t = GrantType::Code, help_heading = "Login")]
    pub(crate) grant: GrantType,

    /// The client that the authorization server knows already, by its id.
    #[arg(long, value_name = "ID", help_heading = "Login")]
    pub(crate) client_id: Option<String>,

    /// The authorization server that knows the client; no other is told its id. Where it is left out, the first that lets
    /// the client in to this server.
    #[arg(long, value_name = "ISSUER", requires = "client_id", help_heading = "Login")]
    pub(crate) client_issuer: Option<String>,

    /// The file with the client's secret.
    #[arg(long, value_name = "FILE", requires = "client_id", help_heading = "Login")]
    pub(crate) client_secret_file: Option<PathBuf>,

    /// The variable of the environment with the client's secret.
    #[arg(
        long,
        value_name = "NAME",
        requires = "client_id",
        conflicts_with = "client_secret_file",
        help_heading = "Login"
    )]
    pub(crate) client_secret_env: Option<String>,

    /// The file with the client's private key in PEM (PKCS #8), for clients that sign instead of having a secret.
    #[arg(
        long,
        value_name = "FILE",
        requires = "client_id",
        conflicts_with_all = ["client_secret_file", "client_secret_env"],
        help_heading = "Login"
    )]
    pub(crate) client_key: Option<PathBuf>,

    /// What the key signs by.
    #[arg(long, value_name = "ALGORITHM", requires = "client_key", value_parser = algorithm(), help_heading = "Login")]
    pub(crate) client_key_alg: Option<Algorithm>,

    /// The https URL of a document about the client, which is its id where authorization servers read such.
    #[arg(long, value_name = "URL", conflicts_with = "client_id", help_heading = "Login")]
    pub(crate) client_metadata_url: Option<Url>,

    /// The file with the assertion of somebody whom the authorization server trusts, for `--grant jwt-bearer`. One that does
    /// not name that server in its `aud`, by its issuer or its token endpoint, needs `--client-issuer`, with `--client-id`,
    /// to say where it may go.
    #[arg(long, value_name = "FILE", help_heading = "Login")]
    pub(crate) assertion_file: Option<PathBuf>,

    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) enterprise: EnterpriseOptions,

    /// A scope to ask for besides those that a refusal names; all that the server knows unless one is given; can be repeated.
    #[arg(long = "scope", value_name = "SCOPE", help_heading = "Login")]
    pub(crate) scopes: Vec<String>,

    /// Bind tokens to a key of this machine (DPoP), so that nobody else can use them.
    #[arg(long, help_heading = "Login")]
    pub(crate) dpop: bool,
}

/// How to get a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GrantType {
    /// Somebody says yes in a browser.
    #[default]
    Code,
    /// The client speaks for itself.
    ClientCredentials,
    /// Somebody whom the authorization server trusts vouches for the client.
    JwtBearer,
    /// The enterprise's identity provider, where somebody has signed on, decides.
    Enterprise,
}

// How a person is sent to a page and comes back.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(crate) struct BrowserOptions {
    /// The port of this machine that the browser is sent back to; any that is free if left out.
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true, help_heading = "Login")]
    pub(crate) callback_port: u16,

    /// Open no browser: the page to visit is shown, and where it leads in the end can be pasted.
    #[arg(long, help_heading = "Login")]
    pub(crate) no_browser: bool,

    /// How many seconds the login in the browser may take.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds, help_heading = "Login")]
    pub(crate) login_timeout: Duration,
}

impl Default for BrowserOptions {
    fn default() -> Self {
        Self { callback_port: 0, no_browser: false, login_timeout: Duration::from_secs(300) }
    }
}

impl AuthWords {
    /// What the words mean.
    ///
    /// # Errors
    ///
    /// They do not fit together; the error says why.
    pub(super) fn resolve(self) -> Result<(ClientCommand, SharedOptions), UsageError> {
        let (command, shared) = match self {
            Self::Login(words) => {
                let target = Target::parse(&words.target)?;
                let manner = Box::new(words.manner.checked()?);
                (AuthCommand::Login { target, manner, visit: words.visit }, words.shared)
            }
            Self::Status(words) => {
                let target = words.target.as_deref().map(Target::parse).transpose()?;
                (AuthCommand::Status { target }, words.shared)
            }
            Self::Logout(words) => {
                (AuthCommand::Logout { target: Target::parse(&words.target)? }, words.shared)
            }
            Self::Keyring(words) => {
                let action = match (words.state.as_deref(), words.helper) {
                    (Some("on"), helper) => KeyringAction::On { helper },
                    (_, Some(_)) => return Err(UsageError::new("--helper: only to turn the keyring on")),
                    (Some(_), None) => KeyringAction::Off,
                    (None, None) => KeyringAction::Show,
                };
                (AuthCommand::Keyring { action }, words.shared)
            }
        };
        Ok((ClientCommand::Auth(command), shared))
    }
}

impl LoginOptions {
    /// The same, if it makes sense, with paths that stay right in another folder.
    fn checked(mut self) -> Result<Self, UsageError> {
        let proves = self.client_secret_file.is_some() || self.client_secret_env.is_some();
        match self.grant {
            GrantType::ClientCredentials if !proves && self.client_key.is_none() => {
                let what =
                    "needs --client-id and one of --client-secret-file, --client-secret-env, --client-key";
                return Err(UsageError::new(format!("--grant client-credentials: {what}")));
            }
            GrantType::JwtBearer if self.assertion_file.is_none() => {
                return Err(UsageError::new("--grant jwt-bearer: needs --assertion-file"));
            }
            GrantType::Code | GrantType::ClientCredentials | GrantType::Enterprise
                if self.assertion_file.is_some() =>
            {
                return Err(UsageError::new("--assertion-file: only for --grant jwt-bearer"));
            }
            GrantType::Enterprise if self.client_id.is_none() => {
                let what = "needs --client-id, which the authorization server knows already";
                return Err(UsageError::new(format!("--grant enterprise: {what}")));
            }
            _ => {}
        }
        self.enterprise.check(self.grant == GrantType::Enterprise)?;
        if let Some(url) = self.client_metadata_url.as_ref().filter(|url| url.scheme() != "https") {
            return Err(UsageError::new(format!("--client-metadata-url {url}: must be https")));
        }
        for file in [&mut self.client_secret_file, &mut self.client_key, &mut self.assertion_file] {
            *file = file.as_deref().map(absolute);
        }
        Ok(Self { enterprise: self.enterprise.settled(), ..self })
    }
}

/// Algorithms by their names on the wire.
fn algorithm() -> impl TypedValueParser<Value = Algorithm> {
    PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name))
        .try_map(|name| Algorithm::named(&name).ok_or("no such algorithm"))
}
