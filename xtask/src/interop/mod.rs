//! Clients that others wrote, on the SDKs that others wrote, against our release build.
//!
//! Each client in `interop/` takes `RESULTS REVISION -- SERVER…`, goes through every feature it knows and writes a
//! line of JSON about each. Every client speaks every revision; what an SDK cannot do it says, with the reason, so no
//! cell of the table stays empty.

mod client;
mod setup;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::metadata::Metadata;
use crate::revisions::REVISIONS;
use crate::shell;
use crate::test::Tally;
use client::{CLIENTS, Client};
use table::Table;

/// The longest that one client may take for one revision.
const LIMIT: Duration = Duration::from_secs(180);

/// How the server is reached, as the table's headings say.
const TRANSPORT: &str = "stdio";

/// Which clients speak which revisions.
#[derive(Debug, PartialEq)]
pub(crate) struct Choice {
    clients: Vec<&'static Client>,
    revisions: Vec<&'static str>,
}

impl Choice {
    pub(crate) fn all() -> Self {
        Self { clients: CLIENTS.iter().collect(), revisions: REVISIONS.to_vec() }
    }

    /// From the names of a client or a revision, or both.
    pub(crate) fn from_names(names: &[&str]) -> Result<Self> {
        let mut choice = Self::all();
        for name in names {
            if let Some(client) = CLIENTS.iter().find(|client| client.name == *name) {
                choice.clients = vec![client];
            } else if let Some(revision) = REVISIONS.iter().find(|revision| *revision == name) {
                choice.revisions = vec![revision];
            } else {
                let clients: Vec<_> = CLIENTS.iter().map(|client| client.name).collect();
                bail!("`{name}` is none of {}, {}", clients.join(", "), REVISIONS.join(", "));
            }
        }
        Ok(choice)
    }
}

/// Where things are.
struct Places {
    /// The clients' sources.
    sources: PathBuf,
    /// What set-up makes and what the runs leave.
    out: PathBuf,
    /// The release build of the server.
    server: PathBuf,
}

/// Sets the clients up and runs them; counts the table's cells.
pub(crate) fn run(choice: &Choice) -> Result<Tally> {
    let target = Metadata::load()?.target_directory;
    let places = Places {
        sources: shell::root().join("interop"),
        out: target.join("interop"),
        server: target.join("release").join(format!("refmcp{}", std::env::consts::EXE_SUFFIX)),
    };
    let results = places.out.join("results");
    fs::create_dir_all(&results).with_context(|| format!("cannot make {}", results.display()))?;

    let mut table =
        Table::new(TRANSPORT, &choice.clients.iter().map(|c| c.name).collect::<Vec<_>>(), &choice.revisions);
    for client in &choice.clients {
        if let Err(error) = setup::prepare(client, &places) {
            table.problem(format!("{}: cannot be set up: {error:#}", client.name));
            continue;
        }
        for revision in &choice.revisions {
            if let Err(error) = visit(client, revision, &places, &results, &mut table) {
                table.problem(format!("{} {revision}: cannot be run: {error:#}", client.name));
            }
        }
    }

    let kept = places.out.join("table.md");
    fs::write(&kept, table.markdown()).with_context(|| format!("cannot write {}", kept.display()))?;
    println!("\n{}", table.markdown());
    for failure in table.failures() {
        println!("{} {failure}", shell::red("FAILED"));
    }
    println!("{}; the table is kept in {}", table.counts(), kept.display());
    Ok(table.tally())
}

/// One client, one revision.
fn visit(client: &Client, revision: &str, places: &Places, results: &Path, table: &mut Table) -> Result<()> {
    let name = format!("{}-{revision}", client.name);
    let (lines, log) = (results.join(format!("{name}.jsonl")), results.join(format!("{name}.log")));
    fs::write(&lines, "")?;
    let begin = Instant::now();
    let mut command = client.command(&places.sources, &places.out);
    command.arg(&lines).arg(revision).arg("--").arg(&places.server).arg("stdio");
    let ended = shell::run_logged(&mut command, &log, LIMIT)?;

    let told = fs::read_to_string(&lines).with_context(|| format!("cannot read {}", lines.display()))?;
    let counts = table.add(client.name, revision, &told);
    let took = shell::duration(begin.elapsed());
    println!("{:<14} {revision}  {counts}  ({took})", client.name);
    let log = log.display();
    match ended {
        None => table.problem(format!("{name}: still running after {}; see {log}", shell::duration(LIMIT))),
        // A failed feature ends the client with 1, and its cell tells more.
        Some(status) if status.success() || (status.code() == Some(1) && counts.failed > 0) => {}
        Some(status) => table.problem(format!("{name}: {status}; see {log}")),
    }
    Ok(())
}

/// The first line that a command prints, for checking what is installed.
fn first_line(command: &mut Command) -> Result<String> {
    let text = shell::output(command)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_and_a_revision_can_be_chosen() {
        assert_eq!(Choice::from_names(&[]).unwrap(), Choice::all());
        let choice = Choice::from_names(&["2025-06-18", "rmcp"]).unwrap();
        assert_eq!(choice.revisions, ["2025-06-18"]);
        assert_eq!(choice.clients.iter().map(|client| client.name).collect::<Vec<_>>(), ["rmcp"]);
        let error = Choice::from_names(&["cobol"]).unwrap_err().to_string();
        assert!(error.starts_with("`cobol` is none of typescript-v1,"), "{error}");
    }
}
