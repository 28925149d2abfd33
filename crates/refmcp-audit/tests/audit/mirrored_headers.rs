//! Rules about the headers that repeat the body of a request without a session.

use refmcp_audit::verdict::Role;
use refmcp_proto::revision::Revision;
use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::script::{Example, Script};
use crate::streamable::{ACCEPT, JSON, stateless_request};

const VERSION: (&str, &str) = ("mcp-protocol-version", Revision::LATEST.as_str());

fn list(schema: &Value) -> Script {
    let tool = json!({"name": "find", "description": "Finds", "inputSchema": schema});
    let result = json!({"tools": [tool], "ttlMs": 0, "cacheScope": "private"});
    Script::new("http").stateless(1, "tools/list", json!({}), &[]).stateless_result(1, result)
}

fn marked() -> Script {
    list(&json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "near": {"type": "string"}
    }}))
}

fn call(script: Script, stream: u64, arguments: &Value, more: &[(&str, &str)]) -> Script {
    let params = json!({"name": "find", "arguments": arguments});
    script.stateless(stream, "tools/call", params, &[&[("mcp-name", "find")], more].concat())
}

fn read(uri: &str, name: &str) -> Script {
    Script::new("http").stateless(1, "resources/read", json!({"uri": uri}), &[("mcp-name", name)])
}

fn refused() -> Script {
    let error = json!({"code": -32020, "message": "Mcp-Param-Region is missing"});
    call(Script::new("http"), 1, &json!({}), &[])
        .status(400, JSON)
        .server(json!({"jsonrpc": "2.0", "id": 1, "error": error}))
        .ended()
}

fn posted(headers: &[(&str, &str)]) -> Script {
    Script::new("http").http(1, "POST", "/mcp", &[&[ACCEPT], headers].concat()).client(stateless_request(
        1,
        "tools/list",
        json!({}),
    ))
}

pub(crate) fn examples() -> Vec<Example> {
    let client = |rule, kept, broken| Example { rule, role: Role::Client, kept, broken };
    let method = ("mcp-method", "tools/list");
    let region = ("mcp-param-region", "north");
    let north = json!({"region": "north"});
    vec![
        client(
            &rule::MHTTP_08,
            posted(&[VERSION, method]),
            vec![posted(&[method]), posted(&[("mcp-protocol-version", "2025-11-25"), method])],
        ),
        client(
            &rule::MHTTP_09,
            read("file:///a", "file:///a"),
            vec![
                posted(&[VERSION]),
                posted(&[VERSION, ("mcp-method", "tools/call")]),
                read("file:///a", "file:///b"),
                Script::new("http").stateless(1, "resources/read", json!({"uri": "file:///a"}), &[]),
            ],
        ),
        client(
            &rule::MHTTP_13,
            call(
                marked(),
                2,
                &json!({"region": "north", "count": 42}),
                &[region, ("mcp-param-count", "42.0")],
            ),
            vec![
                call(marked(), 2, &north, &[]),
                call(marked(), 2, &north, &[("mcp-param-region", "south")]),
                call(marked(), 2, &json!({"count": 1}), &[("mcp-param-count", "2")]),
            ],
        ),
        Example {
            rule: &rule::MHTTP_14,
            role: Role::Server,
            kept: marked(),
            broken: vec![
                list(
                    &json!({"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
                ),
                list(
                    &json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "a b"}}}),
                ),
            ],
        },
        client(
            &rule::MHTTP_16,
            read("file:///ä", "=?base64?ZmlsZTovLy/DpA==?="),
            vec![read("file:///ä", "file:///ä"), read("file:///ä", "=?base64?not base64?="), read(" a", "a")],
        ),
        client(
            &rule::MHTTP_17,
            call(marked(), 2, &json!({}), &[]),
            vec![call(marked(), 2, &json!({"region": null}), &[region])],
        ),
        client(
            &rule::MHTTP_19,
            refused().stateless(2, "tools/list", json!({}), &[]),
            vec![call(refused(), 2, &json!({}), &[])],
        ),
    ]
}

#[test]
fn values_that_are_masked_are_not_compared() {
    call(marked(), 2, &json!({"region": "north"}), &[("mcp-param-region", "***")])
        .keeps(&rule::MHTTP_13, Role::Client);
}

#[test]
fn a_header_that_repeats_what_the_body_does_not_have_is_found() {
    let method = ("mcp-method", "tools/list");
    for meta in [json!({}), json!({"progressToken": 1})] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
        let judgement =
            Script::new("http").http(1, "POST", "/mcp", &[ACCEPT, VERSION, method]).client(message).judge();
        let mut broken: Vec<&str> = judgement.broken().map(|verdict| verdict.rule.id).collect();
        broken.sort_unstable();
        assert_eq!(broken, ["MHTTP-08", "STATE-04"], "{judgement:#?}");
    }
}
