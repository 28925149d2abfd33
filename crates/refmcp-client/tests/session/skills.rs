//! Skills: nothing is read ahead, and what does not fit its entry is no value.

use std::sync::{Arc, Mutex};

use refmcp_client::model::JsonObject;
use refmcp_client::skill::Digest;
use refmcp_client::{Client, Revision, SkillError};
use refmcp_testkit::refmcp_server::model::ResourceContents;
use refmcp_testkit::refmcp_server::{Call, CallError, CallRecord, Resource, Server, Skill};
use serde_json::{Value, json};

use crate::fixture::client_of;

const TEXT: &str = "---\nname: refunds\ndescription: Pays back\n---\nAsk first.\n";
const URI: &str = "skill://acme/refunds/SKILL.md";

fn skill() -> Skill {
    Skill::new(TEXT).under("acme").file("forms/a b.md", "text/markdown", "form")
}

#[tokio::test(start_paused = true)]
async fn skills_are_listed_loaded_and_read_in_every_revision() {
    let called: Arc<Mutex<Vec<String>>> = Arc::default();
    let recorded = called.clone();
    let record = move |call: &CallRecord<'_>| recorded.lock().unwrap().push(call.method.to_owned());
    let server = Server::builder("test", "1").skill(skill()).on_call(record).build().unwrap();
    for revision in Revision::ALL {
        let (client, _) = client_of(&server, revision).await;
        let list = client.skills().list().await.unwrap();
        assert!(list.refused.is_empty() && list.skills.len() == 1, "{revision}");
        let got = client.skills().get(URI).await.unwrap();
        assert_eq!(got.entry(), list.skills[0].entry());
        let reads = || called.lock().unwrap().iter().filter(|method| *method == "resources/read").count();
        assert_eq!(reads(), 0, "nothing is read ahead");
        let loaded = got.load().await.unwrap();
        assert_eq!((loaded.text(), reads()), (TEXT, 1));
        assert_eq!(loaded.read("forms/a b.md").await.unwrap().text(), Some("form"));
        assert_eq!(fault(loaded.read("../other").await.unwrap_err()), "unlisted");
        assert!(matches!(client.skills().get("skill://none/SKILL.md").await, Err(SkillError::Request(_))));
        called.lock().unwrap().clear();
    }
}

fn fault(error: SkillError) -> &'static str {
    match error {
        SkillError::Fault(fault) => fault.kind(),
        error => panic!("{error}"),
    }
}

/// A client of a server that says this of its skill.
async fn client_of_claim(entries: Value) -> Client {
    let list = move |_: Call, _: JsonObject| {
        let page = JsonObject::from_iter([("skills".to_owned(), entries.clone())]);
        async move { Ok::<_, CallError>(page) }
    };
    let read = |_| async { Ok(ResourceContents::text(URI, TEXT)) };
    let settings = JsonObject::new();
    let server = Server::builder("test", "1")
        .extension("skills", "io.modelcontextprotocol/skills", settings)
        .method("skills/list", list)
        .resource(Resource::new(URI, "refunds", read))
        .build()
        .unwrap();
    client_of(&server, Revision::LATEST).await.0
}

fn claim(description: &str, text: &str, size: usize) -> Value {
    let file = json!({ "uri": URI, "digest": Digest::of(text.as_bytes()).to_string(), "size": size });
    json!({ "uri": URI, "frontmatter": { "name": "refunds", "description": description }, "resources": [file] })
}

#[tokio::test(start_paused = true)]
async fn a_skill_that_is_not_what_was_claimed_is_not_loaded() {
    for (claim, expected) in [
        (claim("Pays back", TEXT, TEXT.len() + 1), "size"),
        (claim("Pays back", "other", TEXT.len()), "digest"),
        (claim("Harmless", TEXT, TEXT.len()), "frontmatter"),
    ] {
        let client = client_of_claim(json!([claim])).await;
        let list = client.skills().list().await.unwrap();
        assert_eq!(fault(list.skills[0].load().await.unwrap_err()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_entry_leaves_the_others() {
    let wrong =
        [json!({ "uri": URI }), json!(7), json!({ "uri": "x", "frontmatter": {}, "resources": "dynamic" })];
    let entries = wrong.into_iter().chain([claim("Pays back", TEXT, TEXT.len())]).collect::<Vec<_>>();
    let client = client_of_claim(json!(entries)).await;
    let list = client.skills().list().await.unwrap();
    assert_eq!((list.skills.len(), list.refused.len()), (1, 3));
    assert!(list.skills[0].load().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_declares_no_skills_is_not_asked_for_them() {
    let server = Server::builder("test", "1").build().unwrap();
    let (client, _) = client_of(&server, Revision::LATEST).await;
    assert_eq!(client.skills().list().await.unwrap_err(), SkillError::Undeclared);
    assert_eq!(client.skills().get(URI).await.unwrap_err(), SkillError::Undeclared);
}
