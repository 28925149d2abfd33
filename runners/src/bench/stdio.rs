//! Calls of `echo` over standard input and output, one at a time and many at once.

use std::process::Command;

use anyhow::{Context, Result};

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
    text += &instructions()?;
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

/// Instructions of one call, counted by valgrind: the difference between many calls and few.
fn instructions() -> Result<String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("instructions are not counted: valgrind is not installed");
        return Ok(String::new());
    }
    let mut rows = Vec::new();
    for (name, modern) in [("refmcp, session", false), ("refmcp, 2026-07-28", true)] {
        eprintln!("counting instructions: {name}");
        let few = count(modern, 1000)?;
        let many = count(modern, 5000)?;
        rows.push([name.to_owned(), ((many - few) / 4000).to_string()]);
    }
    let text = table(["server", "instructions"], rows);
    Ok(format!("Instructions per call, counted by `valgrind --tool=callgrind`:\n\n{text}"))
}

fn count(modern: bool, calls: u32) -> Result<u64> {
    let input = shell::root().join("target/bench/calls.jsonl");
    std::fs::write(&input, requests(modern, calls)).context("cannot write the calls")?;
    let script = "cat target/bench/calls.jsonl | valgrind --tool=callgrind \
                  --callgrind-out-file=target/bench/callgrind.out target/release/refmcp stdio 2>&1 >/dev/null \
                  | sed -n 's/.*Collected : //p'";
    let text = shell::output(Command::new("sh").current_dir(shell::root()).args(["-c", script]))?;
    text.trim().parse().with_context(|| format!("valgrind said {text:?}"))
}

fn requests(modern: bool, calls: u32) -> String {
    const OPEN: &str = concat!(
        r#"{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-06-18","#,
        r#""capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\n"
    );
    const META: &str = concat!(
        r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}"#
    );
    let (mut text, meta) = if modern { (String::new(), META) } else { (OPEN.to_owned(), "") };
    for id in 0..calls {
        let params = format!(r#"{{"name":"echo","arguments":{{"message":"hello world"}}{meta}}}"#);
        text += &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        text.push('\n');
    }
    text
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

    #[test]
    fn every_request_is_json() {
        for modern in [false, true] {
            for line in requests(modern, 3).lines() {
                serde_json::from_str::<serde_json::Value>(line).unwrap();
            }
        }
    }
}
