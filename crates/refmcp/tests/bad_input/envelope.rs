//! JSON that is no JSON-RPC, or an odd one.

use serde_json::json;

use crate::table::{altered, long, request, row, try_all};

#[test]
fn keys_in_another_case() {
    try_all(|version| {
        vec![
            row("Method", altered(version, "\"method\"", "\"Method\"")).error(-32600, "case"),
            row("METHOD beside method", altered(version, "\"id\":7", "\"id\":7,\"METHOD\":\"ping\""))
                .error(-32600, "case"),
            row("Params", altered(version, "\"params\"", "\"Params\"")).error(-32600, "case"),
            row("params with a long s", altered(version, "\"params\"", "\"paramſ\"")).error(-32600, "case"),
            row("JSONRPC", altered(version, "\"jsonrpc\"", "\"JSONRPC\"")).error(-32600, "case"),
            row("ID", altered(version, "\"id\"", "\"ID\"")),
            row("a Kelvin sign is only a key", altered(version, "\"id\":7", "\"id\":7,\"\u{212A}\":1"))
                .served(),
            row("Name in parameters", request(version, "tools/call", &json!({ "Name": "echo" })))
                .error(-32602, "name"),
        ]
    });
}

#[test]
fn the_version_of_json_rpc() {
    try_all(|version| {
        let jsonrpc_version = |by: &str| altered(version, "\"jsonrpc\":\"2.0\"", by);
        vec![
            row("missing", jsonrpc_version("\"x\":1")).error(-32600, "jsonrpc"),
            row("1.0", jsonrpc_version("\"jsonrpc\":\"1.0\"")).error(-32600, "jsonrpc"),
            row("a number", jsonrpc_version("\"jsonrpc\":2.0")).error(-32600, "jsonrpc"),
            row("null", jsonrpc_version("\"jsonrpc\":null")).error(-32600, "jsonrpc"),
            row("long", jsonrpc_version(&format!("\"jsonrpc\":\"{}\"", long(100_000))))
                .error(-32600, "jsonrpc"),
            row("missing in a notification", r#"{"method":"notifications/initialized"}"#),
            row("nothing at all", "{}").unreadable(-32600, "jsonrpc"),
        ]
    });
}

#[test]
fn ids_of_every_kind() {
    try_all(|version| {
        let id = |by: &str| altered(version, "\"id\":7", &format!("\"id\":{by}"));
        let refused = ["null", "true", "false", "{}", "[]", "[1]", "1.0", "1.5", "-1.5", "{\"id\":1}"];
        let mut rows: Vec<_> =
            refused.into_iter().map(|by| row(format!("id {by}"), id(by)).unreadable(-32600, "id")).collect();
        for served in ["0", "-1", "\"\"", "\"0\"", "\" \"", "\"7\"", "\"ü\""] {
            rows.push(row(format!("id {served}"), id(served)).served_as(served));
        }
        rows.push(row("id of 1 MiB", id(&format!("\"{}\"", long(1 << 20)))).unreadable(-32600, "longer"));
        rows
    });
}

#[test]
fn methods_of_every_kind() {
    try_all(|version| {
        let method = |by: &str| altered(version, "\"method\":\"tools/list\"", &format!("\"method\":{by}"));
        let mut rows: Vec<_> = ["5", "null", "{}", "[]", "true", "\"\""]
            .into_iter()
            .map(|by| row(format!("method {by}"), method(by)).error(-32600, "method"))
            .collect();
        for by in [
            "rpc.discover",
            "tools/List",
            "tools/list ",
            "tools",
            "__proto__",
            "notifications/initialized",
            "tools/call/echo",
        ] {
            rows.push(
                row(format!("method {by}"), method(&format!("\"{by}\""))).error(-32601, "method not found"),
            );
        }
        rows.push(row("method of 1 MiB", method(&format!("\"{}\"", long(1 << 20)))).error(-32600, "longer"));
        rows.push(row("a line break in it", method("\"a\\r\\nb\"")).error(-32601, "a\\\\r\\\\nb"));
        rows.push(row("no method", altered(version, "\"method\"", "\"x\"")).error(-32600, "neither"));
        rows
    });
}

#[test]
fn parameters_of_every_kind() {
    try_all(|_| {
        let sent = |by: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{by}}}"#);
        let kinds = ["\"x\"", "5", "null", "[]", "[{}]", "true"];
        kinds.into_iter().map(|by| row(format!("params {by}"), sent(by)).error(-32600, "params")).collect()
    });
}

#[test]
fn responses_without_a_request() {
    try_all(|_| {
        let sent = [
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":0,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"x","result":null}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":"x"}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":null}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"id":7,"result":{}}"#,
        ];
        let mut rows: Vec<_> = sent.into_iter().map(|text| row(text, text)).collect();
        let both = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","result":{}}"#;
        rows.push(row("a method and a result", both).error(-32600, "not both"));
        rows
    });
}

#[test]
fn notifications_with_odd_content() {
    try_all(|version| {
        let mut rows = vec![
            row("one with an id", altered(version, "tools/list", "notifications/cancelled")).error(-32601, "notifications/cancelled"),
            row("a request without an id", altered(version, "\"id\":7,", "")),
            row("NaN", r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":NaN}}"#)
                .unreadable(-32700, "not JSON"),
        ];
        for (method, params) in [
            ("notifications/progress", r#"{"progressToken":"unknown","progress":1}"#),
            ("notifications/progress", r#"{"progressToken":"unknown","progress":0}"#),
            ("notifications/progress", r#"{"progressToken":{},"progress":"x"}"#),
            ("notifications/progress", r#"{"progressToken":1,"progress":1e999}"#),
            ("notifications/progress", "5"),
            ("notifications/initialized", "null"),
            ("notifications/initialized", r#"{"_meta":5}"#),
            ("notifications/roots/list_changed", r#"{"roots":{}}"#),
            ("notifications/message", r#"{"level":"loud"}"#),
            ("notifications/unknown", "[]"),
            ("tools/call", r#"{"name":"echo","arguments":{"message":"x"}}"#),
            ("$/cancelRequest", r#"{"id":7}"#),
        ] {
            let sent = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
            rows.push(row(format!("{method} {params}"), sent));
        }
        rows
    });
}

#[test]
fn meta_of_every_kind() {
    try_all(|version| {
        let bare = |meta: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"_meta":{meta}}}}}"#)
        };
        let token = |token: serde_json::Value| {
            request(version, "tools/list", &json!({ "_meta": { "progressToken": token } }))
        };
        let mut rows = Vec::new();
        for meta in ["5", "\"x\"", "[]", "true", "null"] {
            rows.push(row(format!("_meta {meta}"), bare(meta)).error(-32602, "_meta"));
        }
        for bad in [json!({}), json!([]), json!(1.5), json!(true)] {
            rows.push(row(format!("progressToken {bad}"), token(bad)).error(-32602, "progressToken"));
        }
        for good in [json!(0), json!(""), json!("t"), json!(u64::MAX)] {
            rows.push(row(format!("progressToken {good}"), token(good)).served());
        }
        let reserved =
            json!({ "io.modelcontextprotocol/unknown": 1, "mcp.dev/x": {}, "": 1, "a/b/c": [], "-/-": null });
        rows.push(
            row("reserved and malformed keys", request(version, "tools/list", &json!({ "_meta": reserved })))
                .served(),
        );
        rows
    });
}
