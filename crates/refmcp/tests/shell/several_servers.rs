//! Several servers at once.

use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::tempdir;

use crate::shell;
use crate::support::children_of;
use crate::{REFMCP, total};

fn config(folder: &Path) -> PathBuf {
    let server = json!({ "command": REFMCP, "args": ["stdio"] });
    let broken = json!({ "command": folder.join("no-such-program") });
    let file = folder.join("mcp.json");
    let document = json!({ "mcpServers": { "one": server, "two": server, "broken": broken } });
    std::fs::write(&file, document.to_string()).unwrap();
    file
}

#[test]
fn the_same_names_are_told_apart_by_their_servers() {
    let folder = tempdir().unwrap();
    let file = config(folder.path());
    let mut terminal = shell(folder.path(), &["--yes", "--config", file.to_str().unwrap()]);
    terminal.expect("broken: ");
    terminal.expect("refmcp> ");
    assert_eq!(children_of(terminal.id()).len(), 2);
    terminal.enter("sum a=1 b=1");
    terminal.expect("write one.sum or two.sum");
    terminal.expect("refmcp> ");
    terminal.press("two.su\t");
    terminal.expect("two.sum ");
    terminal.enter("a=1 b=2");
    terminal.expect(&total(3));
    terminal.expect("refmcp> ");
    terminal.enter("/one.code_review code=x");
    terminal.expect("Please review this Python code");
    terminal.expect("refmcp> ");
    terminal.enter("use two");
    terminal.expect("two> ");
    terminal.enter("sum a=2 b=2");
    terminal.expect(&total(4));
    terminal.expect("two> ");
    terminal.enter("add_tool name=extra");
    terminal.expect("[two] the tools have changed");
    terminal.enter("disconnect one");
    terminal.expect("two> ");
    terminal.enter("servers");
    terminal.expect("disconnected");
    terminal.expect("two> ");
    terminal.enter("one.sum a=1 b=1");
    terminal.expect("one is not connected: disconnected");
    terminal.expect("two> ");
    terminal.enter("connect one");
    terminal.expect("two> ");
    terminal.enter("one.sum a=3 b=3");
    terminal.expect(&total(6));
}

#[test]
fn when_none_can_be_connected_it_ends() {
    let folder = tempdir().unwrap();
    let missing = folder.path().join("no-such-program");
    let mut terminal = shell(folder.path(), &["--", missing.to_str().unwrap()]);
    terminal.expect("no server could be connected");
    assert_eq!(terminal.ended().code(), Some(4));
}
