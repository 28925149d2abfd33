//! Rules about authorization.

use refmcp_audit::verdict::Role;
use refmcp_proto::rule;
use serde_json::json;

use crate::script::{Example, Script};
use crate::streamable::{ACCEPT, JSON, SESSION, initialize, opening, ping, result, session};

const C: &str = "2025-06-18";
const TOKEN: (&str, &str) = ("authorization", "***");

fn challenge(value: &str) -> [(&str, &str); 1] {
    [("www-authenticate", value)]
}

/// A session with tokens, in which a ping without one was refused.
fn protected() -> Script {
    session(C).post(3, C, ping(3)).status(401, &challenge(METADATA)).ended()
}

const METADATA: &str =
    r#"Bearer resource_metadata="https://example.org/.well-known/oauth-protected-resource""#;

pub(crate) fn examples() -> Vec<Example> {
    let client = |rule, kept, broken| Example { rule, role: Role::Client, kept, broken };
    let server = |rule, kept, broken| Example { rule, role: Role::Server, kept, broken };
    let with_token =
        |target: &str| Script::new("http").http(1, "POST", target, &[ACCEPT, TOKEN]).client(initialize(C));
    let scope = |value: &str| {
        Script::new("http")
            .stateless(1, "tools/list", json!({}), &[TOKEN])
            .status(403, &challenge(&format!("{METADATA}, error=\"insufficient_scope\"{value}")))
    };
    let listing = |stream: u64, script: Script| script.stateless(stream, "tools/list", json!({}), &[]);
    let listed = |script: Script, id: u64| {
        script.stateless_result(id, json!({"tools": [], "ttlMs": 0, "cacheScope": "private"}))
    };
    let refused = || listing(1, Script::new("http")).status(401, &challenge(METADATA)).ended();
    vec![
        server(
            &rule::AUTH_02,
            opening(C).status(401, &challenge(METADATA)),
            vec![
                opening(C).status(403, &challenge(METADATA)),
                with_token("/mcp").status(403, &challenge(r#"Bearer error="invalid_token""#)),
                with_token("/mcp").status(400, &challenge(r#"Bearer realm="a", error="invalid_token""#)),
                with_token("/mcp").status(
                    401,
                    &challenge(&format!("{METADATA}, error=\"insufficient_scope\", scope=\"a\"")),
                ),
            ],
        ),
        server(
            &rule::AUTH_04,
            protected(),
            vec![
                session(C).post(3, C, ping(3)).status(401, &challenge("Bearer")),
                session(C).post(3, C, ping(3)).status(401, &[]),
            ],
        ),
        client(&rule::AUTH_15, with_token("/mcp"), vec![with_token("/mcp?access_token=***")]),
        server(&rule::AUTH_18, scope(r#", scope="files:read""#), vec![scope("")]),
        server(
            &rule::HTTP_26,
            protected().post(4, C, ping(4)).status(401, &challenge(METADATA)),
            vec![protected().post(4, C, ping(4)).status(200, JSON).server(result(4))],
        ),
        server(
            &rule::SEC_08,
            listing(2, refused()).status(401, &challenge(METADATA)),
            vec![listed(listing(2, refused()), 2)],
        ),
    ]
}

#[test]
fn a_token_lets_in() {
    let headers = [ACCEPT, SESSION, TOKEN, ("mcp-protocol-version", C)];
    let script = protected().http(4, "POST", "/mcp", &headers).client(ping(4));
    script.status(200, JSON).server(result(4)).keeps(&rule::AUTH_15, Role::Client);
}
