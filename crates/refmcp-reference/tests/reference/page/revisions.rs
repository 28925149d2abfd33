//! In which revisions something works: it is tried in each of them.

use std::collections::BTreeMap;

use refmcp_server::Server;
use serde_json::{Value, json};

use crate::client::{Client, SESSIONS, STATELESS, everything};

/// Tools that work when they fail.
const FAIL: [&str; 5] =
    ["fail", "protocol_error", "test_error_handling", "failing_job", "protocol_error_job"];

/// By name or URI, the revisions in which something works.
pub(super) type Revisions = BTreeMap<String, String>;

/// Calls every tool in every revision.
pub(super) async fn of_tools(server: &Server) -> Revisions {
    try_all(server, "tools", "name", |tool| {
        let name = tool["name"].as_str().unwrap();
        let fails = FAIL.contains(&name);
        let mut params = json!({ "name": name, "arguments": arguments(name, tool) });
        if tool["execution"]["taskSupport"] == "required" {
            params["task"] = json!({});
        }
        ("tools/call", params, fails)
    })
    .await
}

/// Gets every prompt in every revision.
pub(super) async fn of_prompts(server: &Server) -> Revisions {
    try_all(server, "prompts", "name", |prompt| {
        let arguments = prompt["arguments"].as_array().into_iter().flatten();
        let arguments: BTreeMap<&str, &str> =
            arguments.map(|argument| (argument["name"].as_str().unwrap(), "memo:x")).collect();
        ("prompts/get", json!({ "name": prompt["name"], "arguments": arguments }), false)
    })
    .await
}

/// Reads every resource in every revision.
pub(super) async fn of_resources(server: &Server) -> Revisions {
    let read = |resource: &Value| ("resources/read", json!({ "uri": resource["uri"] }), false);
    try_all(server, "resources", "uri", read).await
}

/// Completes the first variable of every template in every revision.
pub(super) async fn of_templates(server: &Server) -> Revisions {
    try_all(server, "templates", "uriTemplate", |template| {
        let uri = template["uriTemplate"].as_str().unwrap();
        let variable = uri.split_once('{').unwrap().1.split_once('}').unwrap().0.trim_start_matches('+');
        let reference = json!({ "type": "ref/resource", "uri": uri });
        let params = json!({ "ref": reference, "argument": { "name": variable, "value": "" } });
        ("completion/complete", params, false)
    })
    .await
}

async fn try_all(
    server: &Server,
    list: &str,
    key: &str,
    request: impl Fn(&Value) -> (&'static str, Value, bool),
) -> Revisions {
    let mut worked: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for revision in SESSIONS.into_iter().chain([STATELESS]) {
        let mut capabilities = everything();
        capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        let mut client = Client::with(server, revision, capabilities).await;
        for item in client.list(list).await {
            let (method, params, fails) = request(&item);
            let answer = client.request(method, params).await;
            let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
            // How the tool does is what its task comes to.
            let is_task = answer["result"].get("task").or_else(|| answer["result"].get("taskId")).is_some();
            let works = is_task || failed == fails;
            worked.entry(item[key].as_str().unwrap().to_owned()).or_default().push(works);
        }
    }
    worked.into_iter().map(|(key, worked)| (key, in_words(&worked))).collect()
}

/// The revisions, oldest first, in words.
fn in_words(worked: &[bool]) -> String {
    let dates: Vec<&str> = SESSIONS.into_iter().chain([STATELESS]).collect();
    let first = worked.iter().position(|worked| *worked).unwrap_or(worked.len());
    let behind = worked.iter().rposition(|worked| *worked).map_or(0, |last| last + 1);
    assert!(worked[first..behind.max(first)].iter().all(|worked| *worked), "with a gap: {worked:?}");
    match (first, behind == worked.len()) {
        (0, true) => "all".to_owned(),
        (_, true) if first < dates.len() => format!("since {}", dates[first]),
        (0, false) if behind > 0 => format!("until {}", dates[behind - 1]),
        _ => panic!("works in no revision, or in some in the middle: {worked:?}"),
    }
}

/// Arguments with which a tool does what it is for.
fn arguments(name: &str, tool: &Value) -> Value {
    match name {
        "long_task" => json!({ "steps": 1, "step_ms": 0 }),
        "simulate" => json!({ "what": "logs", "every_ms": 10, "for_ms": 0 }),
        "touch_resource" => json!({ "uri": "file:///resources/notes.txt" }),
        "cancellations" => json!({ "tag": "x" }),
        "json_schema_2020_12_tool" => json!({ "email": "a@b.example" }),
        _ => {
            let required = tool["inputSchema"]["required"].as_array().into_iter().flatten();
            let value = |name: &Value| match tool["inputSchema"]["properties"][name.as_str().unwrap()]["type"]
                .as_str()
            {
                Some("string") => json!("memo:x"),
                _ => json!(1),
            };
            let named = |name: &Value| match name.as_str().unwrap() {
                // What is added has a name of another form than what has a URI.
                "name" => ("name".to_owned(), json!("x")),
                other => (other.to_owned(), value(name)),
            };
            Value::Object(required.map(named).collect())
        }
    }
}
