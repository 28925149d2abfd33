//! An author's mistakes come to light when the server is built, all at once.

use refmcp_server::model::{PromptMessage, ResourceContents};
use refmcp_server::{Prompt, Resource, ResourceTemplate, Server};
use refmcp_testkit::client::TestClient;
use serde_json::{Value, json};

use crate::support::{SESSION, named};

fn prompt(name: &str) -> Prompt {
    Prompt::new(name, |_, _| async { Ok(PromptMessage::user("?")) })
}

fn resource(uri: &'static str) -> Resource {
    Resource::new(uri, "name", move |_| async move { Ok(ResourceContents::text(uri, "")) })
}

fn schema(schema: &Value) -> serde_json::Map<String, Value> {
    schema.as_object().unwrap().clone()
}

#[test]
fn every_mistake_is_named_at_once() {
    let read = |_, uri: String, _| async move { Ok(ResourceContents::text(uri, "")) };
    let remote = json!({ "type": "object", "properties": { "a": { "$ref": "https://example.com/a.json" } } });
    let itself = json!({ "$ref": "#/$defs/a" });
    let endless =
        json!({ "type": "object", "$ref": "#/$defs/a", "$defs": { "a": { "allOf": [itself, itself] } } });
    let error = Server::builder("test", "1")
        .tool(named("twice"))
        .tool(named("twice"))
        .tool(named("not a name"))
        .tool(named(""))
        .tool(named("no_object").input_schema(schema(&json!({ "type": "string" }))))
        .tool(named("bad_schema").input_schema(schema(&json!({ "type": "object", "required": "a" }))))
        .tool(named("remote").input_schema(schema(&remote)))
        .tool(named("endless").input_schema(schema(&endless)))
        .tool(named("bad_output").output_schema(schema(&json!({ "type": "nothing" }))))
        .resource(resource("a://b"))
        .resource(resource("a://b"))
        .prompt(prompt("hello"))
        .prompt(prompt("hello"))
        .prompt(prompt("typo").required("name", "Who").complete("nmae", |_, _| async { Vec::new() }))
        .template(
            ResourceTemplate::new("t://{x}", "t", read).unwrap().complete("y", |_, _| async { Vec::new() }),
        )
        .method("tools/list", |_, _| async { Ok(Default::default()) })
        .revisions([])
        .build()
        .unwrap_err();
    let expected = [
        "tool twice is there twice",
        "tool \"not a name\"",
        "tool \"\"",
        "tool no_object: input schema",
        "tool bad_schema: input schema",
        "tool remote: input schema",
        "tool endless: input schema: it refers to itself without end",
        "tool bad_output: output schema",
        "resource a://b is there twice",
        "prompt hello is there twice",
        "prompt typo: suggestions for nmae",
        "template t://{x}: suggestions for y",
        "method tools/list belongs to the protocol",
        "speaks no revision",
    ];
    assert_eq!(error.0.len(), expected.len(), "{:#?}", error.0);
    for (line, expected) in error.0.iter().zip(expected) {
        assert!(line.contains(expected), "{expected}: {:#?}", error.0);
        assert!(error.to_string().contains(expected), "the whole text has them all");
    }
}

#[test]
fn templates_that_cannot_be_matched_are_no_templates() {
    let read = |_, uri: String, _| async move { Ok(ResourceContents::text(uri, "")) };
    for bad in ["a://{x", "a://x}", "a://{x}{y}", "a://{x}/{x}", "a://{?x}"] {
        assert!(ResourceTemplate::new(bad, "t", read).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn only_what_is_there_is_declared() {
    let mut client = TestClient::over(Server::builder("test", "1").build().unwrap().in_memory());
    let opened = client.start(SESSION, json!({})).await;
    assert_eq!(opened["capabilities"], json!({ "logging": {} }));
    assert_eq!(client.error("tools/list", json!({})).await["code"], -32601);

    let server =
        Server::builder("test", "1").prompt(prompt("hello")).instructions("Be kind.").build().unwrap();
    let mut client = TestClient::over(server.in_memory());
    let opened = client.start(SESSION, json!({})).await;
    assert_eq!(opened["capabilities"], json!({ "logging": {}, "prompts": { "listChanged": true } }));
    assert_eq!(opened["instructions"], "Be kind.");
}

#[tokio::test]
async fn a_tool_that_cannot_be_compiled_is_refused_at_run_time_too() {
    let server = Server::builder("test", "1").tool(named("good")).build().unwrap();
    let mut client = TestClient::open(&server, SESSION).await;
    let bad = named("bad").input_schema(schema(&json!({ "type": "string" })));
    let refused = server.change_lists(|catalog| catalog.add_tool(bad)).unwrap_err();
    assert_eq!(refused.to_string(), "tool bad: input schema: its type is not \"object\"");
    assert_eq!(client.list("tools").await.len(), 1);
    assert!(client.notifications.is_empty(), "nothing has changed: {:?}", client.notifications);
}
