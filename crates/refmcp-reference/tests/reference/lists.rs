//! Lists that change at run time.

use std::time::Duration;

use serde_json::json;

use crate::client::{Client, SESSION, STATELESS, server};

async fn names(client: &mut Client, what: &str) -> Vec<String> {
    let key = if what == "resources" { "uri" } else { "name" };
    client.list(what).await.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

const THINGS: [(&str, &str, &str, &str); 3] = [
    ("tool", "tools", "name", "extra"),
    ("prompt", "prompts", "name", "extra"),
    ("resource", "resources", "uri", "memo:///x"),
];

#[tokio::test]
async fn a_session_has_lists_of_its_own() {
    let server = server();
    let (mut client, mut other) = (Client::new(&server, SESSION).await, Client::new(&server, SESSION).await);
    for (thing, list, key, name) in THINGS {
        let said = client.text(&format!("add_{thing}"), json!({ key: name })).await;
        assert!(said.contains("this session"), "{said}");
        client.hear(&format!("notifications/{list}/list_changed")).await;
        assert!(names(&mut client, list).await.contains(&name.to_owned()));
        assert!(!names(&mut other, list).await.contains(&name.to_owned()));
        let twice = client.call(&format!("add_{thing}"), json!({ key: name })).await;
        assert_eq!(twice["isError"], true);
        assert_eq!(other.call(&format!("remove_{thing}"), json!({ key: name })).await["isError"], true);
    }
    assert!(client.text("extra", json!({})).await.contains("This is extra"));
    assert_eq!(client.call("extra", json!({ "more": 1 })).await["isError"], true, "it takes no arguments");
    assert_eq!(other.error("tools/call", json!({ "name": "extra" })).await["code"], -32602);
    let prompt = client.result("prompts/get", json!({ "name": "extra" })).await;
    assert!(prompt["messages"][0]["content"]["text"].as_str().unwrap().contains("extra"));
    assert!(
        client.result("resources/read", json!({ "uri": "memo:///x" })).await["contents"][0]["text"]
            .is_string()
    );
    for (thing, list, key, name) in THINGS {
        client.text(&format!("remove_{thing}"), json!({ key: name })).await;
        client.hear(&format!("notifications/{list}/list_changed")).await;
        assert!(!names(&mut client, list).await.contains(&name.to_owned()));
    }
    assert!(other.heard.is_empty(), "{:?}", other.heard);
}

#[tokio::test]
async fn what_was_always_there_stays() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        for (tool, arguments) in [
            ("add_tool", json!({ "name": "echo" })),
            ("remove_tool", json!({ "name": "echo" })),
            ("add_prompt", json!({ "name": "refactor" })),
            ("remove_prompt", json!({ "name": "refactor" })),
            ("add_resource", json!({ "uri": "file:///notes/todo.txt" })),
            ("remove_resource", json!({ "uri": "file:///notes/todo.txt" })),
        ] {
            assert_eq!(client.call(tool, arguments).await["isError"], true, "{tool}");
        }
        assert_eq!(client.text("echo", json!({ "message": "still" })).await, "still");
    }
}

#[tokio::test(start_paused = true)]
async fn without_sessions_added_items_are_shared_and_expire() {
    let server = server();
    let (mut client, mut other) =
        (Client::new(&server, STATELESS).await, Client::new(&server, STATELESS).await);
    let filter = json!({ "notifications": {
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
    }});
    other.start("subscriptions/listen", filter).await;
    other.hear("notifications/subscriptions/acknowledged").await;
    let mut reader = Client::new(&server, STATELESS).await;
    for (thing, list, key, name) in THINGS {
        let said = client.text(&format!("add_{thing}"), json!({ key: name })).await;
        assert!(said.contains("everybody"), "{said}");
        other.hear(&format!("notifications/{list}/list_changed")).await;
        assert!(names(&mut reader, list).await.contains(&name.to_owned()));
        assert_eq!(client.call(&format!("add_{thing}"), json!({ key: name })).await["isError"], true);
    }
    assert!(client.text("extra", json!({})).await.contains("This is extra"));
    client.text("remove_tool", json!({ "name": "extra" })).await;
    other.hear("notifications/tools/list_changed").await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    // A new one of the same name has its own ten minutes.
    client.text("add_tool", json!({ "name": "extra" })).await;
    other.hear("notifications/tools/list_changed").await;
    tokio::time::sleep(Duration::from_secs(301)).await;
    assert!(names(&mut reader, "tools").await.contains(&"extra".to_owned()));
    assert!(!names(&mut reader, "prompts").await.contains(&"extra".to_owned()));
    assert!(!names(&mut reader, "resources").await.contains(&"memo:///x".to_owned()));
    other.hear("notifications/prompts/list_changed").await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(!names(&mut reader, "tools").await.contains(&"extra".to_owned()));
}

#[tokio::test]
async fn additions_are_limited() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        for number in 0..100 {
            let result = client.call("add_tool", json!({ "name": format!("extra-{number}") })).await;
            assert_eq!(result["isError"], false, "{number}");
        }
        assert_eq!(client.call("add_tool", json!({ "name": "one-more" })).await["isError"], true);
        for number in 0..100 {
            client.call("remove_tool", json!({ "name": format!("extra-{number}") })).await;
        }
        assert_eq!(client.call("add_tool", json!({ "name": "one-more" })).await["isError"], false);
        client.call("remove_tool", json!({ "name": "one-more" })).await;
    }
}

#[tokio::test]
async fn whatever_changes_what_others_see_takes_the_scope_for_it() {
    let server = server();
    let mut client = Client::new(&server, SESSION).await;
    let mut dear = Vec::new();
    for name in names(&mut client, "tools").await {
        let params = json!({ "name": name }).to_string();
        let needed = server.scopes_needed("tools/call", Some(&params));
        if !needed.is_empty() {
            assert_eq!(needed.join(" "), refmcp_reference::WRITE_SCOPE, "{name}");
            dear.push(name);
        }
    }
    dear.sort_unstable();
    let all = THINGS.iter().flat_map(|(thing, ..)| [format!("add_{thing}"), format!("remove_{thing}")]);
    let mut all: Vec<String> = all.chain(["touch_resource".to_owned()]).collect();
    all.sort_unstable();
    assert_eq!(dear, all);
}
