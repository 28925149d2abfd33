//! Coverage: of each rule of the catalogue that the auditor does not judge, why.

mod features;
mod messages;
mod transports;

use refmcp_proto::rule::Rule;

/// Rules by their ids, and the reason that they have in common.
type NotAudited = (&'static [&'static str], &'static str);

/// Why a rule is not judged by what passes, in one sentence for people.
///
/// Every rule that the auditor does not judge has a reason.
pub fn not_audited(rule: &Rule) -> Option<&'static str> {
    let reasons = [messages::NOT_AUDITED, transports::NOT_AUDITED, features::NOT_AUDITED];
    reasons.into_iter().flatten().find(|(ids, _)| ids.contains(&rule.id)).map(|(_, why)| *why)
}
