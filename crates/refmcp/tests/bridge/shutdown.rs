//! The end of a bridge: in order, with everything said, and with no process left behind.

use serde_json::json;

use crate::support::Server;
use crate::support::{Client, Version, children_of, text_of, wait_until_gone};
use crate::{CHILD, bridge, ways};

#[test]
fn the_server_ends_with_the_bridge() {
    for told in [None, Some("TERM"), Some("INT")] {
        let mut client = Client::with(Version::Session("2025-11-25"), bridge(&CHILD));
        let servers = children_of(client.process.id());
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
    let client = Client::with(Version::Session("2025-11-25"), bridge(&CHILD));
    let servers = children_of(client.process.id());
    client.process.signal("KILL");
    assert_eq!(servers.len(), 1);
    wait_until_gone(servers[0]);
}

#[test]
fn answers_that_are_due_come_before_the_end() {
    let server = Server::start(&[]);
    for way in ways(&server) {
        let mut client = Client::with(Version::Session("2025-11-25"), bridge(&way));
        client.process.send_line(client.version.call("last", "slow", &json!({ "ms": 300 })));
        client.process.close_input();
        let answer = client.answer_to(&json!("last"));
        assert!(!text_of(&answer).is_empty(), "{way:?}: {answer}");
        let exit = client.process.exit();
        assert!(exit.status.success() && exit.lines.is_empty(), "{way:?}: {exit:?}");
    }
}

#[test]
fn a_client_that_only_listens_is_not_waited_for() {
    let server = Server::start(&[]);
    for way in ways(&server).into_iter().filter(|way| !way[1].starts_with("sse+")) {
        let mut client = Client::with(Version::Stateless, bridge(&way));
        let params = json!({ "notifications": { "toolsListChanged": true } });
        client.process.send_line(client.version.request(1, "subscriptions/listen", &params));
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
        let mut client = Client::with(Version::Session("2025-11-25"), bridge(&way));
        client.process.send_line(client.version.call(1, "ask_user", &json!({ "form": "confirm" })));
        client.notification("elicitation/create");
        client.process.close_input();
        let answer = client.answer_to(&json!(1));
        assert!(answer["result"]["isError"] == true || answer["error"].is_object(), "{way:?}: {answer}");
        let exit = client.process.exit();
        assert!(exit.status.success(), "{way:?}: {exit:?}");
    }
}
