//! What the command line client prints, on which stream, and how it ends.

#![cfg(unix)]

mod certificates;
mod declined;
mod exits;
mod hints;
mod lists;
mod lost;
mod media;
mod results;
#[path = "../support/mod.rs"]
mod support;
mod timeouts;
mod unread;

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
