//! `replay`: which recording is used again, and how.

use std::path::PathBuf;

use refmcp_client::observer::Side;

use crate::args::value::{NamedValue, host_name, one_of, web_origin};
use crate::args::{ReportFormat, Target, UsageError, usage};

// What is done with a recording. No doc comment: it would become the description of the command.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Replay")]
pub(crate) struct ReplayOptions {
    /// Answer clients as the recorded server did, over HTTP, HTTP+SSE and WebSocket at this address.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:3000", conflicts_with_all = ["stdio", "diff"])]
    serve: Option<String>,

    /// Answer the process that started this one as the recorded server did, over standard input and output.
    #[arg(long, conflicts_with = "diff")]
    stdio: bool,

    /// Show what differs in another recording.
    #[arg(long, value_name = "FILE")]
    diff: Option<PathBuf>,

    /// Use only connections that this side recorded: a bridge records both, that with its client as the server.
    #[arg(long, value_name = "SIDE", value_parser = one_of(SIDES))]
    pub(crate) side: Option<Side>,

    /// A JSON pointer to a member of messages that does not count where they are compared, such as /result/content/0/text; *
    /// stands for any name or index; can be repeated.
    #[arg(long, value_name = "POINTER", value_parser = pointer)]
    pub(crate) ignore: Vec<String>,

    /// A further name under which clients may address what --serve serves; can be repeated.
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    pub(crate) allow_host: Vec<String>,

    /// A further web origin whose pages may use what --serve serves; can be repeated.
    #[arg(long, value_name = "ORIGIN", value_parser = web_origin)]
    pub(crate) allow_origin: Vec<String>,

    /// The output's format: text, json, jsonl; in JSON, an error is a JSON document on stderr.
    #[arg(long, short = 'o', value_enum, default_value_t = ReportFormat::Text, help_heading = "Output")]
    pub(crate) output: ReportFormat,
}

/// The sides of a connection, one of which recorded it.
const SIDES: &[NamedValue<Side>] =
    &[("client", "The client, or a relay", Side::Client), ("server", "The server", Side::Server)];

/// What is done with a recording.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ReplayUse {
    /// Its client is replayed against a server.
    Client(Target),
    /// Its server is replayed at an address: a host and a port.
    Serve(String, u16),
    /// Its server is replayed over standard input and output.
    Stdio,
    /// It is compared with another recording.
    Diff(PathBuf),
}

impl ReplayOptions {
    /// What is to be done, with the target where there is one.
    pub(super) fn resolve(&self, target: Option<Target>) -> Result<ReplayUse, UsageError> {
        check_format(self.output)?;
        let is_open = !self.allow_host.is_empty() || !self.allow_origin.is_empty();
        if is_open && self.serve.is_none() {
            return Err(UsageError::new("--allow-host and --allow-origin are for clients of --serve"));
        }
        let other = match (&self.serve, self.stdio, &self.diff) {
            (Some(address), ..) => Some(serve_address(address)?),
            (None, true, _) => Some(ReplayUse::Stdio),
            (None, false, Some(file)) => Some(ReplayUse::Diff(file.clone())),
            (None, false, None) => None,
        };
        match (target, other) {
            (Some(target), None) => Ok(ReplayUse::Client(target)),
            (None, Some(other)) => Ok(other),
            (Some(target), Some(_)) => Err(usage!(
                "a server is replayed against, or --serve, --stdio or --diff is given; not both: {target}"
            )),
            (None, None) => Err(UsageError::new(
                "missing: the server to replay against (a URL, a configured name, or a command after `--`), or --serve, \
                 --stdio or --diff FILE",
            )),
        }
    }
}

/// Comparisons of messages have no Markdown and nothing for code scanning.
fn check_format(output: ReportFormat) -> Result<(), UsageError> {
    match output {
        ReportFormat::Text | ReportFormat::Json | ReportFormat::Jsonl => Ok(()),
        _ => Err(UsageError::new("what differs is written as text, json or jsonl")),
    }
}

/// A host and a port, or one of them.
fn serve_address(word: &str) -> Result<ReplayUse, UsageError> {
    let wrong = || usage!("--serve {word}: expected an address such as 127.0.0.1:3000");
    if let Ok(port) = word.parse() {
        return Ok(ReplayUse::Serve("127.0.0.1".to_owned(), port));
    }
    let (host, port) = word.rsplit_once(':').ok_or_else(wrong)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match port.parse() {
        Ok(port) if !host.is_empty() && !host.contains('/') => Ok(ReplayUse::Serve(host.to_owned(), port)),
        _ => Err(wrong()),
    }
}

fn pointer(text: &str) -> Result<String, String> {
    match text.starts_with('/') {
        true => Ok(text.to_owned()),
        false => Err("a JSON pointer begins with /, such as /result/content/0/text".to_owned()),
    }
}
