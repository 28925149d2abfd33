//! `docs/rules.md` has the catalogue of rules, and of each what judges it or why nothing does; `cargo xtask rules-page --update`
//! writes it.

#![allow(clippy::disallowed_methods, reason = "a page is compared with a file")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use refmcp_audit::auditor::audited_rules;
use refmcp_audit::coverage::not_audited;
use refmcp_audit::verdict::Role;
use refmcp_check::checked_rules;
use refmcp_proto::rule::{self, Level, Rule};

const INTRODUCTION: &str = "\
# Rules

What the specification demands of clients and servers, in sentences of this project; the ids are this project's too, and link to
the specification. Findings (in the log, in the metric `refmcp_findings_total`, in the tool `about_me`) name these ids.

`must` stands for MUST and MUST NOT, `should` for SHOULD and SHOULD NOT, `may` for MAY, `note` for what is described without
such a word or read between the lines.

| column | |
|---|---|
| audit | `yes`: an [audit](audit.md) judges the rule by what passes between any client and any server |
| check | how [`refmcp check`](check.md), which is for servers alone, judges it: `probe`, by an unusual request; `audit`, by an audit of its own conversations |
| why not | why an audit does not judge it |

The tables come from `crates/refmcp-proto/src/rule/`, the checks of `refmcp-audit` and the probes of `refmcp-check`;
`cargo xtask rules-page --update` writes them here.
";

/// What judges rules.
struct Coverage {
    audited: BTreeSet<&'static str>,
    probed: BTreeSet<&'static str>,
}

impl Coverage {
    fn new() -> Self {
        Self {
            audited: audited_rules().map(|rule| rule.id).collect(),
            probed: checked_rules().map(|rule| rule.id).collect(),
        }
    }

    fn is_audited(&self, rule: &Rule) -> bool {
        self.audited.contains(rule.id)
    }

    fn by_check(&self, rule: &Rule) -> &'static str {
        if self.probed.contains(rule.id) {
            "probe"
        } else if self.is_audited(rule) && Role::Server.is_bound_by(rule) {
            "audit"
        } else {
            ""
        }
    }
}

fn page() -> String {
    let coverage = Coverage::new();
    let mut page = INTRODUCTION.to_owned();
    for area in rule::CATALOG {
        let columns = "| id | level | bound | revisions | rule | audit | check | why not |\n\
                       |---|---|---|---|---|---|---|---|";
        write!(page, "\n## {}\n\n{columns}\n", area.title).unwrap();
        for rule in area.rules {
            let (level, party, revisions) = (rule.level, rule.party, rule.revisions);
            let text = rule.text.replace('|', "\\|");
            let audit = if coverage.is_audited(rule) { "yes" } else { "" };
            let (check, why) = (coverage.by_check(rule), not_audited(rule).unwrap_or_default());
            let judged = format!("{audit} | {check} | {why}");
            writeln!(
                page,
                "| [{rule}]({}) | {level} | {party} | {revisions} | {text} | {judged} |",
                rule.link()
            )
            .unwrap();
        }
    }
    page
}

#[test]
fn the_page_has_the_catalogue_and_what_judges_each_rule() {
    let page = page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(page.lines()).find(|(written, line)| written != line);
    assert!(
        written == page,
        "docs/rules.md is not what the catalogue has, first {differs:?}; run: cargo xtask rules-page --update"
    );
}

#[test]
fn what_is_demanded_is_judged_or_there_is_a_reason() {
    let coverage = Coverage::new();
    for rule in rule::all().filter(|rule| matches!(rule.level, Level::Must)) {
        let is_judged = coverage.is_audited(rule) || !coverage.by_check(rule).is_empty();
        assert!(is_judged || not_audited(rule).is_some(), "{rule}: {}", rule.text);
    }
}

#[test]
fn no_probe_is_missing_for_what_is_demanded_of_servers() {
    // Their probes ask for tasks.
    let tasks = ["TSK-05", "TSK-07", "TSK-24", "TSK-37"];
    let has_none = |rule: &&Rule| {
        let is_told = not_audited(rule).is_some_and(|why| why.contains("no probe") && why.ends_with("yet"));
        is_told && rule.level == Level::Must && Role::Server.is_bound_by(rule) && !tasks.contains(&rule.id)
    };
    let missing: Vec<_> = rule::all().filter(has_none).map(|rule| (rule.id, not_audited(rule))).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn what_is_left_to_check_has_a_probe() {
    let coverage = Coverage::new();
    let left = |rule: &&Rule| {
        let by_check = not_audited(rule).is_some_and(|why| why.contains("`check`"));
        by_check && Role::Server.is_bound_by(rule) && !coverage.probed.contains(rule.id)
    };
    let missing: Vec<_> = rule::all().filter(left).map(|rule| (rule.id, not_audited(rule))).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn reasons_that_name_other_rules_name_those_that_are_judged() {
    let coverage = Coverage::new();
    let mut wrong = Vec::new();
    for rule in rule::all() {
        let Some(why) = not_audited(rule).filter(|why| why.contains("judge")) else { continue };
        let words = why.split(|it: char| !it.is_ascii_alphanumeric() && it != '-');
        let is_judged = |rule: &&Rule| coverage.is_audited(rule) || coverage.probed.contains(rule.id);
        wrong
            .extend(words.filter_map(rule::find).filter(|it| !is_judged(it)).map(|it| (rule.id, it.id, why)));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
