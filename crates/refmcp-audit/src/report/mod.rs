//! Reports: the verdicts of an audit or of a check, for people and for programs.
//!
//! A [`Reporter`] reads recordings and makes a [`Report`], which is also what is written as JSON and read back; everything else is
//! written from it. [`Report::of_check`] makes one of what was found out about a server that was checked.
//!
//! | function | what it writes |
//! |---|---|
//! | [`text`] | text for a terminal, in the colours of the caller |
//! | [`Report::to_json`], [`Report::from_json`] | the report itself; the shape has a version |
//! | [`junit`] | JUnit XML: a test case for each rule |
//! | [`sarif`] | SARIF 2.1.0: a result for each violation |
//! | [`markdown`] | Markdown, to be pasted into an issue |
//! | [`html`] | one page without scripts, with the conversation beside the rules |
//! | [`Difference`] | what differs between two reports |
//!
//! What peers wrote is shown with control characters and turned directions made visible, and its size is limited: each text says
//! what it leaves out.
//!
//! ```
//! use refmcp_audit::report::{Conclusion, Reporter};
//!
//! let recording = r#"
//!     {"at":1,"event":"opened","connection":1,"side":"server","transport":"stdio","peer":""}
//!     {"at":2,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":7,"result":{}}}
//! "#;
//! let mut reporter = Reporter::default();
//! reporter.read("session.jsonl", recording.as_bytes())?;
//! let (report, _) = reporter.finish(None);
//! assert_eq!(report.conclusion, Conclusion::Broken);
//! let violation = &report.broken().next().unwrap().1.violations[0];
//! assert_eq!(violation.evidence.as_ref().unwrap().line, 3);
//! # Ok::<(), refmcp_audit::recording::ReadError>(())
//! ```

mod count;
mod difference;
mod excerpt;
mod html;
mod junit;
mod markdown;
mod markup;
mod model;
mod reporter;
mod rule;
mod sarif;
mod text;

pub use count::Count;
pub use difference::{Change, Difference};
pub use excerpt::Excerpt;
pub use html::html;
pub use junit::junit;
pub use markdown::{difference_markdown, markdown};
pub use model::{
    CheckedServer, ClientStepReport, Conclusion, FeatureReport, JudgementReport, RecordingFile, Report,
    ReportError, Score,
};
pub use reporter::Reporter;
pub use rule::{EvidenceReport, ExchangeReport, RuleReport, ViolationReport};
pub use sarif::sarif;
pub use text::{Tone, difference_text, text};

use crate::auditor::Support;
use crate::verdict::Role;
pub use crate::verdict::RuleOutcome;

/// A number with its noun.
fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// How often a violation happened and in which revisions, to be put behind it.
fn times(violation: &ViolationReport) -> String {
    let revisions = match &*violation.revisions {
        [] => String::new(),
        some => format!(" in {}", some.join(", ")),
    };
    let count = if violation.count > 1 { format!("{} times", violation.count) } else { String::new() };
    match format!("{count}{revisions}").trim() {
        "" => String::new(),
        some => format!(" ({some})"),
    }
}

/// What was seen of a feature, in words.
fn support(support: Option<Support>) -> String {
    support.map_or("-".to_owned(), |support| support.to_string())
}

/// The parties that a report has verdicts on, with the rules of each.
fn by_party(rules: &[RuleReport]) -> impl Iterator<Item = (Role, Vec<&RuleReport>)> {
    let of = |role: Role| (role, rules.iter().filter(move |rule| rule.party == role).collect::<Vec<_>>());
    [Role::Client, Role::Server].map(of).into_iter().filter(|(_, rules)| !rules.is_empty())
}
