//! Calls during which the server asks the client: what comes before, between and after the answers.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bridge;
use crate::support::{Client, Version, wait_until};

const ELICIT: &str = r#"echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}'"#;

fn log(text: &str) -> String {
    format!(
        r#"echo '{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"error","data":"{text}"}}}}'"#
    )
}

/// A client of an old server that says `before` once it is called, and `after` once it is answered.
fn client(version: Version, before: &str, after: &str) -> Client {
    // A client without a session wants log messages with its call, which becomes a request of its own.
    let level = match version {
        Version::Session(_) => "",
        Version::Stateless => r#"read -r line; echo '{"jsonrpc":"2.0","id":3,"result":{}}'"#,
    };
    let script = format!(
        r#"read -r line; echo '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-06-18","serverInfo":{{"name":"s","version":"1"}},"capabilities":{{"tools":{{}},"logging":{{}}}}}}}}'
        read -r line
        {level}
        read -r line; id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        result='{{"jsonrpc":"2.0","id":'$id',"result":{{"content":[]}}}}'
        {before}; read -r line; echo "heard $line" >&2; {after}; read -r line"#
    );
    Client::with(version, bridge(&["--protocol-version", "legacy", "--", "sh", "-c", &script]))
}

const VERSIONS: [Version; 2] = [Version::Session("2025-06-18"), Version::Stateless];

/// Waits for a file that the test writes: the client has been asked by then.
fn wait_for_mark(folder: &TempDir) -> String {
    format!("while [ ! -e {} ]; do sleep 0.01; done", folder.path().join("mark").display())
}

/// Calls, is asked, lets the server go on until it says so, answers if that is wanted, and hears of the end.
fn call(client: &mut Client, folder: &TempDir, answers: bool) -> Value {
    let meanwhile = |client: &Client| {
        fs::write(folder.path().join("mark"), "").unwrap();
        wait_until("the server", || client.process.errors().contains("said all"));
    };
    let meta = json!({ "io.modelcontextprotocol/logLevel": "debug" });
    let params = json!({ "name": "n", "arguments": {}, "_meta": meta });
    client.process.send_line(client.version.request(7, "tools/call", &params));
    let answer = json!({ "action": "decline" });
    if client.version == Version::Stateless {
        let asked = client.answer_to(&json!(7));
        meanwhile(client);
        let (key, _) = asked["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
        let mut params = params.clone();
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"] = json!({ key: answer });
        return client.ask("tools/call", &params);
    }
    let question = client.notification("elicitation/create");
    meanwhile(client);
    if answers {
        let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
        client.process.send_line(reply.to_string());
    }
    client.answer_to(&json!(7))
}

#[test]
fn a_result_that_comes_while_the_client_is_asked_is_passed_on() {
    for version in VERSIONS {
        let folder = tempfile::tempdir().unwrap();
        let mark = wait_for_mark(&folder);
        let before = format!(r#"{ELICIT}; {mark}; echo "$result"; echo said all >&2"#);
        let mut client = client(version, &before, "true");
        let done = call(&mut client, &folder, false);
        assert!(done["result"]["content"].is_array(), "{version:?}: {done}");
    }
}

#[test]
fn log_messages_around_an_input_round_are_passed_on() {
    for version in VERSIONS {
        let (before, between, after) = (log("before"), log("between"), log("after"));
        let folder = tempfile::tempdir().unwrap();
        let mark = wait_for_mark(&folder);
        let before = format!("{before}; {ELICIT}; {mark}; {between}; echo said all >&2");
        let mut client = client(version, &before, &format!(r#"{after}; echo "$result""#));
        let done = call(&mut client, &folder, true);
        assert!(done["result"]["content"].is_array(), "{version:?}: {done}");
        for text in ["before", "between", "after"] {
            assert_eq!(client.notification("notifications/message")["params"]["data"], text, "{version:?}");
        }
    }
}

#[test]
fn log_messages_before_a_result_that_comes_while_the_client_is_asked_are_passed_on() {
    for version in VERSIONS {
        let (folder, between) = (tempfile::tempdir().unwrap(), log("between"));
        let mark = wait_for_mark(&folder);
        let before = format!(r#"{ELICIT}; {mark}; {between}; echo "$result"; echo said all >&2"#);
        let mut client = client(version, &before, "true");
        let done = call(&mut client, &folder, false);
        assert!(done["result"]["content"].is_array(), "{version:?}: {done}");
        assert!(client.has_heard("notifications/message"), "{version:?}");
    }
}

#[test]
fn calls_that_are_cancelled_while_the_client_is_asked_end_at_the_server() {
    const CALLS: usize = 100;
    let script = r#"read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{}}}}'
        while read -r line; do case "$line" in
            *tools/call*) n=$((n+1)); echo '{"jsonrpc":"2.0","id":"q'$n'","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}';;
            *tools/list*) echo "{\"jsonrpc\":\"2.0\",\"id\":$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'),\"result\":{\"tools\":[]}}";;
            *notifications/cancelled*) echo cancelled >&2;;
        esac; done"#;
    let mut client = Client::with(Version::Session("2025-06-18"), bridge(&["--", "sh", "-c", script]));
    for id in 0..CALLS {
        client.process.send_line(client.version.call(id, "n", &json!({})));
        client.notification("elicitation/create");
        // Beside other calls, which look for the connection at the same time.
        let list = |n| client.version.request(format!("{id} {n}"), "tools/list", &json!({})) + "\n";
        let (lists, more): (String, String) = ((0..3).map(list).collect(), (3..6).map(list).collect());
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        client.process.send(format!("{lists}{cancel}\n{more}"));
    }
    wait_until("all to be cancelled", || client.process.errors().matches("cancelled").count() == CALLS);
}

#[test]
fn a_request_that_waits_behind_a_cancelled_call_is_asked_by_another() {
    let script = r#"read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{}}}}'
        read -r line
        ask() { echo '{"jsonrpc":"2.0","id":"'$1'","method":"elicitation/create","params":{"message":"'$1'","requestedSchema":{"type":"object","properties":{}}}}'; }
        read -r line; ask one; read -r line; ask two; echo both >&2
        while read -r line; do echo "got $line" >&2; done"#;
    let mut client = Client::with(Version::Session("2025-06-18"), bridge(&["--", "sh", "-c", script]));
    client.process.send_line(client.version.call(1, "n", &json!({})));
    assert_eq!(client.notification("elicitation/create")["params"]["message"], "one");
    client.process.send_line(client.version.call(2, "n", &json!({})));
    wait_until("both requests", || client.process.errors().contains("both"));
    client.notify("notifications/cancelled", &json!({ "requestId": 1 }));
    let question = client.notification("elicitation/create");
    assert_eq!(question["params"]["message"], "two");
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } });
    client.process.send_line(reply.to_string());
    wait_until("the answer", || client.process.errors().contains("decline"));
}
