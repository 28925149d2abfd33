//! `auth`: login, status, logout, keyring.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Subcommand, ValueEnum};
use refmcp_auth::jose::Algorithm;
use serde::{Deserialize, Serialize};
use url::Url;

use super::options::OutputOptions;
use super::{ClientCommand, SharedOptions};
use crate::args::help::examples;
use crate::args::value::{absolute, seconds};
use crate::args::{Target, UsageError, usage};

// No doc comment: it would become the description of `auth`.
#[derive(Debug, Subcommand)]
pub(in crate::args) enum AuthArgs {
    /// Log in to a server, and keep its tokens for the other commands.
    #[command(after_help = examples("refmcp auth login"))]
    Login(Box<LoginArgs>),
    /// Show where you are logged in; never the tokens.
    #[command(visible_alias = "list", after_help = examples("refmcp auth status"))]
    Status(StatusArgs),
    /// Give the tokens for a server back, and forget them.
    #[command(after_help = examples("refmcp auth logout"))]
    Logout(LogoutArgs),
    /// Seal the file of tokens with a key that the system's keyring keeps, or show whether it is.
    #[command(after_help = examples("refmcp auth keyring"))]
    Keyring(KeyringArgs),
}

#[derive(Debug, clap::Args)]
pub(in crate::args) struct LoginArgs {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    target: String,
    #[command(flatten)]
    login: LoginOptions,
    #[command(flatten)]
    browser: BrowserOptions,
    #[command(flatten)]
    shared: OutputOptions,
}

#[derive(Debug, clap::Args)]
pub(in crate::args) struct StatusArgs {
    /// The server; every one if left out.
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    #[command(flatten)]
    shared: OutputOptions,
}

#[derive(Debug, clap::Args)]
pub(in crate::args) struct LogoutArgs {
    /// The server: a URL (http, https, ws, wss, sse+http, sse+https) or a name from a configuration file.
    #[arg(value_name = "TARGET")]
    target: String,
    #[command(flatten)]
    shared: OutputOptions,
}

#[derive(Debug, clap::Args)]
pub(in crate::args) struct KeyringArgs {
    /// Whether it is to be sealed; shows whether it is if left out.
    #[arg(value_name = "on|off", value_parser = ["on", "off"], hide_possible_values = true)]
    state: Option<String>,
    /// The program that speaks to the keyring: docker-credential-NAME; the system's own if left out.
    #[arg(long, value_name = "NAME", requires = "state")]
    helper: Option<String>,
    #[command(flatten)]
    shared: OutputOptions,
}

/// A command about logins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuthCommand {
    /// Log in to a server.
    Login { target: Target, login: Box<LoginOptions>, browser: BrowserOptions },
    /// Show the servers with a login.
    Status { target: Option<Target> },
    /// Give tokens back and forget them.
    Logout { target: Target },
    /// Seal what is kept, or not.
    Keyring { action: KeyringAction },
}

/// A command about the keyring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyringAction {
    /// Show whether it is used.
    Show,
    /// Use it, by way of this helper or of the system's own.
    On { helper: Option<String> },
    /// Use it no more.
    Off,
}

// The client and its grant. Stored with the tokens, so that they can be refreshed; secrets are read anew each time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
#[command(next_help_heading = "Login")]
pub(crate) struct LoginOptions {
    /// The OAuth grant by which to get a token.
    #[arg(long, value_enum, default_value_t = GrantType::AuthorizationCode)]
    pub(crate) grant: GrantType,

    /// The client that the authorization server knows already, by its id.
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,

    /// The authorization server that knows the client; no other is told its id. Where it is left out, the first that lets
    /// the client in to this server.
    #[arg(long, value_name = "ISSUER", requires = "client_id")]
    pub(crate) client_issuer: Option<String>,

    /// The file with the client's secret.
    #[arg(long, value_name = "FILE", requires = "client_id")]
    pub(crate) client_secret_file: Option<PathBuf>,

    /// The variable of the environment with the client's secret.
    #[arg(long, value_name = "NAME", requires = "client_id", conflicts_with = "client_secret_file")]
    pub(crate) client_secret_env: Option<String>,

    /// The file with the client's private key in PEM (PKCS #8), for clients that sign instead of having a secret.
    #[arg(
        long,
        value_name = "FILE",
        requires = "client_id",
        conflicts_with_all = ["client_secret_file", "client_secret_env"]
    )]
    pub(crate) client_key: Option<PathBuf>,

    /// The key's signature algorithm.
    #[arg(long, value_name = "ALGORITHM", requires = "client_key", value_parser = algorithm())]
    pub(crate) client_key_alg: Option<Algorithm>,

    /// The https URL of a document about the client, which is its id where authorization servers read such.
    #[arg(long, value_name = "URL", conflicts_with = "client_id")]
    pub(crate) client_metadata_url: Option<Url>,

    /// The file with an assertion by an issuer that the authorization server trusts, for `--grant jwt-bearer`. One that does
    /// not name that server in its `aud`, by its issuer or its token endpoint, needs `--client-issuer`, with `--client-id`,
    /// to say where it may go.
    #[arg(long, value_name = "FILE")]
    pub(crate) assertion_file: Option<PathBuf>,

    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) enterprise: EnterpriseOptions,

    /// A scope to ask for besides those that a refusal names; all that the server knows unless one is given; can be repeated.
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,

    /// Bind tokens to a key of this machine (DPoP), so that no other client can use them.
    #[arg(long)]
    pub(crate) dpop: bool,
}

