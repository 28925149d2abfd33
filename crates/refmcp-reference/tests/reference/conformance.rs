//! The suite's fixtures, word by word.

use serde_json::{Value, json};

use crate::client::{Client, SESSION, STATELESS, server};

#[tokio::test]
async fn content_fixtures() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        let simple = client.result("tools/call", json!({ "name": "test_simple_text" })).await;
        assert_eq!(
            simple["content"],
            json!([{ "type": "text", "text": "This is a simple text response for testing." }])
        );
        let image = client.call("test_image_content", json!({})).await;
        assert_eq!(
            (&image["content"][0]["type"], &image["content"][0]["mimeType"]),
            (&json!("image"), &json!("image/png"))
        );
        let audio = client.call("test_audio_content", json!({})).await;
        assert_eq!(
            (&audio["content"][0]["type"], &audio["content"][0]["mimeType"]),
            (&json!("audio"), &json!("audio/wav"))
        );
        let embedded = client.call("test_embedded_resource", json!({})).await;
        assert_eq!(
            embedded["content"][0]["resource"],
            json!({
                "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content.",
            })
        );
        let several = client.call("test_multiple_content_types", json!({})).await;
        assert_eq!(several["content"][0]["text"], "Multiple content types test:");
        assert_eq!(several["content"][1]["type"], "image");
        assert_eq!(several["content"][2]["resource"]["uri"], "test://mixed-content-resource");
        assert_eq!(several["content"][2]["resource"]["text"], r#"{"test":"data","value":123}"#);
        let error = client.call("test_error_handling", json!({})).await;
        assert_eq!(error["isError"], true);
        assert_eq!(error["content"][0]["text"], "This tool intentionally returns an error for testing");
        for tool in ["test_reconnection", "test_logging_tool"] {
            assert_eq!(client.call(tool, json!({})).await["isError"], false);
        }
        if revision == STATELESS {
            assert!(client.heard.is_empty(), "{:?}", client.heard);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn messages_while_a_tool_runs() {
    let server = server();
    let mut client = Client::new(&server, SESSION).await;
    client.result("logging/setLevel", json!({ "level": "debug" })).await;
    client.call("test_tool_with_logging", json!({})).await;
    let said: Vec<Value> = client.heard.drain(..).map(|heard| heard["params"]["data"].clone()).collect();
    assert_eq!(said, ["Tool execution started", "Tool processing data", "Tool execution completed"]);
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        let params =
            json!({ "name": "test_tool_with_progress", "_meta": { "progressToken": "progress-test-1" } });
        client.result("tools/call", params).await;
        let progress: Vec<Value> = client.heard.iter().map(|heard| heard["params"].clone()).collect();
        let expected = [0, 50, 100]
            .map(|at| json!({ "progressToken": "progress-test-1", "progress": at, "total": 100 }));
        assert_eq!(progress, expected);
    }
}

#[tokio::test]
async fn forms_are_as_asked_for() {
    let mut client = Client::new(&server(), SESSION).await;
    client.call("test_sampling", json!({ "prompt": "Say so" })).await;
    assert_eq!(
        client.asked[0]["params"],
        json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": "Say so" } }], "maxTokens": 100,
        })
    );
    client.call("test_elicitation", json!({ "message": "Who?" })).await;
    assert_eq!(client.asked[1]["params"]["message"], "Who?");
    assert_eq!(
        client.asked[1]["params"]["requestedSchema"],
        json!({
            "type": "object",
            "properties": {
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            },
            "required": ["username", "email"],
        })
    );
    client.call("test_elicitation_sep1330_enums", json!({})).await;
    let fields = &client.asked[2]["params"]["requestedSchema"]["properties"];
    let has = |field: &str, member: &str| fields[field].get(member).is_some();
    assert!(
        has("untitledSingle", "enum")
            && !has("untitledSingle", "oneOf")
            && !has("untitledSingle", "enumNames")
    );
    assert!(has("titledSingle", "oneOf") && !has("titledSingle", "enum"));
    assert_eq!(
        fields["legacyEnum"]["enum"].as_array().unwrap().len(),
        fields["legacyEnum"]["enumNames"].as_array().unwrap().len()
    );
    assert_eq!(fields["untitledMulti"]["items"]["type"], "string");
    assert!(fields["untitledMulti"]["items"].get("anyOf").is_none());
    assert!(
        fields["titledMulti"]["items"]["anyOf"].is_array()
            && fields["titledMulti"]["items"].get("enum").is_none()
    );
}

#[tokio::test]
async fn every_type_has_a_default_since_there_are_forms() {
    let server = server();
    for revision in ["2025-06-18", SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        client.call("test_elicitation_sep1034_defaults", json!({})).await;
        let fields = &client.asked[0]["params"]["requestedSchema"]["properties"];
        let all = json!({
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "description": "Verification status", "default": true },
        });
        assert_eq!(*fields, all, "{revision}");
    }
}

