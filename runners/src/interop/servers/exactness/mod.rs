//! How exact servers are about their streams: each message once, whatever happens to the connection. Servers on the SDKs and ours,
//! case by case, in a table.
//!
//! The servers on the SDKs that leave the store of events to the application get one in memory.

mod cases;
mod stream;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;

use super::super::Paths;
use super::process::{self, ServerProcess};
use super::server::SERVERS;
use crate::{Build, Tally, shell};
use cases::{CASES, Counting, EXACT};

/// A server: its name, the words behind its command, its path, the tool that counts.
type Contender = (&'static str, &'static [&'static str], &'static str, Counting);

const COUNT: Counting =
    Counting { tool: "count", arguments: |steps, ms| json!({ "steps": steps, "ms": ms }) };

const CONTENDERS: [Contender; 6] = [
    (
        "everything",
        &["streamableHttp"],
        "/mcp",
        Counting {
            tool: "trigger-long-running-operation",
            arguments: |steps, ms| json!({ "steps": steps, "duration": (steps * ms) as f64 / 1000.0 }),
        },
    ),
    ("typescript-v2", &["http", "PORT", "resumable"], "/mcp", COUNT),
    ("python-v1", &["http", "PORT", "resumable"], "/mcp/", COUNT),
    ("python-v2", &["http", "PORT", "resumable"], "/mcp", COUNT),
    ("rmcp", &["http", "PORT"], "/mcp", COUNT),
    (
        "refmcp",
        &["serve", "--port", "PORT"],
        "/mcp",
        Counting { tool: "long_task", arguments: |steps, ms| json!({ "steps": steps, "step_ms": ms }) },
    ),
];

/// Tries every case with every server, and prints the table. Ours has to be exact where that is a question.
pub(crate) fn run(build: &Build) -> Result<Tally> {
    let paths = Paths::new(build)?;
    let out = paths.out.join("results");
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let mut table = vec![CASES.iter().map(|(case, _)| (*case).to_owned()).collect::<Vec<String>>()];
    let mut tally = Tally::default();
    for (name, words, path, counting) in CONTENDERS {
        let server = SERVERS.iter().find(|server| server.name == name);
        let server = server.with_context(|| format!("there is no server {name}"))?;
        server.needs().map_or(Ok(()), |client| client.prepare(&paths))?;
        let port = process::free_port()?;
        let mut command = server.words(&paths);
        command.extend(words.iter().map(|word| PathBuf::from(word.replace("PORT", &port.to_string()))));
        let log = out.join(format!("exactness-{name}.log"));
        let running = ServerProcess::start(&command, port, &log)?;
        let url = format!("http://127.0.0.1:{port}{path}");
        let mut column = Vec::new();
        for (case, run) in CASES {
            let came = run(&url, counting).unwrap_or_else(|error| format!("cannot be tried: {error:#}"));
            println!("{name:<14} {case:<28} {came}");
            let is_question = !case.contains("id");
            let is_wrong = server.is_ours() && is_question && came != EXACT;
            tally.failed += usize::from(is_wrong);
            tally.passed += usize::from(!is_wrong);
            column.push(came);
        }
        table.push(column);
        running.stop()?;
    }
    let kept = paths.out.join("exactness.md");
    fs::write(&kept, markdown(&table)).with_context(|| format!("cannot write {}", kept.display()))?;
    println!("{} the table is kept in {}", shell::green("done:"), kept.display());
    Ok(tally)
}

/// Cases down, servers across.
fn markdown(columns: &[Vec<String>]) -> String {
    let names: Vec<&str> = CONTENDERS.iter().map(|(name, ..)| *name).collect();
    let mut text = format!("| case | {} |\n|---{}|\n", names.join(" | "), "|---".repeat(names.len()));
    for row in 0..CASES.len() {
        let cells: Vec<&str> =
            columns.iter().filter_map(|column| column.get(row)).map(String::as_str).collect();
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}
