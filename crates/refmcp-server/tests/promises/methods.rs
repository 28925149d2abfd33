//! Methods beyond the protocol.

use refmcp_server::{Call, CallError, Revision, RpcError, Server};
use refmcp_testkit::client::TestClient;
use serde_json::json;

use crate::support::{BOTH, SESSION, STATELESS, named};

fn extended() -> Server {
    let settings = json!({ "level": 2 });
    Server::builder("test", "1")
        .tool(named("echo"))
        .extension("games", "example.com/games", settings.as_object().unwrap().clone())
        .method("games/double", |_: Call, params| async move {
            let number = params.get("number").and_then(serde_json::Value::as_i64);
            let number = number.ok_or_else(|| CallError::from(RpcError::invalid_params("no number")))?;
            assert!(!params.contains_key("_meta"), "who asks is no part of what is asked");
            Ok([("doubled".to_owned(), json!(number * 2))].into_iter().collect())
        })
        .method("games/ask", |call: Call, _| async move {
            call.confirm("sure", "?")?;
            Ok(Default::default())
        })
        .session_method("games/join", |call: Call, _| async move {
            let session = call.session().ok_or_else(|| CallError::new("no session"))?;
            Ok([("player".to_owned(), json!(session.number()))].into_iter().collect())
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn they_work_in_every_revision() {
    let server = extended();
    for revision in Revision::ALL {
        let mut client = TestClient::open(&server, revision).await;
        assert_eq!(client.result("games/double", json!({ "number": 21 })).await["doubled"], 42, "{revision}");
        assert_eq!(client.error("games/double", json!({})).await["code"], -32602, "{revision}");
        assert_eq!(client.error("games/lose", json!({})).await["code"], -32601, "{revision}");
    }
}

#[tokio::test]
async fn they_are_declared_where_the_revision_has_a_place_for_it() {
    let server = extended();
    let mut client = TestClient::over(server.in_memory());
    let opened = client.start(SESSION, json!({})).await;
    assert_eq!(opened["capabilities"]["games"], json!({ "level": 2 }));
    let mut client = TestClient::open(&server, STATELESS).await;
    let discovered = client.result("server/discover", json!({})).await;
    assert_eq!(discovered["capabilities"]["extensions"]["example.com/games"], json!({ "level": 2 }));
}

#[tokio::test]
async fn those_that_need_a_session_have_one() {
    let server = extended();
    let mut client = TestClient::open(&server, SESSION).await;
    assert!(client.result("games/join", json!({})).await["player"].is_u64());
    let error = TestClient::open(&server, STATELESS).await.error("games/join", json!({})).await;
    assert_eq!(error["code"], -32601);
    assert!(error["message"].as_str().unwrap().contains("2025-11-25"), "{error}");
}

#[tokio::test]
async fn they_cannot_ask() {
    for revision in BOTH {
        let error = TestClient::open(&extended(), revision).await.error("games/ask", json!({})).await;
        assert_eq!(error["code"], -32603, "{revision}");
    }
}
