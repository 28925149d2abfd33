//! Rules about stdio.

use refmcp_audit::verdict::Role;
use refmcp_proto::rule;
use serde_json::json;

use crate::script::{Example, Script};

fn session() -> Script {
    Script::session("stdio", "2025-06-18", json!({}), json!({}))
}

fn answered() -> Script {
    session()
        .client(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
        .server(json!({"jsonrpc": "2.0", "id": 1, "result": {}}))
}

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

pub(crate) fn examples() -> Vec<Example> {
    let client = |rule, broken| Example { rule, role: Role::Client, kept: answered(), broken };
    let server = |rule, broken| Example { rule, role: Role::Server, kept: answered(), broken };
    vec![
        client(
            &rule::STDIO_01,
            vec![
                session().client_invalid(&format!("{PING}{PING}")),
                session().client_invalid("{").client_invalid(r#" "id": 7"#).client_invalid("}"),
            ],
        ),
        server(
            &rule::STDIO_01,
            vec![
                session().server_invalid(&format!("{PING} {PING} {PING}")),
                session().server_invalid("{").server_invalid(r#" "id": 7"#).server_invalid("}"),
            ],
        ),
        server(
            &rule::STDIO_02,
            vec![
                session().server_invalid("INFO listening"),
                session().server_invalid("{ begun, and never ended").client(json!({
                    "jsonrpc": "2.0", "id": 1, "method": "ping"
                })),
                session().server_invalid(r#"{"half": "#).server(json!({
                    "jsonrpc": "2.0", "id": 9, "method": "ping"
                })),
            ],
        ),
        client(&rule::STDIO_03, vec![session().client_invalid("exit")]),
    ]
}

#[test]
fn a_line_whose_end_is_awaited_is_not_judged() {
    use refmcp_audit::recording::{Direction, EventKind};
    let (direction, why) = (Direction::Sent, "a line without an end".to_owned());
    let bytes = br#"{"jsonrpc":"2.0","id":1,"re"#.to_vec();
    session()
        .client(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
        .then(EventKind::Invalid { direction, bytes, why })
        .server(json!({"jsonrpc": "2.0", "id": 1, "result": {}}))
        .keeps(&rule::STDIO_02, Role::Server);
}
