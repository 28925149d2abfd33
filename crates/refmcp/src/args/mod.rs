//! The command line: its definition, and the action that the arguments of the process mean.

mod client;
mod error;
mod exit;
mod help;
mod install;
mod record;
mod relay;
mod report;
mod serve;
mod shell_words;
mod target;
mod trust;
mod value;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use url::Url;

pub(crate) use client::{
    AuthCommand, BridgeListenOptions, BridgeSide, BrowserOptions, CheckOptions, ClientCommand,
    EnterpriseOptions, GrantType, KeyringAction, ListKind, LoginOptions, OutputFormat, ReplayOptions,
    ReplayUse, ServerStderr, SessionCommand, SharedOptions, SkillsCommand, TaskCommand, log_level,
};
use client::{ClientArgs, Inspector};
use error::to_clap;
pub(crate) use exit::{ExitError, ExitReason, UsageError, usage};
use help::examples;
pub(crate) use help::{CompletionShell, definition, parse_shared_options, print_completions, print_manual};
pub(crate) use install::{InstallOptions, ServersOptions};
pub(crate) use record::RecordOptions;
pub(crate) use relay::RelayOptions;
pub(crate) use report::{ReportFormat, ReportOptions, SavedReport};
pub(crate) use serve::{
    AuthorizationOptions, BackplaneOptions, BuiltinLogin, DpopPolicy, Policy, ServeOptions, ServerOptions,
    TokenIssuer,
};
pub(crate) use shell_words::split_words;
pub(crate) use target::{Target, TargetName, UrlTransport, sha256_hex};
pub(crate) use trust::{LogQuery, TrustChange, TrustCommand};
pub(crate) use value::pair;

use crate::logging::LogStyle;

/// The reference for the Model Context Protocol (MCP).
///
/// refmcp speaks every revision of the protocol. Point your client at it to see every feature exercised, and drive
/// any server with it.
#[derive(Debug, Parser)]
#[command(name = "refmcp", version, after_help = examples("refmcp"), arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(flatten)]
    logging: LogOptions,

    #[command(subcommand)]
    command: Command,
}

/// The options of the log.
#[derive(Debug, clap::Args)]
pub(crate) struct LogOptions {
    /// What to log to stderr: off, error, warn, info, debug, trace, or a filter such as `refmcp::calls=info`.
    /// At info, every request that is served, or made of a server, is logged, without its arguments.
    #[arg(long, global = true, value_name = "FILTER", default_value = "warn", env = "REFMCP_LOG")]
    pub(crate) log: String,

    /// How to write the log: for people, or one JSON object on each line.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, env = "REFMCP_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of text.
    Text,
    /// Lines of JSON.
    Json,
}

/// `defer`: the options of a command are built only when it is the one that was typed.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Serve one client over standard input and output.
    #[command(after_help = examples("refmcp stdio"))]
    Stdio(Box<ServerOptions>),
    /// Serve any number of clients over HTTP: streamable HTTP, HTTP+SSE and WebSocket on one port.
    #[command(after_help = examples("refmcp serve"))]
    Serve(Box<ServeOptions>),
    #[command(flatten)]
    Client(Box<ClientArgs>),
    /// Pass bytes between a client and a server unchanged, and write down what passes.
    Relay(Box<RelayOptions>),
    /// Say which rules of the specification the parties of a recorded conversation kept, broke and never exercised.
    Report(ReportOptions),
    /// Which configured servers may be started and which tools may be called, without asking.
    #[command(after_help = examples("refmcp trust"))]
    Trust {
        #[command(subcommand)]
        change: TrustCommand,
    },
    /// The calls that were made from here.
    #[command(after_help = examples("refmcp log"))]
    Log(LogQuery),
    /// The servers that configuration files name, and which of them may be started.
    Servers(ServersOptions),
    /// Write a server into the configuration of VS Code, Claude Desktop, Claude Code or Cursor, and take it back.
    Install(Box<InstallOptions>),
    /// A script that completes refmcp's words in a shell, names of servers, tools, prompts and resources included.
    #[command(after_help = examples("refmcp completions"))]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Candidates for the last word of a line, for the scripts of `completions`.
    #[command(name = "__complete", hide = true)]
    CompleteLine(help::LineArgs),
    /// The manual page, in troff.
    #[command(after_help = examples("refmcp man"))]
    Man,
}

/// What the arguments ask for.
#[derive(Debug)]
pub(crate) enum Action {
    /// Serve one client over standard input and output.
    Stdio(Box<ServerOptions>),
    /// Serve over HTTP.
    Serve(Box<ServeOptions>),
    /// Drive a server.
    Client(ClientCommand, Box<SharedOptions>),
    /// Pass bytes between a client and a server.
    Relay(Box<RelayOptions>, Option<Url>),
    /// Judge recorded conversations.
    Report(ReportOptions),
    /// Show or change what is trusted.
    Trust(TrustCommand),
    /// Show the calls that were made.
    Log(LogQuery),
    /// Show the servers that configuration files name.
    Servers(ServersOptions),
    /// Write a server into another program's configuration.
    Install(Box<InstallOptions>),
    /// Print a script for a shell.
    Completions(clap_complete::Shell),
    /// Print candidates for the last word of a line.
    CompleteLine(CompletionShell, Vec<OsString>),
    /// Print the manual page.
    Man,
}

