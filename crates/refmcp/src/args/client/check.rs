//! `check`: which rules a server is checked by, and what is known of it.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use refmcp_check::probe_names;
use refmcp_proto::revision::Revision;
use refmcp_proto::rule::{self, Rule};

use crate::args::report::{check_comparison, saved};
use crate::args::value::{NamedValue, one_of, timeout};
use crate::args::{ReportFormat, SavedReport, UrlTransport, UsageError};

// What a check does. No doc comment: it would become the description of the command.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Check")]
pub(crate) struct CheckOptions {
    /// The revision to check: the date of one, or all that the server speaks; can be repeated.
    #[arg(long, value_name = "REVISION|all", value_parser = revisions, default_value = "all")]
    revision: Vec<Revisions>,

    /// The transport to a server at an address, where the URL does not tell it.
    #[arg(long, value_name = "TRANSPORT", value_parser = one_of(TRANSPORTS))]
    pub(crate) transport: Option<UrlTransport>,

    /// Judge these rules alone, by their ids: `--only RPC-05,TOOL-06`.
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = known_rule)]
    pub(crate) only: Vec<&'static Rule>,

    /// Leave these rules out, by their ids.
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = known_rule)]
    pub(crate) skip: Vec<&'static Rule>,

    /// Make these probes alone, by the names that violations have.
    #[arg(long, value_name = "PROBE", value_delimiter = ',', value_parser = PossibleValuesParser::new(probe_names()), hide_possible_values = true)]
    pub(crate) probe: Vec<String>,

    /// Call tools too that do not say that they only read.
    #[arg(long)]
    pub(crate) allow_destructive: bool,

    /// A file of rules that the server is known to break, one a line: only others make the check fail, and those that it keeps
    /// by now do.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,

    /// Write what is broken to the file of --baseline, instead of comparing with it.
    #[arg(long, requires = "baseline")]
    pub(crate) update_baseline: bool,

    /// How many seconds a single response is waited for.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = timeout)]
    pub(crate) response_timeout: Duration,

    /// How many probes run at the same time.
    #[arg(long, value_name = "COUNT", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) jobs: u8,

    /// Show skipped and kept rules too.
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,

    /// Show what differs from an earlier report in JSON; only what is newly broken makes the check fail.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) diff: Option<PathBuf>,

    /// Also write the report to a file that only you can read, in the format that its name says: .txt, .json, .xml (JUnit),
    /// .sarif, .html or .md; can be repeated.
    #[arg(long, value_name = "FILE", value_parser = saved, help_heading = "Output")]
    pub(crate) save: Vec<SavedReport>,

    /// The output's format; in JSON, an error is a JSON document on stderr.
    #[arg(long, short = 'o', value_enum, default_value_t = ReportFormat::Text, help_heading = "Output")]
    pub(crate) output: ReportFormat,
}

/// Transports to a server at an address.
const TRANSPORTS: &[NamedValue<UrlTransport>] = &[
    ("http", "Streamable HTTP", UrlTransport::StreamableHttp),
    ("sse", "HTTP+SSE", UrlTransport::Sse),
    ("websocket", "WebSocket", UrlTransport::WebSocket),
];

/// One revision, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Revisions(Option<Revision>);

impl CheckOptions {
    /// Refuses formats that comparisons do not have.
    pub(super) fn check(&self) -> Result<(), UsageError> {
        check_comparison(self.diff.is_some(), &self.save, self.output)
    }

    /// The revisions to check; none for all that the server speaks.
    pub(crate) fn revisions(&self) -> Vec<Revision> {
        let named: Option<Vec<Revision>> = self.revision.iter().map(|revision| revision.0).collect();
        named.unwrap_or_default()
    }
}

fn revisions(text: &str) -> Result<Revisions, String> {
    if text == "all" {
        return Ok(Revisions(None));
    }
    let known = Revision::ALL.map(Revision::as_str).join(", ");
    text.parse()
        .map(|revision| Revisions(Some(revision)))
        .map_err(|_| format!("expected all, or one of {known}"))
}

fn known_rule(id: &str) -> Result<&'static Rule, String> {
    rule::find(id).ok_or_else(|| "no rule has this id; docs/rules.md lists them".to_owned())
}
