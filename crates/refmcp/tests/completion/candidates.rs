//! What shells are told, word for word.

use std::thread;

use serde_json::{Value, json};

use super::support::Server;
use super::support::http::{Answer, answering, listening};
use super::{User, mode};

#[test]
fn commands_options_and_values_are_completed() {
    let user = User::new();
    assert_eq!(user.fish(&["ins"]), ["install"]);
    assert_eq!(user.fish(&["install", "c"]), ["claude-desktop", "claude-code", "cursor"]);
    assert_eq!(user.fish(&["trust", "al"]), ["allow"]);
    assert_eq!(user.fish(&["call", "--total"]), ["--total-timeout"]);
    assert_eq!(user.fish(&["call", "--output=js"]), ["--output=json", "--output=jsonl"]);
    assert_eq!(user.fish(&["call", "-o", "t"]), ["text"]);
    assert_eq!(user.fish(&["call", "--config", "x"]), [":files"]);
    assert_eq!(user.fish(&["call", "echo", "--", "run"]), [":files"]);
    assert_eq!(user.fish(&["completions", "b"]), ["bash"]);
    assert_eq!(user.fish(&["rep"]), ["replay", "report"]);
    assert_eq!(user.fish(&["replay", ""]), [":files"]);
    assert_eq!(user.fish(&["replay", "a.jsonl", "--diff", ""]), [":files"]);
    assert_eq!(user.fish(&["replay", "a.jsonl", "--side", "c"]), ["client"]);
    assert!(user.fish(&["__"]).is_empty() && user.fish(&["nonsense", ""]).is_empty());
    assert!(user.fish(&[""]).contains(&"serve".to_owned()));
    assert_eq!(user.bash("refmcp call --output=js"), ["json ", "jsonl "]);
}

#[test]
fn what_a_server_at_an_address_offers_is_completed() {
    let (user, server) = (User::new(), Server::start(&[]));
    for url in [format!("http://{}/mcp", server.address), format!("ws://{}/mcp/ws", server.address)] {
        let url = url.as_str();
        assert_eq!(user.fish(&["call", url, "su"]), ["sum"]);
        assert_eq!(user.fish(&["call", url, "sum", ""]), ["a=", "b="]);
        assert_eq!(user.fish(&["call", url, "sum", "a=1", ""]), ["b="]);
        assert_eq!(user.fish(&["call", url, "ask_user", "form=c"]), ["form=choice", "form=confirm"]);
        assert_eq!(user.fish(&["read", url, "file:///not"]), ["file:///notes/todo.txt"]);
        assert_eq!(
            user.fish(&["watch", url, "file:///notes/todo.txt", "file:///proj"]),
            ["file:///project/src/main.rs"]
        );
        assert_eq!(user.fish(&["prompt", url, "code"]), ["code_review"]);
        assert_eq!(user.fish(&["prompt", url, "code_review", "l"]), ["language="]);
        assert_eq!(
            user.fish(&["prompt", url, "code_review", "language=ru"]),
            ["language=ruby", "language=rust"]
        );
        assert_eq!(user.fish(&["complete", url, "--prompt", "code"]), ["code_review"]);
        assert_eq!(user.fish(&["complete", "--prompt", "code_review", url, "lang"]), ["language="]);
        assert_eq!(user.fish(&["trust", "allow", url, "--tool", "su"]), ["sum"]);
        assert_eq!(user.fish(&["list", "models", url, "gpt-3"]), ["gpt-3.5-turbo"]);
        assert_eq!(user.fish(&["models", "select", url, "claude"]), ["claude-v2"]);
        assert_eq!(user.fish(&["call", url, "--model", "gpt-3"]), ["gpt-3.5-turbo"]);
        assert!(user.fish(&["call", url, "no_such_tool", ""]).is_empty());
        let line = format!("refmcp call {url} ask_user form=c");
        assert_eq!(user.bash(&line), ["choice ", "confirm "]);
        assert_eq!(user.bash(&format!("refmcp call {url} 'su")), ["sum"]);
        assert_eq!(user.bash(&format!("refmcp call {url} sum ")), ["a=", "b="]);
    }
    let zsh = user.run(&[
        "__complete",
        "zsh",
        "--",
        "refmcp",
        "call",
        &format!("http://{}/mcp", server.address),
        "su",
    ]);
    assert_eq!(zsh, "closed\tsum\tsum  -- Adds two numbers\n");
}

