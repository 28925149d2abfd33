//! `--audit`: what passes is judged while it passes, and reported at the end.

use serde_json::Value;

use crate::piped;
use crate::support::{INITIALIZE, Process, REFMCP, User, program};

#[test]
fn a_server_tells_at_once_which_rule_its_client_breaks_and_reports_at_the_end() {
    let ended = piped(&User::new(), &["stdio", "--audit"], "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.err.contains("the client broke a rule: a response to no request"), "{}", ended.err);
    assert!(ended.err.contains("\n  RPC-05  must, client\n"), "{}", ended.err);
    assert!(ended.err.contains("\"id\":7"), "the message is shown: {}", ended.err);
}

#[test]
fn the_report_goes_to_files_instead() {
    let user = User::new();
    let words = ["list", "tools", "--audit", "--report", "r.json", "--report", "r.html"];
    let ended = user.with(&words, &[REFMCP, "stdio"]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{ended:?}");
    let report: Value = serde_json::from_str(&user.read("r.json")).unwrap();
    assert_eq!((&report["conclusion"], report["judgements"].as_array().unwrap().len()), (&"kept".into(), 1));
    assert!(user.read("r.html").contains("tools/list"));
    let ended = user.with(&["list", "tools", "--report", "r.json"], &[REFMCP, "stdio"]);
    assert!(ended.code == 1 && ended.err.contains("--audit"), "{ended:?}");
}

#[test]
fn a_relay_judges_two_strangers() {
    let user = User::new();
    let relay = [REFMCP, "relay", "--audit", "--report", &user.word("r.json"), "--", REFMCP, "stdio"];
    let ended = user.with(&["call", "echo", "message=hi"], &relay);
    assert_eq!((ended.code, ended.out.as_str()), (0, "hi\n"), "{ended:?}");
    let report: Value = serde_json::from_str(&user.read("r.json")).unwrap();
    assert_eq!(report["conclusion"], "kept", "{report:#}");
}

/// A server that answers twice.
const STRANGER: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
    case $line in
        *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stranger","version":"1"}}' ;;
        *'"tools/list"'*) result='{"tools":[]}' ;;
        *) continue ;;
    esac
    answer='{"jsonrpc":"2.0","id":'$id',"result":'$result'}'
    case $line in *'"tools/list"'*) echo "$answer" ;; esac
    echo "$answer"
done"#;

#[test]
fn a_bridge_judges_two_strangers() {
    let user = User::new();
    let report = user.word("r.json");
    let words = ["bridge", "--from", "stdio", "--audit", "--report", &report, "--", "sh", "-c", STRANGER];
    let mut bridge = Process::spawn(program(&words));
    bridge.send_line(INITIALIZE);
    bridge.next_line().unwrap();
    bridge.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    bridge.send_line(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    // Once there is a second list, the first has been there twice.
    for id in [2, 3] {
        bridge.send_line(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{}}}}"#));
        while !bridge.next_line().unwrap().contains("\"tools\":[]") {}
    }
    bridge.close_input();
    assert!(bridge.exit().status.success());
    let report: Value = serde_json::from_str(&user.read("r.json")).unwrap();
    let found: Vec<(&str, &str, &str)> = report["judgements"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|judgement| {
            let broken = judgement["rules"].as_array().unwrap().iter();
            let broken = broken.filter(|rule| rule["outcome"] == "broken");
            broken.map(|rule| {
                let party = rule["party"].as_str().unwrap();
                (judgement[party].as_str().unwrap(), party, rule["id"].as_str().unwrap())
            })
        })
        .collect();
    let expected = [("c 1", "client", "RPC-05"), ("stranger 1", "server", "RPC-05")];
    assert!(found.len() == 2 && expected.iter().all(|it| found.contains(it)), "{found:?}\n{report:#}");
}
