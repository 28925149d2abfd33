//! Questions that get no answer: refused, forgotten, impossible to ask, or swallowed by the handler.

use std::time::Duration;

use refmcp_server::{Call, CallError, NoArguments, Server, ServerRequestError, Timeouts, Tool};
use refmcp_testkit::client::{TestClient, text};
use serde_json::json;

use crate::support::{BOTH, SESSION, STATELESS, repeat, server};

async fn confirm(call: Call, _: NoArguments) -> Result<String, CallError> {
    match call.confirm("sure", "Sure?") {
        Ok(sure) => Ok(format!("sure: {sure}")),
        Err(ServerRequestError::Refused(error)) => Ok(format!("refused with {}", error.code)),
        Err(ServerRequestError::TimedOut) => Ok("no answer".to_owned()),
        Err(other) => Err(other.into()),
    }
}

/// The same without a thought for what may go wrong.
async fn confirm_simply(call: Call, _: NoArguments) -> Result<String, CallError> {
    Ok(format!("sure: {}", call.confirm("sure", "Sure?")?))
}

fn confirming() -> Server {
    let builder = Server::builder("test", "1")
        .timeouts(Timeouts { client_response: Duration::from_secs(30), ..Timeouts::default() });
    let tools = [Tool::new("confirm", "Asks", confirm), Tool::new("simply", "Asks", confirm_simply)];
    tools.into_iter().fold(builder, refmcp_server::ServerBuilder::tool).build().unwrap()
}

#[tokio::test]
async fn a_client_may_refuse_to_ask() {
    let mut client = TestClient::open(&confirming(), SESSION).await;
    for (tool, told) in [("confirm", "refused with -1"), ("simply", "the client refused: ")] {
        let id = client.start_tool(tool, json!({})).await;
        let question = client.question().await;
        client.refuse(&question, -1, "not now").await;
        let result = client.answer(id).await["result"].take();
        assert!(text(&result).starts_with(told), "{result}");
        assert_eq!(result["isError"] == true, tool == "simply", "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_answer_is_not_waited_for_longer_than_agreed() {
    let mut client = TestClient::open(&confirming(), SESSION).await;
    client.patience = Duration::from_secs(60);
    for (tool, told) in [("confirm", "no answer"), ("simply", "the client did not answer in time")] {
        let id = client.start_tool(tool, json!({})).await;
        let question = client.question().await;
        let asked = tokio::time::Instant::now();
        let withdrawn = client.notification("notifications/cancelled").await;
        assert_eq!(withdrawn["params"]["requestId"], question["id"]);
        assert_eq!(asked.elapsed().as_secs(), 30);
        assert_eq!(text(&client.answer(id).await["result"]), told);
        // A late response is ignored.
        client.reply(&question, json!({ "action": "decline" })).await;
    }
    client.catch_up().await;
}

#[tokio::test]
async fn what_the_client_cannot_be_asked_is_not_asked() {
    let server = confirming();
    let mut client = TestClient::open_with(&server, SESSION, json!({})).await;
    let told = client.tool("simply", json!({})).await;
    assert_eq!(told["isError"], true);
    assert!(text(&told).contains("elicitation"), "{told}");
    let mut client = TestClient::open_with(&server, STATELESS, json!({})).await;
    let error = client.tool_error("simply", json!({})).await;
    assert_eq!(error["code"], -32021);
    assert_eq!(error["data"]["requiredCapabilities"], json!({ "elicitation": { "form": {} } }));
}

#[tokio::test]
async fn a_result_without_the_answer_to_a_question_names_it() {
    let swallow = Tool::new("swallow", "Forgets", |call: Call, _: NoArguments| async move {
        let _ = call.confirm("forgotten", "?");
        Ok("done")
    });
    let server = server([swallow]);
    for revision in BOTH {
        let error = TestClient::open(&server, revision).await.tool_error("swallow", json!({})).await;
        assert_eq!(error["code"], -32603, "{revision}");
        assert!(error["message"].as_str().unwrap().contains("\"forgotten\""), "{revision}: {error}");
    }
}

#[tokio::test]
async fn one_key_for_two_questions_names_it() {
    let confuse = Tool::new("confuse", "Mixes up", |call: Call, _: NoArguments| async move {
        let first = call.confirm("it", "This?");
        let second = call.confirm("it", "Or that?");
        Ok(format!("{} {}", first?, second?))
    });
    let repeat = Tool::new("repeat", "Says it twice", |call: Call, _: NoArguments| async move {
        let first = call.confirm("it", "This?");
        let second = call.confirm("it", "This?");
        Ok(format!("{} {}", first?, second?))
    });
    let server = server([confuse, repeat]);
    for revision in BOTH {
        let mut client = TestClient::open(&server, revision).await;
        let error = client.tool_error("confuse", json!({})).await;
        assert_eq!(error["code"], -32603, "{revision}");
        assert!(error["message"].as_str().unwrap().contains("\"it\""), "{revision}: {error}");
    }
    let mut client = TestClient::open(&server, STATELESS).await;
    let asked = client.tool("repeat", json!({})).await;
    assert_eq!(
        asked["inputRequests"].as_object().unwrap().len(),
        1,
        "the same question twice is one question"
    );
}

#[tokio::test]
async fn a_call_does_not_ask_for_ever() {
    let endless = Tool::new("endless", "Asks on", |call: Call, _: NoArguments| async move {
        for number in 0.. {
            call.confirm(&format!("{number}"), "More?")?;
        }
        Ok("never")
    });
    let server = server([endless]);
    let mut client = TestClient::open(&server, SESSION).await;
    let id = client.start_tool("endless", json!({})).await;
    let mut asked = 0;
    let answer = loop {
        match client.answer_or_question(id).await {
            Ok(answer) => break answer,
            Err(question) => client.reply(&question, json!({ "action": "decline" })).await,
        }
        asked += 1;
    };
    assert_eq!((asked, answer["error"]["code"].clone()), (10, json!(-32603)));

    let mut client = TestClient::open(&server, STATELESS).await;
    let mut answer = client.call("tools/call", json!({ "name": "endless", "arguments": {} })).await;
    for round in 0..10 {
        let given = json!({ format!("{round}"): { "action": "decline" } });
        answer = repeat(&mut client, "endless", &answer["result"]["requestState"], given).await;
    }
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
}

#[tokio::test]
async fn a_connection_that_closes_instead_of_answering_ends_the_call() {
    let mut pair = refmcp_testkit::client::Pair::new(&confirming()).start(SESSION).await;
    pair.client.start_tool("simply", json!({})).await;
    pair.client.question().await;
    drop(pair.client);
    let end = pair.served.await.unwrap().unwrap();
    assert!(
        matches!(
            end,
            refmcp_server::transport::ConnectionEnd::Closed
                | refmcp_server::transport::ConnectionEnd::PeerGone
        ),
        "{end:?}"
    );
}
