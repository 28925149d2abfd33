//! The end of a bridge: in order, with everything said, and with no process left behind.

use std::fs;
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use crate::serving::Server;
use crate::support::{Client, Era, PATIENCE, text_of};
use crate::{CHILD, bridge, ways};

/// The processes that a process has started.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").expect("there are processes").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|(_, of)| of == parent)).collect()
}

/// The state of a process, and who has started it.
fn stat(pid: u32) -> Option<(String, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut rest = text.rsplit_once(')')?.1.split_whitespace();
    Some((rest.next()?.to_owned(), rest.next()?.parse().ok()?))
}

fn runs(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != "Z")
}

/// Ends a process at once, and waits until it has.
pub(crate) fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.expect("kill runs").success());
    wait_until_gone(pid);
}

/// Waits until a process has ended.
pub(crate) fn wait_until_gone(pid: u32) {
    let start = Instant::now();
    while runs(pid) {
        assert!(start.elapsed() < PATIENCE, "process {pid} is still there");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn the_server_ends_with_the_bridge() {
    for told in [None, Some("TERM"), Some("INT")] {
        let mut client = Client::with(Era::Session("2025-11-25"), bridge(&CHILD));
        let servers = children(client.process.id());
        assert_eq!(servers.len(), 1, "the bridge starts one server");
        match told {
            None => client.process.close_input(),
            Some(signal) => client.process.signal(signal),
        }
        let exit = client.process.exit();
        let code = match told {
            None => 0,
            Some("INT") => 130,
            Some(_) => 143,
        };
        assert_eq!(exit.status.code(), Some(code), "{told:?}: {exit:?}");
        wait_until_gone(servers[0]);
    }
}

#[test]
fn a_bridge_that_is_killed_leaves_no_server_behind() {
    let client = Client::with(Era::Session("2025-11-25"), bridge(&CHILD));
    let servers = children(client.process.id());
    client.process.signal("KILL");
    assert_eq!(servers.len(), 1);
    wait_until_gone(servers[0]);
}

#[test]
fn answers_that_are_due_come_before_the_end() {
    let server = Server::start(&[]);
    for way in ways(&server) {
        let mut client = Client::with(Era::Session("2025-11-25"), bridge(&way));
        client.process.send_line(client.era.call("last", "slow", &json!({ "ms": 300 })));
        client.process.close_input();
        let answer = client.answer_to(&json!("last"));
        assert!(!text_of(&answer).is_empty(), "{way:?}: {answer}");
        let exit = client.process.exit();
        assert!(exit.status.success() && exit.lines.is_empty(), "{way:?}: {exit:?}");
    }
}

#[test]
fn who_only_listens_is_not_waited_for() {
    let server = Server::start(&[]);
    for way in ways(&server).into_iter().filter(|way| !way[1].starts_with("sse+")) {
        let mut client = Client::with(Era::Stateless, bridge(&way));
        let params = json!({ "notifications": { "toolsListChanged": true } });
        client.process.send_line(client.era.request(1, "subscriptions/listen", &params));
        client.notification("notifications/subscriptions/acknowledged");
        client.process.close_input();
        let exit = client.process.exit();
        assert!(exit.status.success(), "{way:?}: {exit:?}");
    }
}

#[test]
fn a_request_to_a_client_that_left_is_answered_with_an_error() {
    let server = Server::start(&[]);
    for way in ways(&server) {
        let mut client = Client::with(Era::Session("2025-11-25"), bridge(&way));
        client.process.send_line(client.era.call(1, "ask_user", &json!({ "form": "confirm" })));
        client.notification("elicitation/create");
        client.process.close_input();
        let answer = client.answer_to(&json!(1));
        assert!(answer["result"]["isError"] == true || answer["error"].is_object(), "{way:?}: {answer}");
        let exit = client.process.exit();
        assert!(exit.status.success(), "{way:?}: {exit:?}");
    }
}
