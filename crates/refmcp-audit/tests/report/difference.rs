//! What differs between two reports.

use refmcp_audit::report::{Difference, difference_markdown, difference_text};

use crate::support::{BROKEN, GOOD, report};

fn ids(changes: &[refmcp_audit::report::Change]) -> Vec<&str> {
    changes.iter().map(|change| &*change.id).collect()
}

#[test]
fn what_is_broken_now_and_was_not_before_is_new() {
    let (good, broken) = (report(GOOD), report(BROKEN));
    let worse = Difference::between(&good, &broken);
    assert_eq!(ids(&worse.newly_broken), ["RPC-05"]);
    assert!(worse.has_new_broken_musts());
    let better = Difference::between(&broken, &good);
    assert_eq!((ids(&better.newly_broken), ids(&better.no_longer_broken)), (vec![], vec!["RPC-05"]));
    assert!(!better.has_new_broken_musts());
    let same = Difference::between(&broken, &broken);
    assert_eq!((ids(&same.newly_broken), ids(&same.still_broken)), (vec![], vec!["RPC-05"]));
}

#[test]
fn another_way_to_break_a_rule_is_new() {
    let broken = report(BROKEN);
    let mut before = broken.clone();
    for rule in before.judgements.iter_mut().flat_map(|judgement| &mut judgement.rules) {
        rule.violations.iter_mut().for_each(|violation| violation.what = "in another way".to_owned());
    }
    let difference = Difference::between(&before, &broken);
    assert_eq!(ids(&difference.newly_broken), ["RPC-05"]);
    assert_eq!(difference.newly_broken[0].what, ["a response to no request"]);
}

#[test]
fn a_rule_that_is_broken_in_another_revision_is_new() {
    let in_revisions = |revisions: &[&str]| {
        let mut report = report(BROKEN);
        for rule in report.judgements.iter_mut().flat_map(|judgement| &mut judgement.rules) {
            for violation in &mut rule.violations {
                violation.revisions = revisions.iter().map(|&it| it.to_owned()).collect();
            }
        }
        report
    };
    let (one, two) = (in_revisions(&["2025-06-18"]), in_revisions(&["2025-06-18", "2025-11-25"]));
    let worse = Difference::between(&one, &two);
    assert_eq!(ids(&worse.newly_broken), ["RPC-05"]);
    assert_eq!(worse.newly_broken[0].what, ["a response to no request (2025-11-25)"]);
    let better = Difference::between(&two, &one);
    assert_eq!((ids(&better.newly_broken), ids(&better.still_broken)), (vec![], vec!["RPC-05"]));
}

#[test]
fn names_and_transports_of_parties_do_not_count() {
    let broken = report(BROKEN);
    let other = report(&BROKEN.replace("\"tests\"", "\"renamed\"").replace("stdio", "websocket"));
    let difference = Difference::between(&broken, &other);
    assert_eq!((ids(&difference.newly_broken), ids(&difference.still_broken)), (vec![], vec!["RPC-05"]));
}

#[test]
fn what_is_no_longer_exercised_is_said() {
    let difference = Difference::between(&report(GOOD), &report(""));
    assert!(ids(&difference.no_longer_exercised).contains(&"RPC-01"));
    assert!(difference.summary().starts_with("Nothing was judged"));
}

#[test]
fn a_comparison_is_text_and_markdown() {
    let difference = Difference::between(&report(GOOD), &report(BROKEN));
    let text = difference_text(&difference, |_, text| text.to_owned());
    assert!(
        text.starts_with("Newly broken: 1 rule\n  RPC-05 (must, client)\n    broken, before kept\n"),
        "{text}"
    );
    assert!(text.contains("\n    - a response to no request\n"), "{text}");
    assert!(
        text.ends_with(
            "1 rule newly broken, 1 of them demanded by the specification; 0 still broken, 0 no longer.\n"
        ),
        "{text}"
    );
    let markdown = difference_markdown(&difference);
    assert!(markdown.contains("\n## Newly broken\n\n- **RPC-05** (must, client): "), "{markdown}");
}
