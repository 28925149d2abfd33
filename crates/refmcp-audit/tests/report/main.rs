//! Reports in every format, from recordings in which rules are kept and broken, and from hostile ones.

mod client_steps;
mod difference;
mod formats;
mod page;
mod support;

use refmcp_audit::recording::ReadError;
use refmcp_audit::report::{Conclusion, Report, Reporter, RuleOutcome};
use refmcp_audit::verdict::Role;
use support::{BROKEN, FEATURES, GOOD, report};

#[test]
fn a_broken_rule_says_what_where_and_how_often() {
    let report = report(BROKEN);
    assert_eq!(report.conclusion, Conclusion::Broken);
    let (judgement, rule) = report.broken().next().unwrap();
    assert_eq!((judgement.client.as_str(), judgement.server.as_str()), ("tests 1", "scripted 2"));
    assert_eq!((rule.id.as_str(), rule.party, rule.broken), ("RPC-05", Role::Client, 2));
    assert!(rule.link.starts_with("https://modelcontextprotocol.io/specification/") && !rule.text.is_empty());
    let [violation] = &*rule.violations else { panic!("{:?}", rule.violations) };
    assert_eq!(violation.count, 2);
    let evidence = violation.evidence.as_ref().unwrap();
    assert_eq!((evidence.file.as_str(), evidence.line, evidence.event), ("session.jsonl", 8, 7));
    assert!(evidence.text.starts_with(r#"{"jsonrpc":"2.0","id":7,"#), "{evidence:?}");
}

#[test]
fn kept_not_exercised_and_not_judged_are_counted_apart() {
    let report = report(GOOD);
    assert_eq!(report.conclusion, Conclusion::Kept);
    let judgement = &report.judgements[0];
    let ids = |outcome| judgement.with(outcome).map(|rule| (&*rule.id, rule.party)).collect::<Vec<_>>();
    assert!(ids(RuleOutcome::Kept).contains(&("RPC-02", Role::Client)));
    assert!(!ids(RuleOutcome::NotExercised).contains(&("RPC-02", Role::Client)));
    // What another revision demands is not listed.
    assert!(judgement.rules.iter().all(|rule| rule.id != "STATE-04"));
    let all: u64 =
        report.counts.iter().map(|it| it.broken + it.kept + it.not_exercised + it.not_judged).sum();
    assert_eq!(all, judgement.rules.len() as u64);
}

#[test]
fn a_report_can_be_about_one_party() {
    let mut reporter = Reporter::default();
    reporter.read("session.jsonl", BROKEN.as_bytes()).unwrap();
    let (report, _) = reporter.finish(Some(Role::Server));
    assert!(report.judgements[0].rules.iter().all(|rule| rule.party == Role::Server));
    assert_eq!(report.conclusion, Conclusion::Kept);
    assert!(report.judgements[0].features.iter().all(|feature| feature.client.is_none()));
}

#[test]
fn features_are_those_that_were_used_refused_or_declared() {
    let report = report(FEATURES);
    let shown: Vec<String> = report.judgements[0]
        .features
        .iter()
        .filter(|it| it.client.is_some() || it.server.is_some())
        .map(|it| {
            let word = |support: Option<_>| {
                support.map_or("-".to_owned(), |it: refmcp_audit::auditor::Support| it.to_string())
            };
            format!("{}: {}, {}", it.feature, word(it.client), word(it.server))
        })
        .collect();
    let expected = [
        "tools: used, used",
        "completion: used, refused",
        "logging: -, declared, not used",
        "progress: used, used",
        "roots: used, used",
        "sampling: refused, used",
        "elicitation by form: declared, not used, -",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn input_requests_of_results_are_features_too() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}"#;
    let asked = r#"{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url"}},"l":{"method":"roots/list"}}}"#;
    let lines = [
        support::opened("http"),
        support::client(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{meta},"name":"t"}}}}"#
        )),
        support::server(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{asked}}}"#)),
        support::client(&format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{{meta},"name":"t","inputResponses":{{"k":{{"action":"accept"}}}}}}}}"#
        )),
    ];
    let report = report(&lines.concat());
    let support = |name: &str| {
        let found = report.judgements[0].features.iter().find(|it| it.feature == name).unwrap();
        (found.client.map(|it| it.to_string()), found.server.map(|it| it.to_string()))
    };
    let used = || Some("used".to_owned());
    assert_eq!(support("elicitation by URL"), (used(), used()));
    assert_eq!(support("roots"), (None, used()));
}

#[test]
fn several_recordings_are_judged_together() {
    let mut reporter = Reporter::default();
    reporter.read("good.jsonl", GOOD.as_bytes()).unwrap();
    reporter.read("broken.jsonl", BROKEN.as_bytes()).unwrap();
    let (report, _) = reporter.finish(None);
    assert_eq!(report.recordings.len(), 2);
    // The same client and server, so one judgement.
    assert_eq!(report.judgements.len(), 1);
    let (_, rule) = report.broken().next().unwrap();
    let evidence = rule.violations[0].evidence.as_ref().unwrap();
    assert_eq!((evidence.file.as_str(), evidence.line, evidence.connection), ("broken.jsonl", 8, 1));
    assert_eq!(evidence.event, report.recordings[0].events + 7);
}

#[test]
fn a_recording_that_is_cut_off_is_judged_up_to_there() {
    let cut = &BROKEN[..BROKEN.len() - 20];
    let report = report(cut);
    assert!(report.recordings[0].cut_off);
    assert_eq!(report.conclusion, Conclusion::Broken);
    let mut reporter = Reporter::default();
    let error = reporter.read("x", "no recording\n".as_bytes()).unwrap_err();
    assert!(matches!(error, ReadError::Line { line: 1, .. }), "{error}");
}

#[test]
fn reports_are_read_back_as_they_were_written() {
    for recording in ["", GOOD, BROKEN] {
        let report = report(recording);
        let json = report.to_json().unwrap();
        assert_eq!(Report::from_json(&json).unwrap(), report);
    }
    let json = report(GOOD).to_json().unwrap();
    let newer = json.replacen("\"refmcpReport\": 1", "\"refmcpReport\": 2", 1);
    assert!(Report::from_json(&newer).unwrap_err().to_string().contains("version 2"));
    let more = json.replacen('{', "{\"added\": [],", 1);
    assert!(Report::from_json(&more).is_ok(), "members may be added");
    assert!(Report::from_json("{\"a\":1}").is_err());
}

#[test]
fn a_hostile_report_is_refused_or_shown_as_what_it_is() {
    let json = report(BROKEN).to_json().unwrap();
    let link = "https://modelcontextprotocol.io/specification/2026-07-28/basic#responses";
    for (from, to) in
        [(link, "javascript:alert(1)"), (link, "https://x/\\\"><script>"), ("\"RPC-05\"", "\"RPC](x)\"")]
    {
        assert!(json.contains(from));
        assert!(Report::from_json(&json.replace(from, to)).is_err(), "{to}");
    }
    let hostile = json.replace("A response has its request's id", "\\u001b[2J<b>*a*</b>");
    let hostile = Report::from_json(&hostile).unwrap();
    let shown = refmcp_audit::report::text(&hostile, |_, text| text.to_owned());
    assert!(shown.contains("␛[2J<b>") && !shown.contains('\x1b'), "{shown}");
    let markdown = refmcp_audit::report::markdown(&hostile);
    assert!(markdown.contains("␛\\[2J\\<b\\>\\*a\\*"), "{markdown}");
}
