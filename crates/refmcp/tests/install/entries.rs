//! What an entry looks like for each host, and in which file.

use serde_json::{Value, json};

use super::support::Server;
use super::{REFMCP, User, mode};

/// Installs into a fresh file; the file as JSON.
fn installed(file: &str, words: &[&str]) -> Value {
    let user = User::at_work();
    let words: Vec<&str> = ["install", "--yes"].iter().chain(words).copied().collect();
    let came = user.run(&words);
    assert!(came.code == 0 && came.out.contains("written: "), "{came:?}");
    serde_json::from_str(&user.read(file)).unwrap()
}

#[test]
fn refmcp_itself_is_installed_by_its_full_path() {
    let plain = json!({"command": REFMCP, "args": ["stdio"]});
    let typed = json!({"type": "stdio", "command": REFMCP, "args": ["stdio"]});
    for (words, file, list, entry) in [
        (&["vscode"][..], "work/.vscode/mcp.json", "servers", &typed),
        (&["vscode", "--user"], "home/.config/Code/User/mcp.json", "servers", &typed),
        (&["claude-desktop"], "home/.config/Claude/claude_desktop_config.json", "mcpServers", &plain),
        (
            &["claude-desktop", "--user"],
            "home/.config/Claude/claude_desktop_config.json",
            "mcpServers",
            &plain,
        ),
        (&["claude-code"], "work/.mcp.json", "mcpServers", &typed),
        (&["claude-code", "--user"], "home/.claude.json", "mcpServers", &typed),
        (&["cursor"], "work/.cursor/mcp.json", "mcpServers", &plain),
        (&["cursor", "--user"], "home/.cursor/mcp.json", "mcpServers", &plain),
        (&["cursor", "--config", "other.json"], "work/other.json", "mcpServers", &plain),
    ] {
        assert_eq!(installed(file, words), json!({list: {"refmcp": entry}}), "{words:?}");
    }
}

#[test]
fn a_server_at_an_address_is_bridged_where_the_host_cannot_reach_it() {
    let bridge = |to: &str| json!({"command": REFMCP, "args": ["bridge", "--from", "stdio", "--to", to]});
    let (http, sse, ws) = ("https://a.example/mcp", "sse+http://localhost:1/sse", "ws://localhost:1/mcp/ws");
    let bridged =
        json!({"type": "stdio", "command": REFMCP, "args": ["bridge", "--from", "stdio", "--to", ws]});
    for (host, file, list, url, entry) in [
        ("vscode", "work/.vscode/mcp.json", "servers", http, json!({"type": "http", "url": http})),
        (
            "vscode",
            "work/.vscode/mcp.json",
            "servers",
            sse,
            json!({"type": "sse", "url": "http://localhost:1/sse"}),
        ),
        ("vscode", "work/.vscode/mcp.json", "servers", ws, bridged),
        ("claude-code", "work/.mcp.json", "mcpServers", http, json!({"type": "http", "url": http})),
        ("cursor", "work/.cursor/mcp.json", "mcpServers", http, json!({"url": http})),
        ("cursor", "work/.cursor/mcp.json", "mcpServers", sse, json!({"url": "http://localhost:1/sse"})),
        (
            "claude-desktop",
            "home/.config/Claude/claude_desktop_config.json",
            "mcpServers",
            http,
            bridge(http),
        ),
        ("claude-desktop", "home/.config/Claude/claude_desktop_config.json", "mcpServers", sse, bridge(sse)),
    ] {
        assert_eq!(installed(file, &[host, "--name", "a", url]), json!({list: {"a": entry}}), "{host} {url}");
    }
    let words = ["claude-desktop", "--name", "a", "-H", "X-Key: k", http];
    let desktop = installed("home/.config/Claude/claude_desktop_config.json", &words);
    let args = json!(["bridge", "--from", "stdio", "--to", http, "--header", "X-Key: k"]);
    assert_eq!(desktop["mcpServers"]["a"]["args"], args);
    let words = ["cursor", "--name", "a", "-H", "X-Key: one", "-H", "X-Key: two", http];
    let cursor = installed("work/.cursor/mcp.json", &words);
    assert_eq!(cursor["mcpServers"]["a"], json!({"url": http, "headers": {"X-Key": "two"}}));
}

#[test]
fn a_command_is_installed_with_its_environment() {
    let words =
        ["claude-code", "--name", "my server", "-e", "A=1", "-e", "B=x=y", "--", "npx", "-y", "a \"b\""];
    let entry =
        json!({"type": "stdio", "command": "npx", "args": ["-y", "a \"b\""], "env": {"A": "1", "B": "x=y"}});
    assert_eq!(installed("work/.mcp.json", &words), json!({"mcpServers": {"my server": entry}}));
    // Hosts start it from elsewhere.
    let relative = installed("work/.mcp.json", &["claude-code", "--name", "a", "--", "./bin/run"]);
    let command = relative["mcpServers"]["a"]["command"].as_str().unwrap().to_owned();
    assert!(command.starts_with('/') && command.ends_with("/bin/run"), "{command}");
}

#[test]
fn what_is_installed_can_be_used() {
    let (user, server) = (User::at_work(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    for (name, words) in [
        ("refmcp", &["install", "vscode", "--yes"][..]),
        ("at-url", &["install", "vscode", "--yes", "--name", "at-url", &url]),
        ("bridged", &["install", "claude-desktop", "--yes", "--name", "bridged", &url]),
    ] {
        user.done(words);
        assert_eq!(user.done(&["call", "--yes", name, "sum", "a=1", "b=2"]), "{\"total\":3}\n", "{name}");
    }
}

#[test]
fn the_users_own_file_is_private_and_that_of_a_folder_is_not() {
    let user = User::at_work();
    user.done(&["install", "cursor", "--user", "--yes"]);
    user.done(&["install", "cursor", "--yes"]);
    assert_eq!(mode(&user.path("home/.cursor/mcp.json")), 0o600);
    assert_eq!(mode(&user.path("work/.cursor/mcp.json")) & 0o022, 0, "others cannot write it");
    assert_eq!(mode(&user.path("work/.cursor/mcp.json")) & 0o700, 0o600);
    assert_eq!(mode(&user.path("state/installs.json")), 0o600);
}
