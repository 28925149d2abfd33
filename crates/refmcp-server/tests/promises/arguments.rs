//! Typed arguments and structured output: what does not fit is refused, in each revision's own way.

use refmcp_server::model::CallToolResult;
use refmcp_server::revision::StructuredOutput;
use refmcp_server::{Call, CallError, Json, NoArguments, Revision, Tool};
use refmcp_testkit::client::{TestClient, text};
use serde_json::{Value, json};

use crate::support::server;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    total: f64,
}

async fn add(_: Call, Add { a, b }: Add) -> Result<Json<Sum>, CallError> {
    Ok(Json(Sum { total: a + b }))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Halve {
    /// The schema cannot say what the reader of the value insists on.
    #[serde(deserialize_with = "even")]
    #[schemars(with = "u64")]
    number: u64,
}

fn even<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number: u64 = serde::Deserialize::deserialize(deserializer)?;
    if number.is_multiple_of(2) { Ok(number) } else { Err(serde::de::Error::custom("an odd number")) }
}

async fn halve(_: Call, Halve { number }: Halve) -> Result<String, CallError> {
    if number == 0 {
        return Err(CallError::bad_arguments("nothing to halve"));
    }
    Ok((number / 2).to_string())
}

/// What the client is told about bad arguments: in an error up to 2025-06-18, in a result after that.
async fn complaint(client: &mut TestClient, revision: Revision, tool: &str, arguments: Value) -> String {
    if revision <= Revision::V2025_06_18 {
        let error = client.tool_error(tool, arguments).await;
        assert_eq!(error["code"], -32602, "{revision}");
        error["message"].as_str().unwrap().to_owned()
    } else {
        let result = client.tool(tool, arguments).await;
        assert_eq!(result["isError"], true, "{revision}");
        text(&result)
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_named() {
    let server = server([Tool::new("add", "Adds", add), Tool::new("halve", "Halves", halve)]);
    for revision in Revision::ALL {
        let mut client = TestClient::open(&server, revision).await;
        let told = complaint(&mut client, revision, "add", json!({ "a": "x", "b": 1 })).await;
        assert!(told.contains("/a"), "{revision}: {told}");
        let told = complaint(&mut client, revision, "add", json!({ "a": 1 })).await;
        assert!(told.contains("\"b\""), "{revision}: {told}");
        let told = complaint(&mut client, revision, "halve", json!({ "number": 3 })).await;
        assert!(told.contains("an odd number"), "{revision}: {told}");
        let told = complaint(&mut client, revision, "halve", json!({ "number": 0 })).await;
        assert!(told.contains("nothing to halve"), "{revision}: {told}");
        assert_eq!(client.tool_text("halve", json!({ "number": 4 })).await, "2");
    }
}

#[tokio::test]
async fn calls_that_are_none_are_protocol_errors_everywhere() {
    let server = server([Tool::new("add", "Adds", add)]);
    for revision in Revision::ALL {
        let mut client = TestClient::open(&server, revision).await;
        for (params, told) in [
            (json!({ "name": "subtract" }), "unknown tool: subtract"),
            (json!({ "name": "add", "arguments": [1, 2] }), "arguments is not an object"),
            (json!({ "arguments": {} }), "name"),
        ] {
            let error = client.error("tools/call", params).await;
            assert_eq!(error["code"], -32602, "{revision}: {error}");
            assert!(error["message"].as_str().unwrap().contains(told), "{revision}: {error}");
        }
    }
}

#[tokio::test]
async fn a_tool_without_arguments_takes_none() {
    let server = server([Tool::new("now", "Now", |_: Call, _: NoArguments| async { Ok("now") })]);
    let mut client = TestClient::open(&server, Revision::V2025_06_18).await;
    assert_eq!(text(&client.result("tools/call", json!({ "name": "now" })).await), "now");
    assert_eq!(client.tool_error("now", json!({ "zone": "CET" })).await["code"], -32602);
}

#[tokio::test]
async fn structured_values_travel_as_such_and_as_text() {
    let server = server([Tool::new("add", "Adds", add)]);
    for revision in Revision::ALL {
        let structured = revision.rules().structured_output != StructuredOutput::Unknown;
        let mut client = TestClient::open(&server, revision).await;
        let listed = client.list("tools").await.remove(0);
        assert_eq!(listed["inputSchema"]["required"], json!(["a", "b"]));
        assert_eq!(listed.get("outputSchema").is_some(), structured, "{revision}");
        let result = client.tool("add", json!({ "a": 1, "b": 2 })).await;
        let written: Value = serde_json::from_str(&text(&result)).unwrap();
        assert_eq!(written, json!({ "total": 3.0 }));
        assert_eq!(result.get("structuredContent"), structured.then_some(&written), "{revision}");
    }
}

#[tokio::test]
async fn a_broken_promise_about_the_output_is_the_servers_fault() {
    let schema =
        json!({ "type": "object", "properties": { "total": { "type": "number" } }, "required": ["total"] });
    let schema = schema.as_object().unwrap().clone();
    let tool = |name: &str, give: fn() -> CallToolResult| {
        Tool::new(name, "Promises a total", move |_: Call, _: NoArguments| async move { Ok(give()) })
            .output_schema(schema.clone())
    };
    let server = server([
        tool("wrong", || CallToolResult::structured(json!({ "total": "three" }))),
        tool("plain", || CallToolResult::text("three")),
        tool("sorry", || CallToolResult::error("cannot count")),
    ]);
    for revision in Revision::ALL {
        let mut client = TestClient::open(&server, revision).await;
        for (name, told) in [("wrong", "/total"), ("plain", "no structured content")] {
            let error = client.tool_error(name, json!({})).await;
            assert_eq!(error["code"], -32603, "{revision}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(name) && message.contains(told), "{revision}: {message}");
        }
        let sorry = client.tool("sorry", json!({})).await;
        assert_eq!((sorry["isError"].clone(), text(&sorry)), (json!(true), "cannot count".to_owned()));
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Optional {
    tag: Option<String>,
}

#[tokio::test]
async fn the_argument_that_only_the_type_refuses_is_named() {
    let server = server([Tool::new("halve", "Halves", halve)]);
    for revision in Revision::ALL {
        let mut client = TestClient::open(&server, revision).await;
        let said = complaint(&mut client, revision, "halve", json!({ "number": 3 })).await;
        assert_eq!(said, "arguments.number: an odd number", "{revision}");
    }
}

#[tokio::test]
async fn what_may_be_left_out_has_one_type_and_properties_are_always_listed() {
    let optional = Tool::new("optional", "Takes a tag", |_: Call, Optional { tag }: Optional| async move {
        Ok(tag.unwrap_or_default())
    });
    let nothing = Tool::new("nothing", "Takes nothing", |_: Call, _: NoArguments| async { Ok("") });
    let anything = Tool::new("anything", "Takes anything", |_: Call, _: Value| async { Ok("") });
    let schema = json!({ "type": "object", "minProperties": 1 });
    let own = Tool::new("own", "Has a schema of its own", |_: Call, _: Value| async { Ok("") })
        .input_schema(schema.as_object().unwrap().clone());
    let mut client = TestClient::open(&server([optional, nothing, anything, own]), Revision::LATEST).await;
    let tools = client.call("tools/list", json!({})).await["result"]["tools"].take();
    let schemas: Vec<&Value> = tools.as_array().unwrap().iter().map(|tool| &tool["inputSchema"]).collect();
    assert_eq!(
        *schemas[0],
        json!({
            "type": "object", "properties": { "tag": { "type": "string" } }, "additionalProperties": false,
        })
    );
    assert_eq!(*schemas[1], json!({ "type": "object", "properties": {}, "additionalProperties": false }));
    assert_eq!(*schemas[2], json!({ "type": "object", "properties": {} }));
    assert_eq!(*schemas[3], json!({ "type": "object", "properties": {}, "minProperties": 1 }));
    let said = complaint(&mut client, Revision::LATEST, "optional", json!({ "tag": null })).await;
    assert!(said.contains("tag"), "{said}");
}

#[tokio::test]
async fn data_is_never_sent_without_content() {
    let bare = Tool::new("bare", "Has data alone", |_: Call, _: NoArguments| async {
        Ok(CallToolResult::default().structured_content(json!({ "n": 1 })))
    });
    let server = server([bare]);
    for revision in Revision::ALL {
        let mut client = TestClient::open(&server, revision).await;
        let result = client.tool("bare", json!({})).await;
        assert_eq!(result["content"], json!([{ "type": "text", "text": "{\"n\":1}" }]), "{revision}");
        assert_eq!(result["isError"], false, "{revision}");
    }
}
