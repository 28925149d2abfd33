//! Rules about requests over streamable HTTP, without sessions.

use refmcp_audit::verdict::Role;
use refmcp_proto::revision::Revision;
use refmcp_proto::rule;
use serde_json::json;

use crate::script::{Example, Script, stateless_meta};
use crate::streamable::{ACCEPT, JSON, SSE, stateless_request};

fn listing(stream: u64) -> Script {
    Script::new("http").stateless(stream, "tools/list", json!({}), &[])
}

fn listed() -> Script {
    listing(1).stateless_result(1, json!({"tools": [], "ttlMs": 0, "cacheScope": "private"}))
}

fn unknown(status: u16) -> Script {
    let error = json!({"code": -32601, "message": "unknown"});
    Script::new("http")
        .stateless(1, "x/unknown", json!({}), &[])
        .status(status, JSON)
        .server(json!({"jsonrpc": "2.0", "id": 1, "error": error}))
        .ended()
}

pub(crate) fn examples() -> Vec<Example> {
    let client = |rule, kept, broken| Example { rule, role: Role::Client, kept, broken };
    let server = |rule, kept, broken| Example { rule, role: Role::Server, kept, broken };
    let version = ("mcp-protocol-version", Revision::LATEST.as_str());
    let method = ("mcp-method", "tools/list");
    let note = || {
        let params = json!({"_meta": stateless_meta()});
        let message = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": params});
        Script::new("http").http(1, "POST", "/mcp", &[ACCEPT, version]).client(message)
    };
    let result = json!({"jsonrpc": "2.0", "id": 1, "result": {
        "resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
    }});
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {
        "level": "info", "data": "done"
    }});
    let lost = || listing(1).status(200, SSE).ended();
    vec![
        client(
            &rule::MHTTP_02,
            listed(),
            vec![
                Script::new("http")
                    .http(1, "POST", "/mcp", &[("accept", "application/json"), version, method])
                    .client(stateless_request(1, "tools/list", json!({}))),
            ],
        ),
        server(
            &rule::MHTTP_03,
            note().status(202, &[]).ended(),
            vec![note().status(200, &[]).ended(), note().status(202, JSON).server(progress.clone())],
        ),
        server(
            &rule::MHTTP_04,
            listed(),
            vec![listing(1).status(200, &[("content-type", "text/plain")]), listing(1).status(202, &[])],
        ),
        server(
            &rule::MHTTP_05,
            listing(1).status(200, SSE).server(result.clone()).ended(),
            vec![
                listing(1).status(200, &SSE[..1]).server(result.clone()).ended(),
                listing(1).status(200, SSE).server(result).server(progress),
            ],
        ),
        client(
            &rule::MHTTP_07,
            lost().stateless(2, "tools/list", json!({}), &[]),
            vec![lost().http(0, "GET", "/mcp", &[ACCEPT, version, ("last-event-id", "1")])],
        ),
        server(&rule::MHTTP_11, unknown(404), vec![unknown(200), unknown(400)]),
    ]
}
