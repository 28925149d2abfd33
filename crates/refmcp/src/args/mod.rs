//! What can be typed, and what it means.

mod auth;
mod authority;
mod client;
mod command;
mod completion;
mod enterprise;
mod examples;
mod exit;
mod fault;
mod inspector;
mod install;
mod listen;
mod manual;
mod models;
mod resolve;
mod server;
mod server_stderr;
mod shared;
mod store;
mod target;
mod target_name;
mod value;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub(crate) use auth::{AuthCommand, BrowserOptions, GrantType, KeyringAction, LoginOptions};
pub(crate) use authority::{AuthorizationOptions, BuiltinLogin, DpopPolicy, TokenIssuer};
pub(crate) use client::BridgeListenOptions;
use client::ClientWords;
pub(crate) use command::{BridgeSide, ClientCommand, CompletionReference, ListKind};
pub(crate) use completion::{CompletionShell, definition, typed_shared};
pub(crate) use enterprise::EnterpriseOptions;
pub(crate) use exit::{ExitError, ExitReason, UsageError};
use fault::explain;
use inspector::Inspector;
pub(crate) use install::{InstallOptions, ServersOptions, ServersOutput};
pub(crate) use manual::{print_completions, print_manual};
pub(crate) use server::{Policy, Profile, ServeOptions, ServerOptions};
pub(crate) use server_stderr::ServerStderr;
pub(crate) use shared::{OutputFormat, SharedOptions};
pub(crate) use store::{LogQuery, TrustChange, TrustCommand};
pub(crate) use target::{Target, UrlTransport};
pub(crate) use target_name::{TargetName, sha256_hex};
pub(crate) use words::{join_words, split_words};

/// The reference for the Model Context Protocol (MCP).
///
/// refmcp speaks every revision of the protocol. Point your client at it to see every feature exercised, and drive
/// any server with it.
#[derive(Debug, Parser)]
#[command(name = "refmcp", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(flatten)]
    logging: LogOptions,

    #[command(subcommand)]
    command: Command,
}

/// What is logged, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct LogOptions {
    /// What to log to stderr: error, warn, info, debug, trace, or a filter such as `refmcp::calls=info`.
    /// At info, every call is logged, without its arguments.
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

const EXAMPLES: &str = "\
Examples:
  refmcp stdio
      serve the program that started it, as clients do with an entry such as
      { \"mcpServers\": { \"refmcp\": { \"command\": \"refmcp\", \"args\": [\"stdio\"] } } }
  refmcp serve
      listen on http://127.0.0.1:3000/mcp, for any client and every revision
  refmcp stdio --resources ./docs --prompts ./prompts
      the same, with the files of two folders as resources and prompts
  refmcp --log info stdio
      the same, with a line on stderr for every call
  refmcp list tools http://127.0.0.1:3000/mcp
      what that server can do
  refmcp call echo message=hello -- refmcp stdio
      start a server, call one of its tools, and end it";

/// What a command takes is put together only for the one that was typed.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Serve one client over standard input and output.
    #[command(after_help = examples::STDIO)]
    Stdio(ServerOptions),
    /// Serve any number of clients over HTTP: streamable HTTP, HTTP+SSE and WebSocket on one port.
    #[command(after_help = examples::SERVE)]
    Serve(Box<ServeOptions>),
    #[command(flatten)]
    Client(Box<ClientWords>),
    /// Which configured servers may be started and which tools may be called, without asking.
    #[command(after_help = examples::TRUST)]
    Trust {
        #[command(subcommand)]
        change: TrustCommand,
    },
    /// The calls that were made from here.
    #[command(after_help = examples::LOG)]
    Log(LogQuery),
    /// The servers that configuration files name, and which of them may be started.
    Servers(ServersOptions),
    /// Write a server into the configuration of VS Code, Claude Desktop, Claude Code or Cursor, and take it back.
    Install(Box<InstallOptions>),
    /// A script that completes refmcp's words in a shell, names of servers, tools, prompts and resources included.
    #[command(after_help = completion::EXAMPLES)]
    Completions {
        /// Whose script.
        shell: clap_complete::Shell,
    },
    /// How a line may go on, asked by the scripts of `completions`.
    #[command(name = "__complete", hide = true)]
    CompleteLine(completion::LineWords),
    /// The manual page, in troff.
    #[command(after_help = examples::MAN)]
    Man,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Action {
    /// Serve one client over standard input and output.
    Stdio(ServerOptions),
    /// Serve over HTTP.
    Serve(Box<ServeOptions>),
    /// Drive a server.
    Client(ClientCommand, Box<SharedOptions>),
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
    /// Print how a line may go on.
    CompleteLine(CompletionShell, Vec<OsString>),
    /// Print the manual page.
    Man,
}

impl Action {
    /// Whether errors are written as JSON: where results are. The Inspector's flags bring JSON results
    /// and errors as text.
    pub(crate) fn has_json_errors(&self) -> bool {
        match self {
            Self::Client(_, shared) => shared.output != OutputFormat::Text && !shared.text_errors,
            Self::Trust(command) => command.format().is_json(),
            Self::Log(query) => query.format().is_json(),
            Self::Serve(options) => options.output.is_json(),
            Self::Servers(options) => options.output == ServersOutput::Json,
            Self::Install(_) | Self::Stdio(_) | Self::Completions(_) | Self::CompleteLine(..) | Self::Man => {
                false
            }
        }
    }
}

/// Reads the words the process was started with.
///
/// # Errors
///
/// What to exit with: they could not be understood, and it has been said why; or they asked for help, and it has been
/// given.
pub(crate) fn parse() -> Result<(LogOptions, Action), ExitCode> {
    let words: Vec<OsString> = std::env::args_os().collect();
    parse_from(words.clone()).map_err(|fault| {
        let fault = fault::redacted(fault::hinted(fault, &words));
        let wrong = fault.use_stderr();
        if let Err(fault) = fault::print(&fault, &words) {
            // Whoever closed our output does not want to read it.
            tracing::debug!(%fault, "the help was not read");
        }
        if wrong { ExitReason::Usage.into() } else { ExitCode::SUCCESS }
    })
}

fn parse_from(words: impl IntoIterator<Item = OsString>) -> Result<(LogOptions, Action), clap::Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    if words.iter().take_while(|word| *word != "--").any(|word| word == "--cli") {
        let inspector = Inspector::try_parse_from(&words)?;
        let (log, command, shared) = inspector.translate().map_err(|fault| explain(&fault))?;
        return Ok((log, Action::Client(command, Box::new(shared))));
    }
    let mut definition = Args::command();
    let matches = definition.try_get_matches_from_mut(&words)?;
    if let Some(serve) = matches.subcommand_matches("serve") {
        listen::check_together(serve).map_err(|fault| explain(&fault))?;
    }
    let args = Args::from_arg_matches(&matches).map_err(|fault| fault.format(&mut definition))?;
    let action = match args.command {
        Command::Stdio(options) => Action::Stdio(options),
        Command::Serve(options) => Action::Serve(options),
        Command::Client(words) => {
            let (command, shared) = words.resolve().map_err(|fault| explain(&fault))?;
            Action::Client(command, Box::new(shared))
        }
        Command::Trust { change } => Action::Trust(change),
        Command::Log(query) => Action::Log(query),
        Command::Servers(options) => Action::Servers(options),
        Command::Install(options) => Action::Install(options),
        Command::Completions { shell } => Action::Completions(shell),
        Command::CompleteLine(line) => Action::CompleteLine(line.shell, line.words),
        Command::Man => Action::Man,
    };
    Ok((args.logging, action))
}

#[cfg(test)]
mod tests;
