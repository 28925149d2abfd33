//! The options of the commands that show and change what is kept on this machine.

use std::path::PathBuf;

use clap::Subcommand;

// What to do with what is trusted.
#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Show what has been decided.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let a configured server be started, or a tool be called, without asking.
    Allow(TrustChange),
    /// Never start a configured server, or never call a tool.
    Disable(TrustChange),
    /// Forget what has been decided: it is asked again.
    Revoke(TrustChange),
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

    /// The file that names the command; the decision holds for as long as this file stays as it is.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The command that starts the server, with all of its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

// Which calls to show.
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

    /// One JSON object on each line, as they are kept.
    #[arg(long)]
    pub(crate) json: bool,
}
