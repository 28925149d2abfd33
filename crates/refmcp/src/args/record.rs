//! Options of all that talks to clients or servers: what passes is recorded and judged.

use std::path::PathBuf;

use super::UsageError;
use super::report::{SavedReport, saved};
use crate::audit::LiveAudit;

// A doc comment would become the description of the command.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RecordOptions {
    /// Write every message and HTTP head in both directions to this file, as JSON lines with times; credentials in heads
    /// are masked, and only you can read it. `refmcp report` reads it.
    #[arg(long, visible_alias = "trace", value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// Judge what passes by every rule of the specification: broken ones are logged at once, and all are reported at the end.
    #[arg(long)]
    pub(crate) audit: bool,

    /// Write the report of the audit to this file instead of stderr, in the format that its name says: .txt, .json, .xml
    /// (JUnit), .sarif, .html or .md; can be repeated.
    #[arg(long, value_name = "FILE", value_parser = saved)]
    pub(crate) report: Vec<SavedReport>,

    /// The auditor; the same for clones of the options.
    #[arg(skip)]
    pub(crate) live_audit: LiveAudit,
}

impl RecordOptions {
    /// Checks the options against each other, once all that follows from others is set.
    pub(super) fn check(&self) -> Result<(), UsageError> {
        match self.report.is_empty() || self.audit {
            true => Ok(()),
            false => Err(UsageError::new("--report is for the report of an audit; add --audit")),
        }
    }
}
