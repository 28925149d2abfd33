//! Calls that outlive their exchange: kept as data, found by a key, and gone on with by another server.

use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::{DetachedCall, DetachedState, ExchangeId, InputOutcome, Output};
use refmcp_server::backplane::{Backplane, MemoryBackplane, NewSession, ParkOutcome, SessionId, WriterEpoch};
use refmcp_server::model::{EmptyResult, FormSchema, StringSchema};
use refmcp_server::{Call, CallError, Connection, DetachedCalls, ElicitOutcome, NoArguments, Server, Tool};
use refmcp_testkit::messages::initialize_params;
use serde_json::json;

use crate::support::{SESSION, server};

async fn greet(call: Call, _: NoArguments) -> Result<String, CallError> {
    call.progress(1.0, None, "asking").await;
    let form = FormSchema::new().required("name", StringSchema::new());
    match call.elicit("who", "Who are you?", form)? {
        ElicitOutcome::Accepted(values) => Ok(format!("Hello, {}!", values["name"])),
        _ => Ok("Hello, stranger!".to_owned()),
    }
}

fn greeting() -> Server {
    server([Tool::new("greet", "Greets", greet)])
}

/// A call of the tool that was detached as soon as it had come.
fn detached_call(server: &Server) -> DetachedCall {
    let mut parts = server.open(Arc::new(server.config().clone()), Connection::default());
    let params = initialize_params("test", SESSION.as_str(), json!({ "elicitation": {} }));
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "greet" } }),
    ];
    for message in messages {
        parts.engine.receive(server.now(), ExchangeId::default(), message.to_string().as_bytes());
    }
    let run = std::iter::from_fn(|| parts.engine.poll()).find_map(|output| match output {
        Output::Run(dispatch) => Some(dispatch.call),
        _ => None,
    });
    let detached = parts.engine.detach(run.unwrap(), EmptyResult::default().into()).unwrap();
    assert!(matches!(parts.engine.poll(), Some(Output::Send(_))), "the request is answered");
    detached
}

#[tokio::test]
async fn another_server_goes_on_with_a_detached_call() {
    let backplane: Arc<dyn Backplane> = Arc::new(MemoryBackplane::default());
    let (id, hour) = (SessionId::new("a"), Duration::from_secs(3600));
    backplane.create_session(&id, NewSession::default(), hour).await.unwrap();
    let calls = DetachedCalls::new(backplane, id, hour, WriterEpoch(1));

    let first = greeting();
    let mut call = detached_call(&first);
    first
        .open(Arc::new(first.config().clone()), Connection::default())
        .service
        .session()
        .run_detached(&mut call)
        .await;
    let DetachedState::InputRequired(requests) = call.state() else { panic!("{call:?}") };
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["who"]);
    assert_eq!(calls.keep("task", &call).await.unwrap(), ParkOutcome::Parked);
    assert_eq!(calls.keep("task", &call).await.unwrap(), ParkOutcome::Already);
    drop((first, call));

    assert_eq!(calls.keys().await.unwrap(), ["task"]);
    assert!(calls.get("task").await.unwrap().is_some(), "looking takes nothing");
    assert!(calls.get("tas").await.unwrap().is_none());
    let mut call = calls.claim("task").await.unwrap().unwrap();
    assert_eq!(calls.claim("task").await.unwrap(), None, "one goes on with it");
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    assert!(call.respond("who", InputOutcome::Response(answer)));
    assert_eq!(calls.keep("task", &call).await.unwrap(), ParkOutcome::Parked, "also before it runs");
    let mut call = calls.claim("task").await.unwrap().unwrap();
    let second = greeting();
    second
        .open(Arc::new(second.config().clone()), Connection::default())
        .service
        .session()
        .run_detached(&mut call)
        .await;
    assert_eq!(calls.keep("task", &call).await.unwrap(), ParkOutcome::Parked);

    for _ in 0..2 {
        let found = calls.get("task").await.unwrap().unwrap();
        let DetachedState::Done(result) = found.state() else { panic!("{found:?}") };
        assert_eq!(result["content"][0]["text"], "Hello, \"Ada\"!");
    }
}
