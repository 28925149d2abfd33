//! `--audit`: judges what passes while it passes, and reports at the end.

use std::io;
use std::sync::Arc;

use anyhow::Result;
use parking_lot::Mutex;
use refmcp_audit::recording::Event;
use refmcp_audit::report::Reporter;
use refmcp_proto::rule::Level;

use crate::args::{RecordOptions, ReportFormat};
use crate::command::report::{Judged, save};
use crate::ui::output::print_aside;
use crate::ui::style::Paint;

/// The audit of this process. Clones are the same audit.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveAudit(Arc<Mutex<Reporter>>);

impl LiveAudit {
    /// Judges an event, and logs each rule that is found broken: once for each way of breaking it.
    pub(crate) fn observe(&self, event: &Event) {
        let new = {
            let mut reporter = self.0.lock();
            reporter.observe(event);
            reporter.take_new()
        };
        for (rule, role, error) in new {
            let (what, expected) = (error.what, error.expected);
            match rule.level {
                Level::Must | Level::May => {
                    tracing::warn!(rule = rule.id, "the {role} broke a rule: {what}; {expected}");
                }
                Level::Should | Level::Note => {
                    tracing::info!(rule = rule.id, "the {role} did not follow a rule: {what}; {expected}");
                }
            }
        }
    }
}

/// Reports what the audit has found: to the files that were named, or to stderr.
pub(crate) fn report(options: &RecordOptions) -> Result<()> {
    let reporter = std::mem::take(&mut *options.live_audit.0.lock());
    let (report, excerpt) = reporter.finish(None);
    let judged = Judged { report, excerpt };
    for file in &options.report {
        save(file, |format, paint| judged.rendered(format, paint))?;
    }
    if options.report.is_empty() {
        print_aside(&judged.rendered(ReportFormat::Text, Paint::for_stream(&io::stderr(), false))?);
    }
    Ok(())
}
