//! Tasks of a client whose answers arrive at one replica and are awaited at the other.

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::replicas::{Client, Replicas, SOON, cancel, next_event, notification};
use crate::support::http1::Reply;
use crate::support::{LATEST_SESSION, request, text_of};

/// A client that runs elicitations as tasks.
async fn client(replicas: &Replicas) -> Client<'_> {
    let declared = json!({
        "elicitation": {}, "tasks": { "cancel": {}, "requests": { "elicitation": { "create": {} } } }
    });
    let params = refmcp_testkit::messages::initialize_params("test", LATEST_SESSION, declared);
    let reply = replicas.sites[0].post(&[], &request("initialize", params)).await;
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    assert!(reply.json().await["result"].is_object());
    let client = Client::resumed(replicas, session, LATEST_SESSION);
    assert_eq!(client.post(&notification("notifications/initialized", json!({}))).await.status, 202);
    client
}

fn task(status: &str) -> Value {
    let time = "2026-03-01T08:30:00.000Z";
    json!({
        "taskId": "t1", "status": status, "createdAt": time, "lastUpdatedAt": time, "ttl": 60_000, "pollInterval": 100
    })
}

fn answer(request: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}

/// Calls the tool at the first replica, and makes its question a task at the second.
async fn begun(client: &Client<'_>) -> Reply {
    client.replicas.turn_to(1);
    let mut stream = client.call(5, "ask_by_task", json!({})).await;
    let question = next_event(&mut stream).await;
    assert!(question["params"]["task"].is_object(), "{question}");
    let created = answer(&question, &json!({ "task": task("working") }));
    assert_eq!(client.post(&created).await.status, 202);
    stream
}

#[tokio::test]
async fn a_task_is_followed_whichever_replica_hears_of_it() {
    let replicas = Replicas::open().await;
    let client = client(&replicas).await;
    let mut stream = begun(&client).await;
    for status in ["working", "completed"] {
        let poll = next_event(&mut stream).await;
        assert_eq!((&poll["method"], &poll["params"]["taskId"]), (&json!("tasks/get"), &json!("t1")));
        replicas.turn_to(0);
        assert_eq!(client.post(&answer(&poll, &task(status))).await.status, 202);
    }
    let fetch = next_event(&mut stream).await;
    assert_eq!(fetch["method"], "tasks/result");
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t1" } });
    let outcome = json!({ "action": "accept", "content": { "confirm": true }, "_meta": related });
    replicas.turn_to(0);
    assert_eq!(client.post(&answer(&fetch, &outcome)).await.status, 202);
    let last = timeout(SOON, stream.events()).await.unwrap().pop().unwrap().1;
    assert_eq!(text_of(&last), "sure: true");
    client.echo("on").await;
}

#[tokio::test]
async fn a_task_is_cancelled_with_a_call_that_is_cancelled_at_the_other_replica() {
    let replicas = Replicas::open().await;
    let client = client(&replicas).await;
    let mut session = client.get(None).await;
    let stream = begun(&client).await;
    replicas.turn_to(0);
    assert_eq!(client.post(&cancel(5)).await.status, 202);
    let rest = timeout(SOON, stream.events()).await.expect("the end of a cancelled call");
    assert!(rest.iter().all(|(_, message)| message.get("result").is_none()), "{rest:?}");
    let cancelled = next_event(&mut session).await;
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]),
        (&json!("tasks/cancel"), &json!({ "taskId": "t1" }))
    );
    assert_eq!(client.post(&answer(&cancelled, &task("cancelled"))).await.status, 202);
    client.echo("on").await;
}
