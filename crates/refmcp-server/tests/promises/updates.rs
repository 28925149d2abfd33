//! Resource updates: subscribers are notified, and no others.

use refmcp_server::model::ResourceContents;
use refmcp_server::{Resource, Server};
use refmcp_testkit::client::TestClient;
use serde_json::{Value, json};

use crate::support::{SESSION, STATELESS, named};

const UPDATED: &str = "notifications/resources/updated";

fn news() -> Server {
    let resource = |uri: &'static str| {
        Resource::new(uri, uri, move |_| async move { Ok(ResourceContents::text(uri, "news")) })
    };
    let server = Server::builder("test", "1").tool(named("echo"));
    server.resource(resource("news://sport")).resource(resource("news://weather")).build().unwrap()
}

fn uri(uri: &str) -> Value {
    json!({ "uri": uri })
}

/// The resources that the client was told of so far.
async fn told(client: &mut TestClient) -> Vec<Value> {
    client.catch_up().await;
    client.take_notifications(UPDATED).into_iter().map(|mut heard| heard["params"]["uri"].take()).collect()
}

#[tokio::test(start_paused = true)]
async fn subscribers_are_told() {
    let server = news();
    let mut fan = TestClient::open(&server, SESSION).await;
    let mut stranger = TestClient::open(&server, SESSION).await;
    fan.result("resources/subscribe", uri("news://sport")).await;
    for resource in ["news://weather", "news://sport"] {
        server.resource_updated(resource);
    }
    assert_eq!(fan.notification(UPDATED).await["params"]["uri"], "news://sport");
    crate::support::idle().await;
    assert!(told(&mut fan).await.is_empty());
    assert!(told(&mut stranger).await.is_empty());
    fan.result("resources/unsubscribe", uri("news://sport")).await;
    server.resource_updated("news://sport");
    crate::support::idle().await;
    assert!(told(&mut fan).await.is_empty());
}

#[tokio::test]
async fn subscribing_to_an_unknown_resource_fails() {
    let mut client = TestClient::open(&news(), SESSION).await;
    let error = client.error("resources/subscribe", uri("news://gossip")).await;
    assert_eq!(
        (error["code"].clone(), error["data"]["uri"].clone()),
        (json!(-32002), json!("news://gossip"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_subscription_to_what_is_gone_can_be_ended() {
    let server = news();
    let mut client = TestClient::open(&server, SESSION).await;
    client.result("resources/subscribe", uri("news://sport")).await;
    server.change_lists(|catalog| catalog.remove_resource("news://sport"));
    client.result("resources/unsubscribe", uri("news://sport")).await;
    server.resource_updated("news://sport");
    crate::support::idle().await;
    assert!(told(&mut client).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_a_session_those_who_listen_are_told_what_they_asked_for() {
    let server = news();
    let mut client = TestClient::open(&server, STATELESS).await;
    let wanted = json!({ "resourceSubscriptions": ["news://weather"], "toolsListChanged": true });
    let id = client.request("subscriptions/listen", json!({ "notifications": wanted })).await;
    let agreed = client.notification("notifications/subscriptions/acknowledged").await;
    assert_eq!(agreed["params"]["notifications"], wanted);
    server.resource_updated("news://sport");
    server.resource_updated("news://weather");
    let heard = client.notification(UPDATED).await;
    assert_eq!(heard["params"]["uri"], "news://weather");
    assert_eq!(heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    server.change_lists(|catalog| catalog.add_tool(named("new"))).unwrap();
    client.notification("notifications/tools/list_changed").await;
    client.cancel(id).await;
    client.catch_up().await;
    server.resource_updated("news://weather");
    crate::support::idle().await;
    assert!(told(&mut client).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_updates_is_told_at_least_once_and_no_more_often_than_it_happened() {
    let server = news();
    let mut client = TestClient::open(&server, SESSION).await;
    client.result("resources/subscribe", uri("news://sport")).await;
    for _ in 0..1000 {
        server.resource_updated("news://sport");
    }
    crate::support::idle().await;
    let told = told(&mut client).await;
    assert!((1..=1000).contains(&told.len()), "{}", told.len());
    server.resource_updated("news://sport");
    client.notification(UPDATED).await;
}
