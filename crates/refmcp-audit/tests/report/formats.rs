//! Text, Markdown, JUnit and SARIF.

use refmcp_audit::report::{Tone, junit, markdown, sarif, text};
use serde_json::Value;

use crate::support::{BROKEN, GOOD, assert_balanced, opened, report};

fn plain(recording: &str) -> String {
    text(&report(recording), |_, text| text.to_owned())
}

#[test]
fn text_shows_a_broken_rule_whole() {
    let shown = plain(BROKEN);
    let expected = "\
Broken, and demanded by the specification: 1 rule

  RPC-05  must, client
  A response has its request's id; only an error about an unreadable id leaves it out.
  https://modelcontextprotocol.io/specification/2026-07-28/basic#responses
    a response to no request (2 times)
    expected: answer each request once, with its id
    at session.jsonl:8, connection 1
      {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"text\":\"</pre><script>alert(1)</script> onclick=\\\"x\\\" <U+202E>txt ```\"}}
";
    assert!(shown.contains(expected), "{shown}");
    assert!(
        shown.starts_with("session.jsonl: 9 events\n\ntests 1 and scripted 2, stdio, 2025-06-18\n"),
        "{shown}"
    );
    assert!(shown.ends_with(&format!("\n\n{}\n", report(BROKEN).summary())), "{shown}");
    assert!(
        report(BROKEN).summary().starts_with("1 rule broken that the specification demands; "),
        "{shown}"
    );
}

#[test]
fn text_lists_what_was_kept_and_what_was_not_exercised() {
    let shown = plain(GOOD);
    assert!(
        shown.contains("\nKept by the client: ") && shown.contains("\n  must    RPC-01 RPC-02"),
        "{shown}"
    );
    assert!(plain(BROKEN).contains("\nNot exercised by the server: "), "{}", plain(BROKEN));
    assert!(shown.contains("\n  pagination            used                  used\n"), "{shown}");
    assert!(shown.contains("\n  not seen: resources, resource templates, "), "{shown}");
    assert!(shown.lines().all(|line| line.trim_end() == line), "{shown}");
}

#[test]
fn the_caller_decides_how_tones_look() {
    let shown =
        text(
            &report(BROKEN),
            |tone, text| if tone == Tone::Wrong { format!("<{text}>") } else { text.to_owned() },
        );
    assert!(shown.contains("  <RPC-05>  must, client\n"), "{shown}");
}

#[test]
fn nothing_judged_is_green_in_no_format() {
    for recording in [String::new(), opened("stdio")] {
        let report = report(&recording);
        assert!(text(&report, |_, text| text.to_owned()).contains("Nothing was judged"));
        assert!(markdown(&report).contains("Nothing was judged"));
        let xml = junit(&report);
        assert!(
            xml.contains("<error message=\"Nothing was judged") && !xml.contains("errors=\"0\""),
            "{xml}"
        );
        let log: Value = serde_json::from_str(&sarif(&report).unwrap()).unwrap();
        let invocation = &log["runs"][0]["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], false);
        assert!(invocation["toolExecutionNotifications"][0]["message"]["text"].is_string());
        assert_eq!(report.to_json().unwrap().matches("\"conclusion\": \"nothingJudged\"").count(), 1);
    }
}

#[test]
fn markdown_has_messages_in_fences_that_they_cannot_end() {
    let shown = markdown(&report(BROKEN));
    let expected = "#### [RPC-05](https://modelcontextprotocol.io/specification/2026-07-28/basic#responses) (must, client)\n";
    assert!(shown.contains(expected), "{shown}");
    assert!(shown.contains("\n````json\n{\"jsonrpc\":\"2.0\",\"id\":7,"), "{shown}");
    assert!(!shown.contains('\u{202e}'));
}

#[test]
fn junit_has_a_case_for_each_rule() {
    let report = report(BROKEN);
    let xml = junit(&report);
    assert_balanced(&xml);
    assert_eq!(xml.matches("<testcase ").count(), report.judgements[0].rules.len());
    assert_eq!(xml.matches("<failure type=\"must\" message=\"a response to no request\">").count(), 1);
    assert!(xml.contains("failures=\"1\" errors=\"0\""), "{xml}");
    assert!(xml.contains("&lt;/pre&gt;&lt;script&gt;") && !xml.contains("<script"), "{xml}");
    assert!(xml.contains("<testcase classname=\"client.must\" name=\"RPC-01 Every message is JSON-RPC 2.0, encoded in UTF-8.\"/>"));
    let skipped = xml.matches("<skipped ").count();
    assert!(xml.lines().nth(1).unwrap().ends_with(&format!("skipped=\"{skipped}\">")), "{xml}");
}

#[test]
fn sarif_points_at_the_line_of_the_recording() {
    let log: Value = serde_json::from_str(&sarif(&report(BROKEN)).unwrap()).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let [result] = &run["results"].as_array().unwrap()[..] else { panic!("{run}") };
    assert_eq!(
        (&result["ruleId"], &result["level"], &result["occurrenceCount"]),
        (&"RPC-05".into(), &"error".into(), &2.into())
    );
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&"session.jsonl".into(), &8.into())
    );
    let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
    assert_eq!(rule["id"], "RPC-05");
    let log: Value = serde_json::from_str(&sarif(&report(GOOD)).unwrap()).unwrap();
    assert_eq!(log["runs"][0]["results"], serde_json::json!([]));
    assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], true);
}
