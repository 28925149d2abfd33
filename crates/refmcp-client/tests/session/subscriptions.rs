//! What several listeners want of one server: asked for together, and again of the next server.

use refmcp_client::model::{LogLevel, SubscriptionFilter};
use refmcp_client::{Event, Lifecycle, Revision, Subscriptions};
use serde_json::json;
use tokio::time::timeout;

use crate::fixture::{client_of, client_of_script, server};

fn resources(uris: &[&str]) -> SubscriptionFilter {
    let uris = uris.iter().map(|uri| (*uri).to_owned()).collect();
    SubscriptionFilter { resource_subscriptions: Some(uris), ..SubscriptionFilter::default() }
}

#[tokio::test(start_paused = true)]
async fn listeners_share_subscriptions_and_the_last_ends_them() {
    let (client, mut script, _) = client_of_script().await;
    let subscriptions = Subscriptions::default();
    subscriptions.set(1, resources(&["x:both", "x:one"]));
    let asked = async {
        for uri in ["x:both", "x:one"] {
            assert_eq!(script.answer("resources/subscribe", json!({})).await["params"]["uri"], uri);
        }
    };
    tokio::join!(subscriptions.connect(&client), asked);

    subscriptions.set(2, resources(&["x:both"]));
    // Nothing is left to ask for.
    subscriptions.apply().await;
    subscriptions.set(1, SubscriptionFilter::default());
    let ended = async {
        assert_eq!(script.answer("resources/unsubscribe", json!({})).await["params"]["uri"], "x:one");
    };
    tokio::join!(subscriptions.apply(), ended);
    subscriptions.set_resource(2, "x:both", false);
    let ended = async {
        assert_eq!(script.answer("resources/unsubscribe", json!({})).await["params"]["uri"], "x:both");
    };
    tokio::join!(subscriptions.apply(), ended);
}

#[tokio::test(start_paused = true)]
async fn the_next_client_is_asked_again() {
    let server = server();
    for revision in [Revision::LATEST_SESSION, Revision::LATEST] {
        let subscriptions = Subscriptions::default();
        subscriptions.set(1, resources(&["note:///a"]));
        subscriptions.set_level(LogLevel::Info);
        for _ in 0..2 {
            let (client, events) = client_of(&server, revision).await;
            subscriptions.connect(&client).await;
            server.resource_updated("note:///a");
            let heard = |wanted: &str| {
                events
                    .lock()
                    .unwrap()
                    .iter()
                    .any(|event| matches!(event, Event::Notification(told) if told.method() == wanted))
            };
            client.call_tool("talk", json!({})).await.unwrap();
            client.ping().await.unwrap();
            assert!(heard("notifications/resources/updated"), "{revision:?}");
            assert!(heard("notifications/message"), "{revision:?}");
            assert_eq!(
                heard("notifications/subscriptions/acknowledged"),
                revision.lifecycle() == Lifecycle::PerRequest
            );
            assert_eq!(client.close_reason(), None);
            let closed = client.closed();
            client.close().await;
            assert!(client.close_reason().is_some());
            closed.await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_what_was_wanted_before_it_and_not_for_ever() {
    let (client, mut script, _) = client_of_script().await;
    let subscriptions = Subscriptions::default();
    subscriptions.connect(&client).await;
    subscriptions.applied().await;
    subscriptions.set(1, resources(&["x:a"]));
    let asking = tokio::spawn({
        let subscriptions = subscriptions.clone();
        async move { subscriptions.apply().await }
    });
    let at_once = std::time::Duration::from_millis(1);
    assert!(timeout(at_once, subscriptions.applied()).await.is_err(), "the server has not answered");
    // It never does.
    subscriptions.applied().await;
    script.answer("resources/subscribe", json!({})).await;
    asking.await.unwrap();
    timeout(at_once, subscriptions.applied()).await.unwrap();
    assert!(!subscriptions.set_resource(1, "x:b", true));
    assert!(subscriptions.set_resource(1, "x:b", true));
    subscriptions.mark_applied().await;
    timeout(at_once, subscriptions.applied()).await.unwrap();
}
