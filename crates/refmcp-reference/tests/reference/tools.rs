//! Tools without server requests.

use refmcp_reference::Options;
use refmcp_server::Policy;
use serde_json::{Value, json};

use crate::client::{Client, SESSION, SESSIONS, STATELESS, server};

const BOTH: [&str; 2] = [SESSION, STATELESS];

#[tokio::test]
async fn every_tool_says_what_it_is() {
    let mut client = Client::new(&server(), SESSION).await;
    let tools = client.list("tools").await;
    assert_eq!(tools[0]["name"], "about_me");
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{name}");
        if !name.starts_with("test_") && name != "json_schema_2020_12_tool" {
            assert!(tool["title"].is_string(), "{name}");
            assert!(tool["annotations"]["openWorldHint"].is_boolean(), "{name}");
            assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
            for (argument, schema) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
                assert!(schema["description"].is_string(), "{name} {argument}: {schema}");
            }
        }
    }
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    for name in [
        "echo",
        "sum",
        "get_weather",
        "long_task",
        "slow",
        "big_result",
        "image",
        "audio",
        "resource_link",
        "embedded_resource",
        "annotated",
        "mixed",
        "fail",
        "protocol_error",
        "log_all",
        "ask_user",
        "ask_model",
        "list_roots",
        "add_tool",
        "remove_tool",
        "add_prompt",
        "remove_prompt",
        "add_resource",
        "remove_resource",
        "touch_resource",
        "close_stream",
        "simulate",
        "about_me",
        "cancellations",
    ] {
        assert!(names.contains(&name), "{name}");
    }
}

