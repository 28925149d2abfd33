//! Recordings used again by our build: what it recorded with each foreign server is replayed against that server, and what it recorded
//! with a foreign client is served to that client.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::super::Paths;
use super::super::client::{CLIENTS, Client};
use super::process::{self, ServerProcess};
use super::server::{Endpoint, SERVERS, Server};
use crate::server::Transport;
use crate::{Build, Tally, parallel, shell};

/// What is recorded with a server.
const COMMANDS: [&[&str]; 3] = [&["list"], &["call", "echo", "message=hello"], &["info"]];

/// Clients that a recording is served to, and the revision that they speak then.
const RECORDED: [(&str, &str); 4] = [
    ("typescript-v1", "2025-06-18"),
    ("python-v1", "2025-06-18"),
    ("python-v2", "2025-11-25"),
    ("python-v2", "2026-07-28"),
];

/// Features of clients that no recording has: they give the server another option, send what they have made up, or measure how long
/// the server takes.
const NOT_RECORDED: [&str; 3] = ["pagination", "cancellation", "concurrent_calls"];

/// A server over one transport, or a client.
enum Replay {
    Server(&'static Server, &'static Endpoint),
    Client(&'static Client, &'static str),
}

/// Makes all runs; counts those in which nothing differs.
pub(in crate::interop) fn run(build: &Build) -> Result<Tally> {
    let paths = Paths::new(build)?;
    let mut replays = Vec::new();
    for server in &SERVERS {
        server.needs().map_or(Ok(()), |client| client.prepare(&paths))?;
        let over = [Transport::Stdio, Transport::StreamableHttp];
        let endpoints = server.endpoints.iter().filter(|endpoint| over.contains(&endpoint.transport));
        replays.extend(endpoints.map(|endpoint| Replay::Server(server, endpoint)));
    }
    for (name, revision) in RECORDED {
        let client = CLIENTS.iter().find(|client| client.name == name).context("no such client")?;
        client.prepare(&paths)?;
        replays.push(Replay::Client(client, revision));
    }
    let mut tally = Tally::default();
    for (name, done) in parallel::map(&replays, |replay| (replay.name(), replay.execute(&paths))) {
        match done {
            Ok(what) => {
                println!("{name:<32} {what}");
                tally.passed += 1;
            }
            Err(error) => {
                println!("{} {name}: {error:#}", shell::red("FAILED"));
                tally.failed += 1;
            }
        }
    }
    Ok(tally)
}

impl Replay {
    fn name(&self) -> String {
        match self {
            Self::Server(server, endpoint) => format!("replay-{}-{}", server.name, endpoint.transport.name()),
            Self::Client(client, revision) => format!("mock-{}-{revision}", client.name),
        }
    }

    fn execute(&self, paths: &Paths) -> Result<String> {
        let folder = paths.out.join("results").join(self.name());
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        match self {
            Self::Server(server, endpoint) => against(server, endpoint, paths, &folder),
            Self::Client(client, revision) => serve_to(client, revision, paths, &folder),
        }
    }
}

/// Records with a server and replays against it; what the comparison concludes.
fn against(server: &Server, endpoint: &Endpoint, paths: &Paths, folder: &Path) -> Result<String> {
    let port = process::free_port()?;
    let placed = |word: &str| word.replace("PORT", &port.to_string());
    let mut command = server.words(paths);
    command.extend(endpoint.words.iter().map(|word| PathBuf::from(placed(word))));
    let running = match endpoint.transport {
        Transport::Stdio => None,
        _ => Some(ServerProcess::start(&command, port, &folder.join("server.log"))?),
    };
    let refmcp = |words: &[&str], options: &[&str]| -> Result<super::step::CommandOutput> {
        let (name, rest) = words.split_first().context("no command")?;
        let mut run = Command::new(&paths.server);
        run.args([*name, "--yes", "--timeout", "30"]).args(options);
        // Of `replay`, the file comes before the target.
        let (before, after) = if *name == "replay" { (rest, &[][..]) } else { (&[][..], rest) };
        run.args(before);
        match running {
            Some(_) => run.arg(placed(endpoint.url)).args(after),
            None => run.args(after).arg("--").args(&command),
        };
        run.current_dir(folder).env("REFMCP_STATE_DIR", folder.join("state")).env("NO_COLOR", "1");
        process::run(&mut run)
    };
    for words in COMMANDS {
        let output = refmcp(words, &["--record", "recording.jsonl"])?;
        ensure!(output.exit == Some(0), "{}: {}", words.join(" "), output.reason());
    }
    let output = refmcp(&["replay", "recording.jsonl"], &[])?;
    ensure!(output.exit == Some(0), "{}{}", output.out, output.err);
    if let Some(running) = running {
        running.stop()?;
    }
    Ok(output.out.lines().next_back().unwrap_or_default().to_owned())
}

/// Records a client with our server, and serves the recording to it: its results are the same.
fn serve_to(client: &Client, revision: &str, paths: &Paths, folder: &Path) -> Result<String> {
    let results = |name: &str, words: &[&str]| -> Result<BTreeMap<String, String>> {
        let lines = folder.join(format!("{name}.jsonl"));
        fs::write(&lines, "")?;
        let mut run = client.command(&paths.sources, &paths.out);
        run.arg(&lines).arg(revision).arg("--").arg(&paths.server).args(words);
        run.current_dir(folder).env("REFMCP_STATE_DIR", folder.join("state"));
        let log = folder.join(format!("{name}.log"));
        shell::run_logged(&mut run, &log, super::super::LIMIT)?.context("it was still running")?;
        let text = fs::read_to_string(&lines).context("no results")?;
        let results = text.lines().map(|line| {
            let line: Value = serde_json::from_str(line)?;
            let word = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            Ok((word("feature"), word("status")))
        });
        results.collect()
    };
    let recorded = results("recorded", &["stdio", "--record", "recording.jsonl"])?;
    let served = results("served", &["replay", "recording.jsonl", "--stdio"])?;
    ensure!(!recorded.is_empty(), "the client shows nothing");
    for (feature, status) in &recorded {
        let of_mock = served.get(feature);
        let is_as_recorded = of_mock == Some(status) || NOT_RECORDED.contains(&feature.as_str());
        ensure!(is_as_recorded, "{feature}: {of_mock:?} by the recording, and {status} when it was recorded");
    }
    Ok(format!("{} features are the same by the recording", recorded.len() - NOT_RECORDED.len()))
}
