//! `report`: which recordings are judged, and in which formats the verdict is written.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use refmcp_audit::verdict::Role;

use super::help::examples;
use super::value::{NamedValue, one_of};
use super::{UsageError, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = examples("refmcp report"))]
pub(crate) struct ReportOptions {
    /// Recordings, as `--record` writes them; `-` is standard input. Several are judged together. A report in JSON is read
    /// in their place.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Judge only this party.
    #[arg(long, value_name = "PARTY", value_parser = one_of(PARTIES))]
    pub(crate) party: Option<Role>,

    /// Show what differs from an earlier report in JSON, or from the report on another recording.
    #[arg(long, value_name = "FILE")]
    pub(crate) diff: Option<PathBuf>,

    /// Also write the report to a file that only you can read, in the format that its name says: .txt, .json, .xml (JUnit),
    /// .sarif, .html or .md; can be repeated.
    #[arg(long, value_name = "FILE", value_parser = saved)]
    pub(crate) save: Vec<SavedReport>,

    /// The output's format; in JSON, an error is a JSON document on stderr.
    #[arg(long, short = 'o', value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) output: ReportFormat,
}

/// The parties of a conversation.
const PARTIES: &[NamedValue<Role>] =
    &[("client", "The client", Role::Client), ("server", "The server", Role::Server)];

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people.
    Text,
    /// One JSON document.
    Json,
    /// The same on one line.
    Jsonl,
    /// JUnit XML: a test case for each rule.
    Junit,
    /// SARIF 2.1.0: a result for each way in which a rule was broken.
    Sarif,
    /// A page without scripts: the rules, and the messages that show what happened.
    Html,
    /// Markdown, to be pasted into an issue.
    Markdown,
}

/// A file that a report is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedReport {
    pub(crate) path: PathBuf,
    pub(crate) format: ReportFormat,
}

impl ReportOptions {
    /// Refuses formats that comparisons do not have, and what would be read twice.
    pub(super) fn check(&self) -> Result<(), UsageError> {
        check_comparison(self.diff.is_some(), &self.save, self.output)?;
        let read = self.files.iter().chain(&self.diff).filter(|file| *file == Path::new("-")).count();
        if read > 1 {
            return Err(UsageError::new("standard input can be read once"));
        }
        Ok(())
    }
}

/// Refuses formats that comparisons do not have.
pub(super) fn check_comparison(
    compares: bool,
    saved: &[SavedReport],
    output: ReportFormat,
) -> Result<(), UsageError> {
    let mut formats = saved.iter().map(|saved| saved.format).chain([output]);
    match formats.find(|format| compares && !format.has_comparison()) {
        Some(format) => {
            let name =
                format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
            Err(usage!("--diff is written as text, json, jsonl or markdown, and not as {name}"))
        }
        None => Ok(()),
    }
}

impl ReportFormat {
    /// Whether errors are JSON as well.
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Jsonl | Self::Sarif)
    }

    /// Whether what differs between two reports is written in it.
    fn has_comparison(self) -> bool {
        matches!(self, Self::Text | Self::Json | Self::Jsonl | Self::Markdown)
    }
}

pub(super) fn saved(word: &str) -> Result<SavedReport, UsageError> {
    let path = PathBuf::from(word);
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default().to_ascii_lowercase();
    let format = match &*extension {
        "txt" => ReportFormat::Text,
        "json" => ReportFormat::Json,
        "xml" => ReportFormat::Junit,
        "sarif" => ReportFormat::Sarif,
        "html" | "htm" => ReportFormat::Html,
        "md" => ReportFormat::Markdown,
        _ => {
            return Err(usage!(
                "{word}: the name of a report ends with .txt, .json, .xml, .sarif, .html or .md"
            ));
        }
    };
    Ok(SavedReport { path, format })
}
