//! Questions to the client and their answers, in sessions and without.

use refmcp_server::model::{FormSchema, PromptMessage, ResourceContents, StringSchema};
use refmcp_server::{Call, CallError, ElicitOutcome, NoArguments, Prompt, Resource, Server, Tool};
use refmcp_testkit::client::{TestClient, accept_all, text};
use serde_json::{Value, json};

use crate::support::{BOTH, SESSION, STATELESS, repeat, server};

fn name_form() -> FormSchema {
    FormSchema::new().required("name", StringSchema::new().min_length(2u64))
}

/// Asks two things at once, and a third that depends on them.
async fn interview(call: Call, _: NoArguments) -> Result<String, CallError> {
    let name = call.elicit("name", "Who?", name_form());
    let roots = call.list_roots("roots");
    let (name, roots) = (name?, roots?);
    let ElicitOutcome::Accepted(name) = name else { return Ok(format!("no name: {name:?}")) };
    let prompt = format!("Greet {} of {}", name["name"], roots[0].uri);
    let greeting = call.sample("greeting", prompt.clone(), 10)?;
    Ok(format!("{prompt} with {}", greeting.model))
}

fn interviewer() -> Server {
    server([Tool::new("interview", "Asks", interview)])
}

fn accept(content: &Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[tokio::test]
async fn questions_that_do_not_depend_on_each_other_travel_together() {
    let mut client = TestClient::open(&interviewer(), SESSION).await;
    let id = client.start_tool("interview", json!({})).await;
    let first = client.question().await;
    client.catch_up().await;
    let second = client.requests.pop_front().expect("the second question waits for the first answer");
    assert!(client.requests.is_empty(), "the third depends on the others");
    let mut methods = [&first, &second].map(|question| question["method"].as_str().unwrap());
    methods.sort_unstable();
    assert_eq!(methods, ["elicitation/create", "roots/list"]);
    for question in [&second, &first] {
        client.reply(question, accept_all(question)).await;
    }
    let third = client.question().await;
    assert!(third["params"]["messages"][0].to_string().contains("Greet"), "{third}");
    client.reply(&third, accept_all(&third)).await;
    let answer = client.answer(id).await;
    assert_eq!(text(&answer["result"]), "Greet \"Alice\" of file:///work with test-model");
}

#[tokio::test]
async fn without_a_session_they_travel_in_results() {
    let mut client = TestClient::open(&interviewer(), STATELESS).await;
    let asked = client.tool("interview", json!({})).await;
    assert_eq!(asked["resultType"], "input_required");
    let keys: Vec<&String> = asked["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "roots"]);
    // One at a time: what was answered is not asked again.
    let given = json!({ "roots": { "roots": [{ "uri": "file:///w" }] } });
    let again = repeat(&mut client, "interview", &asked["requestState"], given).await["result"].take();
    let keys: Vec<&String> = again["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name"]);
    let given = json!({ "name": accept(&json!({ "name": "Al" })) });
    let third = repeat(&mut client, "interview", &again["requestState"], given).await["result"].take();
    let given = json!({ "greeting": accept_all(&third["inputRequests"]["greeting"]) });
    let done = repeat(&mut client, "interview", &third["requestState"], given).await;
    assert_eq!(text(&done["result"]), "Greet \"Al\" of file:///w with test-model");
}

#[tokio::test]
async fn people_may_decline_and_put_away() {
    let server = interviewer();
    for (action, told) in [("decline", "no name: Declined"), ("cancel", "no name: Cancelled")] {
        for revision in BOTH {
            let mut client = TestClient::open(&server, revision).await;
            let answer = finish(&mut client, "interview", |question| match &question["method"] {
                method if method == "elicitation/create" => json!({ "action": action }),
                _ => accept_all(question),
            });
            assert_eq!(text(&answer.await["result"]), told, "{revision}");
        }
    }
}

/// Calls a tool, answers whatever is asked, and gives the last message.
async fn finish(client: &mut TestClient, tool: &str, answer: impl Fn(&Value) -> Value) -> Value {
    let id = client.start_tool(tool, json!({})).await;
    let mut ended = loop {
        match client.answer_or_question(id).await {
            Ok(answer) => break answer,
            Err(question) => client.reply(&question, answer(&question)).await,
        }
    };
    while ended["result"]["resultType"] == "input_required" {
        let open = ended["result"]["inputRequests"].as_object().unwrap();
        let given: serde_json::Map<_, _> =
            open.iter().map(|(key, question)| (key.clone(), answer(question))).collect();
        ended = repeat(client, tool, &ended["result"]["requestState"], Value::Object(given)).await;
    }
    ended
}

#[tokio::test]
async fn every_kind_of_question_has_its_kind_of_answer() {
    let tool = Tool::new("all", "Asks everything", |call: Call, _: NoArguments| async move {
        let sure = call.confirm("sure", "Sure?");
        let visit = call.elicit_url("visit", "Sign in", "https://example.com/");
        let (sure, visit) = (sure?, visit?);
        Ok(format!("{sure} {}", visit == ElicitOutcome::Accepted(())))
    });
    let server = server([tool]);
    for revision in BOTH {
        let mut client = TestClient::open(&server, revision).await;
        assert_eq!(text(&finish(&mut client, "all", accept_all).await["result"]), "true true", "{revision}");
        let no = finish(&mut client, "all", |_| json!({ "action": "decline" })).await;
        assert_eq!(text(&no["result"]), "false false", "{revision}");
    }
}

#[tokio::test]
async fn prompts_and_resources_ask_too() {
    let prompt = Prompt::new("letter", |call: Call, _| async move {
        let sure = call.confirm("sure", "Write it?")?;
        Ok(PromptMessage::user(format!("sure: {sure}")))
    });
    let resource = Resource::new("secret://x", "secret", |call: Call| async move {
        let sure = call.confirm("sure", "Read it?")?;
        Ok(ResourceContents::text("secret://x", format!("sure: {sure}")))
    });
    let server = Server::builder("test", "1").prompt(prompt).resource(resource).build().unwrap();
    for (method, params, place) in [
        ("prompts/get", json!({ "name": "letter" }), "/result/messages/0/content/text"),
        ("resources/read", json!({ "uri": "secret://x" }), "/result/contents/0/text"),
    ] {
        let mut client = TestClient::open(&server, SESSION).await;
        let id = client.request(method, params.clone()).await;
        let question = client.question().await;
        client.reply(&question, accept_all(&question)).await;
        assert_eq!(client.answer(id).await.pointer(place), Some(&json!("sure: true")));

        let mut client = TestClient::open(&server, STATELESS).await;
        let asked = client.result(method, params.clone()).await;
        let mut again = params;
        again["requestState"] = asked["requestState"].clone();
        again["inputResponses"] = json!({ "sure": accept(&json!({ "confirm": true })) });
        assert_eq!(client.call(method, again).await.pointer(place), Some(&json!("sure: true")));
    }
}

#[tokio::test]
async fn answers_that_do_not_fit_are_not_taken() {
    let server = interviewer();
    let short = |question: &Value| match &question["method"] {
        method if method == "elicitation/create" => accept(&json!({ "name": "A" })),
        _ => accept_all(question),
    };
    let mut client = TestClient::open(&server, SESSION).await;
    let told = finish(&mut client, "interview", short).await["result"].take();
    assert_eq!(told["isError"], true);
    assert!(text(&told).contains("\"name\""), "{told}");
    let mut client = TestClient::open(&server, STATELESS).await;
    let error = finish(&mut client, "interview", short).await["error"].take();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().unwrap().contains("\"name\""), "{error}");
}
