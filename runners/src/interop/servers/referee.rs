//! `refmcp check` on each server over each transport, compared with what is known of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::Paths;
use super::super::referee::{self, Broken, Known};
use super::process::{self, ServerProcess};
use super::server::{Endpoint, SERVERS, Server};
use crate::server::Transport;
use crate::{Build, Tally, parallel, shell};

/// Below the folder of the clients.
const KNOWN: &str = "referee/servers.txt";

/// What stands above the lines of the file.
const HEADER: &str = "\
# What `refmcp check` finds of the servers of interop/servers: server, transport, rule, revisions. docs/findings.md says which of it
# is the matter of an SDK. `cargo xtask interop referee --update` writes this file.
";

/// The server that has its endpoint at the path with a slash behind it, and leads there from the one without.
const REDIRECTS: (&str, Transport) = ("python-v1", Transport::StreamableHttp);

/// A server over one transport, and what was found.
struct Checked {
    server: &'static str,
    transport: Transport,
    found: Result<(Broken, Value)>,
}

/// Checks all servers, compares what is found with the file, or writes it.
pub(crate) fn run(build: &Build, update: bool) -> Result<Tally> {
    let paths = Paths::new(build)?;
    let out = paths.out.join("results");
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let mut runs = Vec::new();
    for server in &SERVERS {
        server.needs().map_or(Ok(()), |client| client.prepare(&paths))?;
        runs.extend(server.endpoints.iter().map(|endpoint| (server, endpoint)));
    }
    // Those that start a server for every connection take longest, and begin.
    runs.sort_by_key(|(_, endpoint)| endpoint.transport != Transport::Stdio);
    let mut checked = parallel::map(&runs, |(server, endpoint)| {
        let begin = Instant::now();
        let found = check(server, endpoint, &paths, &out);
        println!(
            "{:<14} {:<9} checked  ({})",
            server.name,
            endpoint.transport.name(),
            shell::duration(begin.elapsed())
        );
        Checked { server: server.name, transport: endpoint.transport, found }
    });
    checked.sort_by_key(|it| SERVERS.iter().position(|server| server.name == it.server));
    let file = paths.sources.join(KNOWN);
    if update {
        return write(&file, &checked);
    }
    let known = Known::read(&file)?;
    let mut tally = Tally::default();
    for Checked { server, transport, found } in checked {
        let problems = match found {
            Err(error) => vec![format!("cannot be checked: {error:#}")],
            Ok((found, report)) => {
                let known = known.of(server, transport.name());
                referee::differences(&known, &found, |rule| referee::what(&report, rule))
            }
        };
        tally.passed += usize::from(problems.is_empty());
        tally.failed += problems.len();
        for problem in problems {
            println!("{} {server} over {}: {problem}", shell::red("FAILED"), transport.title());
        }
    }
    Ok(tally)
}

fn write(file: &Path, checked: &[Checked]) -> Result<Tally> {
    let mut text = HEADER.to_owned();
    for Checked { server, transport, found } in checked {
        match found {
            Ok((found, _)) => text += &referee::lines(server, transport.name(), found),
            Err(error) => anyhow::bail!("{server} over {} cannot be checked: {error:#}", transport.title()),
        }
    }
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(Tally { passed: checked.len(), failed: 0 })
}

/// Whether a revision defines a transport: servers may offer the others too, but no rule is about that.
fn defines(revision: &str, transport: Transport) -> bool {
    match transport {
        Transport::StreamableHttp => revision != "2024-11-05",
        Transport::HttpSse => revision == "2024-11-05",
        _ => true,
    }
}

/// Checks a server that runs for this alone.
fn check(server: &Server, endpoint: &Endpoint, paths: &Paths, out: &Path) -> Result<(Broken, Value)> {
    let port = process::free_port()?;
    let placed = |word: &str| word.replace("PORT", &port.to_string());
    let mut words = server.words(paths);
    words.extend(endpoint.words.iter().map(|word| PathBuf::from(placed(word))));
    let mut command = Command::new(&paths.server);
    command.args(["check", "-o", "json"]);
    for revision in endpoint.scenario_revisions.iter().filter(|it| defines(it, endpoint.transport)) {
        command.args(["--revision", revision]);
    }
    let running = if endpoint.transport == Transport::Stdio {
        command.arg("--").args(&words);
        None
    } else {
        let log = out.join(format!("check-{}-{}.log", server.name, endpoint.transport.name()));
        let slash = if (server.name, endpoint.transport) == REDIRECTS { "/" } else { "" };
        command.arg(placed(endpoint.url) + slash);
        Some(ServerProcess::start(&words, port, &log).with_context(|| format!("see {}", log.display()))?)
    };
    let report = referee::report(&mut command, &[0, 6])?;
    running.map(ServerProcess::stop).transpose()?;
    let broken = referee::broken_rules(&report).flat_map(|(id, rule)| {
        let outcomes = rule["byRevision"].as_object().into_iter().flatten();
        let revisions = outcomes.filter(|(_, outcome)| *outcome == "broken");
        revisions.map(move |(revision, _)| (id.to_owned(), revision.clone()))
    });
    Ok((broken.collect(), report))
}
