//! `--tour`: the server leads a client through everything, and the report says what it supports.

use std::io::Write;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use refmcp_audit::auditor::ClientStep;
use refmcp_reference::Step;
use serde_json::{Value, json};

use crate::support::{INITIALIZE, Process, REFMCP, Server, User, program};

/// The outcome of a step in a report.
fn outcome(report: &str, step: &str) -> Value {
    let report: Value = serde_json::from_str(report).unwrap();
    let steps = report["judgements"].as_array().unwrap().iter().find_map(|it| it["clientSteps"].as_array());
    let step = steps.unwrap().iter().find(|it| it["step"] == step);
    step.unwrap_or_else(|| panic!("no such step: {report:#}"))["outcome"].clone()
}

#[test]
fn the_report_has_a_row_for_every_step() {
    let rows: Vec<&str> = ClientStep::ALL.iter().map(|step| step.name()).collect();
    let steps: Vec<&str> = Step::ALL.iter().map(|step| step.name()).collect();
    assert!(steps.iter().all(|step| rows.contains(step)), "{steps:?} {rows:?}");
}

#[test]
fn a_call_of_the_tour_says_what_has_happened_and_what_to_do_next() {
    let user = User::new();
    let report = user.word("r.json");
    let server = [REFMCP, "stdio", "--tour", "progress,content,tool-error", "--report", &report];
    let ended = user.with(&["call", "tour"], &server);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.starts_with("The tour: 2 of 3 steps have happened.\n- progress: sent\n"), "{ended:?}");
    assert!(
        ended.out.contains("\n- tool-error: a result that says isError\n\nCall tour again.\n"),
        "{ended:?}"
    );
    assert_eq!(outcome(&user.read("r.json"), "progress"), "done");
    assert_eq!(outcome(&user.read("r.json"), "content"), "ignored", "nothing came after it");
    assert_eq!(outcome(&user.read("r.json"), "tool-error"), "notReached");
}

#[test]
fn steps_happen_to_a_client_that_only_connects() {
    let user = User::new();
    let report = user.word("r.json");
    let mut server = Process::spawn(program(&["stdio", "--tour", "ping,logs,roots", "--report", &report]));
    server.send_line(INITIALIZE.replace(r#""capabilities":{}"#, r#""capabilities":{"roots":{}}"#));
    server.next_line().unwrap();
    server.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    for (method, result) in [("ping", json!({})), ("roots/list", json!({ "roots": [] }))] {
        let request: Value = loop {
            let message: Value = serde_json::from_str(&server.next_line().unwrap()).unwrap();
            if message["method"] != "notifications/message" {
                break message;
            }
        };
        assert_eq!(request["method"], method);
        server.send_line(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string());
    }
    server.close_input();
    assert!(server.exit().status.success());
    assert_eq!(outcome(&user.read("r.json"), "ping"), "done");
    assert_eq!(outcome(&user.read("r.json"), "roots"), "done");
    assert_eq!(outcome(&user.read("r.json"), "logs"), "ignored");
}

#[test]
fn a_client_goes_on_after_its_session_has_ended_and_in_an_older_revision() {
    let user = User::new();
    let (report, recording) = (user.word("r.json"), user.word("s.jsonl"));
    let options = ["--tour", "expiry,version-fallback", "--report", &report, "--record", &recording];
    let mut server = Server::start(&options);
    let url = format!("http://{}/mcp", server.address);
    let mut shell = user.command(&["shell", "--protocol-version", "legacy", &url]);
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = shell.stdin.take().unwrap();
    input.write_all(&b"call echo message=a\n".repeat(3)).unwrap();
    // The session ends when no call is in flight.
    sleep(Duration::from_secs(3));
    input.write_all(&b"call echo message=a\n".repeat(2)).unwrap();
    drop(input);
    shell.wait().unwrap();
    server.signal("INT");
    assert!(server.exit().success());
    user.done(&["report", "s.jsonl", "--save", "again.json"]);
    for report in ["r.json", "again.json"] {
        let report = user.read(report);
        assert_eq!(outcome(&report, "expiry"), "done", "{report}");
        assert_eq!(outcome(&report, "version-fallback"), "done", "{report}");
    }
}

#[test]
fn steps_are_chosen_by_their_names() {
    let user = User::new();
    let ended = user.run(&["stdio", "--tour", "pings"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.err.contains("\"pings\" is no step of the tour; there are all, pages, ping,"), "{ended:?}");
    let ended = user.run(&["stdio", "--tour-skip", "ping"]);
    assert!(ended.code == 1 && ended.err.contains("--tour"), "{ended:?}");
}
