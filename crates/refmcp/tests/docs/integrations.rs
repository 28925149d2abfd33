//! The configuration files of other programs in the guide to them: each is read as refmcp reads it, and has the same
//! two servers.

use std::process::Command;

use serde_json::{Value, json};

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
        let listed = listed(text);
        assert!(listed["problems"].as_array().is_none_or(Vec::is_empty), "{name}: {listed}");
        let targets: Vec<(&str, &str)> = listed["servers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                let plain = ["env", "headers"].iter().all(|member| it.get(member).is_none());
                assert!(plain && it["disabled"] != json!(true), "{name}: {it}");
                (it["name"].as_str().unwrap(), it["target"].as_str().unwrap())
            })
            .collect();
        let bridge = "refmcp bridge --from stdio --to ";
        let over = if name.starts_with("claude") { bridge } else { "" };
        let by_url = format!("{over}http://127.0.0.1:3000/mcp");
        let expected = [("refmcp", "refmcp stdio"), ("refmcp-http", by_url.as_str())];
        assert_eq!(targets, expected, "{name}");
    }
}

/// What `refmcp servers` reads in a file with this text.
fn listed(text: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_refmcp"))
        .args(["servers", "--output", "json", "--config"])
        .arg(&file)
        .env_clear()
        .env("HOME", folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}
