//! What servers ask: the same functions answer in every revision.

use refmcp_client::memory::Memory;
use refmcp_client::model::{ContentBlock, InputResponses, Root};
use refmcp_client::{Client, Event, Host, Revision, RoundOutcome, RpcError, VersionPolicy};
use refmcp_testkit::refmcp_server::Server;
use serde_json::{Value, json};

use crate::fixture::{client_of, client_of_script, server};

const ABLE: [Revision; 3] = [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

fn text(content: &[ContentBlock]) -> &str {
    match content {
        [ContentBlock::Text(text)] => &text.text,
        other => panic!("{other:?}"),
    }
}

async fn with_host(server: &Server, revision: Revision, host: Host) -> Client {
    let builder = Client::builder("test", "1").host(host).version_policy(VersionPolicy::Exactly(revision));
    builder.connect(Memory::new(server.in_memory())).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_host_answers_in_every_revision() {
    let server = server();
    for revision in ABLE {
        let (client, _) = client_of(&server, revision).await;
        let asked = client.call_tool("ask", json!({})).await.unwrap();
        assert!(text(&asked.content).starts_with("true 2 "), "{revision}: {asked:?}");
        assert!(text(&asked.content).contains("something"), "{revision}: {asked:?}");
        client.set_roots(vec![Root::new("file:///only")]).unwrap();
        let asked = client.call_tool("ask", json!({})).await.unwrap();
        assert!(text(&asked.content).starts_with("true 1 "), "{revision}: {asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_application_refuses_ends_the_call_and_no_other() {
    let server = server();
    for revision in ABLE {
        let host = Host::new()
            .elicitation(|_| async { Err(RpcError::new(-1, "not now")) })
            .sampling(|_| async { panic!("the model is broken") })
            .roots([]);
        let client = with_host(&server, revision, host).await;
        let refused = client.call_tool("ask", json!({})).await;
        let said = format!("{refused:?}");
        assert!(said.contains("not now") || said.contains("the application failed"), "{revision}: {said}");
        client.call_tool("echo", json!({ "message": "m" })).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_can_do_nothing_is_not_asked() {
    let server = server();
    for revision in ABLE {
        let client = with_host(&server, revision, Host::new()).await;
        let refused = client.call_tool("ask", json!({})).await;
        let said = format!("{refused:?}");
        assert!(said.contains("does not support"), "{revision}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_can_be_brought_by_hand() {
    let (client, _) = client_of(&server(), Revision::LATEST).await;
    let RoundOutcome::InputRequired(needed) = client.call_tool("ask", json!({})).send_round().await.unwrap()
    else {
        panic!("it was not asked")
    };
    let mut responses = InputResponses::new();
    for (key, request) in needed.input_requests.unwrap() {
        let answer: Value = match request.method() {
            "roots/list" => json!({ "roots": [{ "uri": "file:///by/hand" }] }),
            "elicitation/create" => json!({ "action": "accept", "content": { "confirm": true } }),
            _ => json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "typed" } }),
        };
        responses.insert(key, answer);
    }
    let outcome = client
        .call_tool("ask", json!({}))
        .input_responses(responses, needed.request_state)
        .send_round()
        .await;
    match outcome.unwrap() {
        RoundOutcome::Complete(result) => assert!(text(&result.content).contains("typed"), "{result:?}"),
        RoundOutcome::InputRequired(again) => panic!("{again:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_called_off_is_dropped() {
    let (client, mut script, events) = client_of_script().await;
    script
        .say(json!({ "id": "q", "method": "sampling/createMessage", "params": {
        "messages": [], "maxTokens": 1,
    } }))
        .await;
    let answer = script.next().await.unwrap();
    assert_eq!((&answer["id"], &answer["result"]["model"]), (&json!("q"), &json!("a model")));
    script.say(json!({ "id": "r", "method": "elicitation/create", "params": { "message": 1 } })).await;
    assert_eq!(script.next().await.unwrap()["error"]["code"], -32602);
    let (pinged, _) = tokio::join!(client.ping(), script.answer("ping", json!({})));
    pinged.unwrap();
    assert!(!events.lock().unwrap().iter().any(|event| matches!(event, Event::Closed(_))));
}

#[tokio::test]
async fn one_function_handles_all_requests_with_the_capabilities_of_another_client() {
    let server = server();
    for revision in ABLE {
        let capabilities = serde_json::from_value(json!({ "roots": {}, "sampling": {}, "elicitation": {} }));
        let host = Host::new().requests(capabilities.unwrap(), |request| async move {
            Ok(match request.method() {
                "roots/list" => json!({ "roots": [{ "uri": "file:///x" }] }),
                "elicitation/create" => json!({ "action": "accept", "content": { "confirm": true } }),
                _ => json!({ "role": "assistant", "content": { "type": "text", "text": "said" }, "model": "m" }),
            })
        });
        let client = with_host(&server, revision, host).await;
        let asked = client.call_tool("ask", json!({})).await.unwrap();
        assert!(text(&asked.content).starts_with("true 1 "), "{revision}: {asked:?}");
    }
}

#[tokio::test]
async fn a_client_that_allows_at_most_a_revision_asks_for_it_and_takes_older_ones() {
    let (mut script, memory) = crate::fixture::Script::new();
    let builder = Client::builder("test", "1").version_policy(VersionPolicy::AtMost(Revision::V2025_06_18));
    let answering = async {
        let facts = json!({
            "protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": { "name": "old", "version": "1" },
        });
        let asked = script.answer("initialize", facts).await;
        assert_eq!(asked["params"]["protocolVersion"], "2025-06-18");
    };
    let (client, ()) = tokio::join!(builder.connect(memory), answering);
    assert_eq!(client.unwrap().server().revision, Revision::V2024_11_05);
}
