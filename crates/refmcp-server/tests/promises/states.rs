//! What a client carries between two rounds: good for the same call of the same principal, and once.

use std::time::Duration;

use refmcp_server::{Call, CallError, Server, Timeouts, Tool};
use refmcp_testkit::client::{Pair, TestClient, text};
use serde_json::{Value, json};

use crate::support::STATELESS;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pay {
    #[serde(default)]
    amount: u32,
}

async fn pay(call: Call, Pay { amount }: Pay) -> Result<String, CallError> {
    let sure = call.confirm("sure", "Pay?")?;
    Ok(format!("{amount} {sure}"))
}

fn bank() -> Server {
    let builder = Server::builder("bank", "1")
        .timeouts(Timeouts { state: Duration::from_secs(60), ..Timeouts::default() });
    builder
        .tool(Tool::new("pay", "Pays", pay))
        .tool(Tool::new("donate", "Pays", pay))
        .tool(Tool::new("quote", "Asks", pay).idempotent())
        .tool(Tool::new("look", "Asks", pay).read_only())
        .build()
        .unwrap()
}

fn params(tool: &str, amount: u32) -> Value {
    json!({ "name": tool, "arguments": { "amount": amount } })
}

fn answered(tool: &str, amount: u32, state: &Value) -> Value {
    let mut params = params(tool, amount);
    params["requestState"] = state.clone();
    params["inputResponses"] = json!({ "sure": { "action": "accept", "content": { "confirm": true } } });
    params
}

async fn state(client: &mut TestClient, tool: &str) -> Value {
    client.result("tools/call", params(tool, 5)).await["requestState"].take()
}

/// The one text for every state that does not open a call.
async fn refused(client: &mut TestClient, params: Value) {
    let error = client.error("tools/call", params).await;
    assert_eq!(error, json!({ "code": -32602, "message": "requestState is not valid" }));
}

#[tokio::test]
async fn a_state_pays_once() {
    let server = bank();
    let mut client = TestClient::open(&server, STATELESS).await;
    let once = state(&mut client, "pay").await;
    assert_eq!(text(&client.result("tools/call", answered("pay", 5, &once)).await), "5 true");
    refused(&mut client, answered("pay", 5, &once)).await;
    // On another connection it is the same state.
    refused(&mut TestClient::open(&server, STATELESS).await, answered("pay", 5, &once)).await;
}

#[tokio::test]
async fn a_refused_repetition_does_not_use_up_the_state() {
    let mut client = TestClient::open(&bank(), STATELESS).await;
    let once = state(&mut client, "pay").await;
    refused(&mut client, answered("pay", 6, &once)).await;
    assert_eq!(text(&client.result("tools/call", answered("pay", 5, &once)).await), "5 true");
}

#[tokio::test]
async fn calls_that_do_no_harm_may_be_repeated() {
    let mut client = TestClient::open(&bank(), STATELESS).await;
    for tool in ["quote", "look"] {
        let state = state(&mut client, tool).await;
        for _ in 0..3 {
            assert_eq!(
                text(&client.result("tools/call", answered(tool, 5, &state)).await),
                "5 true",
                "{tool}"
            );
        }
    }
}

#[tokio::test]
async fn a_state_is_good_for_its_own_call_only() {
    let server = bank();
    let mut alice = Pair::of(&server, "alice").start(STATELESS).await.client;
    let mut mallory = Pair::of(&server, "mallory").start(STATELESS).await.client;
    let mut anonymous = TestClient::open(&server, STATELESS).await;
    let hers = state(&mut alice, "pay").await;
    refused(&mut alice, answered("donate", 5, &hers)).await;
    refused(&mut alice, answered("pay", 5000, &hers)).await;
    refused(&mut mallory, answered("pay", 5, &hers)).await;
    refused(&mut anonymous, answered("pay", 5, &hers)).await;
    refused(&mut alice, answered("pay", 5, &json!(format!("{}A", hers.as_str().unwrap())))).await;
    refused(&mut alice, answered("pay", 5, &json!(""))).await;
    let other_server = &mut Pair::of(&bank(), "alice").start(STATELESS).await.client;
    refused(other_server, answered("pay", 5, &hers)).await;
    assert_eq!(text(&alice.result("tools/call", answered("pay", 5, &hers)).await), "5 true");
}

#[tokio::test]
async fn servers_with_one_key_open_each_others_states() {
    let server = || {
        Server::builder("bank", "1").seal_key([7; 32]).tool(Tool::new("pay", "Pays", pay)).build().unwrap()
    };
    let first = state(&mut TestClient::open(&server(), STATELESS).await, "pay").await;
    let mut second = TestClient::open(&server(), STATELESS).await;
    assert_eq!(text(&second.result("tools/call", answered("pay", 5, &first)).await), "5 true");
}

#[tokio::test(start_paused = true)]
async fn a_state_does_not_last_for_ever() {
    let mut client = TestClient::open(&bank(), STATELESS).await;
    let state = state(&mut client, "quote").await;
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(text(&client.result("tools/call", answered("quote", 5, &state)).await), "5 true");
    tokio::time::advance(Duration::from_secs(2)).await;
    refused(&mut client, answered("quote", 5, &state)).await;
}
