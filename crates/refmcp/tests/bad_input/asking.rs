//! Answers to the server's questions, and the states that carry them.

use serde_json::{Value, json};

use crate::peer::{Peer, Site, Transport, WAYS, Way};
use crate::support::{Version, text_of};
use crate::table::{Row, request, row};

const TOOL: &str = "test_input_required_result_request_state";

fn retry(peer: &mut Peer, tool: &str, state: &Value, answer: &Value) -> Value {
    let params = json!({
        "name": tool, "arguments": {}, "requestState": state, "inputResponses": { "confirm": answer },
    });
    peer.ask("tools/call", &params)
}

/// The ways on which clients carry states.
fn stateless() -> impl Iterator<Item = Way> {
    WAYS.into_iter().filter(|way| way.is_stateless())
}

#[test]
fn tampered_request_states() {
    let (site, elsewhere) = (Site::start(&[]), Site::start(&[]));
    for way in stateless() {
        let mut peer = Peer::open(&site, way);
        let mut other = Peer::open(&elsewhere, way);
        let state_of = |peer: &mut Peer, tool: &str| {
            let asked = peer.call(tool, &json!({}));
            asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("no state: {asked}")).to_owned()
        };
        let state = state_of(&mut peer, TOOL);
        let accepted = json!({ "action": "accept", "content": { "ok": true } });
        let refused = |peer: &mut Peer, why: &str, tool: &str, state: Value| {
            let answer = retry(peer, tool, &state, &accepted);
            assert_eq!(answer["error"]["code"], -32602, "{why}: {answer}");
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains("requestState"), "{why}: {message}");
        };
        for at in 0..state.len() {
            let mut forged = state.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'Z' } else { b'A' };
            refused(&mut peer, "a letter changed", TOOL, json!(String::from_utf8(forged).expect("ASCII")));
            refused(&mut peer, "cut short", TOOL, json!(state[..at]));
        }
        refused(&mut peer, "longer", TOOL, json!(format!("{state}AAAA")));
        refused(&mut peer, "long", TOOL, json!("A".repeat(1 << 20)));
        refused(&mut peer, "a number", TOOL, json!(5));
        refused(&mut peer, "an object", TOOL, json!({ "round": 1 }));
        refused(&mut peer, "another tool's", "test_input_required_result_tampered_state", json!(state));
        let foreign = state_of(&mut other, TOOL);
        refused(&mut peer, "another server's", TOOL, json!(foreign));
        let cursor_like = peer.ask("tools/list", &json!({ "cursor": state }));
        assert_eq!(cursor_like["error"]["code"], -32602, "no cursor either: {cursor_like}");
        for _ in 0..2 {
            // Tools that only read may be repeated.
            let answer = retry(&mut peer, TOOL, &json!(state), &accepted);
            assert_eq!(text_of(&answer), "state-ok", "{answer}");
        }
        peer.hears_nothing("one answer each");
        other.hears_nothing("another server");
    }
}

pub(crate) fn answers_to_no_question(way: Way) -> Vec<Row> {
    if !way.is_stateless() {
        return Vec::new();
    }
    let with = |responses: Value| {
        request(way, "tools/call", &json!({ "name": TOOL, "arguments": {}, "inputResponses": responses }))
    };
    vec![
        row("no object", with(json!(5))).error(-32602, "inputResponses"),
        row("a list", with(json!([]))).error(-32602, "inputResponses"),
        row("an answer that is none", with(json!({ "confirm": 5 }))).error(-32602, "confirm"),
        row("null for all", with(json!(null))).served(),
        row("of another question", with(json!({ "other": {} }))).served(),
    ]
}

#[test]
fn answers_that_do_not_fit_the_question() {
    let site = Site::start(&[]);
    for way in stateless() {
        let mut peer = Peer::open(&site, way);
        for odd in [
            json!({}),
            json!({ "action": "maybe" }),
            json!({ "action": "accept", "content": { "ok": "yes" } }),
            json!({ "action": "accept" }),
        ] {
            let params = json!({ "name": TOOL, "arguments": {}, "inputResponses": { "confirm": odd } });
            let answer = peer.ask("tools/call", &params);
            assert_ne!(text_of(&answer), "state-ok", "{odd}: {answer}");
            assert_eq!(answer["error"]["code"], -32602, "{odd}: {answer}");
        }
        peer.hears_nothing("one answer each");
    }
}

/// Over streamable HTTP the question comes with the response to the call: the tests `sessions` of `refmcp-http`.
#[test]
fn answers_in_a_session() {
    let site = Site::start(&[]);
    for (transport, revision) in [
        (Transport::Stdio, "2025-06-18"),
        (Transport::Stdio, "2025-11-25"),
        (Transport::HttpSse, "2025-06-18"),
        (Transport::WebSocket, "2025-11-25"),
    ] {
        let version = Version::Session(revision);
        let mut peer = Peer::open(&site, Way { transport, version });
        for odd in [
            json!({ "result": {} }),
            json!({ "result": null }),
            json!({ "result": { "action": "maybe" } }),
            json!({ "result": { "action": "accept", "content": { "confirmed": "yes" } } }),
            json!({ "error": { "code": -1, "message": "no" } }),
        ] {
            peer.send(version.call(7, "ask_user", &json!({ "form": "confirm" })).as_bytes());
            let question = peer.message();
            assert_eq!(question["method"], "elicitation/create", "{question}");
            let mut answer = odd.clone();
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = question["id"].clone();
            peer.send(answer.to_string().as_bytes());
            // Twice: the second has nothing to answer.
            peer.send(answer.to_string().as_bytes());
            let outcome = peer.answer_to(&json!(7));
            let failed = outcome["result"]["isError"] == true || outcome["error"].is_object();
            assert!(failed, "{odd}: {outcome}");
            peer.hears_nothing("one answer");
        }
    }
}
