//! Calls of `echo` over standard input and output, one at a time and many at once.

use std::process::Command;

use anyhow::Result;

use super::figures::{Spread, table};
use super::servers::Report;
use super::{ROUNDS, Section};
use crate::shell;

const SECONDS: &str = "2";

/// What is measured: a name, how the server is started, and whether it is spoken to in the newest revision.
struct Contender {
    name: &'static str,
    command: &'static [&'static str],
    modern: bool,
}

const CONTENDERS: [Contender; 4] = [
    Contender { name: "bare loop", command: &["target/bench/release/bare_stdio"], modern: false },
    Contender { name: "refmcp, session", command: &["target/release/refmcp", "stdio"], modern: false },
    Contender { name: "refmcp, 2026-07-28", command: &["target/release/refmcp", "stdio"], modern: true },
    Contender { name: "rmcp", command: &["target/bench/release/rmcp_echo", "stdio"], modern: false },
];

pub(super) fn run() -> Result<Section> {
    let mut text = String::new();
    for (in_flight, title) in [("1", "One call at a time"), ("256", "256 calls in flight")] {
        text += &format!("{title}:\n\n{}\n", shown(&measure(in_flight)?));
    }
    Ok(Section { text, goals: Vec::new(), picture: None })
}

/// Calls per second and CPU time per call of each contender, in each round.
fn measure(in_flight: &str) -> Result<Vec<Vec<(f64, f64)>>> {
    let mut results = vec![Vec::new(); CONTENDERS.len()];
    for round in 1..=ROUNDS {
        for (contender, into) in CONTENDERS.iter().zip(&mut results) {
            eprintln!("{in_flight} in flight, round {round} of {ROUNDS}: {}", contender.name);
            let mut load = Command::new(shell::root().join("target/bench/release/stdio_load"));
            load.current_dir(shell::root()).args([in_flight, SECONDS]);
            load.args(contender.modern.then_some("--modern")).arg("--").args(contender.command);
            let report = Report(serde_json::from_str(&shell::output(&mut load)?)?);
            into.push((report.number("calls_per_second")?, report.number("cpu_us_per_call")?));
        }
    }
    Ok(results)
}

fn shown(results: &[Vec<(f64, f64)>]) -> String {
    let speeds: Vec<_> = results.iter().map(|runs| Spread::of(runs.iter().map(|run| run.0))).collect();
    let costs: Vec<_> = results.iter().map(|runs| Spread::of(runs.iter().map(|run| run.1))).collect();
    let (bare, rmcp) = (costs[0].median, costs[CONTENDERS.len() - 1].median);
    let heads = [
        "server",
        "server CPU per call, µs (lowest to highest)",
        "of the bare loop",
        "of rmcp",
        "calls/s (lowest to highest)",
    ];
    let rows = CONTENDERS.iter().zip(&speeds).zip(&costs).map(|((contender, speed), cost)| {
        [
            contender.name.to_owned(),
            cost.shown(1),
            format!("{:.2}", cost.median / bare),
            format!("{:.2}", cost.median / rmcp),
            speed.shown(0),
        ]
    });
    table(heads, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_medians() {
        let runs = |cost: f64| vec![(10.0, cost), (20.0, cost * 9.0), (30.0, cost / 9.0)];
        let text = shown(&[runs(18.0), runs(36.0), runs(45.0), runs(72.0)]);
        assert!(
            text.contains("| refmcp, session | 36.0 (4.0 to 324.0) | 2.00 | 0.50 | 20 (10 to 30) |"),
            "{text}"
        );
    }
}
