//! Bridges that listen, met by bridges that do not: every front with a client that is known to be right.

use serde_json::json;

use crate::listener::Listener;
use crate::support::Server;
use crate::support::{Client, Version, children_of, text_of, wait_until_gone};
use crate::{CHILD, SESSIONS, bridge, ways};

const FRONTS: [&str; 3] =
    ["http://127.0.0.1:0/mcp", "ws://127.0.0.1:0/socket", "sse+http://127.0.0.1:0/events"];

/// A client at the near end of two bridges.
fn client(listener: &Listener, version: Version) -> Client {
    Client::with(version, bridge(&["--to", &listener.url]))
}

#[test]
fn every_pair_of_transports() {
    let server = Server::start(&[]);
    for from in FRONTS {
        for to in ways(&server) {
            let listener = Listener::open(from, &to);
            let alone = !from.starts_with("sse+") && !to[1].starts_with("sse+");
            for version in [Some(Version::Session("2025-11-25")), alone.then_some(Version::Stateless)]
                .into_iter()
                .flatten()
            {
                tour(&mut client(&listener, version), &format!("{version:?} {from} {to:?}"));
            }
        }
    }
}

fn tour(client: &mut Client, what: &str) {
    client.is_served();
    let big = client.call("big_result", &json!({ "bytes": 1 << 20 }));
    assert_eq!(text_of(&big).len(), 1 << 20, "{what}");
    let params = json!({
        "name": "long_task", "arguments": { "steps": 2, "step_ms": 1 }, "_meta": { "progressToken": 7 },
    });
    client.ask("tools/call", &params);
    for _ in 0..2 {
        assert_eq!(client.notification("notifications/progress")["params"]["progressToken"], 7, "{what}");
    }
    client.hears_nothing(what);
}

#[test]
fn every_revision_over_every_listener() {
    for from in FRONTS {
        let listener = Listener::open(from, &CHILD);
        for revision in SESSIONS {
            client(&listener, Version::Session(revision)).is_served();
        }
        if !from.starts_with("sse+") {
            client(&listener, Version::Stateless).is_served();
        }
    }
}

#[test]
fn requests_of_the_server_are_routed_back() {
    for from in FRONTS {
        let listener = Listener::open(from, &CHILD);
        let mut client = client(&listener, Version::Session("2025-11-25"));
        client.process.send_line(client.version.call(7, "ask_user", &json!({ "form": "confirm" })));
        let question = client.notification("elicitation/create");
        let result = json!({ "action": "accept", "content": { "confirm": true } });
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
        client.process.send_line(answer.to_string());
        let outcome = client.answer_to(&json!(7));
        assert!(text_of(&outcome).contains("true"), "{from}: {outcome}");
    }
}

#[test]
fn many_calls_at_once() {
    for from in FRONTS {
        let listener = Listener::open(from, &CHILD);
        let mut client = client(&listener, Version::Session("2025-11-25"));
        for call in 0..100 {
            client.process.send_line(client.version.call(
                call,
                "echo",
                &json!({ "message": format!("call {call}") }),
            ));
        }
        for call in 0..100 {
            let answer = client.answer_to(&json!(call));
            assert_eq!(text_of(&answer), format!("call {call}"), "{from}");
        }
        client.hears_nothing(from);
    }
}

#[test]
fn a_bridge_that_is_told_to_stop_ends_with_its_servers() {
    for from in FRONTS {
        let listener = Listener::open(from, &CHILD);
        let mut client = client(&listener, Version::Session("2025-11-25"));
        client.is_served();
        let servers = children_of(listener.process.id());
        assert_eq!(servers.len(), 1, "{from}: one server for one client");
        listener.process.signal("TERM");
        let exit = listener.process.exit();
        assert_eq!(exit.status.code(), Some(143), "{from}: {exit:?}");
        wait_until_gone(servers[0]);
    }
}

#[test]
fn a_client_that_leaves_takes_its_server_along() {
    for from in FRONTS {
        let listener = Listener::open(from, &CHILD);
        let mut stays = client(&listener, Version::Session("2025-11-25"));
        stays.is_served();
        let before = children_of(listener.process.id());
        let mut leaves = client(&listener, Version::Session("2025-11-25"));
        leaves.is_served();
        let server = children_of(listener.process.id()).into_iter().find(|pid| !before.contains(pid));
        leaves.process.close_input();
        assert!(leaves.process.exit().status.success(), "{from}");
        wait_until_gone(server.expect("a server of its own"));
        stays.is_served();
    }
}

#[test]
fn foreign_origins_are_refused_by_every_listener() {
    for from in FRONTS {
        let listener = Listener::open(from, &CHILD);
        for line in ["Host: evil.example", "Origin: https://evil.example"] {
            assert_eq!(listener.send("GET", &[line.to_owned()], "").status, 403, "{from} {line}");
        }
    }
}
