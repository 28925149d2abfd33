//! Servers that others wrote, on the SDKs that others wrote, and ours, driven by the command line that we built.
//!
//! What is asked and what is to come back is data: `step` says how, `tour` and `others` have it. Each server is visited
//! over every transport it has. There it is asked for every era, and in what it speaks it is toured.

pub(super) mod logins;
mod others;
mod process;
mod report;
mod server;
mod step;
mod tour;
mod visit;

use std::fs;

use anyhow::{Context, Result, bail};

use super::Places;
use crate::{Build, Tally, parallel, shell};
use report::Section;
use server::{SERVERS, Server};
use visit::Visit;

/// Sets the servers up and visits them, or the one that is named; counts what was found out.
pub(crate) fn run(build: &Build, names: &[&str]) -> Result<Tally> {
    let chosen = chosen(names)?;
    let places = Places::new(build)?;
    let out = places.out.join("results");
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;

    let mut tally = Tally::default();
    let mut visits = Vec::new();
    for server in chosen {
        match server.needs().map_or(Ok(()), |client| client.prepare(&places)) {
            Ok(()) => visits.extend(server.ways.iter().map(|way| Visit { server, way })),
            Err(error) => {
                println!("{} {}: cannot be set up: {error:#}", shell::red("FAILED"), server.name);
                tally.failed += 1;
            }
        }
    }
    let sections = make(&visits, &places);
    for section in &sections {
        tally += section.tally();
    }
    let kept = places.out.join("servers.md");
    fs::write(&kept, report::markdown(&sections))
        .with_context(|| format!("cannot write {}", kept.display()))?;
    for fault in sections.iter().flat_map(Section::faults) {
        println!("{} {fault}", shell::red("FAILED"));
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

/// Makes all visits. Those that start a server for every command take longest, and begin.
fn make(visits: &[Visit], places: &Places) -> Vec<Section> {
    let mut order: Vec<(usize, &Visit)> = visits.iter().enumerate().collect();
    order.sort_by_key(|(_, visit)| visit.is_quick());
    let mut sections = parallel::map(&order, |(at, visit)| (*at, visit.make(places)));
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
