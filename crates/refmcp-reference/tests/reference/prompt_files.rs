//! Directories as prompts.

use std::fs;
use std::time::Duration;

use refmcp_reference::Options;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, SESSION, SESSIONS, STATELESS};

const NOTES: &str = "---\ntitle: Release notes\ndescription: Asks for notes\narguments:\n\
                     - name: version\n  title: Version\n  description: Which\n\
                     - name: tone\n  description: How\n  default: friendly\n  values: [friendly, formal, frank]\n\
                     ---\n\
                     Write the notes of {{version}}. Be {{tone}}, {{who}}.\n\n\
                     {{role \"assistant\"}}\nFor whom are they?\n\
                     {{role \"user\"}}\nFor {{who}}.\n";

async fn prompt(client: &mut Client, name: &str) -> Option<Value> {
    client.list("prompts").await.into_iter().find(|prompt| prompt["name"] == name)
}

#[tokio::test]
async fn files_are_prompts_and_are_read_again() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("release-notes.md"), NOTES).unwrap();
    fs::write(root.path().join("plain.txt"), "Say hello.").unwrap();
    fs::write(root.path().join("broken.md"), "---\ntitle: never ends").unwrap();
    fs::write(root.path().join("other.json"), "{}").unwrap();
    fs::write(root.path().join("no name.md"), "No.").unwrap();
    let options = Options { prompts_dir: Some(root.path().to_owned()), ..Options::default() };
    let server = refmcp_reference::server(options).unwrap();

    let mut stateless = Client::new(&server, STATELESS).await;
    let listed = prompt(&mut stateless, "release-notes").await.unwrap();
    assert_eq!(listed["title"], "Release notes");
    assert_eq!(listed["description"], "Asks for notes");
    assert_eq!(
        listed["arguments"],
        json!([
            { "name": "version", "title": "Version", "description": "Which", "required": true },
            { "name": "tone", "description": "How", "required": false },
            { "name": "who", "required": true },
        ])
    );
    let mut get = async |arguments: Value| {
        stateless.request("prompts/get", json!({ "name": "release-notes", "arguments": arguments })).await
    };
    let filled = get(json!({ "version": "{{who}}", "who": "me" })).await;
    assert_eq!(filled["result"]["description"], "Asks for notes");
    let message =
        |role: &str, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
    assert_eq!(
        filled["result"]["messages"],
        json!([
            message("user", "Write the notes of {{who}}. Be friendly, me."),
            message("assistant", "For whom are they?"),
            message("user", "For me."),
        ])
    );
    let other = get(json!({ "version": "1", "who": "me", "tone": "" })).await;
    assert_eq!(other["result"]["messages"][0]["content"]["text"], "Write the notes of 1. Be , me.");
    assert_eq!(get(json!({ "version": "1" })).await["error"]["code"], -32602);
    for absent in ["broken", "other", "no name"] {
        assert_eq!(prompt(&mut stateless, absent).await, None);
    }

    let mut client = Client::new(&server, SESSION).await;
    for (step, present) in [("new", true), ("fixed", true), ("gone", false)] {
        let (name, file) = match step {
            "new" => ("later", root.path().join("later.txt")),
            "fixed" => ("broken", root.path().join("broken.md")),
            _ => ("plain", root.path().join("plain.txt")),
        };
        if present {
            fs::write(&file, "Now {{it}} works.").unwrap();
        } else {
            fs::remove_file(&file).unwrap();
        }
        let mut tries = 0;
        while prompt(&mut client, name).await.is_some() != present {
            tries += 1;
            assert!(tries < 100, "{step} is never noticed");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        client.hear("notifications/prompts/list_changed").await;
    }
    fs::write(root.path().join("later.txt"), "Now {{this}} works.").unwrap();
    client.hear("notifications/prompts/list_changed").await;
    assert_eq!(prompt(&mut client, "later").await.unwrap()["arguments"][0]["name"], "this");
}

/// Waits until a prompt is as it should be.
async fn until(client: &mut Client, name: &str, is_right: impl Fn(Option<&Value>) -> bool) {
    for _ in 0..100 {
        if is_right(prompt(client, name).await.as_ref()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{name} is never as it should be: {:?}", prompt(client, name).await);
}

#[tokio::test]
async fn listed_values_are_suggested_in_every_revision() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("release-notes.md"), NOTES).unwrap();
    let options = Options { prompts_dir: Some(root.path().to_owned()), ..Options::default() };
    let server = refmcp_reference::server(options).unwrap();
    for revision in SESSIONS.into_iter().chain([STATELESS]) {
        let mut client = Client::new(&server, revision).await;
        let mut complete = async |name: &str, value: &str| {
            let result = client.result(
                "completion/complete",
                json!({
                    "ref": { "type": "ref/prompt", "name": "release-notes" },
                    "argument": { "name": name, "value": value },
                }),
            );
            result.await["completion"]["values"].take()
        };
        assert_eq!(complete("tone", "fr").await, json!(["friendly", "frank"]), "{revision}");
        assert_eq!(complete("version", "").await, json!([]), "{revision}");
        let given = json!({ "version": "1", "who": "me", "tone": "loud" });
        let got = client.result("prompts/get", json!({ "name": "release-notes", "arguments": given })).await;
        assert!(got["messages"][0]["content"]["text"].as_str().unwrap().contains("Be loud"), "{revision}");
    }
}

