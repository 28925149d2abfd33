//! Coverage: a rule is judged, or there is a reason why not.

use std::collections::BTreeSet;

use refmcp_audit::auditor::audited_rules;
use refmcp_audit::coverage::not_audited;
use refmcp_proto::rule;

#[test]
fn a_rule_is_judged_or_has_a_reason() {
    let judged: BTreeSet<&str> = audited_rules().map(|rule| rule.id).collect();
    for rule in rule::all() {
        let reason = not_audited(rule);
        assert_ne!(judged.contains(rule.id), reason.is_some(), "{rule}: {reason:?}");
    }
}

#[test]
fn reasons_name_rules_that_exist() {
    for rule in rule::all() {
        let reason = not_audited(rule).unwrap_or_default();
        let is_id = |word: &&str| {
            word.split_once('-').is_some_and(|(family, number)| {
                let is_family = !family.is_empty() && family.bytes().all(|it| it.is_ascii_uppercase());
                is_family && !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit())
            })
        };
        let words = reason.split(|it: char| !it.is_ascii_alphanumeric() && it != '-');
        for id in words.filter(is_id) {
            assert!(rule::find(id).is_some(), "the reason of {rule} names {id}");
        }
    }
}
