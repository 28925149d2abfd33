//! The commands that drive a server: what they print, on which stream, and how they end.

#![cfg(unix)]

mod apps;
mod certificates;
mod check;
mod commands;
mod consent;
mod declined;
mod documents;
mod exits;
mod findings;
mod floods;
mod hints;
mod hostile_schemas;
mod invalid_messages;
mod lists;
mod media;
mod member_order;
mod models;
mod results;
mod secrets;
mod skills;
#[path = "../support/mod.rs"]
mod support;
mod tasks;
mod timeouts;
mod traces;
mod watch;

use support::{REFMCP, User};

/// A server of an older revision as a shell script, with these capabilities: what follows the id in the answer to each
/// method. Other requests have no method.
fn scripted(capabilities: &str, answers: &[(&str, &str)]) -> String {
    let opening = format!(
        r#""result":{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"serverInfo":{{"name":"s","version":"1"}}}}"#
    );
    let mut cases = String::new();
    for (method, answer) in [("initialize", opening.as_str())].iter().chain(answers) {
        cases += &format!("  *'\"method\":\"{method}\"'*) answer='{answer}' ;;\n");
    }
    format!(
        r#"while read -r line; do
  case "$line" in *'"id":'*) ;; *) continue ;; esac
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
{cases}  *) answer='"error":{{"code":-32601,"message":"Method not found"}}' ;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$answer"
done"#
    )
}
