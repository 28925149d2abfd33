//! Answers to the server's questions, and the states that carry them.

use serde_json::{Value, json};

use crate::support::{Client, Version, text_of};
use crate::table::{request, row, try_under};

const TOOL: &str = "test_input_required_result_request_state";

fn retry(client: &mut Client, tool: &str, state: &Value, answer: &Value) -> Value {
    let params = json!({
        "name": tool, "arguments": {}, "requestState": state, "inputResponses": { "confirm": answer },
    });
    client.ask("tools/call", &params)
}

#[test]
fn tampered_request_states() {
    let mut client = Client::start(Version::Stateless, &[]);
    let mut other = Client::start(Version::Stateless, &[]);
    let state_of = |client: &mut Client, tool: &str| {
        let asked = client.call(tool, &json!({}));
        asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("no state: {asked}")).to_owned()
    };
    let state = state_of(&mut client, TOOL);
    let accepted = json!({ "action": "accept", "content": { "ok": true } });
    let refused = |client: &mut Client, why: &str, tool: &str, state: Value| {
        let answer = retry(client, tool, &state, &accepted);
        assert_eq!(answer["error"]["code"], -32602, "{why}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("requestState"), "{why}: {message}");
    };
    for at in 0..state.len() {
        let mut forged = state.clone().into_bytes();
        forged[at] = if forged[at] == b'A' { b'Z' } else { b'A' };
        refused(&mut client, "a letter changed", TOOL, json!(String::from_utf8(forged).expect("ASCII")));
        refused(&mut client, "cut short", TOOL, json!(state[..at]));
    }
    refused(&mut client, "longer", TOOL, json!(format!("{state}AAAA")));
    refused(&mut client, "long", TOOL, json!("A".repeat(1 << 20)));
    refused(&mut client, "a number", TOOL, json!(5));
    refused(&mut client, "an object", TOOL, json!({ "round": 1 }));
    refused(&mut client, "another tool's", "test_input_required_result_tampered_state", json!(state));
    let foreign = state_of(&mut other, TOOL);
    refused(&mut client, "another server's", TOOL, json!(foreign));
    let cursor_like = client.ask("tools/list", &json!({ "cursor": state }));
    assert_eq!(cursor_like["error"]["code"], -32602, "no cursor either: {cursor_like}");
    for _ in 0..2 {
        // Tools that only read may be repeated.
        let answer = retry(&mut client, TOOL, &json!(state), &accepted);
        assert_eq!(text_of(&answer), "state-ok", "{answer}");
    }
    client.hears_nothing("one answer each");
    other.is_served();
}

#[test]
fn answers_that_do_not_fit_the_question() {
    let version = Version::Stateless;
    let with = |responses: Value| {
        request(version, "tools/call", &json!({ "name": TOOL, "arguments": {}, "inputResponses": responses }))
    };
    let rows = [
        row("no object", with(json!(5))).error(-32602, "inputResponses"),
        row("a list", with(json!([]))).error(-32602, "inputResponses"),
        row("an answer that is none", with(json!({ "confirm": 5 }))).error(-32602, "confirm"),
        row("null for all", with(json!(null))).served(),
        row("of another question", with(json!({ "other": {} }))).served(),
    ];
    try_under(version, &[], &rows);
    let mut client = Client::start(version, &[]);
    for odd in [
        json!({}),
        json!({ "action": "maybe" }),
        json!({ "action": "accept", "content": { "ok": "yes" } }),
        json!({ "action": "accept" }),
    ] {
        let params = json!({ "name": TOOL, "arguments": {}, "inputResponses": { "confirm": odd } });
        let answer = client.ask("tools/call", &params);
        assert_ne!(text_of(&answer), "state-ok", "{odd}: {answer}");
        assert_eq!(answer["error"]["code"], -32602, "{odd}: {answer}");
    }
    client.is_served();
}

#[test]
fn answers_in_a_session() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let version = Version::Session(revision);
        let mut client = Client::start(version, &[]);
        for odd in [
            json!({ "result": {} }),
            json!({ "result": null }),
            json!({ "result": { "action": "maybe" } }),
            json!({ "result": { "action": "accept", "content": { "confirmed": "yes" } } }),
            json!({ "error": { "code": -1, "message": "no" } }),
        ] {
            client.process.send_line(version.call(7, "ask_user", &json!({ "form": "confirm" })));
            let question = client.notification("elicitation/create");
            let mut answer = odd.clone();
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = question["id"].clone();
            client.process.send_line(answer.to_string());
            // Twice: the second has nothing to answer.
            client.process.send_line(answer.to_string());
            let outcome = client.answer_to(&json!(7));
            let failed = outcome["result"]["isError"] == true || outcome["error"].is_object();
            assert!(failed, "{odd}: {outcome}");
            client.hears_nothing("one answer");
        }
    }
}
