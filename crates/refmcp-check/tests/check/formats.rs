//! What was found, in every format of reports.

use refmcp_audit::report::{
    Conclusion, Difference, Excerpt, Report, RuleOutcome, Score, html, junit, markdown, sarif, text,
};
use refmcp_check::{Baseline, CheckReport, CheckResult, CheckViolation, Exchange, Outcome, requirements};
use refmcp_proto::revision::{Revision, RevisionSet};
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

const NEW: Revision = Revision::LATEST;
const OLD: Revision = Revision::LATEST_SESSION;

fn result(rule: &'static Rule, revision: Revision, outcome: Outcome) -> CheckResult {
    CheckResult { rule, probe: "ids", revision, outcome }
}

fn broken() -> Outcome {
    let exchange = Exchange {
        request: r#"{"id":7,"method":"ping"}"#.to_owned(),
        answer: "<script>alert('x')</script>".to_owned(),
        repeat: "refmcp raw http://127.0.0.1:1/mcp ping".to_owned(),
    };
    let (what, expected) = ("it answers with another id".to_owned(), "use the very id".to_owned());
    Outcome::Broken(Box::new(CheckViolation { what, expected, exchange }))
}

/// RPC-05 is broken in both revisions, RPC-06 kept in one and not verified in the other, the rest is skipped or was not tried.
fn report() -> CheckReport {
    CheckReport {
        server: "scripted 1".to_owned(),
        target: "http://127.0.0.1:1/mcp".to_owned(),
        transport: "http",
        revisions: RevisionSet::default().with(OLD).with(NEW),
        results: vec![
            result(&rule::RPC_05, NEW, broken()),
            result(&rule::RPC_05, OLD, broken()),
            result(&rule::RPC_06, NEW, Outcome::Kept),
            result(&rule::RPC_06, OLD, Outcome::NotVerified("too slow".to_owned())),
            result(&rule::RPC_07, OLD, Outcome::NotVerified("too slow".to_owned())),
            result(&rule::TOOL_06, OLD, Outcome::Skipped("no tools".to_owned())),
        ],
        rules: vec![&rule::RPC_05, &rule::RPC_06, &rule::RPC_07, &rule::TOOL_06, &rule::RPC_22],
        ..CheckReport::default()
    }
}

fn outcome(report: &Report, id: &str) -> RuleOutcome {
    report.judgements[0].rules.iter().find(|rule| rule.id == id).unwrap().outcome
}

