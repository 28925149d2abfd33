//! Methods of another version, tools and arguments that do not exist or do not fit.

use serde_json::{Map, Value, json};

use crate::support::Version;
use crate::table::{call, long, request, row, try_all, try_under};

#[test]
fn methods_of_the_other_lifecycle() {
    try_all(|version| {
        let methods: &[&str] = match version {
            Version::Stateless => &[
                "ping",
                "initialize",
                "logging/setLevel",
                "resources/subscribe",
                "resources/unsubscribe",
                "models/select",
            ],
            Version::Session(_) => &["server/discover", "subscriptions/listen"],
        };
        methods
            .iter()
            .map(|method| row(*method, request(version, method, &json!({}))).error(-32601, "belongs to"))
            .collect()
    });
}

#[test]
fn names_that_do_not_exist() {
    try_all(|version| {
        let named = |name: Value| request(version, "tools/call", &json!({ "name": name, "arguments": {} }));
        vec![
            row("unknown", named(json!("nope"))).error(-32602, "unknown tool: nope"),
            row("empty", named(json!(""))).error(-32602, "unknown tool"),
            row("line breaks", named(json!("echo\r\nx: y"))).error(-32602, "echo\\\\r\\\\nx: y"),
            row("a terminal's escape", named(json!("\u{1b}[2J"))).error(-32602, "unknown tool"),
            row("another case", named(json!("Echo"))).error(-32602, "unknown tool: Echo"),
            row("a space", named(json!("echo "))).error(-32602, "unknown tool"),
            row("1 MiB", named(json!(long(1 << 20)))).error(-32602, "unknown tool"),
            row("a number", named(json!(5))).error(-32602, "params"),
            row("null", named(json!(null))).error(-32602, "params"),
            row("none", request(version, "tools/call", &json!({}))).error(-32602, "name"),
            row("no prompt", request(version, "prompts/get", &json!({ "name": "nope" })))
                .error(-32602, "nope"),
            row("a prompt of 1 MiB", request(version, "prompts/get", &json!({ "name": long(1 << 20) })))
                .error(-32602, ""),
        ]
    });
}

#[test]
fn arguments_that_do_not_fit() {
    try_all(|version| {
        vec![
            row("missing", call(version, "echo", &json!({}))).bad_arguments(version, "message"),
            row("wrong type", call(version, "echo", &json!({ "message": 5 })))
                .bad_arguments(version, "message"),
            row("null", call(version, "echo", &json!({ "message": null }))).bad_arguments(version, "message"),
            row("an extra one", call(version, "echo", &json!({ "message": "x", "extra": 1 })))
                .bad_arguments(version, "extra"),
            row("a long extra one", call(version, "echo", &json!({ "message": "x", long(10_000): 1 })))
                .bad_arguments(version, ""),
            row("a long wrong one", call(version, "sum", &json!({ "a": long(10_000), "b": 1 })))
                .bad_arguments(version, "a"),
            row("out of range", call(version, "slow", &json!({ "ms": 600_001 })))
                .bad_arguments(version, "ms"),
            row("negative", call(version, "big_result", &json!({ "bytes": -1 })))
                .bad_arguments(version, "bytes"),
            row("too much", call(version, "big_result", &json!({ "bytes": 1e15 })))
                .bad_arguments(version, "bytes"),
            row("text for arguments", call(version, "echo", &json!("x"))).error(-32602, "arguments"),
            row("a list for arguments", call(version, "echo", &json!(["x"]))).error(-32602, "arguments"),
        ]
    });
}

#[test]
fn a_hundred_thousand_arguments() {
    let version = Version::Stateless;
    let many: Map<String, Value> = (0..100_000).map(|n| (format!("p{n}"), json!(n))).collect();
    let rows =
        [row("extra ones", call(version, "echo", &Value::Object(many))).bad_arguments(version, "message")];
    try_under(version, &[], &rows);
}

#[test]
fn other_parameters_that_do_not_fit() {
    try_all(|version| {
        let prompt = |arguments: Value| {
            request(version, "prompts/get", &json!({ "name": "code_review", "arguments": arguments }))
        };
        let complete = |reference: Value, argument: Value| {
            request(version, "completion/complete", &json!({ "ref": reference, "argument": argument }))
        };
        let code_review = json!({ "type": "ref/prompt", "name": "code_review" });
        let mut rows = vec![
            row("a prompt without its argument", prompt(json!({}))).error(-32602, "code"),
            row("a prompt's number", prompt(json!({ "code": 5 }))).error(-32602, ""),
            row("a prompt's list", prompt(json!([]))).error(-32602, ""),
            row("completing nothing", request(version, "completion/complete", &json!({})))
                .error(-32602, "ref"),
            row(
                "completing what is unknown",
                complete(json!({ "type": "ref/tool", "name": "x" }), json!({ "name": "a", "value": "" })),
            )
            .error(-32602, ""),
            row(
                "completing an unknown prompt",
                complete(
                    json!({ "type": "ref/prompt", "name": "nope" }),
                    json!({ "name": "a", "value": "" }),
                ),
            )
            .error(-32602, "nope"),
            row("completing without a value", complete(code_review.clone(), json!({ "name": "language" })))
                .error(-32602, "value"),
            row(
                "completing 1,000,000 characters",
                complete(code_review, json!({ "name": "language", "value": long(1_000_000) })),
            )
            .served(),
            row("a cursor that is none", request(version, "tools/list", &json!({ "cursor": 5 })))
                .error(-32602, "params"),
            row("an empty cursor", request(version, "tools/list", &json!({ "cursor": "" })))
                .error(-32602, "cursor"),
            row("a cursor of null", request(version, "tools/list", &json!({ "cursor": null }))).served(),
            row("a URI that is none", request(version, "resources/read", &json!({ "uri": 5 })))
                .error(-32602, "params"),
            row("no URI", request(version, "resources/read", &json!({}))).error(-32602, "uri"),
        ];
        if version != Version::Stateless {
            for level in [
                json!("INFO"),
                json!("WARN"),
                json!("trace"),
                json!(""),
                json!(5),
                json!(null),
                json!(long(10_000)),
            ] {
                rows.push(
                    row(
                        format!("level {level:.20}"),
                        request(version, "logging/setLevel", &json!({ "level": level })),
                    )
                    .error(-32602, ""),
                );
            }
            let nowhere = json!({ "uri": "file:///nowhere" });
            rows.push(
                row("subscribing to nothing", request(version, "resources/subscribe", &nowhere))
                    .error(-32002, "not found"),
            );
        }
        rows
    });
}

#[test]
fn cancellations_of_what_is_not_there() {
    try_all(|_| {
        let params = [
            r#"{"requestId":"unknown"}"#,
            r#"{"requestId":7,"reason":"x"}"#,
            // This client's first request, long finished, and the one that opened the session.
            r#"{"requestId":"ask-1"}"#,
            r#"{"requestId":"init"}"#,
            r#"{"requestId":18446744073709551616}"#,
            r#"{"requestId":{}}"#,
            r#"{"requestId":null}"#,
            r#"{"requestId":1.5}"#,
            "{}",
            r#"{"requestId":1,"reason":5}"#,
        ];
        let sent = |params: &str| {
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#)
        };
        params.into_iter().map(|params| row(params, sent(params))).collect()
    });
}
