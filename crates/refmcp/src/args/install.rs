//! The options of `install` and `servers`: the configuration files of other programs.

use std::path::PathBuf;

use clap::ValueEnum;

use super::value::{Header, header, pair};
use super::{Target, UsageError};
use crate::config::ConfigHost;

// What to write into whose configuration.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "\
refmcp install [OPTIONS] <HOST> [URL]
       refmcp install [OPTIONS] <HOST> -- <COMMAND>...
       refmcp install [--user|--config <FILE>] <HOST> --undo",
    after_help = INSTALL_EXAMPLES
)]
pub(crate) struct InstallOptions {
    /// The program that is to use the server.
    #[arg(value_enum, value_name = "HOST")]
    pub(crate) host: HostWord,

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

    /// Do not ask before the file is written.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,

    /// Take the last change of the file back: it becomes what it was, or goes if it was not there.
    #[arg(long, conflicts_with_all = ["url", "command", "name", "env", "headers", "replace"])]
    pub(crate) undo: bool,

    /// A command that starts the server, instead of URL.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

const INSTALL_EXAMPLES: &str = "\
Examples:
  refmcp install vscode
      the reference server, for VS Code in this folder
  refmcp install claude-desktop --dry-run
      show what would change in Claude Desktop's configuration
  refmcp install cursor --user --name shop https://shop.example/mcp
      a server at an address, for Cursor in all folders
  refmcp install claude-code --name files -e LOG=debug -- npx -y some-server ./data
      a server that is started by a command, for Claude Code in this folder
  refmcp install vscode --undo
      take the last change of VS Code's file in this folder back";

/// A program that uses servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostWord {
    /// Visual Studio Code.
    Vscode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
}

impl HostWord {
    /// The program.
    pub(crate) fn host(self) -> ConfigHost {
        match self {
            Self::Vscode => ConfigHost::VsCode,
            Self::ClaudeDesktop => ConfigHost::ClaudeDesktop,
            Self::ClaudeCode => ConfigHost::ClaudeCode,
            Self::Cursor => ConfigHost::Cursor,
        }
    }

    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Vscode => "vscode",
            Self::ClaudeDesktop => "claude-desktop",
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
        }
    }
}

impl InstallOptions {
    /// The server that is to be used; `None` for refmcp itself.
    ///
    /// # Errors
    ///
    /// The word for it is no address.
    pub(crate) fn target(&self) -> Result<Option<Target>, UsageError> {
        match (&self.url, self.command.is_empty()) {
            (None, true) => Ok(None),
            (None, false) => Ok(Some(Target::Command(self.command.clone()))),
            (Some(word), _) => match Target::parse(word)? {
                target @ Target::Url { .. } => Ok(Some(target)),
                _ => {
                    let how = "a server is named by its URL, or by the command that starts it after `--`";
                    Err(UsageError::new(format!("{word:?} is no URL: {how}")))
                }
            },
        }
    }
}

// Which servers to show, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = SERVERS_EXAMPLES)]
pub(crate) struct ServersOptions {
    /// Only the servers of this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// How to write them.
    #[arg(long, short = 'o', value_enum, default_value_t = ServersOutput::Text)]
    pub(crate) output: ServersOutput,
}

/// How to write a list of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServersOutput {
    /// For people.
    Text,
    /// One JSON document.
    Json,
}

const SERVERS_EXAMPLES: &str = "\
Examples:
  refmcp servers
      every server that the configuration files of this folder and of the user name
  refmcp servers --config .vscode/mcp.json
      those of one file
  refmcp servers -o json
      the same for a program to read, with what is wrong with the files";
