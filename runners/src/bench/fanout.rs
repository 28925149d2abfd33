//! One change of a resource, sent to every subscriber.

use anyhow::Result;

use super::figures::{Goal, Spread, table};
use super::{ROUNDS, Section, servers};

const STREAMS: &str = "10000";
const UPDATES: &str = "10";

pub(super) fn run() -> Result<Section> {
    let contenders = [
        ("plain writing of the same bytes", "bare-fanout", servers::LIMIT_FANOUT),
        ("refmcp", "fanout", servers::REFMCP),
    ];
    let mut runs = [Vec::new(), Vec::new()];
    for round in 1..=ROUNDS {
        for ((name, what, start), into) in contenders.iter().zip(&mut runs) {
            eprintln!("round {round} of {ROUNDS}: {name}");
            let report = servers::load(&[what, STREAMS, UPDATES], start)?;
            into.push((report.number("cpu_us_per_event")?, report.number("ms_per_update")?));
        }
    }
    let cpu = runs.each_ref().map(|runs| Spread::of(runs.iter().map(|run| run.0)));
    let time = runs.each_ref().map(|runs| Spread::of(runs.iter().map(|run| run.1)));
    let rows = contenders.iter().enumerate().map(|(index, (name, ..))| {
        [
            (*name).to_owned(),
            cpu[index].shown(1),
            format!("{:.2}", cpu[index].median / cpu[0].median),
            time[index].shown(0),
        ]
    });
    let heads =
        ["server", "CPU per stream, µs (lowest to highest)", "of plain writing", "until the last has it, ms"];
    let text = table(heads, rows);
    let figures = vec![cpu[1].median / cpu[0].median];
    let goals = vec![Goal { what: "CPU of a change, of plain writing", most: 2.0, figures }];
    Ok(Section { text, goals, picture: None })
}
