//! Handlers run again with every answer, and the client sees none of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use refmcp_server::model::{LogLevel, PromptMessage, ResourceContents};
use refmcp_server::{Call, CallError, NoArguments, Prompt, Resource, Server, Tool};
use refmcp_testkit::client::{TestClient, accept_all, text};
use refmcp_testkit::replay::{AnswerOrder, replay_call};
use serde_json::{Value, json};

use crate::support::{BOTH, STATELESS, server};

/// Asks thrice in two rounds, and tells of every step.
async fn deploy(call: Call, _: NoArguments) -> Result<String, CallError> {
    call.log(LogLevel::Info, "deploy", "begun").await;
    call.progress(1.0, Some(4.0), "asking").await;
    let model = call.sample("model", "Name it.", 10);
    let roots = call.list_roots("roots");
    let (model, roots) = (model?, roots?);
    call.log(LogLevel::Info, "deploy", json!({ "model": model.model })).await;
    call.progress(2.0, Some(4.0), "asking again").await;
    let last = call.sample("last", "Name it again.", 10)?;
    call.progress(3.0, Some(4.0), "deploying").await;
    call.log(LogLevel::Warning, "deploy", "done").await;
    Ok(format!("{} {} {}", model.model, roots.len(), last.model))
}

#[tokio::test]
async fn the_client_sees_the_same_however_often_the_handler_runs() {
    let server = server([Tool::new("deploy", "Deploys", deploy)]);
    let seen = replay_call(&server, "tools/call", json!({ "name": "deploy" }), accept_all).await.unwrap();
    for run in &seen {
        assert_eq!(run.progress, [1, 2, 3].map(Value::from), "{run:?}");
        assert_eq!(run.logs.len(), 3, "{run:?}");
        assert_eq!(text(&run.answer["result"]), "test-model 1 test-model", "{run:?}");
    }
    let rounds = |order: AnswerOrder| {
        seen.iter().filter(|run| run.order == order).map(|run| run.rounds).max().unwrap()
    };
    assert_eq!(
        [AnswerOrder::InAdvance, AnswerOrder::InOrder, AnswerOrder::Reversed, AnswerOrder::FirstOnly]
            .map(rounds),
        [1, 3, 3, 4]
    );
}

#[tokio::test]
async fn prompts_and_resources_are_no_exception() {
    let prompt = Prompt::new("letter", |call: Call, _| async move {
        call.log(LogLevel::Info, "", "writing").await;
        let model = call.sample("model", "Whose?", 10);
        let roots = call.list_roots("roots");
        Ok(PromptMessage::user(format!("{} {}", model?.model, roots?[0].uri)))
    });
    let resource = Resource::new("place://", "place", |call: Call| async move {
        call.progress(1.0, None, "").await;
        let roots = call.list_roots("roots")?;
        Ok(ResourceContents::text("place://", roots[0].uri.clone()))
    });
    let server = Server::builder("test", "1").prompt(prompt).resource(resource).build().unwrap();
    for (method, params, place) in [
        ("prompts/get", json!({ "name": "letter" }), "/result/messages/0/content/text"),
        ("resources/read", json!({ "uri": "place://" }), "/result/contents/0/text"),
    ] {
        for run in replay_call(&server, method, params, accept_all).await.unwrap() {
            let text = run.answer.pointer(place).and_then(Value::as_str).unwrap();
            assert!(text.ends_with("file:///work"), "{run:?}");
            assert_eq!(run.logs.len() + run.progress.len(), 1, "{run:?}");
        }
    }
}

#[tokio::test]
async fn a_handler_that_betrays_its_replay_is_found_out() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counts = Tool::new("counts", "Counts its runs", move |call: Call, _: NoArguments| {
        let run = runs.fetch_add(1, Ordering::SeqCst);
        async move {
            let first = call.confirm("first", "?");
            let second = call.confirm("second", "?");
            first?;
            second?;
            Ok(format!("run {run}"))
        }
    });
    let told = replay_call(&server([counts]), "tools/call", json!({ "name": "counts" }), accept_all)
        .await
        .unwrap_err();
    assert!(told.contains("differ") && told.contains("answer"), "{told}");
}

/// A server whose tool does a costly step before it asks twice, and how often that was done.
fn costly() -> (Server, Arc<AtomicUsize>) {
    let done = Arc::new(AtomicUsize::new(0));
    let work = done.clone();
    let tool = Tool::new("costly", "Works once", move |call: Call, _: NoArguments| {
        let work = work.clone();
        async move {
            let step = async { Ok(work.fetch_add(1, Ordering::SeqCst) + 1) };
            let made: usize = call.once("step", step).await?;
            call.confirm("first", "First?")?;
            let same: usize = call.once("step", async { Err(CallError::new("done twice")) }).await?;
            call.confirm("second", "Second?")?;
            Ok(format!("{made} {same} {}", call.round()))
        }
    });
    (server([tool]), done)
}

#[tokio::test]
async fn a_costly_step_is_done_once() {
    for revision in BOTH {
        let (server, done) = costly();
        let mut client = TestClient::open(&server, revision).await;
        let mut params = json!({ "name": "costly", "arguments": {} });
        let answer = loop {
            let id = client.request("tools/call", params.clone()).await;
            let answer = loop {
                match client.answer_or_question(id).await {
                    Ok(answer) => break answer,
                    Err(question) => client.reply(&question, accept_all(&question)).await,
                }
            };
            if answer["result"]["resultType"] != "input_required" {
                break answer;
            }
            let open = answer["result"]["inputRequests"].as_object().unwrap();
            let given: serde_json::Map<_, _> =
                open.iter().map(|(key, asked)| (key.clone(), accept_all(asked))).collect();
            params["requestState"] = answer["result"]["requestState"].clone();
            params["inputResponses"] = Value::Object(given);
        };
        assert_eq!(text(&answer["result"]), "1 1 2", "{revision}");
        assert_eq!(done.load(Ordering::SeqCst), 1, "{revision}");
    }
}

#[tokio::test]
async fn a_step_that_fails_is_not_kept() {
    let tries = Arc::new(AtomicUsize::new(0));
    let count = tries.clone();
    let flaky = Tool::new("flaky", "Fails first", move |call: Call, _: NoArguments| {
        let count = count.clone();
        async move {
            let step = || async {
                match count.fetch_add(1, Ordering::SeqCst) {
                    0 => Err(CallError::new("not yet")),
                    tries => Ok(tries),
                }
            };
            if call.once("step", step()).await.is_err() {
                call.once("step", step()).await?;
            }
            let kept: usize = call.once("step", step()).await?;
            Ok(format!("{kept}"))
        }
    });
    let mut client = TestClient::open(&server([flaky]), STATELESS).await;
    assert_eq!(client.tool_text("flaky", json!({})).await, "1");
    assert_eq!(tries.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn progress_and_logs_are_sent_on_request_only() {
    let server = server([Tool::new("deploy", "Deploys", |call: Call, _: NoArguments| async move {
        let wanted = call.wants_progress();
        call.progress(1.0, None, "").await;
        call.log(LogLevel::Debug, "", "small").await;
        call.log(LogLevel::Error, "", "large").await;
        Ok(format!("{wanted}"))
    })]);
    for (revision, heard) in BOTH.into_iter().zip([1, 0]) {
        let mut client = TestClient::open(&server, revision).await;
        assert_eq!(client.tool_text("deploy", json!({})).await, "false");
        client.catch_up().await;
        assert_eq!(client.notifications.len(), heard, "{revision}: {:?}", client.notifications);
    }
}
