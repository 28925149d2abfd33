//! Directories as prompts.

use std::fs;
use std::time::Duration;

use refmcp_reference::Options;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, SESSION, STATELESS};

const NOTES: &str = "---\ntitle: Release notes\ndescription: Asks for notes\nargument version: Which\noptional tone: How\n---\n\
                     Write the notes of {{version}}. {{tone}}{{who}}";

async fn prompt(client: &mut Client, name: &str) -> Option<Value> {
    client.list("prompts").await.into_iter().find(|prompt| prompt["name"] == name)
}

#[tokio::test]
async fn files_are_prompts_and_are_read_again() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("release-notes.md"), NOTES).unwrap();
    fs::write(root.path().join("plain.txt"), "Say hello.").unwrap();
    fs::write(root.path().join("broken.md"), "---\ntitle: never ends").unwrap();
    fs::write(root.path().join("refactor.md"), "There is one already.").unwrap();
    fs::write(root.path().join("other.json"), "{}").unwrap();
    fs::write(root.path().join("no name.md"), "No.").unwrap();
    let options = Options { prompts_dir: Some(root.path().to_owned()), ..Options::default() };
    let server = refmcp_reference::server(options).unwrap();

    let mut stateless = Client::new(&server, STATELESS).await;
    let listed = prompt(&mut stateless, "release-notes").await.unwrap();
    assert_eq!(listed["title"], "Release notes");
    assert_eq!(
        listed["arguments"],
        json!([
            { "name": "version", "description": "Which", "required": true },
            { "name": "tone", "description": "How", "required": false },
            { "name": "who", "required": true },
        ])
    );
    let mut get = async |arguments: Value| {
        stateless.request("prompts/get", json!({ "name": "release-notes", "arguments": arguments })).await
    };
    let filled = get(json!({ "version": "{{who}}", "who": "me" })).await;
    assert_eq!(filled["result"]["messages"][0]["content"]["text"], "Write the notes of {{who}}. me");
    assert_eq!(get(json!({ "version": "1" })).await["error"]["code"], -32602);
    for absent in ["broken", "other", "no name"] {
        assert_eq!(prompt(&mut stateless, absent).await, None);
    }
    assert_eq!(prompt(&mut stateless, "refactor").await.unwrap()["title"], "Refactor Code");

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
