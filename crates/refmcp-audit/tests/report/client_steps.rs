//! What a client did in each situation, from recordings in which it did what is expected, said no, or did nothing.

use refmcp_audit::auditor::StepOutcome;
use refmcp_audit::report::{Report, html, junit, markdown, text};

use crate::support::{FEATURES, GOOD, client, opened, report, server};

/// The outcome of a step in the first judgement.
fn outcome(report: &Report, step: &str) -> StepOutcome {
    let steps = &report.judgements[0].client_steps;
    steps.iter().find(|it| it.step == step).unwrap_or_else(|| panic!("no step {step}")).outcome
}

fn session(lines: &[String]) -> Report {
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}},"clientInfo":{"name":"c","version":"1"}}}"#;
    let agreed = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"2"}}}"#;
    let head = [
        opened("stdio"),
        client(initialize),
        server(agreed),
        client(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
    ];
    report(&[&head[..], lines].concat().concat())
}

#[test]
fn a_step_is_done_declined_ignored_not_declared_or_not_reached() {
    let report = report(FEATURES);
    assert_eq!(outcome(&report, "roots"), StepOutcome::Done);
    assert_eq!(outcome(&report, "sampling"), StepOutcome::Declined);
    assert_eq!(outcome(&report, "roots-change"), StepOutcome::NotDeclared);
    assert_eq!(outcome(&report, "elicit-form"), StepOutcome::NotReached);
    assert_eq!(outcome(&report, "elicit-url"), StepOutcome::NotDeclared);
    assert_eq!(outcome(&self::report(GOOD), "pages"), StepOutcome::Done);
    assert_eq!(outcome(&self::report(GOOD), "ping"), StepOutcome::Done);
    let unread = GOOD.replace(r#""params":{"cursor":"b"}"#, r#""params":{}"#);
    assert_eq!(outcome(&self::report(&unread), "pages"), StepOutcome::Ignored);
}

#[test]
fn a_changed_list_has_to_be_listed_again() {
    let changed = server(r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#);
    let list = client(r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#);
    let other = client(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let prompts = |lines: &[&String]| {
        let lines: Vec<String> = lines.iter().map(|line| (*line).clone()).collect();
        outcome(&session(&lines), "prompt-list-change")
    };
    assert_eq!(prompts(&[&changed, &list]), StepOutcome::Done);
    assert_eq!(prompts(&[&list, &changed]), StepOutcome::Ignored);
    assert_eq!(prompts(&[&changed, &other]), StepOutcome::Ignored);
    assert_eq!(prompts(&[&list]), StepOutcome::NotReached);
}

#[test]
fn kinds_of_elicitation_and_sampling_are_told_apart() {
    let asked = |id: u8, method: &str, params: &str| {
        server(&format!(r#"{{"jsonrpc":"2.0","id":"s{id}","method":"{method}","params":{params}}}"#))
    };
    let answer =
        |id: u8, result: &str| client(&format!(r#"{{"jsonrpc":"2.0","id":"s{id}","result":{result}}}"#));
    let form = r#"{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}"#;
    let report = session(&[
        asked(1, "elicitation/create", form),
        answer(1, r#"{"action":"decline"}"#),
        asked(
            2,
            "elicitation/create",
            r#"{"mode":"url","message":"?","url":"https://a.test/","elicitationId":"e"}"#,
        ),
        answer(2, r#"{"action":"accept"}"#),
        asked(3, "sampling/createMessage", r#"{"messages":[],"maxTokens":1,"tools":[]}"#),
    ]);
    assert_eq!(outcome(&report, "elicit-form"), StepOutcome::Declined);
    assert_eq!(outcome(&report, "elicit-url"), StepOutcome::Done);
    assert_eq!(outcome(&report, "sampling-tools"), StepOutcome::Ignored);
    assert_eq!(outcome(&report, "sampling"), StepOutcome::NotReached);
}

#[test]
fn after_a_result_a_client_has_to_go_on() {
    let call = |id: u8| {
        client(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#))
    };
    let result = r#"{"content":[{"type":"image","data":"","mimeType":"image/png"}],"structuredContent":{},"isError":true}"#;
    let answered = server(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
    let refused = server(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}"#);
    let report = session(&[call(1), answered, call(2), refused]);
    for step in ["content", "structured", "tool-error"] {
        assert_eq!(outcome(&report, step), StepOutcome::Done, "{step}");
    }
    assert_eq!(outcome(&report, "protocol-error"), StepOutcome::Ignored);
    assert_eq!(outcome(&report, "progress"), StepOutcome::Ignored);
}

#[test]
fn requests_without_a_session_are_of_one_client() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}"#;
    let exchange = |connection: u8, params: &str, result: &str| {
        let head = format!(r#""at":{connection},"connection":{connection}"#);
        let (asked, told) = (
            format!(
                r#"{{"jsonrpc":"2.0","id":{connection},"method":"tools/call","params":{{{meta},"name":"t"{params}}}}}"#
            ),
            format!(r#"{{"jsonrpc":"2.0","id":{connection},"result":{result}}}"#),
        );
        let revision = r#""revision":"2026-07-28""#;
        [
            format!(r#"{{{head},"event":"opened","side":"server","transport":"http","peer":"127.0.0.1"}}"#),
            format!(r#"{{{head},"event":"message","stream":{connection},"direction":"received","message":{asked}}}"#),
            format!(r#"{{{head},{revision},"event":"message","stream":{connection},"direction":"sent","message":{told}}}"#),
            format!(r#"{{{head},{revision},"event":"closed","why":"finished"}}"#),
        ]
        .map(|line| line + "\n")
        .concat()
    };
    let form = r#"{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;
    let required =
        format!(r#"{{"resultType":"input_required","requestState":"s","inputRequests":{{"k":{form}}}}}"#);
    let answered = r#","requestState":"s","inputResponses":{"k":{"action":"accept","content":{}}}"#;
    let done = r#"{"resultType":"complete","content":[]}"#;
    let report = report(&[exchange(1, "", &required), exchange(2, answered, done)].concat());
    assert_eq!(report.judgements.len(), 1);
    assert_eq!(outcome(&report, "elicit-form"), StepOutcome::Done);
}

#[test]
fn another_session_after_one_that_has_expired() {
    let expired = concat!(
        r#"{"at":10,"event":"head","connection":1,"stream":5,"direction":"received","method":"POST","target":"/mcp","headers":{"mcp-session-id":"***"}}"#,
        "\n",
        r#"{"at":11,"event":"head","connection":1,"stream":5,"direction":"sent","status":404,"headers":{}}"#,
        "\n",
        r#"{"at":12,"event":"closed","connection":1,"why":"the server has ended the session"}"#,
        "\n",
    );
    let http = |recording: &str| recording.replace(r#""transport":"stdio""#, r#""transport":"http""#);
    let closed = format!("{}\n", GOOD.lines().last().unwrap());
    let first = http(GOOD).replace(&closed, "");
    let again = http(GOOD).replace(r#""connection":1"#, r#""connection":2"#);
    let expired = expired.replace(r#""at":"#, r#""at":20"#);
    assert_eq!(outcome(&report(&[&*first, &expired].concat()), "expiry"), StepOutcome::Ignored);
    let later = again.replace(r#""at":1"#, r#""at":3"#);
    assert_eq!(outcome(&report(&[&*first, &expired, &later].concat()), "expiry"), StepOutcome::Done);
    assert_eq!(outcome(&report(&[&*again, &first, &expired].concat()), "expiry"), StepOutcome::Ignored);
}

#[test]
fn every_format_has_the_steps() {
    let recording = session(&[server(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#)]);
    let plain = text(&recording, |_, text| text.to_owned());
    assert!(
        plain.contains("\nClient support\n  ping                  ignored       answers a ping\n"),
        "{plain}"
    );
    assert!(plain.contains("\n  not reached: pages, "), "{plain}");
    assert!(markdown(&recording).contains("\n| ping | ignored | answers a ping |\n"));
    assert!(junit(&recording).contains("<property name=\"support of ping\" value=\"ignored\"/>"));
    let (report, excerpt) = crate::support::report_and_excerpt(GOOD);
    assert!(html(&report, &excerpt).contains("<th scope=\"row\">ping</th><td class=\"used\">done</td>"));
    assert_eq!(Report::from_json(&recording.to_json().unwrap()).unwrap(), recording);
}
