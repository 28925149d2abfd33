//! Tools, resources, prompts, completion and subscriptions.

use serde_json::{Value, json};

use super::{Example, SESSIONS, STATELESS, error, pipe, result, succeed};
use crate::altered::{Asked, Change, Reply};

pub(super) fn examples() -> Vec<Example> {
    vec![
        pipe(
            "unknown-tool",
            &["TOOL-09"],
            SESSIONS,
            succeeds!("tools/call", |asked| { asked.message["params"]["name"] == "refmcp_no_such_tool" }),
        ),
        pipe(
            "tool-without-name",
            &["TOOL-12"],
            SESSIONS,
            succeeds!("tools/call", |asked| { asked.message["params"]["name"].is_number() }),
        ),
        pipe(
            "missing-argument",
            &["TOOL-12"],
            SESSIONS,
            succeeds!("tools/call", |asked| { asked.message["params"]["arguments"] == json!({}) }),
        ),
        pipe(
            "missing-argument",
            &["TOOL-10"],
            SESSIONS,
            Change::instead(|asked| {
                let empty =
                    asked.method() == "tools/call" && asked.message["params"]["arguments"] == json!({});
                empty.then(|| Reply::new(200, &[error(asked, -32602)]))
            }),
        ),
        pipe(
            "tool-schemas",
            &["TOOL-05"],
            SESSIONS,
            Change::after(|asked, reply| {
                if asked.method() == "tools/list" {
                    reply.edit(|message| {
                        if let Some(schema) = message.pointer_mut("/result/tools/0/inputSchema") {
                            schema["required"] = json!("message");
                        }
                    });
                }
            }),
        ),
        pipe(
            "call-tools",
            &["TOOL-06"],
            SESSIONS,
            Change::after(|asked, reply| {
                if asked.method() == "tools/call" {
                    reply.edit(|message| {
                        if let Some(content) = message.pointer_mut("/result/structuredContent") {
                            *content = json!({ "another": 1 });
                        }
                    });
                }
            }),
        ),
        pipe(
            "call-tools",
            &["TOOL-06"],
            STATELESS,
            Change::after(|asked, reply| {
                if asked.method() == "tools/call" {
                    reply.edit(|message| {
                        if let Some(result) = message.get_mut("result").and_then(Value::as_object_mut) {
                            result.remove("structuredContent");
                        }
                    });
                }
            }),
        ),
        pipe(
            "invalid-cursor",
            &["PAGE-03"],
            SESSIONS,
            succeeds!("prompts/list", |asked| { asked.message["params"]["cursor"].is_string() }),
        ),
        pipe(
            "unknown-resource",
            &["T-05"],
            SESSIONS,
            Change::instead(|asked| {
                let unknown = asked.message["params"]["uri"] == "refmcp-check://no/such/resource";
                unknown.then(|| Reply::new(200, &[error(asked, -32602)]))
            }),
        ),
        pipe(
            "unknown-resource",
            &["RES-03", "T-05"],
            STATELESS,
            succeeds!("resources/read", |asked| {
                asked.message["params"]["uri"] == "refmcp-check://no/such/resource"
            }),
        ),
        Example {
            beside: Some(Change { instead: |asked| a_file(asked, false), after: |_, _| {} }),
            ..pipe(
                "path-out-of-directory",
                &["RES-06"],
                STATELESS,
                Change::instead(|asked| a_file(asked, true)),
            )
        },
        pipe(
            "unknown-prompt",
            &["PROMPT-02"],
            SESSIONS,
            succeeds!("prompts/get", |asked| { asked.message["params"]["name"] == "refmcp_no_such_prompt" }),
        ),
        pipe(
            "prompt-without-argument",
            &["PROMPT-02"],
            SESSIONS,
            succeeds!("prompts/get", |asked| {
                asked.message["params"].get("arguments").is_none()
                    && asked.message["params"]["name"] != "refmcp_no_such_prompt"
            }),
        ),
        pipe("completion", &["COMP-04"], SESSIONS, succeeds!("completion/complete", |_| true)),
        pipe(
            "cancel-nothing",
            &["CANC-02"],
            SESSIONS,
            Change::instead(|asked| {
                let cancels = asked.method() == "notifications/cancelled";
                cancels.then(|| Reply::new(200, &[json!({ "jsonrpc": "2.0", "id": null, "error": {} })]))
            }),
        ),
        pipe(
            "listen",
            &["SUB-03"],
            STATELESS,
            Change::instead(|asked| {
                let notification = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
                (asked.method() == "subscriptions/listen").then(|| Reply::new(200, &[notification]))
            }),
        ),
        pipe(
            "listen",
            &["SUB-04"],
            STATELESS,
            Change::instead(|asked| {
                let params =
                    json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": asked.id().to_string() } });
                let method = "notifications/subscriptions/acknowledged";
                let notification = json!({ "jsonrpc": "2.0", "method": method, "params": params });
                (asked.method() == "subscriptions/listen").then(|| Reply::new(200, &[notification]))
            }),
        ),
        pipe(
            "altered-request-state",
            &["MRTR-08"],
            STATELESS,
            Change::instead(|asked| {
                let repeats = asked.message["params"]["requestState"].is_string();
                repeats.then(|| Reply { ends: true, ..Reply::new(500, &[]) })
            }),
        ),
        pipe(
            "set-log-level",
            &["LOG-02"],
            SESSIONS,
            Change::instead(|asked| {
                (asked.method() == "logging/setLevel").then(|| Reply::new(200, &[error(asked, -32602)]))
            }),
        ),
    ]
}

fn a_file(asked: &Asked, leaks: bool) -> Option<Reply> {
    let uri = asked.message["params"]["uri"].as_str().unwrap_or_default();
    match asked.method() {
        "resources/list" => {
            let resources = json!([{ "uri": "file:///data/a.txt", "name": "a" }]);
            Some(Reply::new(
                200,
                &[result(asked, &json!({ "resultType": "complete", "resources": resources }))],
            ))
        }
        "resources/read" if uri.contains("etc") && leaks => {
            let contents = json!([{ "uri": uri, "text": "root:x:0:0:root:/root:/bin/sh" }]);
            Some(Reply::new(
                200,
                &[result(asked, &json!({ "resultType": "complete", "contents": contents }))],
            ))
        }
        _ => None,
    }
}
