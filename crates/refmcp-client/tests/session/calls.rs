//! Calls: results, errors, deadlines, cancellation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use refmcp_client::model::{ContentBlock, JsonObject, LogLevel, ServerNotification};
use refmcp_client::{Error, Event, Revision};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::{client_of, client_of_script, server};

fn text(content: &[ContentBlock]) -> &str {
    match content {
        [ContentBlock::Text(text)] => &text.text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_called_in_every_revision() {
    let server = server();
    for revision in Revision::ALL {
        let (client, events) = client_of(&server, revision).await;
        let result = client.call_tool("echo", json!({ "message": "hé" })).await.unwrap();
        assert_eq!(text(&result.content), "hé");
        let read = client.read_resource("note:///a").await.unwrap();
        assert_eq!(serde_json::to_value(&read.contents[0]).unwrap()["text"], "text");
        let missing = client.read_resource("note:///b").await.unwrap_err();
        assert!(matches!(missing.rpc().unwrap().code, -32002 | -32602), "{missing}");
        client.set_level(LogLevel::Debug).await.unwrap();
        client.call_tool("talk", json!({})).await.unwrap();
        let logged = events.lock().unwrap().iter().any(
            |event| matches!(event, Event::Notification(ServerNotification::Log(log)) if log.data == json!("hello")),
        );
        assert!(logged, "{revision}");
        let raw: Value = client.raw("tools/list", JsonObject::new()).await.unwrap();
        assert_eq!(raw["tools"].as_array().unwrap().len(), 3, "one page");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_heard_and_keeps_a_call_alive() {
    let server = server();
    for revision in Revision::ALL {
        let (client, _) = client_of(&server, revision).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let listener = seen.clone();
        let call = client
            .call_tool("steps", json!({ "steps": 5, "millis": 900 }))
            .timeout(Duration::from_secs(1))
            .on_progress(move |progress| listener.lock().unwrap().push(progress.progress.as_u64().unwrap()));
        assert_eq!(text(&call.await.unwrap().content), "5");
        assert_eq!(*seen.lock().unwrap(), [1, 2, 3, 4, 5]);
        let begun = Instant::now();
        let call = client
            .call_tool("steps", json!({ "steps": 100, "millis": 900 }))
            .timeout(Duration::from_secs(1))
            .total_timeout(Duration::from_secs(3))
            .on_progress(|_| ());
        assert_eq!(call.await.unwrap_err().to_string(), "no answer within 3 s");
        assert_eq!(begun.elapsed().as_secs(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_costs_the_deadline_and_is_told() {
    let (client, mut script, _) = client_of_script().await;
    let begun = Instant::now();
    let call = client.call_tool("t", json!({})).timeout(Duration::from_secs(2));
    assert_eq!(call.await.unwrap_err().to_string(), "no answer within 2 s");
    assert_eq!(begun.elapsed().as_secs(), 2);
    let request = script.next().await.unwrap();
    let cancelled = script.next().await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    script.say(json!({ "id": request["id"], "result": { "content": [] } })).await;
    let (pinged, _) = tokio::join!(client.ping(), script.answer("ping", json!({})));
    pinged.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_it() {
    let (client, mut script, _) = client_of_script().await;
    let call =
        tokio::time::timeout(Duration::from_millis(1), client.call_tool("t", json!({})).into_future()).await;
    assert!(call.is_err());
    let request = script.next().await.unwrap();
    let cancelled = script.next().await.unwrap();
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_blocks_no_other() {
    let (client, mut script, _) = client_of_script().await;
    let slow = tokio::spawn(client.call_tool("slow", json!({})).into_future());
    let request = script.next().await.unwrap();
    for _ in 0..100 {
        let (pinged, _) = tokio::join!(client.ping(), script.answer("ping", json!({})));
        pinged.unwrap();
    }
    script.say(json!({ "id": request["id"], "result": { "content": [] } })).await;
    slow.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_ends_every_call() {
    let (client, mut script, events) = client_of_script().await;
    let calls: Vec<_> =
        (0..10).map(|_| tokio::spawn(client.call_tool("t", json!({})).into_future())).collect();
    for _ in 0..10 {
        script.next().await.unwrap();
    }
    drop(script);
    for call in calls {
        let error = call.await.unwrap().unwrap_err().to_string();
        assert!(error.starts_with("the connection ended before the answer came"), "{error}");
    }
    assert!(matches!(events.lock().unwrap().last(), Some(Event::Closed(_))));
    assert!(client.ping().await.unwrap_err().to_string().starts_with("the conversation is not open"));
}

#[tokio::test(start_paused = true)]
async fn invalid_input_is_reported_and_ignored() {
    let (client, mut script, events) = client_of_script().await;
    for line in ["Listening on port 3000", "{", "[]", "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}"] {
        script.say_bytes(line.as_bytes()).await;
    }
    let (result, _) = tokio::join!(
        client.call_tool("t", json!({})).into_future(),
        script.answer("tools/call", json!({ "content": 7 }))
    );
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    assert!(error.to_string().starts_with("the server's result of tools/call makes no sense"), "{error}");
    let rules: Vec<_> = events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            Event::Finding(finding) => Some(finding.rule.id),
            _ => None,
        })
        .collect();
    assert_eq!(rules, ["STDIO-02", "STDIO-02", "STDIO-02", "RPC-05"]);
}

#[tokio::test(start_paused = true)]
async fn data_without_content_is_a_result_and_a_finding() {
    let (client, mut script, events) = client_of_script().await;
    let data = json!({ "structuredContent": { "n": 1 }, "isError": false });
    for _ in 0..2 {
        let call = client.call_tool("t", json!({}));
        let (result, _) = tokio::join!(call.into_future(), script.answer("tools/call", data.clone()));
        let result = result.unwrap();
        assert_eq!((result.content.len(), result.structured_content), (0, Some(json!({ "n": 1 }))));
    }
    let findings: Vec<_> = events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            Event::Finding(finding) => Some((finding.rule.id, finding.to_string())),
            _ => None,
        })
        .collect();
    assert!(
        matches!(&findings[..], [("TOOL-07", what)] if what.contains("without content")),
        "{findings:?}, once"
    );
    let call = client.call_tool("t", json!({}));
    let (nothing, _) = tokio::join!(call.into_future(), script.answer("tools/call", json!({})));
    assert!(nothing.unwrap_err().to_string().contains("content"), "neither is no result");
}

#[tokio::test(start_paused = true)]
async fn output_that_breaks_its_own_schema_is_refused() {
    let (client, mut script, _) = client_of_script().await;
    let tools = json!({ "tools": [{
        "name": "t", "inputSchema": { "type": "object" },
        "outputSchema": { "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } },
    }] });
    let (listed, _) = tokio::join!(client.list_tools(), script.answer("tools/list", tools));
    assert_eq!(listed.unwrap().len(), 1);
    for (output, good) in [(json!({ "n": 1 }), true), (json!({ "n": "one" }), false)] {
        let result = json!({ "content": [], "structuredContent": output });
        let call = client.call_tool("t", json!({}));
        let (result, _) = tokio::join!(call.into_future(), script.answer("tools/call", result));
        assert_eq!(result.is_ok(), good, "{result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_is_not() {
    let (client, _) = client_of(&server(), Revision::LATEST).await;
    for arguments in [json!([1]), json!("text"), json!(7)] {
        let error = client.call_tool("echo", arguments).await.unwrap_err();
        assert_eq!(error.to_string(), "this cannot be sent: the arguments of a tool are an object");
    }
}

#[tokio::test]
async fn a_forwarded_request_keeps_its_text_and_has_functions_of_its_own() {
    let (client, mut script, events) = client_of_script().await;
    let params = r#"{"name":"t","z":1.0e2,"_meta":{"progressToken":7},"arguments":{"b":1,"a":2}}"#;
    let (heard, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let call = client.forward("tools/call", params).on_notification(move |notification| {
        heard.send(notification.method().to_owned()).unwrap();
    });
    let answering = async {
        let text = script.next_text().await.unwrap();
        assert!(text.ends_with(r#""params":{"name":"t","z":1.0e2,"arguments":{"b":1,"a":2}}}"#), "{text}");
        let id = serde_json::from_str::<Value>(&text).unwrap()["id"].clone();
        // A pipe tells of no request which message belongs to it.
        script.say(json!({ "method": "x/y", "params": {} })).await;
        let about = json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": id } });
        script.say(json!({ "method": "notifications/tools/list_changed", "params": about })).await;
        script
            .say_bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"z":1,"a":1.50}}}}"#).as_bytes())
            .await;
    };
    let (result, ()) = tokio::join!(call, answering);
    assert_eq!(result.unwrap().get(), r#"{"z":1,"a":1.50}"#);
    assert_eq!(hears.recv().await.unwrap(), "notifications/tools/list_changed");
    let events = events.lock().unwrap();
    assert!(matches!(&events[..], [Event::Notification(custom)] if custom.method() == "x/y"), "{events:?}");
}
