//! Reporting findings, as both engines do: each text once, and only about rules that the peer's revision has.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::finding::{Finding, Findings};
use crate::revision::Revision;
use crate::rule::Rule;

/// An engine that reports what its peer does wrong.
pub(super) trait ReportFindings {
    /// What the engine gives out.
    type Output: From<Finding>;

    /// The revision that the peer speaks, once it is known.
    fn peer_revision(&self) -> Option<Revision>;

    /// What was found so far, and where new findings go.
    fn reported(&mut self) -> (&mut Findings, &mut VecDeque<Self::Output>);

    /// Reports that the peer broke a rule of its revision.
    fn report(
        &mut self,
        rule: &'static Rule,
        what: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
    ) {
        let finding = Finding::new(rule, what, expected);
        let revision = self.peer_revision();
        debug_assert!(finding.is_of(revision), "{rule} is no rule of {revision:?}: {finding}");
        self.report_if_ruled(finding);
    }

    /// Reports a finding if the peer's revision has its rule. A peer cannot break a rule of another revision.
    fn report_if_ruled(&mut self, finding: Finding) {
        if !finding.is_of(self.peer_revision()) {
            return;
        }
        let (findings, outputs) = self.reported();
        if findings.record(&finding) {
            outputs.push_back(finding.into());
        }
    }
}
