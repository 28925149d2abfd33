//! Requests to the client outside of calls, and what is done when a session opens and before each call of a tool.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_server::model::Root;
use refmcp_server::{
    Call, CallError, Revision, Server, ServerRequest, ServerRequestError, Session, Timeouts, VersionChoice,
};
use refmcp_testkit::client::TestClient;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::support::{SESSION, STATELESS, named};

type Opened = Arc<Mutex<Vec<Arc<Session>>>>;

/// A server that keeps its sessions.
fn keeping() -> (Server, Opened) {
    let opened = Opened::default();
    let kept = opened.clone();
    let builder = Server::builder("test", "1")
        .timeouts(Timeouts { client_response: Duration::from_secs(30), ..Timeouts::default() })
        .on_session(move |session| kept.lock().push(session.clone()));
    (builder.tool(named("one")).build().unwrap(), opened)
}

/// Asks for the client's roots.
fn ask(session: &Arc<Session>) -> JoinHandle<Result<Vec<Root>, ServerRequestError>> {
    let session = session.clone();
    tokio::spawn(async move { session.request(ServerRequest::list_roots()).await })
}

async fn opened(server: &Server, sessions: &Opened) -> (TestClient, Arc<Session>) {
    let mut client = TestClient::open(server, SESSION).await;
    client.catch_up().await;
    let session = sessions.lock().pop().unwrap();
    (client, session)
}

#[tokio::test]
async fn a_session_asks_its_client_outside_of_calls() {
    let (server, sessions) = keeping();
    let (mut client, session) = opened(&server, &sessions).await;
    let asking = ask(&session);
    let question = client.question().await;
    assert_eq!(question["method"], "roots/list");
    client.reply(&question, json!({ "roots": [{ "uri": "file:///a" }] })).await;
    let roots: Vec<Root> = asking.await.unwrap().unwrap();
    assert_eq!(roots[0].uri, "file:///a");

    let asking = ask(&session);
    let question = client.question().await;
    client.refuse(&question, -32601, "no").await;
    assert!(matches!(asking.await.unwrap(), Err(ServerRequestError::Refused(_))));

    // The test client answers pings by itself.
    let (pong, ()) = tokio::join!(session.ping(), async {
        tokio::task::yield_now().await;
        client.catch_up().await;
    });
    pong.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_is_cancelled() {
    let (server, sessions) = keeping();
    let (mut client, session) = opened(&server, &sessions).await;
    client.patience = Duration::from_secs(60);
    let asking = ask(&session);
    let question = client.question().await;
    let withdrawn = client.notification("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    assert_eq!(asking.await.unwrap(), Err(ServerRequestError::TimedOut));
}

#[tokio::test(start_paused = true)]
async fn a_request_ends_with_its_connection() {
    let (server, sessions) = keeping();
    let (mut client, session) = opened(&server, &sessions).await;
    let asking = ask(&session);
    client.question().await;
    drop(client);
    assert_eq!(asking.await.unwrap(), Err(ServerRequestError::Closed));
}

#[tokio::test]
async fn no_more_than_sixteen_requests_wait() {
    let (server, sessions) = keeping();
    let (mut client, session) = opened(&server, &sessions).await;
    for _ in 0..16 {
        ask(&session);
        client.question().await;
    }
    let error = session.ping().await.unwrap_err();
    assert!(error.to_string().starts_with("16 requests of the session have no response yet"), "{error}");
}

#[tokio::test]
async fn what_the_client_does_not_declare_is_not_asked() {
    let (server, sessions) = keeping();
    let mut client = TestClient::open_with(&server, SESSION, json!({})).await;
    client.catch_up().await;
    let session = sessions.lock().pop().unwrap();
    let error = session.request(ServerRequest::list_roots()).await.unwrap_err();
    assert!(matches!(error, ServerRequestError::Unsupported(_)), "{error:?}");
}

#[tokio::test]
async fn before_each_call_of_a_tool_the_client_can_be_asked() {
    async fn before(call: Call) -> Result<(), CallError> {
        match call.confirm("first", "Go on?")? {
            true => Ok(()),
            false => Err(CallError::new("it shall not go on")),
        }
    }
    let server = Server::builder("test", "1").before_tools(before).tool(named("one")).build().unwrap();
    let mut client = TestClient::open(&server, SESSION).await;
    for (answer, told) in [(true, "one"), (false, "it shall not go on")] {
        let id = client.start_tool("one", json!({})).await;
        let question = client.question().await;
        client.reply(&question, json!({ "action": "accept", "content": { "confirm": answer } })).await;
        let result = client.answer(id).await["result"].take();
        assert_eq!(result["content"][0]["text"], told, "{result}");
    }
    let mut client = TestClient::open(&server, STATELESS).await;
    let id = client.start_tool("one", json!({})).await;
    assert_eq!(client.answer(id).await["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn another_revision_than_the_requested_one_can_be_chosen() {
    let older = VersionChoice::new(|client, _| {
        assert_eq!(client.name, "refmcp-testkit");
        Revision::V2025_03_26
    });
    let server = Server::builder("test", "1").version_choice(older).build().unwrap();
    let mut client = TestClient::over(server.in_memory());
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "refmcp-testkit", "version": "1" } });
    assert_eq!(client.result("initialize", params.clone()).await["protocolVersion"], "2025-03-26");
    let none = VersionChoice::new(|_, _| Revision::V2026_07_28);
    let server = Server::builder("test", "1").version_choice(none).build().unwrap();
    let mut client = TestClient::over(server.in_memory());
    assert_eq!(client.result("initialize", params).await["protocolVersion"], "2025-11-25");
}