#[test]
fn each_violation_has_its_request_its_answer_and_its_command_in_every_format() {
    let report = report().report(None);
    let plain = text(&report, |_, text| text.to_owned());
    let page = html(&report, &Excerpt::default());
    let unescaped = |markup: &str| {
        [("&quot;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">")]
            .into_iter()
            .fold(markup.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    let log = sarif(&report).unwrap();
    let message = serde_json::from_str::<Value>(&log).unwrap();
    let message = message["runs"][0]["results"][0]["message"]["text"].as_str().unwrap().to_owned();
    let json = serde_json::to_value(&report).unwrap();
    let exchange = &json["judgements"][0]["rules"][0]["violations"][0]["exchange"];
    assert_eq!(exchange["answer"], "<script>alert('x')</script>");
    for (format, shown) in [
        ("text", plain),
        ("html", unescaped(&page)),
        ("junit", unescaped(&junit(&report))),
        ("markdown", markdown(&report)),
        ("sarif", message),
    ] {
        for part in [
            "it answers with another id",
            "use the very id",
            r#"{"id":7,"method":"ping"}"#,
            "<script>alert('x')</script>",
            "refmcp raw http://127.0.0.1:1/mcp ping",
        ] {
            assert!(shown.contains(part), "{format} lacks {part}: {shown}");
        }
    }
    for forbidden in ["<script", "<img", "<link", "src=", "url(", "@import"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("<title>Check report: ") && !page.contains("id=\"conversation\""));
}

#[test]
fn a_rule_has_one_outcome_and_one_for_each_revision() {
    let report = report().report(None);
    assert_eq!(report.conclusion, Conclusion::Broken);
    for (id, expected) in [
        ("RPC-05", RuleOutcome::Broken),
        ("RPC-06", RuleOutcome::Kept),
        ("RPC-07", RuleOutcome::NotVerified),
        ("TOOL-06", RuleOutcome::NotExercised),
        ("RPC-22", RuleOutcome::NotExercised),
    ] {
        assert_eq!(outcome(&report, id), expected, "{id}");
    }
    let rules = &report.judgements[0].rules;
    assert_eq!(rules.len(), 5);
    assert_eq!(rules[0].violations.len(), 1);
    assert_eq!(rules[0].violations[0].revisions, [NEW.as_str(), OLD.as_str()]);
    assert_eq!(rules[1].by_revision[OLD.as_str()], RuleOutcome::NotVerified);
    let xml = junit(&report);
    assert!(xml.contains("<skipped message=\"not verified: too slow\"/>"), "{xml}");
    assert!(xml.contains("<skipped message=\"not exercised: no tools\"/>"), "{xml}");
    assert!(html(&report, &Excerpt::default()).contains("<summary>Not verified: 1 rule</summary>"));
}

#[test]
fn scores_count_the_requirements_of_their_revision() {
    let report = report().report(None);
    let scores = report.checked.unwrap().scores;
    let expected =
        Score { requirements: 5, kept: 0, broken: 1, not_verified: 2, skipped: 1, not_exercised: 1 };
    assert_eq!(scores[OLD.as_str()], expected);
    assert!(requirements(OLD).any(|rule| rule.id == "RPC-05"));
    assert!(requirements(OLD).all(|rule| rule.id != "MHTTP-01"));
}

#[test]
fn scores_count_the_requirements_of_their_transport() {
    let of = |transport: &'static str| {
        let rules = vec![&rule::RPC_05, &rule::HTTP_02, &rule::MHTTP_10, &rule::STDIO_04, &rule::SSE_02];
        let revisions = RevisionSet::ALL;
        let results = vec![result(&rule::RPC_05, NEW, Outcome::Kept)];
        let report = CheckReport { transport, rules, revisions, results, ..CheckReport::default() };
        let scores = report.report(None).checked.unwrap().scores;
        scores.into_values().map(|score| score.requirements).collect::<Vec<_>>()
    };
    let required = |id: &str, revision| requirements(revision).filter(|rule| rule.id == id).count() as u64;
    for (transport, ids) in [
        ("http", &["RPC-05", "HTTP-02", "MHTTP-10"][..]),
        ("stdio", &["RPC-05", "STDIO-04"]),
        ("http+sse", &["RPC-05", "SSE-02"]),
        ("websocket", &["RPC-05"]),
    ] {
        let counted = Revision::ALL.map(|revision| ids.iter().map(|id| required(id, revision)).sum::<u64>());
        assert_eq!(of(transport), counted, "{transport}");
    }
}

#[test]
fn what_the_baseline_has_is_shown_and_fails_nothing() {
    let found = report();
    let known = Baseline::parse("RPC-05").unwrap();
    let report = found.report(Some(&known.compare(&found)));
    assert_eq!((report.conclusion, outcome(&report, "RPC-05")), (Conclusion::Kept, RuleOutcome::Broken));
    let xml = junit(&report);
    assert!(xml.contains("failures=\"0\"") && xml.contains("broken (must, the baseline has it)"), "{xml}");
    let log: Value = serde_json::from_str(&sarif(&report).unwrap()).unwrap();
    assert_eq!(log["runs"][0]["results"][0]["suppressions"][0]["kind"], "external");
    let one = Baseline::parse(&format!("RPC-05 {OLD}")).unwrap();
    assert_eq!(found.report(Some(&one.compare(&found))).conclusion, Conclusion::Broken);
}

#[test]
fn a_report_is_read_back_and_compared() {
    let before = report();
    let written = before.report(None);
    let read = Report::from_json(&written.to_json().unwrap()).unwrap();
    assert_eq!(read, written);
    let mut later = report();
    later.results[0].outcome = Outcome::Kept;
    later.results[1].outcome = Outcome::Kept;
    later.results[2].outcome = broken();
    let difference = Difference::between(&read, &later.report(None));
    let ids = |changes: &[refmcp_audit::report::Change]| {
        changes.iter().map(|change| change.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&difference.newly_broken), ["RPC-06"]);
    assert_eq!(ids(&difference.no_longer_broken), ["RPC-05"]);
    assert!(difference.has_new_broken_musts());
}

#[test]
fn a_check_that_verified_nothing_is_green_in_no_format() {
    let report = CheckReport::default().report(None);
    assert_eq!(report.conclusion, Conclusion::NothingJudged);
    assert!(junit(&report).contains("<error message=\"Nothing was judged"));
    assert!(
        html(&report, &Excerpt::default()).contains("<p class=\"conclusion unjudged\">Nothing was judged")
    );
}
