//! The gateway between revisions: clients of each of them, and servers of an older and of the newest one.

use serde_json::{Value, json};

use crate::listener::Listener;
use crate::support::{Client, Version, children_of, text_of};
use crate::{CHILD, SESSIONS, bridge};

/// Revisions of the server; `--protocol-version` decides, since ours speaks all of them.
const SERVERS: [&str; 4] = ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"];

fn gateway(server: &str) -> crate::support::Process {
    bridge(&[&["--protocol-version", server], &CHILD[..]].concat())
}

/// Each client with each server, and the revisions of both.
fn each(mut meet: impl FnMut(&mut Client, &str, &str)) {
    for server in SERVERS {
        for client in SESSIONS.map(Version::Session).into_iter().chain([Version::Stateless]) {
            let mut client = Client::with(client, gateway(server));
            let what = format!("{:?} to {server}", client.version);
            meet(&mut client, server, &what);
        }
    }
}

/// Calls a tool that asks, answers, and gives the tool's text. In a session the question is a request, otherwise a result.
fn answered(client: &mut Client, tool: &str, arguments: &Value, method: &str, answer: &Value) -> Value {
    if client.version != Version::Stateless {
        client.process.send_line(client.version.call("asks", tool, arguments));
        let question = client.notification(method);
        let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
        client.process.send_line(reply.to_string());
        return client.answer_to(&json!("asks"));
    }
    let asked = client.call(tool, arguments);
    let (key, request) = asked["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["method"], method, "{asked}");
    let state = &asked["result"]["requestState"];
    let params = json!({ "name": tool, "arguments": arguments, "requestState": state, "inputResponses": { key: answer } });
    client.ask("tools/call", &params)
}

#[test]
fn calls_with_progress() {
    each(|client, _, what| {
        client.is_served();
        let params = json!({
            "name": "long_task", "arguments": { "steps": 2, "step_ms": 1 }, "_meta": { "progressToken": "t" },
        });
        let done = client.ask("tools/call", &params);
        assert!(done["result"]["isError"] != true, "{what}: {done}");
        for step in 1..=2 {
            let progress = client.notification("notifications/progress");
            assert_eq!(progress["params"]["progressToken"], "t", "{what}");
            assert_eq!(progress["params"]["progress"], f64::from(step), "{what}");
        }
        let missing = client.ask("resources/read", &json!({ "uri": "file:///no/such" }));
        let code = if client.version == Version::Stateless { -32602 } else { -32002 };
        assert_eq!(missing["error"]["code"], code, "{what}: {missing}");
        let page = client.ask("tools/list", &json!({}));
        let next = page["result"]["nextCursor"].clone();
        let second = client.ask("tools/list", &json!({ "cursor": next }));
        assert!(second["result"]["tools"][0]["name"].is_string(), "{what}: {second}");
    });
}

#[test]
fn roots_and_sampling() {
    each(|client, _, what| {
        let roots = json!({ "roots": [{ "uri": "file:///mine", "name": "mine" }] });
        let listed = answered(client, "list_roots", &json!({}), "roots/list", &roots);
        assert!(listed.to_string().contains("file:///mine"), "{what}: {listed}");
        let sampled = json!({
            "role": "assistant", "content": { "type": "text", "text": "a haiku" }, "model": "m", "stopReason": "endTurn",
        });
        let said =
            answered(client, "test_sampling", &json!({ "prompt": "?" }), "sampling/createMessage", &sampled);
        assert!(text_of(&said).contains("a haiku"), "{what}: {said}");
    });
}

#[test]
fn elicitation_where_both_sides_have_it() {
    each(|client, server, what| {
        let unable = matches!(client.version, Version::Session("2024-11-05" | "2025-03-26"));
        if unable || server == "2024-11-05" {
            return;
        }
        let accept = json!({ "action": "accept", "content": { "confirm": true } });
        let said = answered(client, "ask_user", &json!({ "form": "confirm" }), "elicitation/create", &accept);
        assert!(text_of(&said).contains("true"), "{what}: {said}");
    });
}

#[test]
fn list_changes_and_updates_reach_those_who_want_them() {
    each(|client, _, what| {
        let uri = "file:///resources/notes.txt";
        if client.version == Version::Stateless {
            let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": [uri] });
            let listen =
                client.version.request("ears", "subscriptions/listen", &json!({ "notifications": wanted }));
            client.process.send_line(listen);
            client.notification("notifications/subscriptions/acknowledged");
        } else {
            let subscribed = client.ask("resources/subscribe", &json!({ "uri": uri }));
            assert!(subscribed["result"].is_object(), "{what}: {subscribed}");
        }
        // What was asked of the server meanwhile is done once it has answered the next call.
        client.is_served();
        let added = client.call("add_tool", &json!({ "name": "fresh" }));
        assert!(added["result"]["isError"] != true, "{what}: {added}");
        client.notification("notifications/tools/list_changed");
        // The subscription may still be on its way.
        let mut touched = 0;
        while touched < 200 && !client.has_heard("notifications/resources/updated") {
            client.call("touch_resource", &json!({ "uri": uri }));
            touched += 1;
        }
        assert_eq!(client.notification("notifications/resources/updated")["params"]["uri"], uri, "{what}");
        assert!(client.call("fresh", &json!({}))["result"].is_object(), "{what}: the same server");
    });
}

#[test]
fn a_cancelled_call_stops_at_the_server() {
    each(|client, _, what| {
        let arguments = json!({ "steps": 10_000, "step_ms": 20, "tag": "stop" });
        let params = json!({ "name": "long_task", "arguments": arguments, "_meta": { "progressToken": 1 } });
        client.process.send_line(client.version.request(9, "tools/call", &params));
        client.notification("notifications/progress");
        client.notify("notifications/cancelled", &json!({ "requestId": 9 }));
        let stopped = |client: &mut Client| {
            let told = client.call("cancellations", &json!({ "tag": "stop" }));
            text_of(&told).contains("long_task") || told.to_string().contains("stop")
        };
        assert!((0..2000).any(|_| stopped(client)), "{what}: it was not cancelled");
    });
}

#[test]
fn a_call_that_waits_for_an_answer_can_be_cancelled() {
    for server in ["2025-11-25", "2026-07-28"] {
        let mut client = Client::with(Version::Session("2025-11-25"), gateway(server));
        client.process.send_line(client.version.call(9, "ask_user", &json!({ "form": "confirm" })));
        client.notification("elicitation/create");
        client.notify("notifications/cancelled", &json!({ "requestId": 9 }));
        client.is_served();
        client.process.close_input();
        assert!(client.process.exit().status.success(), "{server}");
    }
}

#[test]
fn log_levels_and_completion_go_through() {
    each(|client, _, what| {
        if client.version == Version::Stateless {
            let meta = json!({ "io.modelcontextprotocol/logLevel": "error" });
            let params = json!({ "name": "log_all", "arguments": {}, "_meta": meta });
            client.ask("tools/call", &params);
        } else {
            client.ask("logging/setLevel", &json!({ "level": "error" }));
            client.call("log_all", &json!({}));
        }
        for level in ["error", "critical", "alert", "emergency"] {
            let message = client.notification("notifications/message");
            assert_eq!(message["params"]["level"], level, "{what}");
        }
        client.hears_nothing(what);
    });
}

#[test]
fn a_result_of_the_same_revision_is_sent_as_it_was_written() {
    // A server that writes members in an order and with numbers that no library would.
    let script = r#"
        read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{}}}}'
        read line; read line; echo "$line" >&2
        echo '{"jsonrpc":"2.0","id":3,"result":{"z":1.50,"content":[ {"type":"text","x-own":1e2,"text":"t"}],"a":null}}'
        read line"#;
    let mut client = Client::with(Version::Session("2025-06-18"), bridge(&["--", "sh", "-c", script]));
    client.process.send_line(
        r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"z":1.50,"name":"n","a":{"y":1}}}"#,
    );
    let line = client.process.next_line().unwrap();
    assert!(
        line.contains(r#""result":{"z":1.50,"content":[ {"type":"text","x-own":1e2,"text":"t"}],"a":null}"#),
        "{line}"
    );
    client.process.close_input();
    let exit = client.process.exit();
    assert!(exit.errors.contains(r#""params":{"z":1.50,"name":"n","a":{"y":1}}"#), "{exit:?}");
}

#[test]
fn a_request_that_no_call_can_carry_waits_for_the_next() {
    // As servers of folders do: they ask for roots as soon as the session is open.
    let script = r#"
        read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{}}}}'
        read line; read line
        echo '{"jsonrpc":"2.0","id":"r","method":"roots/list"}'
        echo '{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}'
        read line; echo "$line" >&2; read line; echo "$line" >&2
        id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[]}}'
        read line"#;
    let mut client =
        Client::with(Version::Stateless, bridge(&["--protocol-version", "legacy", "--", "sh", "-c", script]));
    assert_eq!(client.ask("tools/list", &json!({}))["result"]["tools"], json!([]));
    let roots = json!({ "roots": [{ "uri": "file:///mine" }] });
    let done = answered(&mut client, "n", &json!({}), "roots/list", &roots);
    assert!(done["result"]["content"].is_array(), "{done}");
    client.process.close_input();
    let exit = client.process.exit();
    let (answer, call) = (exit.errors.find("file:///mine"), exit.errors.find("tools/call"));
    assert!(answer.is_some() && answer < call, "{exit:?}");
}

