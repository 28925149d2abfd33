//! `serve --auth`: whose tokens are taken, and the built-in authorization server.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use refmcp_auth::Scopes;
use refmcp_issuer::Faults;
use url::Url;

use crate::args::value::{pair, seconds};

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Authorization")]
pub(crate) struct AuthorizationOptions {
    /// Whose tokens clients need: those of the authorization server that is built in for tests (builtin), or of this
    /// issuer. Without it no token is needed.
    #[arg(long, value_name = "builtin|ISSUER")]
    pub(crate) auth: Option<TokenIssuer>,

    /// How people log in to the built-in authorization server.
    #[arg(long, value_enum, default_value_t = BuiltinLogin::Ask, requires = "auth")]
    pub(crate) auth_login: BuiltinLogin,

    /// Something that goes wrong at the built-in authorization server; can be repeated.
    #[arg(long = "auth-fault", value_name = "WORD", requires = "auth", value_parser = fault, long_help = faults())]
    pub(crate) auth_faults: Vec<String>,

    /// How many seconds the tokens of the built-in authorization server are valid.
    #[arg(long, value_name = "SECONDS", requires = "auth", value_parser = seconds)]
    pub(crate) auth_token_lifetime: Option<Duration>,

    /// A client that the built-in authorization server knows from the start; can be repeated.
    #[arg(long = "auth-client", value_name = "ID[:SECRET]", requires = "auth", value_parser = registered_client)]
    pub(crate) auth_clients: Vec<RegisteredClient>,

    /// A client that the built-in authorization server knows by its signature: its id, and a file with its public keys
    /// (JWKS); can be repeated.
    #[arg(long = "auth-client-keys", value_name = "ID=FILE", requires = "auth", value_parser = pair)]
    pub(crate) auth_client_keys: Vec<(String, String)>,

    /// Another server that the built-in authorization server issues tokens for; can be repeated.
    #[arg(long = "auth-resource", value_name = "URL", requires = "auth")]
    pub(crate) auth_resources: Vec<Url>,

    /// An issuer whose assertions about workloads the built-in authorization server takes: its name, and a file with its
    /// public keys (JWKS); can be repeated.
    #[arg(long = "auth-workload-issuer", value_name = "ISSUER=FILE", requires = "auth", value_parser = pair)]
    pub(crate) auth_workload_issuers: Vec<(String, String)>,

    /// An identity provider whose assertions about employees it takes (ID-JAG); can be repeated.
    #[arg(long = "auth-identity-provider", value_name = "ISSUER=FILE", requires = "auth", value_parser = pair)]
    pub(crate) auth_identity_providers: Vec<(String, String)>,

    /// The supported scopes, with spaces between them; those of the server's tools if left out.
    #[arg(long, value_name = "SCOPES", requires = "auth", value_parser = Scopes::parse)]
    pub(crate) auth_scopes: Option<Scopes>,

    /// Take tokens that are for others besides this server as well. Each of those others can then use here what clients
    /// send to it, so this is only for issuers that always name more than one, and where all of them are trusted.
    #[arg(long, requires = "auth")]
    pub(crate) auth_other_audiences: bool,

    /// Whether tokens must be bound to a key of the client (DPoP).
    #[arg(long, value_enum, default_value_t = DpopPolicy::Optional, requires = "auth")]
    pub(crate) auth_dpop: DpopPolicy,

    /// Ask the issuer about every token instead of checking its signature, so that revoked ones are noticed; the built-in
    /// one needs no more.
    #[arg(long, requires = "auth")]
    pub(crate) auth_introspect: bool,

    /// How many seconds pass before the issuer is asked again about the token of a stream or a WebSocket that stays open; at
    /// least 1.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "30",
        requires = "auth_introspect",
        value_parser = whole_second
    )]
    pub(crate) auth_introspect_every: Duration,

    /// The id that the issuer knows this server by, for --auth-introspect.
    #[arg(long, value_name = "ID", requires_all = ["auth_introspect", "auth_introspect_secret_file"])]
    pub(crate) auth_introspect_id: Option<String>,

    /// The file with the secret that belongs to the id.
    #[arg(long, value_name = "FILE", requires = "auth_introspect_id")]
    pub(crate) auth_introspect_secret_file: Option<PathBuf>,
}

/// The issuer whose tokens are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenIssuer {
    /// The authorization server on the same port.
    Builtin,
    /// Another, by its name.
    External(String),
}

impl std::str::FromStr for TokenIssuer {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        if word == "builtin" {
            return Ok(Self::Builtin);
        }
        let url =
            Url::parse(word).map_err(|error| format!("neither builtin nor the URL of an issuer: {error}"))?;
        if !refmcp_auth::uri::is_secure(&url) {
            return Err("an issuer's URL must be https, or http on this machine".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("an issuer's URL has no query and no fragment".to_owned());
        }
        // A name, compared as it is written.
        Ok(Self::External(word.to_owned()))
    }
}

/// How people log in to the built-in authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BuiltinLogin {
    /// They are asked on a page.
    Ask,
    /// Every login succeeds at once.
    Auto,
}

/// Whether tokens must be bound to a key (DPoP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DpopPolicy {
    /// Those that are bound are taken, and those that are not.
    #[value(alias = "taken")]
    Optional,
    /// Only those that are bound are taken.
    Required,
    /// The same, and proofs must repeat what the server says.
    Nonce,
}

/// A client that the built-in authorization server knows from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegisteredClient {
    pub(crate) id: String,
    pub(crate) secret: Option<refmcp_auth::Secret>,
}

fn registered_client(text: &str) -> Result<RegisteredClient, String> {
    let (id, secret) = match text.split_once(':') {
        Some((id, secret)) => (id, Some(secret)),
        None => (text, None),
    };
    if id.is_empty() || secret.is_some_and(str::is_empty) {
        return Err("expected ID or ID:SECRET".to_owned());
    }
    Ok(RegisteredClient { id: id.to_owned(), secret: secret.map(refmcp_auth::Secret::new) })
}

/// A second or more: an issuer must not be asked all the time.
fn whole_second(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|time| {
        if time < Duration::from_secs(1) { Err("at least a second".to_owned()) } else { Ok(time) }
    })
}

fn fault(word: &str) -> Result<String, String> {
    Faults::default().and_named(word).map(|_| word.to_owned()).map_err(|error| error.to_string())
}

/// What can go wrong, for the help.
fn faults() -> String {
    let mut text =
        "Something that goes wrong at the built-in authorization server; can be repeated:".to_owned();
    for (word, what) in Faults::NAMES {
        text += &format!("\n  {word:<24} {what}");
    }
    text
}
