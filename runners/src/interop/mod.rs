//! Interoperability: foreign clients on other SDKs against our build, and our command line against foreign servers.
//!
//! Each client in `interop/` takes `RESULTS REVISION -- SERVER…`, goes through every feature it knows and writes a
//! line of JSON about each. Every client speaks every revision over every transport; what an SDK cannot do it says,
//! with the reason, so no cell of the table stays empty.

mod browser;
mod client;
mod inspector;
mod logins;
mod referee;
mod secrets;
mod servers;
mod table;
mod tour;

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::server::{Server, TRANSPORTS, Transport};
use crate::{Build, REVISIONS, Tally, parallel, shell};
use client::{CLIENTS, Client};
use referee::Known;
use table::{Section, Table};

/// The longest that one run may take.
const LIMIT: Duration = Duration::from_secs(180);

/// Which clients speak which revisions over which transports.
#[derive(Debug, PartialEq)]
struct Choice {
    clients: Vec<&'static Client>,
    revisions: Vec<&'static str>,
    transports: Vec<Transport>,
}

impl Choice {
    fn all() -> Self {
        Self {
            clients: CLIENTS.iter().collect(),
            revisions: REVISIONS.to_vec(),
            transports: TRANSPORTS.to_vec(),
        }
    }

    /// From the names of a client, a revision, a transport, or some of them.
    fn from_names(names: &[&str]) -> Result<Self> {
        let mut choice = Self::all();
        for name in names {
            if let Some(client) = CLIENTS.iter().find(|client| client.name == *name) {
                choice.clients = vec![client];
            } else if let Some(revision) = REVISIONS.iter().find(|revision| *revision == name) {
                choice.revisions = vec![revision];
            } else if let Some(transport) = TRANSPORTS.iter().find(|transport| transport.name() == *name) {
                choice.transports = vec![*transport];
            } else {
                let clients = CLIENTS.iter().map(|client| client.name);
                let transports = TRANSPORTS.iter().map(|transport| transport.name());
                let known: Vec<_> = clients.chain(REVISIONS.iter().copied()).chain(transports).collect();
                bail!("`{name}` is none of {}", known.join(", "));
            }
        }
        Ok(choice)
    }

    fn sections(&self) -> Vec<Section> {
        let section = |client: &'static Client| {
            let transports = self.transports.iter().filter(|transport| client.uses(**transport));
            transports.map(|transport| Section { client: client.name, transport: *transport })
        };
        self.clients.iter().flat_map(|client| section(client)).collect()
    }
}

/// Where things are.
struct Paths {
    /// The clients' sources.
    sources: PathBuf,
    /// What set-up makes and what the runs leave.
    out: PathBuf,
    /// The built server.
    server: PathBuf,
}

impl Paths {
    fn new(build: &Build) -> Result<Self> {
        let target = shell::target_directory()?;
        Ok(Self {
            sources: shell::root().join("interop"),
            out: target.join("interop"),
            server: build.refmcp(),
        })
    }
}

/// Installs a foreign client; its folder.
///
/// # Errors
/// It cannot be installed.
pub fn prepared(name: &str, build: &Build) -> Result<PathBuf> {
    let client = CLIENTS.iter().find(|client| client.name == name);
    let client = client.with_context(|| format!("there is no client {name}"))?;
    let paths = Paths::new(build)?;
    client.prepare(&paths)?;
    Ok(client.folder(&paths.sources))
}

/// Runs the part that the arguments of `cargo xtask interop` name, or all, against a build of the working tree.
///
/// # Errors
/// The arguments name nothing, or something cannot be built, installed or written.
pub fn run_named(names: &[&str]) -> Result<Tally> {
    let build = Build::of_tree;
    match names {
        [] => everything(&build()?),
        ["servers", names @ ..] => servers::run(&build()?, names),
        ["exactness"] => servers::exactness::run(&build()?),
        ["referee"] => servers::referee::run(&build()?, false),
        ["referee", "--update"] => servers::referee::run(&build()?, true),
        ["inspector"] => inspector::run(&build()?),
        ["browser"] => browser::run(&build()?),
        ["logins"] => logins::run(&build()?),
        ["replays"] => servers::replays::run(&build()?),
        ["tour"] => tour::run(&build()?),
        _ => {
            let choice = Choice::from_names(names)?;
            run(&build()?, &choice)
        }
    }
}

