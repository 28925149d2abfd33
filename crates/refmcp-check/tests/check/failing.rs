//! Servers that crash, hang or write what is no message: each fault is blamed on the request that it belongs to.

use std::collections::BTreeSet;

use refmcp_check::{CheckReport, Checker, Options, Outcome, Target};
use refmcp_client::child::ChildProcess;

use crate::altered::{Change, Reply};
use crate::examples::SESSIONS;

async fn checked(target: Target, probes: &[&str]) -> CheckReport {
    let mut options = Options::default();
    options.revisions = vec![SESSIONS];
    options.probes = probes.iter().map(|&name| name.to_owned()).collect();
    Checker::new(target, options).run(|_| {}).await
}

/// Each rule that was broken, with its probe.
fn broken(report: &CheckReport) -> BTreeSet<(&str, &str)> {
    report.broken().map(|it| (it.rule.id, it.probe)).collect()
}

/// The connection ends in place of an answer.
fn ends() -> Reply {
    let mut reply = Reply::new(200, &[]);
    reply.ends = true;
    reply
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_ends_the_connection_is_blamed_and_no_other() {
    let change = Change::instead(|asked| (asked.method() == "tools/list").then(ends));
    let probes = ["ids", "requests-at-once", "declared-lists", "unknown-method", "ping", "task-unlisted"];
    let report = checked(change.pipe(), &probes).await;
    assert_eq!(broken(&report), [("RPC-22", "declared-lists")].into(), "{report:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_a_shared_session_later_is_not_blamed_on_the_next_probe() {
    // One probe asks for an unknown method and has its answer, and the next one finds that the server has ended.
    let change = Change::after(|asked, reply| {
        if asked.method() == "refmcp/no-such-method" {
            reply.ends = true;
        }
    });
    let mut options = Options::default();
    options.revisions = vec![SESSIONS];
    options.jobs = 1;
    options.probes = ["unknown-method", "unknown-notification", "ping"].map(str::to_owned).to_vec();
    let report = Checker::new(change.pipe(), options).run(|_| {}).await;
    let kept: BTreeSet<&str> =
        report.results.iter().filter(|it| it.outcome == Outcome::Kept).map(|it| it.probe).collect();
    assert_eq!(kept, ["unknown-method", "unknown-notification", "ping"].into(), "{report:#?}");
    let is_lost = |it: &Outcome| matches!(it, Outcome::Broken(_) | Outcome::NotVerified(_));
    assert!(!report.results.iter().any(|it| is_lost(&it.outcome)), "{report:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_after_the_handshake_breaks_the_rule_of_ping_alone() {
    let change = Change::instead(|asked| {
        let is_after = !matches!(asked.method(), "initialize" | "notifications/initialized");
        is_after.then(ends)
    });
    let report = checked(change.pipe(), &["ids", "unknown-method", "declared-lists", "ping"]).await;
    assert_eq!(broken(&report), [("PING-01", "ping")].into(), "{report:#?}");
    for rule in ["RPC-05", "RPC-01", "RPC-22"] {
        let why = "there was no response, and the server answers nothing else either".to_owned();
        let told = report
            .results
            .iter()
            .any(|it| it.rule.id == rule && it.outcome == Outcome::NotVerified(why.clone()));
        assert!(told, "{rule}: {report:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_is_never_answered_is_blamed_on_itself_alone() {
    let change = Change::instead(|asked| (asked.method() == "tools/list").then(|| Reply::new(200, &[])));
    let report = checked(change.pipe(), &["requests-at-once", "task-unlisted", "declared-lists"]).await;
    assert_eq!(broken(&report), [("RPC-22", "declared-lists")].into(), "{report:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_writes_in_place_of_messages_is_told() {
    let mut options = Options::default();
    options.revisions = vec![SESSIONS];
    options.start_timeout = std::time::Duration::from_secs(2);
    let target =
        Target::child(ChildProcess::new("sh").args(["-c", "while read -r line; do echo Welcome; done"]));
    let report = Checker::new(target, options).run(|_| {}).await;
    let [(_, why)] = &report.unsupported[..] else { panic!("{report:#?}") };
    assert!(why.contains("what came is no message: ") && why.contains("Welcome"), "{why}");
    assert!(!report.is_verified());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_repeats_a_finding_sends_each_message_on_a_line_and_waits() {
    // It answers after a while, and to the end of its input with nothing.
    let script = r#"import json, sys, threading, time, os
out = sys.stdout
def say(message): out.write(json.dumps(message) + "\n"); out.flush()
def later(id): time.sleep(0.3); say({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "no"}})
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    if message["method"] == "initialize":
        info = {"name": "late", "version": "1"}
        say({"jsonrpc": "2.0", "id": message["id"],
             "result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}})
    elif message["method"] == "ping" and message["id"] != 0:
        say({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        say({"jsonrpc": "2.0", "id": message["id"], "result": {}})
    else: threading.Thread(target=later, args=[message["id"]]).start()
os._exit(0)
"#;
    let file = std::env::temp_dir().join(format!("refmcp-check-late-{}.py", std::process::id()));
    std::fs::write(&file, script).unwrap();
    let target = Target::child(ChildProcess::new("python3").args([&file]));
    let report = checked(target, &["unknown-method", "requests-at-once"]).await;
    for (probe, expected) in [("unknown-method", "-32000"), ("requests-at-once", "\"id\": 1004")] {
        let found = report.broken().find(|it| it.probe == probe).unwrap_or_else(|| panic!("{report:#?}"));
        let repeat = &found.violation().unwrap().exchange.repeat;
        let output = tokio::process::Command::new("sh").args(["-c", repeat]).output().await.unwrap();
        let written = String::from_utf8(output.stdout).unwrap();
        assert!(written.contains(expected), "{repeat}\n{written}");
    }
    std::fs::remove_file(file).unwrap();
}
