//! Suggestions for arguments of prompts and templates.

use refmcp_server::model::{PromptMessage, ResourceContents};
use refmcp_server::{Prompt, ResourceTemplate, Revision, Server};
use refmcp_testkit::client::TestClient;
use serde_json::{Value, json};

use crate::support::SESSION;

fn suggesting() -> Server {
    let travel = Prompt::new("travel", |_, _| async { Ok(PromptMessage::user("Go.")) })
        .required("country", "Where")
        .optional("city", "Where exactly")
        .optional("means", "How")
        .complete("country", |_, typed| async move { typed.among(["France", "Finland", "Italy"]) })
        .complete("city", |_, typed| async move {
            match typed.known.get("country").map(String::as_str) {
                Some("France") => typed.among(["Paris", "Lyon"]),
                _ => Vec::new(),
            }
        });
    let read = |_, uri: String, _| async move { Ok(ResourceContents::text(uri, "")) };
    let numbers = ResourceTemplate::new("number://{number}", "number", read).unwrap();
    let numbers = numbers.complete("number", |_, typed| async move {
        let count: usize = typed.value.parse().unwrap_or(0);
        (0..count).map(|number| number.to_string()).collect()
    });
    Server::builder("test", "1").prompt(travel).template(numbers).build().unwrap()
}

fn prompt(argument: &str, value: &str) -> Value {
    json!({ "ref": { "type": "ref/prompt", "name": "travel" }, "argument": { "name": argument, "value": value } })
}

fn template(uri: &str, value: &str) -> Value {
    json!({ "ref": { "type": "ref/resource", "uri": uri }, "argument": { "name": "number", "value": value } })
}

#[tokio::test]
async fn suggestions_follow_what_was_typed_and_what_is_known() {
    let server = suggesting();
    for revision in Revision::ALL {
        let mut client = TestClient::open(&server, revision).await;
        let told = client.result("completion/complete", prompt("country", "f")).await["completion"].take();
        assert_eq!(
            told,
            json!({ "values": ["France", "Finland"], "total": 2, "hasMore": false }),
            "{revision}"
        );
        let mut city = prompt("city", "");
        city["context"] = json!({ "arguments": { "country": "France" } });
        let told = client.result("completion/complete", city).await;
        assert_eq!(told["completion"]["values"], json!(["Paris", "Lyon"]), "{revision}");
        let told = client.result("completion/complete", prompt("means", "tr")).await;
        assert_eq!(told["completion"]["values"], json!([]), "it has no completer");
    }
}

#[tokio::test]
async fn no_more_than_a_hundred_at_once() {
    let mut client = TestClient::open(&suggesting(), SESSION).await;
    for (count, given, more) in [(99, 99, false), (100, 100, false), (101, 100, true), (5000, 100, true)] {
        let params = template("number://{number}", &count.to_string());
        let told = client.result("completion/complete", params).await["completion"].take();
        assert_eq!(told["values"].as_array().unwrap().len(), given);
        assert_eq!((&told["total"], &told["hasMore"]), (&json!(count), &json!(more)));
    }
    let member = client.result("completion/complete", template("number://12", "2")).await;
    assert_eq!(member["completion"]["values"], json!(["0", "1"]), "a member stands for its family");
}

#[tokio::test]
async fn unknown_references_cannot_be_completed() {
    let mut client = TestClient::open(&suggesting(), SESSION).await;
    let unknown =
        json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "" } });
    for (params, told) in [
        (unknown, "unknown prompt: x"),
        (prompt("planet", ""), "unknown argument: planet"),
        (template("other://1", ""), "unknown resource template: other://1"),
    ] {
        let error = client.error("completion/complete", params).await;
        assert_eq!(error, json!({ "code": -32602, "message": told }));
    }
}