#[test]
fn any_other_method_and_notification_passes() {
    let script = r#"
        read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"},"capabilities":{}}}'
        read line; read line
        echo '{"jsonrpc":"2.0","method":"x/news","params":{"n":1}}'
        echo '{"jsonrpc":"2.0","id":3,"result":{"own":true}}'
        read line"#;
    let mut client = Client::with(Version::Session("2025-06-18"), bridge(&["--", "sh", "-c", script]));
    assert_eq!(client.ask("x/own", &json!({}))["result"], json!({ "own": true }));
    assert_eq!(client.notification("x/news")["params"], json!({ "n": 1 }));
}

#[test]
fn there_is_one_server_for_each_client_whatever_its_requests_say() {
    let listener = Listener::open("http://127.0.0.1:0/mcp", &CHILD);
    let head = ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call"].map(str::to_owned);
    let call = |id: u64, tool: &str, arguments: Value, meta: Value| {
        let named = format!("Mcp-Name: {tool}");
        let head: Vec<String> = head.iter().cloned().chain([named]).collect();
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        listener.send("POST", &head, &Version::Stateless.request(id, "tools/call", &params)).json()
    };
    let added = call(0, "add_tool", json!({ "name": "kept" }), json!({}));
    assert!(added["result"]["isError"] != true, "{added}");
    for (id, level) in (1..).zip(["debug", "info", "error"].into_iter().cycle().take(10)) {
        let meta = json!({ "io.modelcontextprotocol/logLevel": level, "traceparent": format!("{id}") });
        let said = call(id, "kept", json!({}), meta);
        assert!(said["result"]["content"].is_array(), "{said}");
    }
    assert_eq!(children_of(listener.process.id()).len(), 1);
    let session = [listener.session("2025-11-25")];
    let echo = Version::Session("2025-11-25").call(1, "echo", &json!({ "message": "mine" }));
    for _ in 0..3 {
        assert_eq!(text_of(&listener.send("POST", &session, &echo).json()), "mine");
    }
    assert_eq!(
        children_of(listener.process.id()).len(),
        2,
        "one for the stateless ones, one for the session"
    );
}

