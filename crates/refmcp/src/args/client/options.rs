//! The options that all commands which drive a server share: connection, consent, output.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use refmcp_client::VersionPolicy;
use refmcp_proto::model::LogLevel;

use crate::args::value::{Header, header, pair, timeout};
use crate::args::{RecordOptions, UsageError, usage};

// No doc comment: it would become the description of every command that flattens this.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct SharedOptions {
    /// A file that explains the names of servers: mcp.json, .vscode/mcp.json or claude_desktop_config.json.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The protocol version to speak: the date of one, legacy (any with sessions), modern (any without), or auto.
    #[arg(long, alias = "era", default_value = "auto", value_name = "VERSION")]
    pub(crate) protocol_version: VersionPolicy,

    /// How many seconds the server is waited for in the whole command, from the connection to the last answer;
    /// progress of a call begins them anew.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = timeout)]
    pub(crate) timeout: Duration,

    /// How many seconds the server is waited for in the whole command, whatever progress there is.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = timeout)]
    pub(crate) total_timeout: Duration,

    /// A file of certificates in PEM that are trusted besides those of the system, for https, wss and logins; can be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Vec<PathBuf>,

    /// A header field for every HTTP request; can be repeated.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) headers: Vec<Header>,

    /// A variable in the environment of a server that is started; can be repeated.
    #[arg(long = "env", short = 'e', value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) env: Vec<(String, String)>,

    /// A member of `_meta` in every request; can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) meta: Vec<(String, String)>,

    /// The folder in which a server is started.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Whether the stderr of a server that is started is shown, hidden or appended to a file. When the server fails, its
    /// last lines are shown in any case.
    #[arg(long, value_name = "show|hide|FILE", default_value = "show")]
    pub(crate) server_stderr: ServerStderr,

    #[command(flatten)]
    pub(crate) record: RecordOptions,

    /// Tell on stderr of every step of a login; with --output json, as a line of JSON.
    #[arg(long)]
    pub(crate) explain: bool,

    /// Do not ask before a tool runs or a configured server is started, and accept forms of the server with their
    /// defaults.
    #[arg(long, short = 'y', help_heading = "Questions")]
    pub(crate) yes: bool,

    /// A command that answers sampling requests of the server: it reads the request and writes the message.
    #[arg(long, value_name = "COMMAND", help_heading = "Questions")]
    pub(crate) sampler: Option<String>,

    /// The model that the server's sampling requests should name, where the server knows models.
    #[arg(long, value_name = "NAME", help_heading = "Questions")]
    pub(crate) model: Option<String>,

    /// A root: a folder that the server may know about; can be repeated.
    #[arg(long = "root", value_name = "DIR", help_heading = "Questions")]
    pub(crate) roots: Vec<PathBuf>,

    /// Whether the roots capability is declared even without roots, since some may be added later.
    #[arg(skip)]
    pub(crate) roots_may_come: bool,

    /// Whether the client declares that it shows apps: some servers offer them to no other.
    #[arg(skip)]
    pub(crate) shows_apps: bool,

    /// The least severe log messages the server should send.
    #[arg(long, value_name = "LEVEL", value_parser = log_level(), help_heading = "Output")]
    pub(crate) log_level: Option<LogLevel>,

    /// The output's format, which most commands take by `OutputOptions`, and others by formats of their own.
    #[arg(skip)]
    pub(crate) output: OutputFormat,

    /// Whether errors are text although results are JSON.
    #[arg(skip)]
    pub(crate) text_errors: bool,

    /// Do not use colours, even on a terminal.
    #[arg(long, help_heading = "Output")]
    pub(crate) no_color: bool,

    /// Leave the arguments of calls out of the log of calls and the history of the shell.
    #[arg(long, env = "REFMCP_MASK_ARGUMENTS", value_parser = clap::builder::FalseyValueParser::new(), help_heading = "Output")]
    pub(crate) mask_arguments: bool,
}

impl SharedOptions {
    /// The default of `--total-timeout`.
    pub(crate) const TOTAL_TIMEOUT: Duration = Duration::from_secs(600);

    /// Whether every root is a folder; checked when a command runs, and not when its line is completed.
    pub(in crate::args) fn check_roots(&self) -> Result<(), UsageError> {
        match self.roots.iter().find(|root| !root.is_dir()) {
            Some(root) if root.exists() => Err(usage!("--root {}: it is no folder", root.display())),
            Some(root) => Err(usage!("--root {0}: there is no folder {0}", root.display())),
            None => Ok(()),
        }
    }
}

/// Headers, variables and members of `_meta` can be secrets.
impl fmt::Debug for SharedOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedOptions")
            .field("protocol_version", &self.protocol_version)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

// The shared options, and the format of the output. No doc comment: it would become a description.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct OutputOptions {
    #[command(flatten)]
    shared: SharedOptions,

    /// The output's format; in JSON, an error is a JSON document on stderr.
    #[arg(long, short = 'o', value_enum, default_value_t = OutputFormat::Text, help_heading = "Output")]
    output: OutputFormat,
}

impl OutputOptions {
    pub(super) fn resolve(self) -> SharedOptions {
        SharedOptions { output: self.output, ..self.shared }
    }
}

/// The format of a command's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// One JSON document on each line; from a server, every message.
    Jsonl,
}

impl OutputFormat {
    /// Whether errors are JSON as well.
    pub(crate) fn is_json(self) -> bool {
        self != Self::Text
    }
}

/// The destination of a server's stderr. Its last lines are part of the error when it fails.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ServerStderr {
    /// To our own.
    #[default]
    Show,
    /// Nowhere.
    Hide,
    /// To the end of this file.
    File(PathBuf),
}

impl FromStr for ServerStderr {
    type Err = Infallible;

    /// A file that is called like one of the words is written with its folder: `./hide`.
    fn from_str(word: &str) -> Result<Self, Infallible> {
        Ok(match word {
            "show" => Self::Show,
            "hide" => Self::Hide,
            file => Self::File(file.into()),
        })
    }
}

/// Log levels by their names in the protocol.
pub(crate) fn log_level() -> impl TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(LogLevel::ALL.map(LogLevel::as_str)).try_map(|name| name.parse::<LogLevel>())
}