/// Both directions: foreign clients against our server, and our command line against foreign servers.
///
/// # Errors
/// Something cannot be built, installed or written.
pub fn everything(build: &Build) -> Result<Tally> {
    let mut tally = run(build, &Choice::all())?;
    tally += servers::run(build, &[])?;
    tally += servers::referee::run(build, false)?;
    tally += inspector::run(build)?;
    tally += browser::run(build)?;
    tally += logins::run(build)?;
    tally += servers::replays::run(build)?;
    tally += tour::run(build)?;
    Ok(tally)
}

/// Sets the clients up and runs them; counts the table's cells.
fn run(build: &Build, choice: &Choice) -> Result<Tally> {
    let paths = Paths::new(build)?;
    let results = paths.out.join("results");
    fs::create_dir_all(&results).with_context(|| format!("cannot make {}", results.display()))?;

    let mut table = Table::new(&choice.sections(), &choice.revisions);
    let mut runs = Vec::new();
    for client in &choice.clients {
        if let Err(error) = client.prepare(&paths) {
            table.problem(format!("{}: cannot be set up: {error:#}", client.name));
            continue;
        }
        for transport in choice.transports.iter().filter(|transport| client.uses(**transport)) {
            let client_run = |revision: &&'static str| ClientRun { client, transport: *transport, revision };
            runs.extend(choice.revisions.iter().map(client_run));
        }
    }
    let known = Known::read(&paths.sources.join("referee/clients.txt"))?;
    let table = Mutex::new(table);
    parallel::map(&runs, |client_run| {
        let report = client_run.execute(&paths, &known);
        client_run.record(report, &mut table.lock().unwrap_or_else(PoisonError::into_inner));
    });
    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);

    let kept = paths.out.join("table.md");
    fs::write(&kept, table.markdown()).with_context(|| format!("cannot write {}", kept.display()))?;
    println!("\n{}", table.summary());
    for failure in table.failures() {
        println!("{} {failure}", shell::red("FAILED"));
    }
    println!("{}; the table is kept in {}", table.counts(), kept.display());
    Ok(table.tally())
}

/// One client, one transport, one revision.
struct ClientRun {
    client: &'static Client,
    transport: Transport,
    revision: &'static str,
}

/// What came of a client_run.
struct RunReport {
    /// The client's lines.
    lines: String,
    /// What went wrong beside the features.
    problems: Vec<String>,
    /// Whether the client's exit code says that a feature failed.
    failed: bool,
    took: Duration,
}

impl ClientRun {
    fn name(&self) -> String {
        format!("{}-{}-{}", self.client.name, self.transport.name(), self.revision)
    }

