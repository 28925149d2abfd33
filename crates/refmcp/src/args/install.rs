//! `install` and `servers`: the configuration files of hosts.

use std::path::PathBuf;

use super::help::examples;
use super::value::{Header, header, pair};
use super::{OutputFormat, Target, UsageError, usage};
use crate::config::ConfigHost;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "\
refmcp install [OPTIONS] <HOST> [URL]
       refmcp install [OPTIONS] <HOST> -- <COMMAND>...
       refmcp install [--user|--config <FILE>] <HOST> --undo",
    after_help = examples("refmcp install")
)]
pub(crate) struct InstallOptions {
    /// The host, a program that is to use the server.
    #[arg(value_enum, value_name = "HOST")]
    pub(crate) host: ConfigHost,

    /// The server, where it is at an address: http, https, ws, wss, sse+http or sse+https. If nothing is named, it is
    /// refmcp itself, started by its full path with `stdio`.
    #[arg(value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,

    /// The entry's name; refmcp for refmcp itself.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// A variable in the environment of a server that is started; can be repeated.
    #[arg(long = "env", short = 'e', value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) env: Vec<(String, String)>,

    /// A header field for every request to a server at an address; can be repeated.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) headers: Vec<Header>,

    /// The user's own file, for all folders, instead of the one of this folder.
    #[arg(long, conflicts_with = "config")]
    pub(crate) user: bool,

    /// Another file of that program's shape.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Change an entry of the same name that is there already.
    #[arg(long)]
    pub(crate) replace: bool,

    /// Only show what would change.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Show secrets as they are in the file, instead of `***`: values of variables and headers, of arguments and in URLs.
    #[arg(long)]
    pub(crate) show_secrets: bool,

    /// Do not ask before the file is written.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,

    /// Take the last change of the file back: it becomes what it was, or goes if it was not there.
    #[arg(long, conflicts_with_all = ["url", "command", "name", "env", "headers", "replace"])]
    pub(crate) undo: bool,

    /// The output's format; in JSON, an error is a JSON document on stderr.
    #[arg(long, short = 'o', value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,

    /// A command that starts the server, instead of URL.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl InstallOptions {
    /// The server to install; `None` for refmcp itself.
    ///
    /// # Errors
    ///
    /// It is named, but not by a URL.
    pub(crate) fn target(&self) -> Result<Option<Target>, UsageError> {
        match (&self.url, self.command.is_empty()) {
            (None, true) => Ok(None),
            (None, false) => Ok(Some(Target::Command(self.command.clone()))),
            (Some(word), _) => match Target::parse(word)? {
                target @ Target::Url { .. } => Ok(Some(target)),
                _ => {
                    let how = "a server is named by its URL, or by the command that starts it after `--`";
                    Err(usage!("{word:?} is no URL: {how}"))
                }
            },
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = examples("refmcp servers"))]
pub(crate) struct ServersOptions {
    /// Only the servers of this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The output's format; in JSON, an error is a JSON document on stderr.
    #[arg(long, short = 'o', value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
}
