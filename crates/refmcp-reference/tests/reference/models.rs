//! Models, metadata and profiles.

use refmcp_reference::{Options, Profile};
use serde_json::{Value, json};

use crate::client::{Client, SESSION, SESSIONS, STATELESS, server};

fn hint(client: &Client) -> Value {
    client.asked.last().unwrap()["params"]["modelPreferences"]["hints"][0]["name"].clone()
}

#[tokio::test]
async fn a_session_selects_its_model() {
    let server = server();
    for revision in SESSIONS {
        let mut client = Client::new(&server, revision).await;
        let mut other = Client::new(&server, revision).await;
        let models = client.result("models/list", json!({})).await;
        assert_eq!(models["active"], "gpt-4");
        assert_eq!(models["models"][2]["name"], "claude-v2");
        assert_eq!(models["models"][2]["contextLength"], 100_000);
        assert_eq!(
            client.result("models/select", json!({ "name": "claude-v2" })).await,
            json!({ "active": "claude-v2" })
        );
        assert_eq!(client.result("models/list", json!({})).await["models"][2]["active"], true);
        client.call("ask_model", json!({ "prompt": "?" })).await;
        assert_eq!(hint(&client), "claude-v2");
        other.call("ask_model", json!({ "prompt": "?" })).await;
        assert_eq!(hint(&other), "gpt-4");
        for params in [json!({ "name": "gpt-9" }), json!({}), json!({ "name": 4 })] {
            assert_eq!(client.error("models/select", params).await["code"], -32602);
        }
        assert_eq!(client.result("models/list", json!({})).await["active"], "claude-v2");
    }
}

#[tokio::test]
async fn without_a_session_the_request_names_its_model() {
    let mut client = Client::new(&server(), STATELESS).await;
    assert_eq!(client.error("models/select", json!({ "name": "gpt-4" })).await["code"], -32601);
    client.meta("refmcp/model", json!("gpt-3.5-turbo"));
    client.call("ask_model", json!({ "prompt": "?" })).await;
    assert_eq!(hint(&client), "gpt-3.5-turbo");
    assert_eq!(client.result("models/list", json!({})).await["active"], "gpt-3.5-turbo");
    for wrong in [json!("gpt-9"), json!(4)] {
        client.meta("refmcp/model", wrong);
        let params = json!({ "name": "ask_model", "arguments": { "prompt": "?" } });
        assert_eq!(client.error("tools/call", params).await["code"], -32602);
        assert_eq!(client.error("models/list", json!({})).await["code"], -32602);
    }
}

#[tokio::test]
async fn metadata_says_what_a_token_has_to_be_good_for() {
    let server = refmcp_reference::server(Options { auth_required: true, ..Options::default() }).unwrap();
    let mut client = Client::new(&server, SESSION).await;
    let metadata = client.result("metadata/get", json!({})).await;
    assert_eq!((&metadata["authRequired"], &metadata["scopes"]), (&json!(true), &json!(["mcp:write"])));
}

#[tokio::test]
async fn metadata_is_what_the_handshake_said() {
    let options = Options { endpoints: vec!["stdio".into()], version: "9.9".into(), ..Options::default() };
    let server = refmcp_reference::server(options).unwrap();
    let mut client = Client::new(&server, SESSION).await;
    let metadata = client.result("metadata/get", json!({})).await;
    assert_eq!(metadata["name"], "RefMCP-TestServer");
    assert_eq!(metadata["version"], "9.9");
    assert_eq!((&metadata["authRequired"], &metadata["scopes"]), (&json!(false), &json!(null)));
    assert_eq!(metadata["endpoints"], json!(["stdio"]));
    assert_eq!(metadata["revisions"].as_array().unwrap().len(), 5);
    let capabilities = &metadata["capabilities"];
    assert_eq!(capabilities["models"], json!({}));
    assert_eq!(capabilities["metadata"], json!({}));
    assert_eq!(capabilities["resources"], json!({ "subscribe": true, "listChanged": true }));
    for present in ["tools", "prompts", "logging", "completions"] {
        assert!(capabilities[present].is_object(), "{present}");
    }
    assert!(capabilities.get("experimental").is_none());

    let mut client = Client::new(&server, STATELESS).await;
    let discovered = client.result("server/discover", json!({})).await;
    let metadata = client.result("metadata/get", json!({})).await;
    assert_eq!(metadata["capabilities"], discovered["capabilities"]);
    assert_eq!(
        discovered["capabilities"]["extensions"],
        json!({
            "io.modelcontextprotocol/tasks": {}, "io.modelcontextprotocol/skills": { "directoryRead": true },
            "io.modelcontextprotocol/ui": {}, "refmcp/models": {}, "refmcp/metadata": {}
        })
    );
}

#[tokio::test]
async fn profiles_offer_their_part() {
    for (profile, first, has, has_not) in [
        (Profile::Reference, "about_me", "echo", "test_simple_text"),
        (Profile::Conformance, "test_simple_text", "test_sampling", "echo"),
        (Profile::All, "about_me", "test_sampling", "nothing"),
    ] {
        let server = refmcp_reference::server(Options { profile, ..Options::default() }).unwrap();
        for revision in [SESSION, STATELESS] {
            let mut client = Client::new(&server, revision).await;
            let tools = client.list("tools").await;
            let names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
            assert_eq!(names[0], first);
            assert!(names.contains(&has) && !names.contains(&has_not));
            let result = client.call(first, json!({})).await;
            assert_eq!(result["isError"], false);
            let resources = client.list("resources").await;
            client.result("resources/read", json!({ "uri": resources[0]["uri"] })).await;
            assert!(!client.list("prompts").await.is_empty());
            assert!(!client.list("templates").await.is_empty());
            let models = client.request("models/list", json!({})).await;
            assert_eq!(models.get("error").is_some(), profile == Profile::Conformance);
        }
    }
}