impl Action {
    /// How the log is written: for operators where clients are served, for the user of a command elsewhere.
    pub(crate) fn log_style(&self) -> LogStyle {
        match self {
            Self::Stdio(_) | Self::Serve(_) | Self::Client(ClientCommand::Bridge { .. }, _) => {
                LogStyle::Lines
            }
            _ => LogStyle::Messages,
        }
    }

    /// How what passes is recorded and judged, where anything passes.
    pub(crate) fn record_options(&self) -> Option<&RecordOptions> {
        match self {
            Self::Stdio(options) => Some(&options.record),
            Self::Serve(options) => Some(&options.server.record),
            Self::Client(_, shared) => Some(&shared.record),
            Self::Relay(options, _) => Some(&options.record),
            _ => None,
        }
    }

    /// Whether errors are written as JSON: where results are. With the Inspector's flags, results are JSON and errors text.
    pub(crate) fn has_json_errors(&self) -> bool {
        match self {
            Self::Client(_, shared) => shared.output != OutputFormat::Text && !shared.text_errors,
            Self::Trust(command) => command.format().is_json(),
            Self::Log(query) => query.format().is_json(),
            Self::Serve(options) => options.output.is_json(),
            Self::Servers(options) => options.output.is_json(),
            Self::Report(options) => options.output.is_json(),
            Self::Install(options) => options.output.is_json(),
            Self::Stdio(_) | Self::Relay(..) | Self::Completions(_) | Self::CompleteLine(..) | Self::Man => {
                false
            }
        }
    }
}

/// Parses the arguments of the process.
///
/// # Errors
///
/// The exit code, when the arguments were not understood or asked for help; either has been printed.
pub(crate) fn parse() -> Result<(LogOptions, Action), ExitCode> {
    // Usages name the program as documents do, however it was started.
    let words: Vec<OsString> = std::iter::once("refmcp".into()).chain(std::env::args_os().skip(1)).collect();
    parse_from(words.clone()).map_err(|error| {
        let error = error::redacted(error::hinted(error, &words));
        let is_usage_error = error.use_stderr();
        if let Err(error) = error::print(&error, &words) {
            // Output that was closed is not read.
            tracing::debug!(%error, "the help was not read");
        }
        if is_usage_error { ExitReason::Usage.into() } else { ExitCode::SUCCESS }
    })
}

fn parse_from(words: impl IntoIterator<Item = OsString>) -> Result<(LogOptions, Action), clap::Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    if words.iter().take_while(|word| *word != "--").any(|word| word == "--cli") {
        let inspector = Inspector::try_parse_from(&words)?;
        let (log, command, shared) = inspector.translate().map_err(|error| to_clap(&error))?;
        return Ok((log, Action::Client(command, Box::new(shared))));
    }
    let mut definition = Args::command();
    let matches = definition.try_get_matches_from_mut(&words)?;
    if let Some(serve) = matches.subcommand_matches("serve") {
        serve::check_together(serve).map_err(|error| to_clap(&error))?;
    }
    let args = Args::from_arg_matches(&matches).map_err(|error| error.format(&mut definition))?;
    let action = match args.command {
        Command::Stdio(options) => Action::Stdio(Box::new(options.completed())),
        Command::Serve(mut options) => {
            options.server = options.server.completed();
            Action::Serve(options)
        }
        Command::Client(args) => {
            let (command, shared) = args.resolve().map_err(|error| to_clap(&error))?;
            shared.check_roots().map_err(|error| to_clap(&error))?;
            Action::Client(command, Box::new(shared))
        }
        Command::Relay(options) => {
            let url = options.server_url().map_err(|error| to_clap(&error))?;
            Action::Relay(options, url)
        }
        Command::Report(options) => {
            options.check().map_err(|error| to_clap(&error))?;
            Action::Report(options)
        }
        Command::Trust { change } => Action::Trust(change),
        Command::Log(query) => Action::Log(query),
        Command::Servers(options) => Action::Servers(options),
        Command::Install(options) => Action::Install(options),
        Command::Completions { shell } => Action::Completions(shell),
        Command::CompleteLine(line) => Action::CompleteLine(line.shell, line.words),
        Command::Man => Action::Man,
    };
    action.record_options().map_or(Ok(()), RecordOptions::check).map_err(|error| to_clap(&error))?;
    Ok((args.logging, action))
}

#[cfg(test)]
mod tests;
