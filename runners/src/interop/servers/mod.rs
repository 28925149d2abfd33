//! Foreign servers on other SDKs, and ours, driven by the command line of our build.
//!
//! The commands and the expected output are data: `step` defines them, `scenario` and `reference_servers` list them. Each
//! server is run over every transport it has: first every protocol version is requested, then the scenario runs in those
//! that the server speaks.

pub(super) mod exactness;
pub(super) mod logins;
mod process;
pub(super) mod referee;
mod reference_servers;
pub(super) mod replays;
mod report;
mod scenario;
mod server;
mod server_run;
mod step;

use std::fs;

use anyhow::{Context, Result, bail};

use super::Paths;
use crate::{Build, Tally, parallel, shell};
use report::Section;
use server::{SERVERS, Server};
use server_run::ServerRun;

/// Sets the servers up and runs them, or the one that is named; counts what was found out.
pub(crate) fn run(build: &Build, names: &[&str]) -> Result<Tally> {
    let chosen = chosen(names)?;
    let paths = Paths::new(build)?;
    let out = paths.out.join("results");
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;

    let mut tally = Tally::default();
    let mut runs = Vec::new();
    for server in chosen {
        match server.needs().map_or(Ok(()), |client| client.prepare(&paths)) {
            Ok(()) => runs.extend(server.endpoints.iter().map(|endpoint| ServerRun { server, endpoint })),
            Err(error) => {
                println!("{} {}: cannot be set up: {error:#}", shell::red("FAILED"), server.name);
                tally.failed += 1;
            }
        }
    }
    let sections = run_all(&runs, &paths);
    for section in &sections {
        tally += section.tally();
    }
    let kept = paths.out.join("servers.md");
    fs::write(&kept, report::markdown(&sections))
        .with_context(|| format!("cannot write {}", kept.display()))?;
    for error in sections.iter().flat_map(Section::faults) {
        println!("{} {error}", shell::red("FAILED"));
    }
    println!("{tally}; the tables are kept in {}", kept.display());
    Ok(tally)
}

/// All servers, or those of these names.
fn chosen(names: &[&str]) -> Result<Vec<&'static Server>> {
    let known = || SERVERS.iter().map(|server| server.name).collect::<Vec<_>>().join(", ");
    let find = |name: &&str| match SERVERS.iter().find(|server| server.name == *name) {
        Some(server) => Ok(server),
        None => bail!("`{name}` is none of {}", known()),
    };
    if names.is_empty() { Ok(SERVERS.iter().collect()) } else { names.iter().map(find).collect() }
}

/// Makes all runs. Those that start a server for every command take longest, and begin.
fn run_all(runs: &[ServerRun], paths: &Paths) -> Vec<Section> {
    let mut order: Vec<(usize, &ServerRun)> = runs.iter().enumerate().collect();
    order.sort_by_key(|(_, server_run)| server_run.is_quick());
    let mut sections = parallel::map(&order, |(at, server_run)| (*at, server_run.execute(paths)));
    sections.sort_by_key(|(at, _)| *at);
    sections.into_iter().map(|(_, section)| section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_can_be_chosen() {
        let names = |chosen: Vec<&Server>| chosen.iter().map(|server| server.name).collect::<Vec<_>>();
        assert_eq!(names(chosen(&[]).unwrap()).len(), SERVERS.len());
        assert_eq!(names(chosen(&["rmcp", "refmcp"]).unwrap()), ["rmcp", "refmcp"]);
        assert!(chosen(&["cobol"]).unwrap_err().to_string().starts_with("`cobol` is none of everything,"));
    }
}
