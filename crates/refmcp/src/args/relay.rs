//! `relay`: between which client and which server, and where what passes is written.

use std::path::PathBuf;

use refmcp_client::redact;
use url::Url;

use super::help::examples;
use super::value::{host_name, web_origin};
use super::{Target, UsageError};

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "\
refmcp relay --trace <FILE> -- <COMMAND>...
       refmcp relay --trace <FILE> [OPTIONS] <URL>",
    after_help = examples("refmcp relay")
)]
pub(super) struct RelayOptions {
    /// The server, where it is at an address: http, https, ws or wss. Clients come to a port of this machine.
    #[arg(value_name = "URL", conflicts_with = "command")]
    url: Option<String>,

    /// Write every message and HTTP head in both directions to this file, as JSON lines with times; credentials in heads
    /// are masked, and only you can read it.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,

    /// The port to listen on; 0 takes any that is free.
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 4000,
        help_heading = "Listening",
        conflicts_with = "command"
    )]
    port: u16,

    /// The address to listen on; beyond this machine only if you mean it.
    #[arg(
        long,
        value_name = "HOST",
        default_value = "127.0.0.1",
        help_heading = "Listening",
        conflicts_with = "command"
    )]
    host: String,

    /// A further name under which clients may address the relay; can be repeated.
    #[arg(long, value_name = "NAME", value_parser = host_name, help_heading = "Listening", conflicts_with = "command")]
    allow_host: Vec<String>,

    /// A further web origin whose pages may use the relay; can be repeated.
    #[arg(long, value_name = "ORIGIN", value_parser = web_origin, help_heading = "Listening", conflicts_with = "command")]
    allow_origin: Vec<String>,

    /// A file of certificates in PEM that are trusted besides those of the system, for https and wss; can be repeated.
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    cacert: Vec<PathBuf>,

    /// A command that starts the server, in place of URL: the program that starts the relay is its client.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What is passed on, and where it is written down.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) trace: PathBuf,
    pub(crate) server: RelayServer,
}

/// The server of a relay.
#[derive(Debug)]
pub(crate) enum RelayServer {
    /// It is started, for the process that starts the relay.
    Command(Vec<String>),
    /// It is at an address, for clients of a port.
    Url(RelayListen),
}

/// A server at an address, and where its clients come to.
#[derive(Debug)]
pub(crate) struct RelayListen {
    /// The server's, with http or https.
    pub(crate) url: Url,
    pub(crate) port: u16,
    pub(crate) host: String,
    pub(crate) allow_host: Vec<String>,
    pub(crate) allow_origin: Vec<String>,
    pub(crate) cacert: Vec<PathBuf>,
}

impl RelayOptions {
    pub(super) fn resolve(self) -> Result<Relay, UsageError> {
        let Self { url, trace, port, host, allow_host, allow_origin, cacert, command } = self;
        let server = match url {
            None if command.is_empty() => {
                return Err(UsageError::new("missing: the server's URL, or a command after `--`"));
            }
            None => RelayServer::Command(command),
            Some(word) => {
                let url = server_url(&word)?;
                if url.scheme() == "http" && !cacert.is_empty() {
                    let what = "--cacert has no effect on a server that is reached without TLS";
                    return Err(UsageError::new(what));
                }
                RelayServer::Url(RelayListen { url, port, host, allow_host, allow_origin, cacert })
            }
        };
        Ok(Relay { trace, server })
    }
}

/// The address of a server, with the scheme of HTTP.
fn server_url(word: &str) -> Result<Url, UsageError> {
    let Target::Url { url, .. } = Target::parse(word)? else {
        let what = "expected the server's URL; the command of a configured server goes after `--`";
        return Err(UsageError::new(format!("{}: {what}", redact::word(word))));
    };
    let shown = redact::url(url.as_str());
    if url.query().is_some() || url.fragment().is_some() {
        let what = "clients send their own path and query; leave out what follows the path";
        return Err(UsageError::new(format!("{shown}: {what}")));
    }
    let scheme = if matches!(url.scheme(), "https" | "wss") { "https" } else { "http" };
    let (_, rest) = url.as_str().split_once("://").unwrap_or_default();
    Url::parse(&format!("{scheme}://{rest}")).map_err(|fault| UsageError::new(format!("{shown}: {fault}")))
}
