//! Built-in resources, templates and subscriptions.

use serde_json::{Value, json};

use crate::client::{Client, SESSION, SESSIONS, STATELESS, server};

const NOTES: &str = "file:///resources/notes.txt";

#[tokio::test]
async fn every_resource_can_be_read_and_has_the_size_it_says() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        let resources = client.list("resources").await;
        assert_eq!(resources[0]["uri"], "file:///notes/todo.txt");
        for resource in &resources {
            let read = client.result("resources/read", json!({ "uri": resource["uri"] })).await;
            let contents = &read["contents"][0];
            assert_eq!((&contents["uri"], &contents["mimeType"]), (&resource["uri"], &resource["mimeType"]));
            if let (Some(text), Some(size)) = (contents["text"].as_str(), resource["size"].as_u64()) {
                assert_eq!(text.len() as u64, size, "{resource}");
            }
            if resource["uri"].as_str().unwrap().starts_with("file:") {
                let annotations = &resource["annotations"];
                assert!(annotations["audience"].is_array() && annotations["priority"].is_number());
                assert!(annotations["lastModified"].is_string());
                assert!(resource["size"].is_u64() && resource["title"].is_string());
            }
        }
        let uris: Vec<_> = resources.iter().filter_map(|resource| resource["uri"].as_str()).collect();
        for uri in [
            "file:///data/custom.json",
            "file:///project/src/main.rs",
            NOTES,
            "file:///resources/plans.md",
            "file:///resources/diagram.png",
        ] {
            assert!(uris.contains(&uri), "{uri}");
        }
    }
}

#[tokio::test]
async fn touching_changes_and_tells_subscribers() {
    let server = server();
    let mut client = Client::new(&server, SESSION).await;
    let mut other = Client::new(&server, SESSION).await;
    let read = async |client: &mut Client, uri: &str| -> String {
        let result = client.result("resources/read", json!({ "uri": uri })).await;
        result["contents"][0]["text"].as_str().unwrap().to_owned()
    };
    client.result("resources/subscribe", json!({ "uri": NOTES })).await;
    let before = read(&mut client, NOTES).await;
    other.text("touch_resource", json!({ "uri": NOTES })).await;
    let updated = client.hear("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], NOTES);
    let after = read(&mut client, NOTES).await;
    assert_ne!(before, after);
    assert!(after.contains("Touched 1 times"));
    let listed = client.list("resources").await;
    let listed = listed.iter().find(|resource| resource["uri"] == NOTES).unwrap();
    assert_eq!(listed["size"], after.len());
    assert_eq!(client.count("notifications/resources/list_changed"), 0);
    for uri in [
        "file:///notes/todo.txt",
        "file:///data/custom.json",
        "file:///project/src/main.rs",
        "test://watched-resource",
    ] {
        let before = read(&mut client, uri).await;
        other.text("touch_resource", json!({ "uri": uri })).await;
        assert_ne!(before, read(&mut client, uri).await);
    }
    serde_json::from_str::<Value>(&read(&mut client, "file:///data/custom.json").await).unwrap();
    for uri in ["file:///resources/diagram.png", "file:///etc/passwd", ""] {
        assert_eq!(client.call("touch_resource", json!({ "uri": uri })).await["isError"], true);
    }
    client.result("resources/unsubscribe", json!({ "uri": NOTES })).await;
    client.text("touch_resource", json!({ "uri": NOTES })).await;
    client.result("ping", json!({})).await;
    assert_eq!(client.count("notifications/resources/updated"), 0);
}

#[tokio::test(start_paused = true)]
async fn simulated_updates_reach_those_who_listen() {
    let server = server();
    let mut session = Client::new(&server, SESSION).await;
    session.result("resources/subscribe", json!({ "uri": NOTES })).await;
    let said = session.text("simulate", json!({ "what": "updates", "every_ms": 100, "for_ms": 350 })).await;
    assert!(said.starts_with("3 updates"), "{said}");
    session.hear("notifications/resources/updated").await;

    let mut listener = Client::new(&server, STATELESS).await;
    listener
        .start("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": [NOTES] } }))
        .await;
    listener.hear("notifications/subscriptions/acknowledged").await;
    let mut stateless = Client::new(&server, STATELESS).await;
    stateless.call("touch_resource", json!({ "uri": NOTES })).await;
    assert_eq!(listener.hear("notifications/resources/updated").await["params"]["uri"], NOTES);
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let server = server();
    for uri in [
        "file:///notes/none.txt",
        "memo://office/none",
        "memo://none/bread",
        "file:///dir/x",
        "test://nothing",
    ] {
        for (revision, code) in
            SESSIONS.map(|revision| (revision, -32002)).into_iter().chain([(STATELESS, -32602)])
        {
            let mut client = Client::new(&server, revision).await;
            let error = client.error("resources/read", json!({ "uri": uri })).await;
            assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(code), &json!(uri)));
        }
    }
}

#[tokio::test]
async fn templates_are_filled_in_and_completed() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        let templates = client.list("templates").await;
        assert_eq!(templates[0]["uriTemplate"], "memo://{shelf}/{name}");
        let read = client.result("resources/read", json!({ "uri": "memo://travel/oslo" })).await;
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("oslo"));
        let mut complete = async |name: &str, value: &str, known: Value| {
            let result = client.result(
                "completion/complete",
                json!({
                    "ref": { "type": "ref/resource", "uri": "memo://{shelf}/{name}" },
                    "argument": { "name": name, "value": value },
                    "context": { "arguments": known },
                }),
            );
            result.await["completion"]["values"].take()
        };
        assert_eq!(complete("shelf", "", json!({})).await, json!(["office", "recipes", "travel"]));
        assert_eq!(complete("name", "o", json!({})).await, json!(["oslo"]));
        assert_eq!(complete("name", "", json!({ "shelf": "office" })).await, json!(["budget", "goals"]));
        assert_eq!(complete("name", "o", json!({ "shelf": "office" })).await, json!([]));
    }
}