#[test]
fn a_second_initialize_is_answered() {
    let mut client = Client::with(Version::Session("2025-11-25"), bridge(&CHILD));
    client.process.send_line(Client::initialize("2025-06-18"));
    assert_eq!(client.answer_to(&json!("init"))["result"]["protocolVersion"], "2025-06-18");
    client.is_served();
}

#[test]
fn what_a_client_does_wrong_is_answered_here_and_in_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.jsonl");
    let to = ["--record", trace.to_str().unwrap(), CHILD[0], CHILD[1], CHILD[2]];
    let mut client = Client::with(Version::Session("2025-11-25"), bridge(&to));
    client.process.send_line("nonsense");
    assert_eq!(client.next()["error"]["code"], -32700);
    client.is_served();
    client.process.close_input();
    client.process.exit();
    let trace = std::fs::read_to_string(trace).unwrap();
    let lines: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["event"] == "invalid" && line["text"] == "nonsense"), "{trace}");
    let sides: Vec<&Value> =
        lines.iter().filter(|line| line["event"] == "opened").map(|line| &line["side"]).collect();
    assert_eq!(sides, ["server", "client"]);
}

#[test]
fn the_trace_of_a_listener_has_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.jsonl");
    let to = ["--record", trace.to_str().unwrap(), CHILD[0], CHILD[1], CHILD[2]];
    let listener = Listener::open("http://127.0.0.1:0/mcp", &to);
    let session = [listener.session("2025-11-25")];
    let echo = Version::Session("2025-11-25").call("mine", "echo", &json!({ "message": "traced" }));
    assert_eq!(text_of(&listener.send("POST", &session, &echo).json()), "traced");
    let trace = std::fs::read_to_string(trace).unwrap();
    let lines: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls = lines.iter().filter(|line| line["message"]["method"] == "tools/call");
    let directions: Vec<&Value> = calls.map(|line| &line["direction"]).collect();
    assert_eq!(directions, ["received", "sent"], "{trace}");
}
