//! `trust` and `log`: decisions and calls that are stored on this machine.

use std::path::PathBuf;

use clap::Subcommand;

use super::OutputFormat;
use super::help::examples;

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Show what has been decided.
    #[command(after_help = examples("refmcp trust list"))]
    List {
        /// The output's format; in JSON, an error is a JSON document on stderr.
        #[arg(long, short = 'o', value_enum, default_value_t = OutputFormat::Text)]
        output: OutputFormat,
        /// The same as --output json.
        #[arg(long, hide = true, conflicts_with = "output")]
        json: bool,
    },
    /// Let a configured server be started, or a tool be called, without asking.
    #[command(after_help = examples("refmcp trust allow"))]
    Allow(TrustChange),
    /// Never start a configured server, or never call a tool.
    #[command(after_help = examples("refmcp trust disable"))]
    Disable(TrustChange),
    /// Forget what has been decided: it is asked again.
    #[command(after_help = examples("refmcp trust revoke"))]
    Revoke(TrustChange),
}

impl TrustCommand {
    pub(crate) fn format(&self) -> OutputFormat {
        match self {
            Self::List { json: true, .. } => OutputFormat::Json,
            Self::List { output, .. } => *output,
            Self::Allow(change) | Self::Disable(change) | Self::Revoke(change) => change.output,
        }
    }
}

/// What a decision is about.
#[derive(Debug, clap::Args)]
#[command(override_usage = "\
refmcp trust allow|disable|revoke [--config <FILE>] <NAME>
       refmcp trust allow|disable|revoke --tool <TOOL> <TARGET>
       refmcp trust allow|disable|revoke [--tool <TOOL>] [--config <FILE>] -- <COMMAND>...")]
pub(crate) struct TrustChange {
    /// The server: a name from a configuration file or, for a tool, also a URL.
    #[arg(value_name = "TARGET", required_unless_present = "command", conflicts_with = "command")]
    pub(crate) target: Option<String>,

    /// One tool of the server, instead of the server itself.
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,

    /// One skill of the server, by the URI of its SKILL.md; its approval can be revoked here.
    #[arg(long, value_name = "URI", conflicts_with = "tool")]
    pub(crate) skill: Option<String>,

    /// The file that names the command; the decision holds for as long as this file stays as it is.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The output's format; in JSON, an error is a JSON document on stderr.
    #[arg(long, short = 'o', value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,

    /// The command that starts the server, with all of its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LogQuery {
    /// Only calls of servers whose URL, command or name contains this.
    #[arg(long, value_name = "TEXT")]
    pub(crate) target: Option<String>,

    /// Only calls of this tool.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,

    /// Only so many, the latest.
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) last: Option<usize>,

    /// The output's format; in JSON, an error is a JSON document on stderr.
    #[arg(long, short = 'o', value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,

    /// The same as --output jsonl.
    #[arg(long, hide = true, conflicts_with = "output")]
    pub(crate) json: bool,
}

impl LogQuery {
    pub(crate) fn format(&self) -> OutputFormat {
        if self.json { OutputFormat::Jsonl } else { self.output }
    }
}