/// The OAuth grant by which a token is obtained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GrantType {
    /// A person agrees in a browser.
    #[default]
    #[serde(alias = "code")]
    #[value(alias = "code")]
    AuthorizationCode,
    /// The client acts for itself.
    ClientCredentials,
    /// An issuer that the authorization server trusts vouches for the client.
    JwtBearer,
    /// The enterprise's identity provider, where a person has signed on, decides.
    Enterprise,
}

// How a person logs in with a browser.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(crate) struct BrowserOptions {
    /// The port of this machine that the browser is sent back to; any that is free if left out.
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) callback_port: u16,

    /// Open no browser: the page to visit is shown, and where it leads in the end can be pasted.
    #[arg(long)]
    pub(crate) no_browser: bool,

    /// How many seconds the login in the browser may take.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub(crate) login_timeout: Duration,
}

impl Default for BrowserOptions {
    fn default() -> Self {
        Self { callback_port: 0, no_browser: false, login_timeout: Duration::from_secs(300) }
    }
}

impl AuthArgs {
    /// The command that the arguments make.
    ///
    /// # Errors
    ///
    /// They contradict each other; the error says how.
    pub(super) fn resolve(self) -> Result<(ClientCommand, SharedOptions), UsageError> {
        let (command, shared) = match self {
            Self::Login(args) => {
                let target = Target::parse(&args.target)?;
                let login = Box::new(args.login.checked()?);
                (AuthCommand::Login { target, login, browser: args.browser }, args.shared.resolve())
            }
            Self::Status(args) => {
                let target = args.target.as_deref().map(Target::parse).transpose()?;
                (AuthCommand::Status { target }, args.shared.resolve())
            }
            Self::Logout(args) => {
                (AuthCommand::Logout { target: Target::parse(&args.target)? }, args.shared.resolve())
            }
            Self::Keyring(args) => {
                let action = match (args.state.as_deref(), args.helper) {
                    (Some("on"), helper) => KeyringAction::On { helper },
                    (_, Some(_)) => return Err(UsageError::new("--helper: only to turn the keyring on")),
                    (Some(_), None) => KeyringAction::Off,
                    (None, None) => KeyringAction::Show,
                };
                (AuthCommand::Keyring { action }, args.shared.resolve())
            }
        };
        Ok((ClientCommand::Auth(command), shared))
    }
}

impl LoginOptions {
    /// The same, if consistent, with absolute paths.
    fn checked(mut self) -> Result<Self, UsageError> {
        let proves = self.client_secret_file.is_some() || self.client_secret_env.is_some();
        match self.grant {
            GrantType::ClientCredentials if !proves && self.client_key.is_none() => {
                let what =
                    "needs --client-id and one of --client-secret-file, --client-secret-env, --client-key";
                return Err(usage!("--grant client-credentials: {what}"));
            }
            GrantType::JwtBearer if self.assertion_file.is_none() => {
                return Err(UsageError::new("--grant jwt-bearer: needs --assertion-file"));
            }
            GrantType::AuthorizationCode | GrantType::ClientCredentials | GrantType::Enterprise
                if self.assertion_file.is_some() =>
            {
                return Err(UsageError::new("--assertion-file: only for --grant jwt-bearer"));
            }
            GrantType::Enterprise if self.client_id.is_none() => {
                let what = "needs --client-id, which the authorization server knows already";
                return Err(usage!("--grant enterprise: {what}"));
            }
            _ => {}
        }
        self.enterprise.check(self.grant == GrantType::Enterprise)?;
        if let Some(url) = self.client_metadata_url.as_ref().filter(|url| url.scheme() != "https") {
            return Err(usage!("--client-metadata-url {url}: must be https"));
        }
        for file in [&mut self.client_secret_file, &mut self.client_key, &mut self.assertion_file] {
            *file = file.as_deref().map(absolute);
        }
        Ok(Self { enterprise: self.enterprise.with_absolute_paths(), ..self })
    }
}

// The enterprise's identity provider, and the ID token it issued at sign-on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub(crate) struct EnterpriseOptions {
    /// The enterprise's identity provider, for `--grant enterprise`.
    #[arg(long, value_name = "ISSUER")]
    pub(crate) idp_issuer: Option<String>,

    /// The identity provider's token endpoint; discovered if left out.
    #[arg(long, value_name = "URL", requires = "idp_issuer")]
    pub(crate) idp_token_endpoint: Option<Url>,

    /// The client's id at the identity provider.
    #[arg(long, value_name = "ID", requires = "idp_issuer")]
    pub(crate) idp_client_id: Option<String>,

    /// The file with the client's secret at the identity provider.
    #[arg(long, value_name = "FILE", requires = "idp_client_id")]
    pub(crate) idp_client_secret_file: Option<PathBuf>,

    /// The variable of the environment with the client's secret at the identity provider.
    #[arg(long, value_name = "NAME", requires = "idp_client_id", conflicts_with = "idp_client_secret_file")]
    pub(crate) idp_client_secret_env: Option<String>,

    /// The file with the ID token that the identity provider issued at sign-on.
    #[arg(long, value_name = "FILE", requires = "idp_issuer")]
    pub(crate) id_token_file: Option<PathBuf>,
}

impl EnterpriseOptions {
    /// Whether they are given where they are needed, and only there.
    fn check(&self, needed: bool) -> Result<(), UsageError> {
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

    fn with_absolute_paths(mut self) -> Self {
        for file in [&mut self.idp_client_secret_file, &mut self.id_token_file] {
            *file = file.as_deref().map(absolute);
        }
        self
    }
}

/// Algorithms by their names on the wire.
fn algorithm() -> impl TypedValueParser<Value = Algorithm> {
    PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name))
        .try_map(|name| Algorithm::named(&name).ok_or("no such algorithm"))
}
