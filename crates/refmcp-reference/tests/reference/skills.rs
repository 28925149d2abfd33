//! Skills: the built-in ones and those of a directory, as clients of every revision see them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use refmcp_reference::Options;
use refmcp_server::Server;
use refmcp_server::model::{ResourceContents, Skill};
use refmcp_server::skill::SkillEntry;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, SESSION, SESSIONS, STATELESS, server};

fn serve(directory: &Path) -> Server {
    refmcp_reference::server(Options { skills_dir: Some(directory.to_owned()), ..Options::default() })
        .unwrap()
}

/// Writes a skill of this name and description.
fn write(directory: &Path, name: &str, description: &str) {
    fs::create_dir_all(directory).unwrap();
    let text = format!("---\nname: {name}\ndescription: {description}\n---\nBody\n");
    fs::write(directory.join("SKILL.md"), text).unwrap();
}

/// The URIs of the listed skills that are not built in.
async fn uris(client: &mut Client) -> Vec<String> {
    let skills = client.list("skills").await;
    let uris = skills.iter().filter_map(|skill| skill["uri"].as_str());
    let mut uris: Vec<_> =
        uris.filter(|uri| !uri.starts_with("skill://refmcp/")).map(str::to_owned).collect();
    uris.sort();
    uris
}

#[tokio::test]
async fn built_in_skills_are_what_their_entries_say_in_every_revision() {
    let server = server();
    for revision in SESSIONS.into_iter().chain([STATELESS]) {
        let mut client = Client::new(&server, revision).await;
        let page = client.result("skills/list", json!({})).await;
        assert_eq!(page["resultType"], "complete");
        assert!(page["ttlMs"].is_u64() && page["cacheScope"].is_string(), "{page}");
        let skills = page["skills"].as_array().unwrap().clone();
        assert_eq!(skills.len(), 3);
        for skill in skills {
            let got = client.result("skills/get", json!({ "uri": skill["uri"] })).await;
            assert_eq!(got["skill"], skill);
            assert!(got["ttlMs"].is_u64() && got["cacheScope"].is_string());
            let entry = SkillEntry::check(serde_json::from_value::<Skill>(skill).unwrap()).unwrap();
            for (uri, _, _) in entry.files() {
                let read = client.result("resources/read", json!({ "uri": uri })).await;
                let contents: ResourceContents = serde_json::from_value(read["contents"][0].clone()).unwrap();
                entry.verify(uri, &contents).unwrap();
            }
        }
        for uri in
            ["skill://refmcp/none/SKILL.md", "skill://refmcp/test-mcp-client", "file:///notes/todo.txt"]
        {
            assert_eq!(client.error("skills/get", json!({ "uri": uri })).await["code"], -32602);
        }
    }
}

#[tokio::test]
async fn directories_have_their_children() {
    let options = Options { page_size: 2, ..Options::default() };
    let server = refmcp_reference::server(options).unwrap();
    let mut client = Client::new(&server, STATELESS).await;
    let root = "skill://refmcp/test-mcp-client";
    let page = client.result("resources/directory/read", json!({ "uri": root })).await;
    assert!(page.get("ttlMs").is_none() && page["resultType"] == "complete");
    let kinds = |page: &Value| -> Vec<(Value, Value)> {
        let children = page["resources"].as_array().unwrap().iter();
        children.map(|child| (child["uri"].clone(), child["mimeType"].clone())).collect()
    };
    let expected = ["read-verdict", "references"]
        .map(|name| (json!(format!("{root}/{name}")), json!("inode/directory")));
    assert_eq!(kinds(&page), expected);
    let cursor = page["nextCursor"].clone();
    let rest = client.result("resources/directory/read", json!({ "uri": root, "cursor": cursor })).await;
    assert_eq!(kinds(&rest), [(json!(format!("{root}/SKILL.md")), json!("text/markdown"))]);
    assert_eq!(rest["resources"][0]["name"], "test-mcp-client");
    assert!(rest.get("nextCursor").is_none());
    let references = format!("{root}/references");
    for params in [
        json!({ "uri": format!("{root}/SKILL.md") }),
        json!({ "uri": format!("{root}/") }),
        json!({ "uri": "skill://refmcp" }),
        json!({ "uri": references, "cursor": cursor }),
        json!({ "uri": root, "cursor": "x" }),
    ] {
        assert_eq!(
            client.error("resources/directory/read", params.clone()).await["code"],
            -32602,
            "{params}"
        );
    }
}