#[tokio::test]
async fn schemas_are_listed_unaltered() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        let tools = client.list("tools").await;
        let schema =
            |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["inputSchema"].clone();
        let contact = schema("json_schema_2020_12_tool");
        assert_eq!(contact["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(contact["$defs"]["address"]["$anchor"], "addressDef");
        assert_eq!(
            contact["allOf"],
            json!([{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }])
        );
        assert_eq!(contact["if"]["required"], json!(["contactMethod"]));
        assert_eq!(
            (&contact["then"], &contact["else"]),
            (&json!({ "required": ["phone"] }), &json!({ "required": ["email"] }))
        );
        assert_eq!(contact["properties"]["address"], json!({ "$ref": "#/$defs/address" }));
        assert_eq!(contact["additionalProperties"], false);
        let region = schema("test_x_mcp_header");
        assert_eq!(region["properties"]["region"]["x-mcp-header"], "Region");
        assert_eq!(region["properties"]["region"]["type"], "string");
        assert!(region.get("required").is_none());
        let fits = json!({ "name": "A", "contactMethod": "phone", "phone": "1" });
        assert_eq!(client.call("json_schema_2020_12_tool", fits).await["isError"], false);
        assert_eq!(
            client.call("json_schema_2020_12_tool", json!({ "contactMethod": "phone", "email": "x" })).await
                ["isError"],
            true
        );
        assert_eq!(client.text("test_x_mcp_header", json!({ "region": "Hello" })).await, "Region: Hello");
        assert_eq!(client.text("test_x_mcp_header", json!({})).await, "No region");
    }
}

#[tokio::test]
async fn resource_fixtures() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        let mut read = async |uri: &str| {
            client.result("resources/read", json!({ "uri": uri })).await["contents"][0].clone()
        };
        assert_eq!(
            read("test://static-text").await["text"],
            "This is the content of the static text resource."
        );
        assert_eq!(read("test://static-binary").await["mimeType"], "image/png");
        assert_eq!(read("test://watched-resource").await["text"], "Watched resource content");
        let data = read("test://template/123/data").await;
        assert_eq!(data["mimeType"], "application/json");
        let data: Value = serde_json::from_str(data["text"].as_str().unwrap()).unwrap();
        assert_eq!(data, json!({ "id": "123", "templateTest": true, "data": "Data for ID: 123" }));
    }
    let mut client = Client::new(&server, SESSION).await;
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        assert_eq!(client.result(method, json!({ "uri": "test://watched-resource" })).await, json!({}));
    }
}

#[tokio::test]
async fn prompt_fixtures() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        let mut get = async |name: &str, arguments: Value| {
            client.result("prompts/get", json!({ "name": name, "arguments": arguments })).await["messages"]
                .clone()
        };
        let simple = get("test_simple_prompt", json!({})).await;
        assert_eq!(
            simple,
            json!([{ "role": "user", "content": { "type": "text", "text": "This is a simple prompt for testing." } }])
        );
        let filled = get("test_prompt_with_arguments", json!({ "arg1": "hello", "arg2": "world" })).await;
        assert_eq!(filled[0]["content"]["text"], "Prompt with arguments: arg1='hello', arg2='world'");
        let embedded = get("test_prompt_with_embedded_resource", json!({ "resourceUri": "test://x" })).await;
        assert_eq!(embedded[0]["content"]["resource"]["uri"], "test://x");
        assert_eq!(embedded[1]["content"]["text"], "Please process the embedded resource above.");
        let image = get("test_prompt_with_image", json!({})).await;
        assert_eq!(
            (&image[0]["content"]["type"], &image[1]["content"]["type"]),
            (&json!("image"), &json!("text"))
        );
        let completed = client
            .result(
                "completion/complete",
                json!({
                    "ref": { "type": "ref/prompt", "name": "test_prompt_with_arguments" },
                    "argument": { "name": "arg1", "value": "par" },
                }),
            )
            .await;
        assert_eq!(completed["completion"]["values"], json!(["paris", "park", "party"]));
    }
}

#[tokio::test]
async fn triggers_reach_those_who_listen() {
    let server = server();
    let mut listener = Client::new(&server, STATELESS).await;
    listener.start("subscriptions/listen", json!({ "notifications": { "promptsListChanged": true } })).await;
    listener.hear("notifications/subscriptions/acknowledged").await;
    let mut client = Client::new(&server, STATELESS).await;
    client.call("test_trigger_tool_change", json!({})).await;
    client.call("test_trigger_prompt_change", json!({})).await;
    listener.hear("notifications/prompts/list_changed").await;
    assert_eq!(listener.count("notifications/tools/list_changed"), 0);
    let mut session = Client::new(&server, SESSION).await;
    session.call("test_trigger_tool_change", json!({})).await;
    session.hear("notifications/tools/list_changed").await;
}
