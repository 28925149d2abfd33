//! Built-in prompts.

use serde_json::{Value, json};

use crate::client::{Client, SESSION, STATELESS, server};

fn text(result: &Value) -> &str {
    result["messages"][0]["content"]["text"].as_str().unwrap()
}

#[tokio::test]
async fn prompts_are_filled_in() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        let mut get = async |name: &str, arguments: Value| {
            client.result("prompts/get", json!({ "name": name, "arguments": arguments })).await
        };
        let review = get("code_review", json!({ "code": "print()" })).await;
        assert_eq!(text(&review), "Please review this Python code:\nprint()");
        assert_eq!(review["description"], "A request to look over some code");
        assert_eq!(
            text(&get("code_review", json!({ "code": "x", "language": "Go" })).await),
            "Please review this Go code:\nx"
        );
        let report =
            get("bug_report", json!({ "title": "It broke", "steps": "Look at it", "severity": "high" }))
                .await;
        assert!(text(&report).contains("It broke") && text(&report).ends_with("Severity: high"));
        let better = get("refactor", json!({ "code": "x", "goal": "clarity" })).await;
        assert!(text(&better).contains("for clarity"));
    }
}

#[tokio::test]
async fn arguments_are_checked_and_completed() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        for (params, named) in [
            (json!({ "name": "nothing" }), "nothing"),
            (json!({ "name": 7 }), "params.name"),
            (json!({ "name": "code_review" }), "code"),
            (json!({ "name": "code_review", "arguments": [] }), "params.arguments"),
            (json!({ "name": "code_review", "arguments": { "code": 1 } }), "params.arguments.code"),
            (
                json!({ "name": "code_review", "arguments": { "code": "x", "language": null } }),
                "params.arguments.language",
            ),
            (json!({ "name": "code_review", "arguments": { "code": "x", "more": "y" } }), "more"),
        ] {
            let error = client.error("prompts/get", params.clone()).await;
            assert_eq!(error["code"], -32602, "{params}");
            assert!(error["message"].as_str().unwrap().contains(named), "{params}: {error}");
        }
        let reference = json!({ "type": "ref/prompt", "name": "code_review" });
        for (params, named) in [
            (
                json!({ "ref": reference, "argument": { "name": "language", "value": 1 } }),
                "params.argument.value",
            ),
            (json!({ "ref": reference, "argument": { "name": "nothing", "value": "" } }), "nothing"),
            (json!({ "ref": reference, "argument": "language" }), "params.argument"),
            (json!({ "argument": { "name": "language", "value": "" } }), "ref"),
            (
                json!({
                    "ref": reference, "argument": { "name": "language", "value": "" },
                    "context": { "arguments": { "code": 1 } },
                }),
                "params.context.arguments.code",
            ),
        ] {
            let error = client.error("completion/complete", params.clone()).await;
            assert_eq!(error["code"], -32602, "{params}");
            assert!(error["message"].as_str().unwrap().contains(named), "{params}: {error}");
        }
        let mut complete = async |prompt: &str, name: &str, value: &str| {
            let result = client.result("completion/complete", json!({
                "ref": { "type": "ref/prompt", "name": prompt }, "argument": { "name": name, "value": value },
            }));
            result.await["completion"]["values"].take()
        };
        assert_eq!(complete("code_review", "language", "ru").await, json!(["ruby", "rust"]));
        assert_eq!(
            complete("bug_report", "severity", "").await,
            json!(["low", "medium", "high", "critical"])
        );
        assert_eq!(complete("refactor", "goal", "p").await, json!(["performance"]));
        assert_eq!(complete("refactor", "code", "p").await, json!([]));
    }
}