#[tokio::test]
async fn skills_of_a_directory_come_change_and_go() {
    let root = TempDir::new().unwrap();
    write(&root.path().join("acme/refunds"), "refunds", "Pays back");
    fs::write(root.path().join("acme/refunds/data.bin"), [0xFF]).unwrap();
    fs::write(root.path().join("acme/refunds/.hidden"), "no").unwrap();
    let server = serve(root.path());
    let mut client = Client::new(&server, SESSION).await;
    let uri = "skill://acme/refunds/SKILL.md";
    assert_eq!(uris(&mut client).await, [uri]);
    let files = client.result("skills/get", json!({ "uri": uri })).await["skill"]["resources"].clone();
    assert_eq!(files.as_array().unwrap().len(), 2);
    client.result("resources/subscribe", json!({ "uri": uri })).await;

    write(&root.path().join("acme/refunds"), "refunds", "Pays less back");
    let updated = client.hear("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], uri);
    let skill = client.result("skills/get", json!({ "uri": uri })).await["skill"].clone();
    assert_eq!(skill["frontmatter"]["description"], "Pays less back");

    // What is broken stays as it was.
    fs::write(root.path().join("acme/refunds/SKILL.md"), "no front matter").unwrap();
    write(&root.path().join("other"), "other", "Another");
    while uris(&mut client).await.len() < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.result("skills/get", json!({ "uri": uri })).await["skill"], skill);

    fs::remove_dir_all(root.path().join("acme")).unwrap();
    client.hear("notifications/resources/list_changed").await;
    while uris(&mut client).await.len() > 1 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.error("skills/get", json!({ "uri": uri })).await["code"], -32602);
    assert_eq!(client.error("resources/read", json!({ "uri": uri })).await["code"], -32002);
}

#[tokio::test]
async fn what_is_no_skill_is_left_out() {
    let root = TempDir::new().unwrap();
    write(&root.path().join("right"), "right", "Right");
    write(&root.path().join("called-otherwise"), "wrong-name", "Wrong");
    write(&root.path().join("UPPER"), "UPPER", "Wrong");
    write(&root.path().join("refmcp/check-mcp-server"), "check-mcp-server", "Not the built-in one");
    write(&root.path().join(".hidden"), "hidden", "Hidden");
    fs::create_dir_all(root.path().join("large")).unwrap();
    write(&root.path().join("large"), "large", "Large");
    fs::File::create(root.path().join("large/file")).unwrap().set_len(17 << 20).unwrap();
    fs::create_dir_all(root.path().join("empty/SKILL.md")).unwrap();
    let server = serve(root.path());
    let mut client = Client::new(&server, STATELESS).await;
    assert_eq!(uris(&mut client).await, ["skill://right/SKILL.md"]);
}

#[tokio::test]
async fn a_directory_can_be_a_skill_itself() {
    let root = TempDir::new().unwrap();
    write(root.path(), "whole", "All of it");
    write(&root.path().join("part"), "part", "A part");
    let server = serve(root.path());
    let mut client = Client::new(&server, STATELESS).await;
    assert_eq!(uris(&mut client).await, ["skill://whole/SKILL.md", "skill://whole/part/SKILL.md"]);
}

#[cfg(unix)]
#[tokio::test]
async fn links_do_not_lead_out() {
    use std::os::unix::fs::symlink;

    let parent = TempDir::new().unwrap();
    let root = parent.path().join("root");
    write(&root.join("a"), "a", "A");
    write(&parent.path().join("outside"), "outside", "Outside");
    symlink(parent.path().join("outside"), root.join("outside")).unwrap();
    symlink(parent.path().join("outside/SKILL.md"), root.join("a/link.md")).unwrap();
    symlink(parent.path().join("outside"), root.join("a/link")).unwrap();
    fs::create_dir(root.join("b")).unwrap();
    symlink(parent.path().join("outside/SKILL.md"), root.join("b/SKILL.md")).unwrap();
    let server = serve(&root);
    let mut client = Client::new(&server, STATELESS).await;
    assert_eq!(uris(&mut client).await, ["skill://a/SKILL.md"]);
    let files = client.result("skills/get", json!({ "uri": "skill://a/SKILL.md" })).await;
    assert_eq!(files["skill"]["resources"].as_array().unwrap().len(), 1);
}
