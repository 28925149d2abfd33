//! What clients do with a session, at either process.

use serde_json::{Value, json};

use crate::{Client, Replicas, accept, cancel, next_message, rest};

#[test]
fn requests_go_to_either_process() {
    let replicas = Replicas::start();
    let clients: Vec<_> = (0..3).map(|_| Client::open(&replicas)).collect();
    for round in 0..6 {
        for (number, client) in clients.iter().enumerate() {
            let (a, b) = (round, i64::try_from(number).unwrap());
            let answer = client.call(1, "sum", &json!({ "a": a, "b": b })).json();
            assert_eq!(answer["result"]["structuredContent"]["total"], a + b, "{answer}");
        }
    }
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(client.delete_at(number % 2), 204);
        for number in 0..2 {
            let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
            assert_eq!(client.post_to(number, &ping).status, 404, "it has ended at both");
        }
    }
}

#[test]
fn a_stream_is_resumed_at_the_other_process() {
    let replicas = Replicas::start();
    let client = Client::open(&replicas);
    let mut stream = client.call_at(0, 3, "long_task", &json!({ "steps": 6, "step_ms": 100 }));
    let (mut progress, mut number) = (Vec::new(), 0);
    let answer = loop {
        let (id, message) = next_message(&mut stream);
        if message.get("id").is_some() {
            break message;
        }
        if message["method"] == "notifications/progress" {
            progress.push(message["params"]["progress"].as_f64().unwrap());
        }
        // Each event is read at another process.
        number = 1 - number;
        stream = client.resume_at(number, &id);
        assert_eq!(stream.status, 200);
    };
    assert_eq!(answer["id"], 3, "{answer}");
    assert_eq!(progress.len(), 6, "each once: {progress:?}");
    assert!(progress.is_sorted(), "{progress:?}");
}

#[test]
fn a_question_is_answered_at_the_other_process() {
    let replicas = Replicas::start();
    let client = Client::open(&replicas);
    for turn in 0..4 {
        let mut stream = client.call_at(turn % 2, 5, "ask_user", &json!({ "form": "confirm" }));
        let (_, question) = next_message(&mut stream);
        assert_eq!(client.post_to((turn + 1) % 2, &accept(&question)).status, 202);
        let answer = rest(stream).pop().expect("an answer");
        assert_eq!(answer["result"]["structuredContent"]["action"], "accept", "{answer}");
    }
    client.works();
}

#[test]
fn a_call_is_cancelled_at_the_other_process() {
    let replicas = Replicas::start();
    let client = Client::open(&replicas);
    for number in 0..2 {
        let tag = format!("at {number}");
        let arguments = json!({ "steps": 1000, "step_ms": 50, "tag": tag });
        let mut stream = client.call_at(number, 7, "long_task", &arguments);
        next_message(&mut stream);
        assert_eq!(client.post_to(1 - number, &cancel(7)).status, 202);
        let messages = rest(stream);
        assert!(messages.iter().all(|message| message.get("result").is_none()), "{messages:?}");
    }
    client.works();
}

#[test]
fn a_request_state_is_opened_at_the_other_process() {
    let replicas = Replicas::start();
    for number in 0..2 {
        let ask = |number: usize, more: Value| {
            let mut params = json!({ "name": "ask_user", "arguments": { "form": "confirm" } });
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            replicas.post_stateless(number, "tools/call", "ask_user", params).json()
        };
        let asked = ask(number, json!({}));
        let result = &asked["result"];
        assert!(result["requestState"].is_string(), "{asked}");
        assert_eq!(result["resultType"], "input_required", "{asked}");
        let id = result["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let input = json!({ "action": "accept", "content": { "confirm": true } });
        let answered = json!({ "inputResponses": { id: input }, "requestState": result["requestState"] });
        let answer = ask(1 - number, answered);
        assert_eq!(answer["result"]["structuredContent"]["action"], "accept", "{answer}");
    }
}

#[test]
fn a_change_at_one_process_reaches_clients_of_the_other_once() {
    let replicas = Replicas::start();
    let client = Client::open(&replicas);
    client.works();
    let mut stream = client.get_stream(0);
    for (number, uri) in [(1, "file:///resources/notes.txt"), (0, "file:///resources/notes.txt")] {
        let subscribe =
            json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": { "uri": uri } });
        assert_eq!(client.post_to(number, &subscribe).status, 200);
        client.call_at(number, 4, "touch_resource", &json!({ "uri": uri })).json();
        let (_, update) = next_message(&mut stream);
        assert_eq!(
            (&update["method"], &update["params"]["uri"]),
            (&json!("notifications/resources/updated"), &json!(uri))
        );
    }
}
