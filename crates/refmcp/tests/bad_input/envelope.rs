//! JSON that is no JSON-RPC, or an odd one.

use serde_json::json;

use crate::peer::Way;
use crate::table::{Row, altered, long, request, row};

pub(crate) fn keys_in_another_case(way: Way) -> Vec<Row> {
    vec![
        row("Method", altered(way, "\"method\"", "\"Method\"")).error(-32600, "case"),
        row("METHOD beside method", altered(way, "\"id\":7", "\"id\":7,\"METHOD\":\"ping\""))
            .error(-32600, "case"),
        row("Params", altered(way, "\"params\"", "\"Params\"")).error(-32600, "case"),
        row("params with a long s", altered(way, "\"params\"", "\"paramſ\"")).error(-32600, "case"),
        row("JSONRPC", altered(way, "\"jsonrpc\"", "\"JSONRPC\"")).error(-32600, "case"),
        row("ID", altered(way, "\"id\"", "\"ID\"")).refused_over_http(way, -32600, "case"),
        row("a Kelvin sign is only a key", altered(way, "\"id\":7", "\"id\":7,\"\u{212A}\":1")).served(),
        row("Name in parameters", request(way, "tools/call", &json!({ "Name": "echo" })))
            .error(-32602, "name"),
    ]
}

pub(crate) fn the_version_of_json_rpc(way: Way) -> Vec<Row> {
    let jsonrpc_version = |by: &str| altered(way, "\"jsonrpc\":\"2.0\"", by);
    vec![
        row("missing", jsonrpc_version("\"x\":1")).error(-32600, "jsonrpc"),
        row("1.0", jsonrpc_version("\"jsonrpc\":\"1.0\"")).error(-32600, "jsonrpc"),
        row("a number", jsonrpc_version("\"jsonrpc\":2.0")).error(-32600, "jsonrpc"),
        row("null", jsonrpc_version("\"jsonrpc\":null")).error(-32600, "jsonrpc"),
        row("long", jsonrpc_version(&format!("\"jsonrpc\":\"{}\"", long(100_000)))).error(-32600, "jsonrpc"),
        row("missing in a notification", r#"{"method":"notifications/initialized"}"#)
            .refused_over_http(way, -32600, "jsonrpc"),
        row("nothing at all", "{}").unreadable(-32600, "jsonrpc"),
    ]
}

pub(crate) fn ids_of_every_kind(way: Way) -> Vec<Row> {
    let id = |by: &str| altered(way, "\"id\":7", &format!("\"id\":{by}"));
    let refused = ["null", "true", "false", "{}", "[]", "[1]", "1.0", "1.5", "-1.5", "{\"id\":1}"];
    let mut rows: Vec<_> =
        refused.into_iter().map(|by| row(format!("id {by}"), id(by)).unreadable(-32600, "id")).collect();
    for served in ["0", "-1", "\"\"", "\"0\"", "\" \"", "\"7\"", "\"ü\""] {
        rows.push(row(format!("id {served}"), id(served)).served_as(served));
    }
    rows.push(row("id of 1 MiB", id(&format!("\"{}\"", long(1 << 20)))).unreadable(-32600, "longer"));
    rows
}

pub(crate) fn methods_of_every_kind(way: Way) -> Vec<Row> {
    let method = |by: &str| altered(way, "\"method\":\"tools/list\"", &format!("\"method\":{by}"));
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
    rows.push(
        row("method of 1 MiB", method(&format!("\"{}\"", long(1 << 20))))
            .error(-32600, "longer")
            .too_long_for_headers(way),
    );
    rows.push(row("a line break in it", method("\"a\\r\\nb\"")).error(-32601, "a\\\\r\\\\nb"));
    rows.push(row("no method", altered(way, "\"method\"", "\"x\"")).error(-32600, "neither"));
    rows
}

pub(crate) fn parameters_of_every_kind(_: Way) -> Vec<Row> {
    let sent = |by: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{by}}}"#);
    let kinds = ["\"x\"", "5", "null", "[]", "[{}]", "true"];
    kinds.into_iter().map(|by| row(format!("params {by}"), sent(by)).error(-32600, "params")).collect()
}

/// What is no request is never answered, but a body that is refused is an HTTP response.
pub(crate) fn responses_without_a_request(way: Way) -> Vec<Row> {
    let unexpected = [
        r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":0,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"x","result":null}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}"#,
    ];
    let malformed = [
        (r#"{"jsonrpc":"2.0","id":7,"error":"x"}"#, "error"),
        (r#"{"jsonrpc":"2.0","id":7,"error":null}"#, "error"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}"#, "both result and error"),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, "id"),
        (r#"{"jsonrpc":"2.0","result":{}}"#, "without an id"),
        (r#"{"id":7,"result":{}}"#, "jsonrpc"),
    ];
    let unexpected = unexpected.into_iter().map(|text| match way.is_stateless() {
        true => row(text, text).refused_over_http(way, -32600, "send no requests"),
        false => row(text, text),
    });
    let malformed =
        malformed.into_iter().map(|(text, word)| row(text, text).refused_over_http(way, -32600, word));
    let both = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","result":{}}"#;
    let both = row("a method and a result", both).error(-32600, "not both");
    unexpected.chain(malformed).chain([both]).collect()
}

pub(crate) fn notifications_with_odd_content(way: Way) -> Vec<Row> {
    let mut rows = vec![
        row("one with an id", altered(way, "tools/list", "notifications/cancelled")).error(-32601, "notifications/cancelled"),
        row("a request without an id", altered(way, "\"id\":7,", "")),
        row("NaN", r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":NaN}}"#)
            .unreadable(-32700, "not JSON"),
    ];
    for (method, params) in [
        ("notifications/progress", r#"{"progressToken":"unknown","progress":1}"#),
        ("notifications/progress", r#"{"progressToken":"unknown","progress":0}"#),
        ("notifications/progress", r#"{"progressToken":{},"progress":"x"}"#),
        ("notifications/progress", r#"{"progressToken":1,"progress":1e999}"#),
        ("notifications/roots/list_changed", r#"{"roots":{}}"#),
        ("notifications/message", r#"{"level":"loud"}"#),
        ("tools/call", r#"{"name":"echo","arguments":{"message":"x"}}"#),
        ("$/cancelRequest", r#"{"id":7}"#),
    ] {
        let sent = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        rows.push(row(format!("{method} {params}"), sent));
    }
    for (method, params, code, word) in [
        ("notifications/progress", "5", -32600, "params"),
        ("notifications/initialized", "null", -32600, "params"),
        ("notifications/initialized", r#"{"_meta":5}"#, -32602, "_meta"),
        ("notifications/unknown", "[]", -32600, "params"),
    ] {
        let sent = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        rows.push(row(format!("{method} {params}"), sent).refused_over_http(way, code, word).bad_request());
    }
    rows
}

pub(crate) fn meta_of_every_kind(way: Way) -> Vec<Row> {
    let bare = |meta: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"_meta":{meta}}}}}"#)
    };
    let token = |token: serde_json::Value| {
        request(way, "tools/list", &json!({ "_meta": { "progressToken": token } }))
    };
    let mut rows = Vec::new();
    for meta in ["5", "\"x\"", "[]", "true", "null"] {
        rows.push(row(format!("_meta {meta}"), bare(meta)).error(-32602, "_meta").bad_request());
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
        row("reserved and malformed keys", request(way, "tools/list", &json!({ "_meta": reserved })))
            .served(),
    );
    rows
}
