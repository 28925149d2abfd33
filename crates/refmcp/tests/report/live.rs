//! `--audit`: what passes is judged while it passes, and reported at the end.

use serde_json::Value;

use crate::piped;
use crate::support::{REFMCP, User};

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
