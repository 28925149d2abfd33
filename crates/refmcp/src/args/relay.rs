//! `relay`: between which client and which server, and where what passes is written.

use std::path::PathBuf;

use refmcp_auth::uri::as_http;
use refmcp_client::redact;
use url::Url;

use super::help::examples;
use super::value::{host_name, web_origin};
use super::{RecordOptions, Target, UsageError, usage};

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "\
refmcp relay --record <FILE> -- <COMMAND>...
       refmcp relay --record <FILE> [OPTIONS] <URL>",
    after_help = examples("refmcp relay")
)]
pub(crate) struct RelayOptions {
    /// The server, where it is at an address: http, https, ws or wss. Clients come to a port of this machine.
    #[arg(value_name = "URL", conflicts_with = "command")]
    url: Option<String>,

    #[command(flatten)]
    pub(crate) record: RecordOptions,

    /// What the server sends goes wrong, as this plan says: a file, or the plan itself, such as 'tools/call 2: no answer'.
    #[arg(long, value_name = "PLAN")]
    pub(crate) faults: Option<String>,

    #[command(flatten)]
    pub(crate) listen: RelayListen,

    /// A file of certificates in PEM that are trusted besides those of the system, for https and wss; can be repeated.
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) cacert: Vec<PathBuf>,

    /// A command that starts the server, in place of URL: the program that starts the relay is its client.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

// Where clients come to. A doc comment would become the description of the command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Listening")]
pub(crate) struct RelayListen {
    /// The port to listen on; 0 takes any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 4000, conflicts_with = "command")]
    pub(crate) port: u16,

    /// The address to listen on; beyond this machine only if you mean it.
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1", conflicts_with = "command")]
    pub(crate) host: String,

    /// A further name under which clients may address the relay; can be repeated.
    #[arg(long, value_name = "NAME", value_parser = host_name, conflicts_with = "command")]
    pub(crate) allow_host: Vec<String>,

    /// A further web origin whose pages may use the relay; can be repeated.
    #[arg(long, value_name = "ORIGIN", value_parser = web_origin, conflicts_with = "command")]
    pub(crate) allow_origin: Vec<String>,
}

impl RelayOptions {
    /// The server's address; none where a command starts it.
    pub(super) fn server_url(&self) -> Result<Option<Url>, UsageError> {
        let url = self.url.as_deref().map(server_url).transpose()?;
        match &url {
            None if self.command.is_empty() => {
                Err(UsageError::new("missing: the server's URL, or a command after `--`"))
            }
            _ if self.record.record.is_none() && !self.record.audit && self.faults.is_none() => {
                Err(UsageError::new(
                    "a relay records, judges or breaks what passes: give --record FILE, --audit or --faults PLAN",
                ))
            }
            Some(url) if url.scheme() == "http" && !self.cacert.is_empty() => {
                Err(UsageError::new("--cacert has no effect on a server that is reached without TLS"))
            }
            _ => Ok(url),
        }
    }
}

/// The address of a server, with the scheme of HTTP.
fn server_url(word: &str) -> Result<Url, UsageError> {
    let Target::Url { url, .. } = Target::parse(word)? else {
        let what = "expected the server's URL; the command of a configured server goes after `--`";
        return Err(usage!("{}: {what}", redact::word(word)));
    };
    if url.query().is_some() || url.fragment().is_some() {
        let what = "clients send their own path and query; leave out what follows the path";
        return Err(usage!("{}: {what}", redact::url(url.as_str())));
    }
    Ok(as_http(&url))
}
