//! Tools that ask, in both eras, with answers that come all at once or one at a time.

use serde_json::json;

use crate::client::{Client, SESSION, STATELESS, server};

/// Every way in which a client can be asked.
const WAYS: [(&str, bool); 3] = [(SESSION, false), (STATELESS, false), (STATELESS, true)];

#[tokio::test]
async fn every_asking_tool_comes_to_an_end() {
    let server = server();
    for (revision, one_by_one) in WAYS {
        for (tool, arguments, expected, questions) in [
            ("ask_user", json!({}), "alice@example.com", 1),
            ("ask_user", json!({ "form": "choice" }), "red", 1),
            ("ask_user", json!({ "form": "confirm" }), "true", 1),
            ("ask_user", json!({ "form": "url" }), "agreed to visit", 1),
            ("ask_model", json!({ "prompt": "Which city?" }), "test-model answered: Paris", 1),
            ("list_roots", json!({}), "file:///work (work)", 1),
            ("test_sampling", json!({ "prompt": "?" }), "LLM response: Paris", 1),
            ("test_elicitation", json!({ "message": "?" }), r#""username":"username""#, 1),
            ("test_elicitation_sep1034_defaults", json!({}), "action=accept", 1),
            ("test_elicitation_sep1330_enums", json!({}), r#""titledMulti":["value1"]"#, 1),
            ("test_streaming_elicitation", json!({}), "action=accept", 1),
            ("test_missing_capability", json!({}), "sampling", 0),
            ("test_input_required_result_elicitation", json!({}), "Hello, Alice!", 1),
            ("test_input_required_result_sampling", json!({}), "Paris", 1),
            ("test_input_required_result_list_roots", json!({}), "roots: file:///work", 1),
            ("test_input_required_result_request_state", json!({}), "state-ok", 1),
            (
                "test_input_required_result_multiple_inputs",
                json!({}),
                "Paris Alice! Client roots: file:///work",
                3,
            ),
            ("test_input_required_result_multi_round", json!({}), "Alice likes color", 2),
            ("test_input_required_result_tampered_state", json!({}), "state-ok", 1),
            ("test_input_required_result_capabilities", json!({}), "Hello, Alice! Paris", 2),
        ] {
            let mut client = Client::new(&server, revision).await;
            client.one_by_one = one_by_one;
            let result = client.call(tool, arguments).await;
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(expected), "{revision} {tool}: {text}");
            assert_ne!(result["isError"], true, "{revision} {tool}");
            assert_eq!(client.asked.len(), questions, "{revision} {tool}: {:?}", client.asked);
        }
    }
}

#[tokio::test]
async fn people_may_decline_and_put_away() {
    let server = server();
    for (revision, _) in WAYS {
        for action in ["decline", "cancel"] {
            for form in ["all", "choice", "confirm", "url"] {
                let mut client = Client::new(&server, revision).await;
                client.action = action;
                let result = client.call("ask_user", json!({ "form": form })).await;
                assert_eq!(result["structuredContent"]["action"], action);
            }
        }
    }
}

#[tokio::test]
async fn the_whole_form_has_every_field() {
    let server = server();
    let mut client = Client::new(&server, SESSION).await;
    client.call("ask_user", json!({})).await;
    let fields = &client.asked[0]["params"]["requestedSchema"]["properties"];
    assert_eq!(fields["colours"]["items"]["enum"], json!(["red", "green", "blue"]));
    assert_eq!(fields["days"]["items"]["anyOf"][0], json!({ "const": "sat", "title": "Saturday" }));
    assert_eq!(fields["size"]["oneOf"][0], json!({ "const": "s", "title": "Small" }));
    assert_eq!(fields["age"]["default"], 30);

    // Before several choices could be made at once, the same question goes without them.
    let mut client = Client::with(&server, "2025-06-18", json!({ "elicitation": {} })).await;
    let text = client.text("ask_user", json!({})).await;
    let fields = client.asked[0]["params"]["requestedSchema"]["properties"].clone();
    assert!(fields.get("colours").is_none() && fields.get("days").is_none());
    assert_eq!(fields["size"]["enumNames"], json!(["Small", "Medium", "Large"]));
    for (field, default) in [
        ("nickname", json!("Max")),
        ("age", json!(30)),
        ("share", json!(0.5)),
        ("subscribe", json!(true)),
        ("colour", json!("green")),
        ("size", json!("m")),
    ] {
        assert_eq!(fields[field]["default"], default, "{field}");
    }
    assert!(text.contains("accepted"), "{text}");
}

#[tokio::test]
async fn clients_that_cannot_be_asked_hear_why() {
    let server = server();
    for (tool, arguments, needs) in [
        ("ask_user", json!({}), json!({ "elicitation": { "form": {} } })),
        ("ask_user", json!({ "form": "url" }), json!({ "elicitation": { "url": {} } })),
        ("ask_model", json!({ "prompt": "?" }), json!({ "sampling": {} })),
        ("list_roots", json!({}), json!({ "roots": {} })),
        ("test_missing_capability", json!({}), json!({ "sampling": {} })),
    ] {
        let mut client = Client::with(&server, STATELESS, json!({})).await;
        let error = client.error("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert_eq!(error["code"], -32021, "{tool}");
        assert_eq!(error["data"]["requiredCapabilities"], needs, "{tool}");
        let mut client = Client::with(&server, SESSION, json!({})).await;
        let result = client.call(tool, arguments.clone()).await;
        assert_eq!(result["isError"], true, "{tool}");
    }
}

#[tokio::test]
async fn only_what_can_be_answered_is_asked() {
    let mut client = Client::with(&server(), STATELESS, json!({ "sampling": {} })).await;
    client.call("test_input_required_result_capabilities", json!({})).await;
    let methods: Vec<_> = client.asked.iter().map(|asked| asked["method"].clone()).collect();
    assert_eq!(methods, ["sampling/createMessage"]);
}

#[tokio::test]
async fn a_changed_state_and_a_wrong_key_do_not_pass() {
    let mut client = Client::new(&server(), STATELESS).await;
    let call = |name: &str, more: serde_json::Value| {
        let mut params = json!({ "name": name, "arguments": {} });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let id = client.start("tools/call", call("test_input_required_result_tampered_state", json!({}))).await;
    let asked = client.answer(id).await["result"].take();
    let state = asked["requestState"].as_str().unwrap().to_owned();
    let answers = json!({ "confirm": { "action": "accept", "content": { "ok": true } } });
    let forged = json!({ "requestState": format!("{state}-TAMPERED"), "inputResponses": answers });
    let id = client.start("tools/call", call("test_input_required_result_tampered_state", forged)).await;
    assert_eq!(client.answer(id).await["error"]["code"], -32602);

    let greet = "test_input_required_result_elicitation";
    let answer = json!({ "action": "accept", "content": { "name": "Alice" } });
    let id = client
        .start("tools/call", call(greet, json!({ "inputResponses": { "user_name": answer, "x": {} } })))
        .await;
    assert_eq!(client.answer(id).await["result"]["content"][0]["text"], "Hello, Alice!");
    let id = client.start("tools/call", call(greet, json!({ "inputResponses": { "wrong": answer } }))).await;
    let again = client.answer(id).await;
    assert_eq!(again["result"]["resultType"], "input_required");
    assert_eq!(again["result"]["inputRequests"]["user_name"]["params"]["message"], "What is your name?");
    let id =
        client.start("tools/call", call(greet, json!({ "inputResponses": { "user_name": 12345 } }))).await;
    assert_eq!(client.answer(id).await["error"]["code"], -32602);
}

#[tokio::test]
async fn every_round_has_a_state_of_its_own() {
    let mut client = Client::new(&server(), STATELESS).await;
    let name = "test_input_required_result_multi_round";
    let id = client.start("tools/call", json!({ "name": name, "arguments": {} })).await;
    let first = client.answer(id).await["result"].take();
    assert!(first["inputRequests"]["step1"].is_object());
    let answers = json!({ "step1": { "action": "accept", "content": { "name": "Alice" } } });
    let params = json!({ "name": name, "arguments": {}, "requestState": first["requestState"], "inputResponses": answers });
    let id = client.start("tools/call", params).await;
    let second = client.answer(id).await["result"].take();
    assert!(second["inputRequests"]["step2"]["params"]["message"].as_str().unwrap().contains("Alice"));
    assert_ne!(first["requestState"], second["requestState"]);
}

#[tokio::test]
async fn roots_are_followed() {
    let server = server();
    let mut client = Client::new(&server, SESSION).await;
    assert_eq!(client.call("list_roots", json!({})).await["structuredContent"]["changes"], 0);
    client.notify("notifications/roots/list_changed", json!({})).await;
    assert_eq!(client.call("list_roots", json!({})).await["structuredContent"]["changes"], 1);
    let mut client = Client::new(&server, STATELESS).await;
    let roots = client.call("list_roots", json!({})).await["structuredContent"].take();
    assert_eq!(roots, json!({ "roots": [{ "uri": "file:///work", "name": "work" }] }));
}

#[tokio::test]
async fn a_prompt_asks_too() {
    let server = server();
    for (revision, one_by_one) in WAYS {
        let mut client = Client::new(&server, revision).await;
        client.one_by_one = one_by_one;
        let result =
            client.result("prompts/get", json!({ "name": "test_input_required_result_prompt" })).await;
        assert_eq!(result["messages"][0]["content"]["text"], "Use this context: context");
    }
}

#[tokio::test]
async fn tasks_go_to_clients_that_run_them_alone() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        for (tool, arguments) in [
            ("ask_user", json!({ "form": "confirm", "task": true })),
            ("ask_user", json!({ "form": "url", "task": true })),
            ("ask_model", json!({ "prompt": "?", "task": true })),
        ] {
            let mut client = Client::new(&server, revision).await;
            let result = client.call(tool, arguments).await;
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(
                text.contains("capabilities.tasks.requests, in a session of 2025-11-25"),
                "{revision}: {text}"
            );
            assert_eq!(result["isError"], true, "{revision} {tool}");
            assert!(client.asked.is_empty(), "{revision} {tool}: {:?}", client.asked);
        }
    }
    let tasks = json!({ "list": {}, "cancel": {}, "requests": { "elicitation": { "create": {} } } });
    let mut client = Client::with(&server, SESSION, json!({ "elicitation": {}, "tasks": tasks })).await;
    let about = client.call("about_me", json!({})).await;
    assert_eq!(about["structuredContent"]["capabilities"]["tasks"], tasks);
}