#[tokio::test]
async fn a_file_replaces_a_built_in_prompt_while_it_is_there() {
    let root = TempDir::new().unwrap();
    let file = root.path().join("refactor.md");
    let ours = "---\ntitle: Ours\n---\nTidy up {{code}}.";
    fs::write(&file, ours).unwrap();
    let options = Options { prompts_dir: Some(root.path().to_owned()), ..Options::default() };
    let server = refmcp_reference::server(options).unwrap();
    let mut client = Client::new(&server, SESSION).await;
    let names = |prompts: Vec<Value>| -> Vec<String> {
        prompts.iter().map(|prompt| prompt["name"].as_str().unwrap().to_owned()).collect()
    };
    let replaced = names(client.list("prompts").await);
    assert_eq!(prompt(&mut client, "refactor").await.unwrap()["title"], "Ours");

    fs::remove_file(&file).unwrap();
    until(&mut client, "refactor", |now| now.is_some_and(|now| now["title"] != "Ours")).await;
    client.hear("notifications/prompts/list_changed").await;
    assert_eq!(names(client.list("prompts").await), replaced, "it is back in its place");
    let got = client.result("prompts/get", json!({ "name": "refactor", "arguments": { "code": "x" } })).await;
    assert!(!got["messages"][0]["content"]["text"].as_str().unwrap().starts_with("Tidy up"));

    fs::write(&file, ours).unwrap();
    until(&mut client, "refactor", |now| now.is_some_and(|now| now["title"] == "Ours")).await;
    client.hear("notifications/prompts/list_changed").await;
}

#[tokio::test]
async fn a_file_that_breaks_stays_the_prompt_it_was() {
    let root = TempDir::new().unwrap();
    let (file, other) = (root.path().join("notes.md"), root.path().join("other.md"));
    fs::write(&file, "---\ntitle: Before\n---\nText").unwrap();
    let options = Options { prompts_dir: Some(root.path().to_owned()), ..Options::default() };
    let server = refmcp_reference::server(options).unwrap();
    let mut client = Client::new(&server, SESSION).await;
    for broken in ["---\ntitle: [\n---\nText", "", "Text {{"] {
        fs::write(&file, broken).unwrap();
        // When the other file is there, the broken one was looked at as well.
        fs::write(&other, format!("---\ntitle: Beside {}\n---\nText", broken.len())).unwrap();
        let title = format!("Beside {}", broken.len());
        until(&mut client, "other", |now| now.is_some_and(|now| now["title"] == title.as_str())).await;
        assert_eq!(prompt(&mut client, "notes").await.unwrap()["title"], "Before", "{broken:?}");
        let got = client.result("prompts/get", json!({ "name": "notes" })).await;
        assert_eq!(got["messages"][0]["content"]["text"], "Text");
    }
    fs::write(&file, "---\ntitle: After\n---\nText").unwrap();
    until(&mut client, "notes", |now| now.is_some_and(|now| now["title"] == "After")).await;
    fs::write(&file, "").unwrap();
    fs::remove_file(&file).unwrap();
    until(&mut client, "notes", |now| now.is_none()).await;
}

#[tokio::test]
async fn a_prompt_that_a_client_added_is_not_replaced() {
    let root = TempDir::new().unwrap();
    let options = Options { prompts_dir: Some(root.path().to_owned()), ..Options::default() };
    let server = refmcp_reference::server(options).unwrap();
    let mut client = Client::new(&server, STATELESS).await;
    client.call("add_prompt", json!({ "name": "mine" })).await;
    fs::write(root.path().join("mine.md"), "Text").unwrap();
    fs::write(root.path().join("yours.md"), "Text").unwrap();
    until(&mut client, "yours", |now| now.is_some()).await;
    assert_eq!(prompt(&mut client, "mine").await.unwrap()["title"], "Added: mine");
    client.call("remove_prompt", json!({ "name": "mine" })).await;
    assert_eq!(prompt(&mut client, "mine").await, None);
}

#[tokio::test]
async fn a_filled_prompt_has_a_limit() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("often.md"), "{{a}}".repeat(20_000)).unwrap();
    let options = Options { prompts_dir: Some(root.path().to_owned()), ..Options::default() };
    let server = refmcp_reference::server(options).unwrap();
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        let params = json!({ "name": "often", "arguments": { "a": "x".repeat(100_000) } });
        let error = client.error("prompts/get", params).await;
        assert_eq!(error["code"], -32602);
        assert!(error["message"].as_str().unwrap().contains("4 MiB"), "{error}");
        client.result("prompts/get", json!({ "name": "often", "arguments": { "a": "x" } })).await;
    }
}
