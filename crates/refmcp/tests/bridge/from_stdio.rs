//! A client that only knows standard input and output reaches servers of every kind.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::Server;
use crate::support::{Client, Version, text_of};
use crate::{bridge, each, ways};

const BIG: usize = 3 << 20;

#[test]
fn every_revision_over_every_transport() {
    each(|mut client, what| {
        client.is_served();
        let tools = client.ask("tools/list", &json!({}));
        assert!(tools["result"]["tools"].is_array(), "{what}: {tools}");
        let unknown = client.ask("nonsense", &json!({}));
        assert_eq!(unknown["error"]["code"], -32601, "{what}: {unknown}");
        client.hears_nothing(what);
    });
}

#[test]
fn progress_comes_under_the_clients_own_token() {
    each(|mut client, what| {
        let params = json!({
            "name": "long_task", "arguments": { "steps": 3, "step_ms": 1 }, "_meta": { "progressToken": "mine" },
        });
        let answer = client.ask("tools/call", &params);
        assert!(answer["result"]["content"].is_array(), "{what}: {answer}");
        for step in 1..=3 {
            let progress = client.notification("notifications/progress");
            assert_eq!(progress["params"]["progressToken"], "mine", "{what}");
            assert_eq!(progress["params"]["progress"], f64::from(step), "{what}: {progress}");
        }
        client.hears_nothing(what);
    });
}

#[test]
fn big_messages_pass_both_ways() {
    let server = Server::start(&[]);
    for way in ways(&server) {
        let mut client = Client::with(Version::Session("2025-11-25"), bridge(&way));
        let big = "x".repeat(BIG);
        let answer = client.call("echo", &json!({ "message": big }));
        assert!(text_of(&answer) == big, "{way:?}: {} bytes", text_of(&answer).len());
    }
}

#[test]
fn a_request_of_the_server_is_answered_by_the_client() {
    each(|mut client, what| {
        let Version::Session(revision @ ("2025-06-18" | "2025-11-25")) = client.version else { return };
        client.process.send_line(client.version.call(7, "ask_user", &json!({ "form": "confirm" })));
        let question = client.notification("elicitation/create");
        let answer = json!({
            "jsonrpc": "2.0", "id": question["id"],
            "result": { "action": "accept", "content": { "confirm": true } },
        });
        client.process.send_line(answer.to_string());
        let outcome = client.answer_to(&json!(7));
        assert!(outcome["result"]["isError"] != true, "{what} {revision}: {outcome}");
        assert!(text_of(&outcome).contains("true"), "{what}: {outcome}");
        client.hears_nothing(what);
    });
}

#[test]
fn input_required_results_are_retried() {
    each(|mut client, what| {
        if client.version != Version::Stateless {
            return;
        }
        let tool = "test_input_required_result_request_state";
        let asked = client.call(tool, &json!({}));
        let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{what}: {asked}"));
        let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let given = json!({ key: { "action": "accept", "content": { "ok": true } } });
        let params = json!({ "name": tool, "arguments": {}, "requestState": state, "inputResponses": given });
        let answer = client.ask("tools/call", &params);
        assert_eq!(text_of(&answer), "state-ok", "{what}: {answer}");
    });
}

#[test]
fn a_cancelled_call_stops() {
    each(|mut client, what| {
        let arguments = json!({ "steps": 10_000, "step_ms": 20, "tag": what.len().to_string() + what });
        client.process.send_line(client.version.request(
            9,
            "tools/call",
            &json!({ "name": "long_task", "arguments": arguments, "_meta": { "progressToken": 1 } }),
        ));
        client.notification("notifications/progress");
        client.notify("notifications/cancelled", &json!({ "requestId": 9 }));
        let stopped =
            |answer: &Value| answer["result"]["structuredContent"]["cancelled"].as_array().map(Vec::len);
        let tag = json!({ "tag": arguments["tag"] });
        // Revisions without structured content say the same in text.
        let told = |answer: &Value| stopped(answer) == Some(1) || text_of(answer).contains("long_task");
        assert!((0..2000).any(|_| told(&client.call("cancellations", &tag))), "{what}: it was not cancelled");
        // Progress may have been on its way; an answer may not.
        client.process.send_line(client.version.call("end", "echo", &json!({ "message": "" })));
        loop {
            let message = client.next();
            if message["id"] == "end" {
                break;
            }
            assert_eq!(message["method"], "notifications/progress", "{what}: {message}");
        }
    });
}

#[test]
fn two_hundred_calls_at_once_are_answered_once_each() {
    let server = Server::start(&[]);
    for way in ways(&server) {
        let versions = [Version::Session("2025-11-25"), Version::Stateless];
        for version in versions
            .into_iter()
            .filter(|version| *version != Version::Stateless || !way[1].starts_with("sse+"))
        {
            let mut client = Client::with(version, bridge(&way));
            for call in 0..200 {
                client.process.send_line(version.call(
                    call,
                    "echo",
                    &json!({ "message": format!("call {call}") }),
                ));
            }
            let mut seen = BTreeSet::new();
            for _ in 0..200 {
                let answer = client.next();
                let id = answer["id"].as_u64().unwrap_or_else(|| panic!("{way:?}: {answer}"));
                assert_eq!(text_of(&answer), format!("call {id}"), "{way:?}");
                assert!(seen.insert(id), "{way:?}: {id} was answered twice");
            }
            client.hears_nothing("everything is answered");
        }
    }
}

#[test]
fn arguments_are_repeated_in_headers_once_the_bridge_has_seen_the_tool() {
    let server = Server::start(&[]);
    let mut client = Client::with(Version::Stateless, bridge(&ways(&server)[0]));
    let mut params = json!({});
    loop {
        let page = client.ask("tools/list", &params);
        let Some(next) = page["result"]["nextCursor"].as_str() else { break };
        params = json!({ "cursor": next });
    }
    let answer = client.call("test_x_mcp_header", &json!({ "region": "Köln" }));
    assert_eq!(text_of(&answer), "Region: Köln", "{answer}");
}

#[test]
fn subscriptions_are_notified() {
    let server = Server::start(&[]);
    for way in ways(&server).into_iter().filter(|way| !way[1].starts_with("sse+")) {
        let mut client = Client::with(Version::Stateless, bridge(&way));
        let params = json!({ "notifications": { "toolsListChanged": true } });
        client.process.send_line(client.version.request("ears", "subscriptions/listen", &params));
        client.notification("notifications/subscriptions/acknowledged");
        let name = format!("added_{}", way.len() + way[1].len());
        let added = client.call("add_tool", &json!({ "name": name }));
        assert!(added["result"]["isError"] != true, "{way:?}: {added}");
        let told = client.notification("notifications/tools/list_changed");
        assert_eq!(
            told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "ears",
            "{way:?}: {told}"
        );
        client.call("remove_tool", &json!({ "name": name }));
    }
}

#[test]
fn a_server_that_speaks_only_the_older_transport_is_found() {
    let server = Server::start(&[]);
    let to = ["--to".to_owned(), format!("http://{}/sse", server.address)];
    Client::with(Version::Session("2024-11-05"), bridge(&to)).is_served();
}
