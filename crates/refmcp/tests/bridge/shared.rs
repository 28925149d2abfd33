//! One server with sessions behind clients without: what it asks and says must reach no other client than the one it is
//! meant for.

use std::net::TcpStream;

use serde_json::{Value, json};

use crate::listener::Listener;
use crate::support::http::Response;
use crate::support::{STATELESS, Version, wait_until};

/// Opens the session as an old server does, then goes on with this.
fn old_server(capabilities: &str, then: &str) -> Listener {
    let script = format!(
        r#"read -r line; echo '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-06-18","serverInfo":{{"name":"s","version":"1"}},"capabilities":{capabilities}}}}}'
        read -r line
        {then}"#
    );
    Listener::open("http://127.0.0.1:0/mcp", &["--protocol-version", "legacy", "--", "sh", "-c", &script])
}

const ELICIT: &str = r#"echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}'"#;

fn start(listener: &Listener, params: &Value) -> TcpStream {
    let name = params["name"].as_str().unwrap();
    let head = [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "tools/call"), ("Mcp-Name", name)];
    let head = head.map(|(name, value)| format!("{name}: {value}"));
    listener.start("POST", &head, &Version::Stateless.request(1, "tools/call", params))
}

fn waits_for(listener: &Listener, text: &str) {
    wait_until(&format!("{text} at the server"), || listener.process.errors().contains(text));
}

#[test]
fn a_request_that_may_be_of_any_of_several_calls_is_refused() {
    let then = format!(
        r#"read -r line; echo first >&2; read -r line; {ELICIT}
        read -r line; echo "answered $line" >&2
        echo '{{"jsonrpc":"2.0","id":3,"result":{{"content":[{{"type":"text","text":"3"}}]}}}}'
        echo '{{"jsonrpc":"2.0","id":4,"result":{{"content":[{{"type":"text","text":"4"}}]}}}}'
        read -r line"#
    );
    let listener = old_server(r#"{"tools":{}}"#, &then);
    let one = start(&listener, &json!({ "name": "one", "arguments": {} }));
    waits_for(&listener, "first");
    let two = start(&listener, &json!({ "name": "two", "arguments": {} }));
    for (call, text) in [(one, "3"), (two, "4")] {
        let done = Response::read(call).json();
        assert_eq!(crate::support::text_of(&done), text, "{done}");
    }
    waits_for(&listener, r#"answered {"jsonrpc":"2.0","id":"q","error""#);
    waits_for(&listener, "it cannot be told whose call this request is for");
}

#[test]
fn the_only_call_is_asked() {
    let then = format!(
        r#"read -r line; {ELICIT}; read -r line; echo "answered $line" >&2
        echo '{{"jsonrpc":"2.0","id":3,"result":{{"content":[]}}}}'; read -r line"#
    );
    let listener = old_server(r#"{"tools":{}}"#, &then);
    let params = json!({ "name": "one", "arguments": {} });
    let asked = Response::read(start(&listener, &params)).json();
    let (key, _) = asked["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let mut again = params.clone();
    again["requestState"] = asked["result"]["requestState"].clone();
    again["inputResponses"] = json!({ key: { "action": "decline" } });
    let done = Response::read(start(&listener, &again)).json();
    assert!(done["result"]["content"].is_array(), "{done}");
    waits_for(&listener, "decline");
}

#[test]
fn a_request_without_any_call_is_refused_and_waits_for_no_client() {
    let then = format!(
        r#"{ELICIT}; read -r line; echo "answered $line" >&2; read -r line
        id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"content":[]}}}}'; read -r line"#
    );
    let listener = old_server(r#"{"tools":{}}"#, &then);
    waits_for(&listener, "it cannot be told whose call this request is for");
    let done = Response::read(start(&listener, &json!({ "name": "one", "arguments": {} }))).json();
    assert!(done["result"]["content"].is_array(), "{done}");
}

#[test]
fn a_request_for_a_cancelled_call_reaches_no_other_client() {
    // The server goes on with the call that was cancelled, as many do.
    let then = format!(
        r#"read -r line; echo first >&2; read -r line; echo "told $line" >&2; read -r line; {ELICIT}
        read -r line; echo "answered $line" >&2
        echo '{{"jsonrpc":"2.0","id":5,"result":{{"content":[]}}}}'; read -r line"#
    );
    let listener = old_server(r#"{"tools":{}}"#, &then);
    let one = start(&listener, &json!({ "name": "one", "arguments": {} }));
    waits_for(&listener, "first");
    drop(one);
    waits_for(&listener, "notifications/cancelled");
    let done = Response::read(start(&listener, &json!({ "name": "two", "arguments": {} }))).json();
    assert!(done["result"]["content"].is_array(), "{done}");
    waits_for(&listener, "it cannot be told whose call this request is for");
}

#[test]
fn a_log_message_that_may_be_of_any_of_several_calls_reaches_none() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let then = r#"read -r line; echo '{"jsonrpc":"2.0","id":3,"result":{}}'
        read -r line; echo first >&2; read -r line
        echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"secret of one"}}'
        echo '{"jsonrpc":"2.0","id":4,"result":{"content":[]}}'
        while [ ! -e MARK ]; do sleep 0.01; done
        echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"of two"}}'
        echo '{"jsonrpc":"2.0","id":5,"result":{"content":[]}}'
        read -r line"#
        .replace("MARK", mark.to_str().unwrap());
    let listener = old_server(r#"{"tools":{},"logging":{}}"#, &then);
    let meta = json!({ "io.modelcontextprotocol/logLevel": "error" });
    let params = |name: &str| json!({ "name": name, "arguments": {}, "_meta": meta });
    let one = start(&listener, &params("one"));
    waits_for(&listener, "first");
    let two = start(&listener, &params("two"));
    let one = Response::read(one).text();
    std::fs::write(&mark, "").unwrap();
    let texts = [one, Response::read(two).text()];
    assert!(!texts.iter().any(|text| text.contains("secret of one")), "{texts:?}");
    assert!(texts[1].contains("of two"), "what can be told is told: {texts:?}");
}

#[test]
fn a_subscription_ends_with_the_client_that_wanted_it() {
    let then = r#"while read -r line; do echo "got $line" >&2
        id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); echo '{"jsonrpc":"2.0","id":'$id',"result":{}}'; done"#;
    let listener = old_server(r#"{"resources":{"subscribe":true}}"#, then);
    let listen = |uris: &[&str]| {
        let head =
            ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: subscriptions/listen"].map(str::to_owned);
        let params = json!({ "notifications": { "resourceSubscriptions": uris } });
        let listen = Version::Stateless.request("ears", "subscriptions/listen", &params);
        let mut response = listener.send("POST", &head, &listen);
        assert!(response.event().is_some(), "it is acknowledged");
        response
    };
    let count = |text: &str| listener.process.errors().matches(text).count();
    let one = listen(&["x:both", "x:one"]);
    wait_until("two subscriptions", || count("resources/subscribe") == 2);
    let two = listen(&["x:both"]);
    drop(one);
    wait_until("the end of one", || count("resources/unsubscribe") == 1);
    drop(two);
    wait_until("the end of both", || count("resources/unsubscribe") == 2);
    assert_eq!(count("resources/subscribe"), 2, "{}", listener.process.errors());
    for _ in 0..50 {
        drop(listen(&["x:again"]));
    }
    wait_until("as many ends as beginnings", || {
        count("resources/subscribe") == count("resources/unsubscribe")
    });
}
