//! Several servers at once.

use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::tempdir;

use crate::screen::{Screen, children_of};
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
    let mut screen = Screen::shell(folder.path(), &["--yes", "--config", file.to_str().unwrap()]);
    screen.expect("broken: ");
    screen.expect("refmcp> ");
    assert_eq!(children_of(screen.id()).len(), 2);
    screen.enter("sum a=1 b=1");
    screen.expect("write one.sum or two.sum");
    screen.expect("refmcp> ");
    screen.press("two.su\t");
    screen.expect("two.sum ");
    screen.enter("a=1 b=2");
    screen.expect(&total(3));
    screen.expect("refmcp> ");
    screen.enter("/one.code_review code=x");
    screen.expect("Please review this Python code");
    screen.expect("refmcp> ");
    screen.enter("use two");
    screen.expect("two> ");
    screen.enter("sum a=2 b=2");
    screen.expect(&total(4));
    screen.expect("two> ");
    screen.enter("add_tool name=extra");
    screen.expect("[two] the tools have changed");
    screen.enter("disconnect one");
    screen.expect("two> ");
    screen.enter("servers");
    screen.expect("disconnected");
    screen.expect("two> ");
    screen.enter("one.sum a=1 b=1");
    screen.expect("one is not connected: disconnected");
    screen.expect("two> ");
    screen.enter("connect one");
    screen.expect("two> ");
    screen.enter("one.sum a=3 b=3");
    screen.expect(&total(6));
}

#[test]
fn when_none_can_be_connected_it_ends() {
    let folder = tempdir().unwrap();
    let missing = folder.path().join("no-such-program");
    let mut screen = Screen::shell(folder.path(), &["--", missing.to_str().unwrap()]);
    screen.expect("no server could be connected");
    assert_eq!(screen.ended().code(), Some(4));
}
