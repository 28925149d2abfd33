//! A server whose calls another one answers (`Forward`).

use std::sync::Arc;

use refmcp_server::model::{InputRequest, SubscriptionFilter};
use refmcp_server::{
    Call, CallError, CallId, Forward, ForwardedCall, HandlerOutcome, RpcError, Server, Session,
};
use refmcp_testkit::client::TestClient;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{BOTH, SESSION, STATELESS};

/// Answers with what it was asked, and tells the rest to a channel.
struct Echo(mpsc::UnboundedSender<String>);

impl Forward for Echo {
    fn call(&self, call: Call) -> ForwardedCall {
        Box::pin(async move {
            let result = match call.method().name() {
                "tools/call" => {
                    let answer: Value = call.request("roots", InputRequest::Roots)?;
                    json!({ "content": [], "answer": answer, "round": call.round() })
                }
                "tools/list" => return Err(CallError::from(RpcError::new(-7, "no tools today"))),
                other => json!({ "method": other, "params": call.params() }),
            };
            Ok(HandlerOutcome::Raw(to_raw_value(&result)?))
        })
    }

    fn waiting_call_ended(&self, _: &Arc<Session>, _: CallId) {
        self.0.send("ended".to_owned()).unwrap();
    }

    fn roots_changed(&self, _: &Arc<Session>) {
        self.0.send("roots".to_owned()).unwrap();
    }

    fn listening(&self, _: &Arc<Session>, filter: &SubscriptionFilter) {
        self.0.send(serde_json::to_string(filter).unwrap()).unwrap();
    }
}

fn echo() -> (Server, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let server = Server::builder("echo", "1").forward(Echo(tell)).capabilities(|offered| {
        offered.tools.get_or_insert_default().list_changed = Some(true);
    });
    (server.build().unwrap(), told)
}

#[tokio::test]
async fn every_method_is_forwarded() {
    let (server, _) = echo();
    for revision in BOTH {
        let mut client = TestClient::open(&server, revision).await;
        let result = client.result("any/thing", json!({ "a": 1 })).await;
        assert_eq!(result["method"], "any/thing", "{revision}");
        assert_eq!(client.error("tools/list", json!({})).await["code"], -7, "{revision}");
        assert_eq!(client.error("prompts/list", json!({})).await["code"], -32601, "not declared");
    }
}

#[tokio::test]
async fn a_call_asks_as_any_handler_does() {
    let (server, mut told) = echo();
    let mut client = TestClient::over(server.in_memory());
    client.start(SESSION, json!({ "roots": {} })).await;
    let id = client.request("tools/call", json!({ "name": "x" })).await;
    let asked = client.question().await;
    assert_eq!(asked["method"], "roots/list");
    client.reply(&asked, json!({ "roots": [] })).await;
    let result = client.answer(id).await;
    assert_eq!(result["result"]["answer"], json!({ "roots": [] }), "{result}");
    client.notify("notifications/roots/list_changed", json!({})).await;
    assert_eq!(told.recv().await.unwrap(), "roots");

    let id = client.request("tools/call", json!({ "name": "x" })).await;
    client.question().await;
    client.cancel(id).await;
    assert_eq!(told.recv().await.unwrap(), "ended");
}

#[tokio::test]
async fn what_is_listened_for_is_told() {
    let (server, mut told) = echo();
    let mut client = TestClient::open(&server, STATELESS).await;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    client.request("subscriptions/listen", filter).await;
    assert_eq!(told.recv().await.unwrap(), r#"{"toolsListChanged":true,"resourceSubscriptions":[]}"#);
}
