//! Methods of another version, tools and arguments that do not exist or do not fit.

use serde_json::{Map, Value, json};

use crate::peer::Way;
use crate::support::Version;
use crate::table::{Row, call, long, request, row};

pub(crate) fn methods_of_the_other_lifecycle(way: Way) -> Vec<Row> {
    let methods: &[&str] = match way.version {
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
        .map(|method| row(*method, request(way, method, &json!({}))).error(-32601, "belongs to"))
        .collect()
}

pub(crate) fn names_that_do_not_exist(way: Way) -> Vec<Row> {
    let named = |name: Value| request(way, "tools/call", &json!({ "name": name, "arguments": {} }));
    vec![
        row("unknown", named(json!("nope"))).error(-32602, "unknown tool: nope"),
        row("empty", named(json!(""))).error(-32602, "unknown tool"),
        row("line breaks", named(json!("echo\r\nx: y"))).error(-32602, "echo\\\\r\\\\nx: y"),
        row("a terminal's escape", named(json!("\u{1b}[2J"))).error(-32602, "unknown tool"),
        row("another case", named(json!("Echo"))).error(-32602, "unknown tool: Echo"),
        row("a space", named(json!("echo "))).error(-32602, "unknown tool"),
        row("1 MiB", named(json!(long(1 << 20)))).error(-32602, "unknown tool").too_long_for_headers(way),
        row("a number", named(json!(5))).error(-32602, "params"),
        row("null", named(json!(null))).error(-32602, "params"),
        row("none", request(way, "tools/call", &json!({}))).error(-32602, "name"),
        row("no prompt", request(way, "prompts/get", &json!({ "name": "nope" }))).error(-32602, "nope"),
        row("a prompt of 1 MiB", request(way, "prompts/get", &json!({ "name": long(1 << 20) })))
            .error(-32602, "")
            .too_long_for_headers(way),
    ]
}

pub(crate) fn arguments_that_do_not_fit(way: Way) -> Vec<Row> {
    vec![
        row("missing", call(way, "echo", &json!({}))).bad_arguments(way, "message"),
        row("wrong type", call(way, "echo", &json!({ "message": 5 }))).bad_arguments(way, "message"),
        row("null", call(way, "echo", &json!({ "message": null }))).bad_arguments(way, "message"),
        row("an extra one", call(way, "echo", &json!({ "message": "x", "extra": 1 })))
            .bad_arguments(way, "extra"),
        row("a long extra one", call(way, "echo", &json!({ "message": "x", long(10_000): 1 })))
            .bad_arguments(way, ""),
        row("a long wrong one", call(way, "sum", &json!({ "a": long(10_000), "b": 1 })))
            .bad_arguments(way, "a"),
        row("out of range", call(way, "slow", &json!({ "ms": 600_001 }))).bad_arguments(way, "ms"),
        row("negative", call(way, "big_result", &json!({ "bytes": -1 }))).bad_arguments(way, "bytes"),
        row("too much", call(way, "big_result", &json!({ "bytes": 1e15 }))).bad_arguments(way, "bytes"),
        row("text for arguments", call(way, "echo", &json!("x"))).error(-32602, "arguments"),
        row("a list for arguments", call(way, "echo", &json!(["x"]))).error(-32602, "arguments"),
    ]
}

pub(crate) fn a_hundred_thousand_arguments(way: Way) -> Vec<Row> {
    let many: Map<String, Value> = (0..100_000).map(|n| (format!("p{n}"), json!(n))).collect();
    vec![row("extra ones", call(way, "echo", &Value::Object(many))).bad_arguments(way, "message")]
}

pub(crate) fn other_parameters_that_do_not_fit(way: Way) -> Vec<Row> {
    let prompt = |arguments: Value| {
        request(way, "prompts/get", &json!({ "name": "code_review", "arguments": arguments }))
    };
    let complete = |reference: Value, argument: Value| {
        request(way, "completion/complete", &json!({ "ref": reference, "argument": argument }))
    };
    let code_review = json!({ "type": "ref/prompt", "name": "code_review" });
    let mut rows = vec![
        row("a prompt without its argument", prompt(json!({}))).error(-32602, "code"),
        row("a prompt's number", prompt(json!({ "code": 5 }))).error(-32602, ""),
        row("a prompt's list", prompt(json!([]))).error(-32602, ""),
        row("completing nothing", request(way, "completion/complete", &json!({}))).error(-32602, "ref"),
        row(
            "completing what is unknown",
            complete(json!({ "type": "ref/tool", "name": "x" }), json!({ "name": "a", "value": "" })),
        )
        .error(-32602, ""),
        row(
            "completing an unknown prompt",
            complete(json!({ "type": "ref/prompt", "name": "nope" }), json!({ "name": "a", "value": "" })),
        )
        .error(-32602, "nope"),
        row("completing without a value", complete(code_review.clone(), json!({ "name": "language" })))
            .error(-32602, "value"),
        row(
            "completing 1,000,000 characters",
            complete(code_review, json!({ "name": "language", "value": long(1_000_000) })),
        )
        .served(),
        row("a cursor that is none", request(way, "tools/list", &json!({ "cursor": 5 })))
            .error(-32602, "params"),
        row("an empty cursor", request(way, "tools/list", &json!({ "cursor": "" }))).error(-32602, "cursor"),
        row("a cursor of null", request(way, "tools/list", &json!({ "cursor": null }))).served(),
        row("a URI that is none", request(way, "resources/read", &json!({ "uri": 5 })))
            .error(-32602, "params"),
        row("no URI", request(way, "resources/read", &json!({}))).error(-32602, "uri"),
    ];
    if !way.is_stateless() {
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
                    request(way, "logging/setLevel", &json!({ "level": level })),
                )
                .error(-32602, ""),
            );
        }
        let nowhere = json!({ "uri": "file:///nowhere" });
        rows.push(
            row("subscribing to nothing", request(way, "resources/subscribe", &nowhere))
                .error(-32002, "not found"),
        );
    }
    rows
}

pub(crate) fn cancellations_of_what_is_not_there(_: Way) -> Vec<Row> {
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
    let sent =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
    params.into_iter().map(|params| row(params, sent(params))).collect()
}
