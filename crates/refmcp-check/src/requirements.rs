//! The rules that a revision is scored by. The list, `requirements.txt`, is frozen: a rule that comes into the catalogue later is judged and shown, and
//! fails no server until it is in the list.

use refmcp_proto::revision::Revision;
use refmcp_proto::rule::{self, Rule};

/// The rules that servers are scored by in a revision, in the order of the catalogue.
pub fn requirements(revision: Revision) -> impl Iterator<Item = &'static Rule> {
    rule::all().filter(move |rule| is_required(rule, revision))
}

/// Whether servers are scored by a rule in a revision.
pub(crate) fn is_required(rule: &Rule, revision: Revision) -> bool {
    lines().any(|(id, mut revisions)| id == rule.id && revisions.any(|it| it == revision.as_str()))
}

/// Whether a rule is about this transport, or about any. WebSocket is in no revision, and has none of its own.
pub(crate) fn is_of_transport(rule: &Rule, transport: &str) -> bool {
    let (area, _) = rule.id.split_once('-').unwrap_or_default();
    match area {
        "STDIO" => transport == "stdio",
        "HTTP" | "MHTTP" => transport == "http",
        "SSE" => transport == "http+sse",
        "AUTH" => matches!(transport, "http" | "http+sse"),
        _ => true,
    }
}

/// The ids of rules, each with its revisions.
fn lines() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    include_str!("requirements.txt").lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use refmcp_audit::auditor::audited_rules;
    use refmcp_audit::verdict::Role;
    use refmcp_proto::rule::Level;

    use super::*;
    use crate::checked_rules;

    #[test]
    fn the_lists_have_rules_and_revisions_that_exist() {
        for (id, mut revisions) in lines() {
            assert!(rule::find(id).is_some(), "{id}");
            assert!(revisions.all(|it| it.parse::<Revision>().is_ok()), "{id}");
        }
    }

    #[test]
    fn requirements_are_judged_and_demanded_of_servers() {
        let judged: BTreeSet<&str> = audited_rules().chain(checked_rules()).map(|rule| rule.id).collect();
        for revision in Revision::ALL {
            for rule in requirements(revision) {
                let demanded = matches!(rule.level, Level::Must | Level::May);
                assert!(demanded && Role::Server.is_bound_by(rule), "{revision} {rule}");
                assert!(rule.revisions.contains(revision) && judged.contains(rule.id), "{revision} {rule}");
            }
        }
    }
}