#[test]
fn names_of_servers_come_from_the_files() {
    let user = User::new();
    user.write(".mcp.json", r#"{"mcpServers": {"shop": {"url": "http://h/?key=HUSH"}, "off": {"command": "x", "disabled": true}}}"#);
    user.write("other.json", r#"{"mcpServers": {"store": {"command": "x"}}}"#);
    assert_eq!(user.fish(&["call", ""]), ["shop"]);
    assert_eq!(user.fish(&["call", "--config", "other.json", ""]), ["store"]);
    assert_eq!(user.fish(&["list", "s"]), ["skills", "shop"]);
    assert_eq!(user.fish(&["skills", "show", ""]), ["shop"]);
    assert_eq!(
        user.fish(&["list", ""]),
        ["tools", "resources", "templates", "prompts", "skills", "models", "all", "shop"]
    );
    assert_eq!(user.fish(&["list", "tools", ""]), ["shop"]);
    for words in
        [&["shell", "shop", ""][..], &["auth", "login", ""], &["trust", "allow", ""], &["bridge", "--to", ""]]
    {
        assert_eq!(user.fish(words), ["shop"], "{words:?}");
    }
    let shown = user.run(&["__complete", "fish", "--", "refmcp", "call", ""]);
    assert_eq!(shown, "shop\thttp://h/?key=***\n");
}

#[test]
fn names_of_what_is_listed_whole_come_from_the_server() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    assert_eq!(user.fish(&["list", "tools", &url, "su"]), ["sum"]);
    assert_eq!(user.fish(&["list", "tools", &url, "sum", "ech"]), ["echo"]);
    assert_eq!(user.fish(&["list", "prompts", &url, "code_r"]), ["code_review"]);
    assert_eq!(user.fish(&["list", "resources", &url, "file:///notes/to"]), ["file:///notes/todo.txt"]);
    assert_eq!(user.fish(&["list", "templates", &url, "memo:"]), ["memo://{shelf}/{name}"]);
    assert_eq!(user.fish(&["models", "se"]), ["select"]);
}

#[test]
fn a_list_is_cached_for_a_while_and_for_its_owner_alone() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    assert_eq!(user.fish(&["call", &url, "su"]), ["sum"]);
    drop(server);
    assert_eq!(user.fish(&["call", &url, "su"]), ["sum"]);
    assert_eq!(user.fish(&["call", &url, "sum", "a"]), ["a="]);
    assert!(user.fish(&["prompt", &url, "code"]).is_empty(), "another list was not asked for");
    assert!(
        user.fish(&["call", "-H", "X-User: other", &url, "su"]).is_empty(),
        "others may see another list"
    );
    assert_eq!(mode(&user.path("state/listings.json")), 0o600);
}

#[test]
fn a_silent_server_is_given_up_soon() {
    let user = User::new();
    let silent = listening(|_stream| thread::park());
    let took = user.given_up(&format!("http://{silent}/mcp"));
    assert!(took.as_secs() < 6, "{took:?}");
    assert!(user.fish(&["call", "http://127.0.0.1:1/mcp", ""]).is_empty());
}

/// A server whose tools have names that a shell or a terminal would act upon.
pub(super) fn hostile() -> String {
    let origin = answering(|request, _| {
        let message = request.message();
        if message["id"].is_null() {
            return Answer::empty("202 Accepted");
        }
        let answer = |key: &str, value: Value| {
            Answer::json("200 OK", &json!({ "jsonrpc": "2.0", "id": message["id"], key: value }))
        };
        match message["method"].as_str() {
            Some("tools/list") => {
                let names = ["$(touch hit)", "`touch hit`;x", "a\u{1b}[2J", "a\nb", "a b"];
                let tools = names.map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
                answer("result", json!({ "tools": tools }))
            }
            Some("initialize") => {
                let info = json!({ "name": "s", "version": "1" });
                let capabilities = json!({ "tools": {} });
                let result = json!({
                    "protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info
                });
                answer("result", result)
            }
            _ => answer("error", json!({ "code": -32601, "message": "no" })),
        }
    });
    format!("{origin}/mcp")
}

#[test]
fn names_that_a_shell_would_act_upon_are_quoted_or_left_out() {
    let (user, url) = (User::new(), hostile());
    let words = ["--protocol-version", "legacy", url.as_str()];
    let fish: Vec<&str> = ["call"].into_iter().chain(words).chain([""]).collect();
    assert_eq!(user.fish(&fish), ["$(touch hit)", "`touch hit`;x", "a b"]);
    let line = format!("refmcp call --protocol-version legacy {url} ");
    assert_eq!(user.bash(&line), ["\\$\\(touch\\ hit\\) ", "\\`touch\\ hit\\`\\;x ", "a\\ b "]);
    assert_eq!(user.bash(&format!("{line}\"")), ["\\$(touch hit)", "\\`touch hit\\`;x", "a b"]);
}
