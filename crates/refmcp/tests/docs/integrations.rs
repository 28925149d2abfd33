//! The configuration files of other programs in the guide to them: each is read as refmcp reads it, and has the same
//! two servers.

use std::path::Path;

use refmcp_client::config::{Launch, parse};

/// Files that a document shows: blocks of `json` with the name of a file behind the word.
pub(crate) fn files(document: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for text in document.lines() {
        if let Some(name) = text.strip_prefix("```json ") {
            files.push((name.to_owned(), String::new()));
            inside = true;
        } else if text == "```" {
            inside = false;
        } else if let (true, Some((_, content))) = (inside, files.last_mut()) {
            content.push_str(text);
            content.push('\n');
        }
    }
    files
}

#[test]
fn every_file_names_the_server_twice() {
    let files = files(&super::read("docs/integrations.md"));
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [".vscode/mcp.json", "claude_desktop_config.json", ".mcp.json", ".cursor/mcp.json", "mcp.json"]
    );
    for (name, text) in &files {
        let servers = parse(text, Path::new(name));
        assert!(servers.problems.is_empty(), "{name}: {:?}", servers.problems);
        let ways: Vec<(&str, String)> =
            servers.servers.iter().map(|entry| (entry.name.as_str(), way(&entry.launch))).collect();
        let bridge = "refmcp bridge --from stdio --to ";
        let over = if name.starts_with("claude") { bridge } else { "" };
        let by_url = format!("{over}http://127.0.0.1:3000/mcp");
        assert_eq!(ways, [("refmcp", "refmcp stdio".to_owned()), ("refmcp-http", by_url)], "{name}");
        assert!(servers.servers.iter().all(|entry| !entry.disabled), "{name}");
    }
}

/// The command or the address.
fn way(launch: &Launch) -> String {
    match launch {
        Launch::Command { program, args, env, cwd: None, env_file: None } if env.is_empty() => {
            std::iter::once(program).chain(args).map(String::as_str).collect::<Vec<_>>().join(" ")
        }
        Launch::Http { url, headers } if headers.is_empty() => url.clone(),
        other => panic!("{other:?}"),
    }
}