#[tokio::test]
async fn text_and_numbers() {
    let server = server();
    for revision in SESSIONS.into_iter().chain([STATELESS]) {
        let mut client = Client::new(&server, revision).await;
        assert_eq!(client.text("echo", json!({ "message": "hé\n" })).await, "hé\n");
        assert_eq!(client.text("big_result", json!({ "bytes": 0 })).await, "");
        assert_eq!(client.text("big_result", json!({ "bytes": 300_001 })).await.len(), 300_001);
        assert_eq!(client.text("sum", json!({ "a": 2, "b": 3 })).await, r#"{"total":5}"#);
    }
    for revision in BOTH {
        let mut client = Client::new(&server, revision).await;
        let sum = client.call("sum", json!({ "a": 0.5, "b": 0.25 })).await;
        assert_eq!(sum["structuredContent"], json!({ "total": 0.75 }));
        assert_eq!(client.call("sum", json!({ "a": 1e308, "b": 1e308 })).await["isError"], true);
        let weather = client.call("get_weather", json!({ "location": "Oslo" })).await;
        let again = client.call("get_weather", json!({ "location": " oslo" })).await;
        assert_eq!(weather["structuredContent"], again["structuredContent"]);
        assert!(weather["structuredContent"]["humidity"].is_number());
        assert!(weather["content"][0]["text"].as_str().unwrap().lines().count() >= 3);
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_named() {
    let server = server();
    for (tool, arguments) in [
        ("echo", json!({})),
        ("echo", json!({ "message": 1 })),
        ("echo", json!({ "message": "", "more": 1 })),
        ("big_result", json!({ "bytes": (16 << 20) + 1 })),
        ("big_result", json!({ "bytes": -1 })),
        ("long_task", json!({ "steps": 0 })),
        ("long_task", json!({ "steps": 10_001 })),
        ("long_task", json!({ "step_ms": 60_001 })),
        ("slow", json!({ "ms": 600_001 })),
        ("simulate", json!({ "what": "logs", "every_ms": 9 })),
        ("simulate", json!({ "what": "logs", "for_ms": 600_001 })),
        ("simulate", json!({ "what": "noise" })),
        ("ask_user", json!({ "form": "none" })),
        ("add_tool", json!({ "name": "no spaces" })),
        ("add_resource", json!({ "uri": "nowhere" })),
    ] {
        let old = Client::new(&server, "2025-06-18")
            .await
            .error("tools/call", json!({ "name": tool, "arguments": arguments }))
            .await;
        assert_eq!(old["code"], -32602, "{tool} {arguments}: {old}");
        let mut client = Client::new(&server, STATELESS).await;
        let new = client.call(tool, arguments.clone()).await;
        assert_eq!(new["isError"], true, "{tool} {arguments}: {new}");
    }
}

#[tokio::test]
async fn content_blocks() {
    let server = server();
    let kinds = |result: &Value| -> Vec<String> {
        result["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["type"].as_str().unwrap().to_owned())
            .collect()
    };
    for revision in BOTH {
        let mut client = Client::new(&server, revision).await;
        assert_eq!(kinds(&client.call("image", json!({})).await), ["image"]);
        assert_eq!(kinds(&client.call("audio", json!({})).await), ["audio"]);
        assert_eq!(kinds(&client.call("embedded_resource", json!({})).await), ["resource"]);
        let link = client.call("resource_link", json!({})).await;
        assert_eq!(kinds(&link), ["resource_link"]);
        let read = client.result("resources/read", json!({ "uri": link["content"][0]["uri"] })).await;
        assert!(read["contents"][0]["text"].is_string());
        let annotated = client.call("annotated", json!({})).await;
        assert_eq!(annotated["content"][0]["annotations"]["audience"], json!(["user"]));
        assert_eq!(annotated["content"][0]["annotations"]["priority"], 1);
        let mixed = client.call("mixed", json!({})).await;
        assert_eq!(kinds(&mixed), ["text", "image", "audio", "resource_link", "resource"]);
    }
}

/// Tools whose calls end with a JSON-RPC error on purpose.
const ENDS_WITH_ERRORS: [&str; 2] = ["protocol_error", "protocol_error_job"];
/// Tools that run as tasks only; see `tasks`.
const NEEDS_TASKS: [&str; 2] = ["failing_job", "test_tool_with_task"];

#[tokio::test(start_paused = true)]
async fn every_revision_understands_every_tool() {
    let server = server();
    for revision in SESSIONS.into_iter().chain([STATELESS]) {
        let mut client = Client::new(&server, revision).await;
        // The client checks results against the schema of the revision.
        let tools = client.list("tools").await;
        for tool in &tools {
            let name = &tool["name"];
            if ENDS_WITH_ERRORS.iter().any(|tool| name == tool) || NEEDS_TASKS.iter().any(|tool| name == tool)
            {
                continue;
            }
            let arguments = match name.as_str().unwrap() {
                "echo" | "test_elicitation" => json!({ "message": "m" }),
                "big_result" => json!({ "bytes": 10 }),
                "sum" => json!({ "a": 1, "b": 2 }),
                "get_weather" => json!({ "location": "Quito" }),
                "long_task" => json!({ "step_ms": 1 }),
                "slow" => json!({ "ms": 1 }),
                "simulate" => json!({ "what": "logs", "every_ms": 10, "for_ms": 30 }),
                "ask_model" | "test_sampling" => json!({ "prompt": "p" }),
                "research" => json!({ "topic": "t", "stage_ms": 1 }),
                "add_tool" | "remove_tool" | "add_prompt" | "remove_prompt" => json!({ "name": "extra" }),
                "add_resource" | "remove_resource" => json!({ "uri": "memo:///extra" }),
                "touch_resource" => json!({ "uri": "file:///notes/todo.txt" }),
                "cancellations" => json!({ "tag": "none" }),
                "app_cancel" => json!({ "ms": 1 }),
                "app_echo" => json!({ "text": "t" }),
                "json_schema_2020_12_tool" => json!({ "email": "e" }),
                _ => json!({}),
            };
            let result = client.call(name.as_str().unwrap(), arguments).await;
            // Older clients cannot be asked everything.
            let may_fail = *name == "fail" || *name == "test_error_handling" || revision < SESSION;
            assert!(
                result["isError"].is_boolean() && result["content"].is_array(),
                "{revision} {name}: {result}"
            );
            assert!(may_fail || result["isError"] == false, "{revision} {name}: {result}");
            if result["isError"] == false {
                let (data, schema) = (result.get("structuredContent"), tool.get("outputSchema"));
                assert_eq!(data.is_some(), schema.is_some(), "{revision} {name}: {result}");
            }
        }
        for list in ["resources", "templates", "prompts"] {
            assert!(!client.list(list).await.is_empty());
        }
    }
}

#[tokio::test]
async fn failures() {
    let server = server();
    for revision in BOTH {
        let mut client = Client::new(&server, revision).await;
        let failed = client.call("fail", json!({ "message": "as asked" })).await;
        assert_eq!((&failed["isError"], &failed["content"][0]["text"]), (&json!(true), &json!("as asked")));
        assert_eq!(client.call("fail", json!({})).await["isError"], true);
        let error = client
            .error("tools/call", json!({ "name": "protocol_error", "arguments": { "message": "no" } }))
            .await;
        assert_eq!(error["message"], "no");
        let unknown = client.error("tools/call", json!({ "name": "nothing" })).await;
        assert_eq!(unknown["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_reported() {
    let server = server();
    for revision in BOTH {
        let mut client = Client::new(&server, revision).await;
        let params =
            json!({ "name": "long_task", "arguments": { "steps": 3 }, "_meta": { "progressToken": "p" } });
        let result = client.result("tools/call", params).await;
        assert_eq!(result["content"][0]["text"], "done: 3 of 3 steps");
        let progress: Vec<Value> =
            client.heard.iter().map(|heard| heard["params"]["progress"].clone()).collect();
        assert_eq!(progress, [1, 2, 3], "{:?}", client.heard);
        let failed = client.call("long_task", json!({ "fail_at": 2, "step_ms": 0 })).await;
        assert_eq!(failed["isError"], true);
        assert!(failed["content"][0]["text"].as_str().unwrap().contains("step 2 of 5"));
        assert_eq!(client.text("slow", json!({ "ms": 600_000 })).await, "slept for 600000 ms");
        let closed = client.text("close_stream", json!({ "after_ms": 100 })).await;
        assert!(closed.contains("closed before this result"), "{closed}");
    }
}

#[tokio::test(start_paused = true)]
async fn logs_follow_the_level() {
    let server = server();
    let mut session = Client::new(&server, SESSION).await;
    session.call("log_all", json!({})).await;
    assert_eq!(session.count("notifications/message"), 7, "info is the level at first");
    session.heard.clear();
    session.result("logging/setLevel", json!({ "level": "alert" })).await;
    session.call("log_all", json!({ "text": "loud" })).await;
    assert_eq!(session.count("notifications/message"), 2);
    assert_eq!(session.heard[0]["params"]["data"]["text"], "loud");
    session.heard.clear();
    session.result("logging/setLevel", json!({ "level": "debug" })).await;
    session.call("simulate", json!({ "what": "logs", "every_ms": 10, "for_ms": 95 })).await;
    assert_eq!(session.count("notifications/message"), 9);

    let mut stateless = Client::new(&server, STATELESS).await;
    stateless.call("log_all", json!({})).await;
    assert_eq!(stateless.count("notifications/message"), 0, "none were requested");
    stateless.meta("io.modelcontextprotocol/logLevel", json!("error"));
    stateless.call("log_all", json!({})).await;
    assert_eq!(stateless.count("notifications/message"), 4);
}

#[tokio::test]
async fn about_me_tells_what_is_known() {
    let server = server();
    let mut session = Client::new(&server, SESSION).await;
    session.result("resources/subscribe", json!({ "uri": "file:///notes/todo.txt" })).await;
    session.result("logging/setLevel", json!({ "level": "notice" })).await;
    session.notify("notifications/roots/list_changed", json!({})).await;
    let about = session.call("about_me", json!({})).await["structuredContent"].take();
    assert_eq!(about["revision"], SESSION);
    assert_eq!(about["transport"], "memory");
    assert_eq!(about["client"]["name"], "test");
    assert_eq!(about["capabilities"]["roots"]["listChanged"], true);
    assert_eq!(about["logLevel"], "notice");
    assert_eq!(about["model"], "gpt-4");
    assert_eq!(about["session"]["subscriptions"], json!(["file:///notes/todo.txt"]));
    assert_eq!(about["session"]["rootsChanges"], 1);
    assert_eq!(about["session"]["inFlight"], 1);
    assert!(about["session"]["ageMs"].is_number());
    assert_eq!(about["session"]["findings"], json!([]));
    session.notify("notifications/initialized", json!({})).await;
    let about = session.call("about_me", json!({})).await["structuredContent"].take();
    let findings = about["session"]["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| finding["rule"].is_string() && finding["count"].is_u64()));

    let mut stateless = Client::with(&server, STATELESS, json!({ "sampling": {} })).await;
    let about = stateless.call("about_me", json!({})).await["structuredContent"].take();
    assert_eq!(about["revision"], STATELESS);
    assert_eq!(about["capabilities"], json!({ "sampling": {} }));
    assert!(about.get("session").is_none() && about.get("logLevel").is_none());
    assert_eq!(about["findings"], json!([]));
}

#[tokio::test]
async fn about_me_tells_what_to_send_instead() {
    for policy in [Policy::STRICT, Policy::LENIENT] {
        let server = refmcp_reference::server(Options { policy, ..Options::default() }).unwrap();
        for revision in SESSIONS.into_iter().skip(2).chain([STATELESS]) {
            let mut client = Client::new(&server, revision).await;
            for method in ["initialized", "cancelled", "progress", "roots/list_changed"] {
                client.notify(method, json!({})).await;
            }
            client.notify("$/cancelRequest", json!({ "id": 1 })).await;
            client
                .write(&json!({ "jsonrpc": "2.0", "method": "x/y", "_meta": { "progressToken": 1 } }))
                .await;
            let about = client.call("about_me", json!({})).await["structuredContent"].take();
            let place = if revision == STATELESS { &about } else { &about["session"] };
            let told: Vec<&str> = place["findings"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|found| found["what"].as_array().unwrap())
                .map(|text| text.as_str().unwrap())
                .collect();
            for send in [
                "send notifications/initialized",
                "was ignored; send notifications/cancelled",
                "send notifications/progress",
                "send notifications/roots/list_changed",
                "send notifications/cancelled with params.requestId",
                "send it inside, as params._meta",
            ] {
                assert!(told.iter().any(|told| told.contains(send)), "{revision}: no \"{send}\" in {told:?}");
            }
        }
    }
}