    /// Runs the client against servers that are there for this client_run only, and judges what they have recorded.
    fn execute(&self, paths: &Paths, known: &Known) -> Result<RunReport> {
        let file = |ending: &str| paths.out.join("results").join(format!("{}.{ending}", self.name()));
        let (lines, log) = (file("jsonl"), file("log"));
        fs::write(&lines, "")?;
        let begin = Instant::now();
        let mut command = self.client.command(&paths.sources, &paths.out);
        command.arg(&lines).arg(self.revision).arg("--");
        let mut servers = Vec::new();
        let mut recordings = Vec::new();
        let mut recorded = |name: &str| -> Result<String> {
            let recording = file(&format!("{name}.recording"));
            fs::write(&recording, "")?; // what is recorded is appended
            let path = recording.to_str().context("the path is no text")?.to_owned();
            recordings.push(recording);
            Ok(path)
        };
        let (seen, is_relayed) = (self.transport.seen(), self.transport.seen() != self.transport);
        if seen == Transport::Stdio {
            if is_relayed {
                command.arg(&paths.server).args(["relay", "--record"]).arg(file("trace")).arg("--");
            }
            command.arg(&paths.server).args(["stdio", "--record", &recorded("server")?]);
        } else {
            // The second one is for following pages.
            for (arguments, ending) in [(&[][..], "server.log"), (&["--page-size", "5"], "paged.log")] {
                let recording = recorded(ending)?;
                let arguments = [arguments, &["--record", &recording]].concat();
                let server = Server::start(&paths.server, &arguments, seen, &file(ending))?;
                if is_relayed {
                    let relay =
                        server.relay(&paths.server, &file("trace"), &file(&format!("relay.{ending}")))?;
                    command.arg(&relay.url);
                    servers.push(relay);
                } else {
                    command.arg(&server.url);
                }
                servers.push(server);
            }
        }
        let ended = shell::run_logged(&mut command, &log, LIMIT)?;

        let mut problems = Vec::new();
        let mut failed = false;
        match ended {
            None => problems.push(format!(
                "still running after {}; see {}",
                shell::duration(LIMIT),
                log.display()
            )),
            Some(status) if status.success() => {}
            Some(status) if status.code() == Some(1) => failed = true,
            Some(status) => problems.push(format!("{status}; see {}", log.display())),
        }
        problems
            .extend(servers.into_iter().filter_map(|server| server.stop().err()).map(|e| format!("{e:#}")));
        let report =
            fs::read_to_string(&lines).with_context(|| format!("cannot read {}", lines.display()))?;
        // What runs through a relay is the same.
        if !is_relayed {
            let known = known.of(self.client.name, seen.name());
            let did = table::has_ok(&report);
            let judged = referee::judge_client(&paths.server, &recordings, &known, self.revision, did);
            problems.extend(judged.context("the recording cannot be judged")?);
        }
        Ok(RunReport { lines: report, problems, failed, took: begin.elapsed() })
    }

    /// Enters into the table what came of it.
    fn record(&self, report: Result<RunReport>, table: &mut Table) {
        let name = self.name();
        let report = match report {
            Ok(report) => report,
            Err(error) => return table.problem(format!("{name}: cannot be run: {error:#}")),
        };
        let section = Section { client: self.client.name, transport: self.transport };
        let counts = table.add(section, self.revision, &report.lines);
        println!(
            "{:<14} {:<9} {}  {counts}  ({})",
            self.client.name,
            self.transport.name(),
            self.revision,
            shell::duration(report.took)
        );
        for problem in report.problems {
            table.problem(format!("{name}: {problem}"));
        }
        // A failed feature ends the client with 1, and its cell has the reason.
        if report.failed && counts.failed == 0 {
            table.problem(format!("{name}: it says that something failed, but not what"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_a_revision_and_a_transport_can_be_chosen() {
        assert_eq!(Choice::from_names(&[]).unwrap(), Choice::all());
        let choice = Choice::from_names(&["2025-06-18", "rmcp", "sse"]).unwrap();
        assert_eq!(choice.revisions, ["2025-06-18"]);
        assert_eq!(choice.clients.iter().map(|client| client.name).collect::<Vec<_>>(), ["rmcp"]);
        assert_eq!(choice.transports, [Transport::HttpSse]);
        let error = Choice::from_names(&["cobol"]).unwrap_err().to_string();
        assert!(error.starts_with("`cobol` is none of typescript-v1,"), "{error}");
    }

    #[test]
    fn every_client_has_a_section_for_every_transport() {
        let sections = Choice::all().sections();
        // Two clients are enough to show that nothing changes with a relay.
        assert_eq!(sections.len(), CLIENTS.len() * 4 + 2 * 2);
        assert_eq!(sections[1], Section { client: "typescript-v1", transport: Transport::StreamableHttp });
    }
}
