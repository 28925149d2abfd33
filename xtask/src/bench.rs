//! Servers side by side on this machine: ratios between them mean something, the numbers themselves little.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{shell, test};

/// Runs of each server; they take turns, so that a busy minute hits all of them.
const ROUNDS: usize = 5;
const SECONDS: &str = "2";

/// What is measured: a name, how the server is started, and whether it is spoken to in the newest revision.
struct Contender {
    name: &'static str,
    command: &'static [&'static str],
    modern: bool,
}

const CONTENDERS: [Contender; 4] = [
    Contender { name: "bare loop", command: &["target/bench/release/bare"], modern: false },
    Contender { name: "refmcp, session", command: &["target/release/refmcp", "stdio"], modern: false },
    Contender { name: "refmcp, 2026-07-28", command: &["target/release/refmcp", "stdio"], modern: true },
    Contender { name: "rmcp 3.8", command: &["target/bench/release/rmcp_echo"], modern: false },
];

/// Prints a table for one call at a time and one for many at once.
pub(crate) fn run() -> Result<()> {
    test::release()?;
    shell::run(&mut build())?;
    for in_flight in ["1", "256"] {
        shell::section(&format!("`echo` over stdio, {in_flight} in flight"));
        let results = measure(in_flight)?;
        println!("{}", table(&results));
    }
    instructions()
}

fn build() -> Command {
    let manifest = "bench/Cargo.toml";
    shell::cargo([
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        manifest,
        "--target-dir",
        "target/bench",
    ])
}

/// Calls per second and CPU time per call of each contender, in each round.
fn measure(in_flight: &str) -> Result<Vec<Vec<(f64, f64)>>> {
    let mut results = vec![Vec::new(); CONTENDERS.len()];
    for round in 1..=ROUNDS {
        for (contender, into) in CONTENDERS.iter().zip(&mut results) {
            eprintln!("round {round} of {ROUNDS}: {}", contender.name);
            let mut load = Command::new(shell::root().join("target/bench/release/stdio_load"));
            load.current_dir(shell::root()).args([in_flight, SECONDS]);
            load.args(contender.modern.then_some("--modern")).arg("--").args(contender.command);
            let report: Value = serde_json::from_str(&shell::output(&mut load)?)?;
            let number = |key: &str| report[key].as_f64().with_context(|| format!("no {key} in {report}"));
            into.push((number("calls_per_second")?, number("cpu_us_per_call")?));
        }
    }
    Ok(results)
}

fn table(results: &[Vec<(f64, f64)>]) -> String {
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        (values[values.len() / 2], values[0], values[values.len() - 1])
    };
    let speeds: Vec<_> =
        results.iter().map(|runs| median(&mut runs.iter().map(|run| run.0).collect())).collect();
    let costs: Vec<_> =
        results.iter().map(|runs| median(&mut runs.iter().map(|run| run.1).collect())).collect();
    let (bare, rmcp) = (speeds[0].0, speeds[CONTENDERS.len() - 1].0);
    let mut text = String::from(
        "| server | calls/s, median (lowest to highest) | of the bare loop | of rmcp | server CPU per call |\n\
         |---|---|---|---|---|\n",
    );
    for ((contender, speed), cost) in CONTENDERS.iter().zip(&speeds).zip(&costs) {
        text += &format!(
            "| {} | {:.0} ({:.0} to {:.0}) | {:.2} | {:.1} | {:.1} µs |\n",
            contender.name,
            speed.0,
            speed.1,
            speed.2,
            speed.0 / bare,
            speed.0 / rmcp,
            cost.0
        );
    }
    text
}

/// Instructions of one call, counted by valgrind: the difference between many calls and few.
fn instructions() -> Result<()> {
    shell::section("instructions per call, by callgrind");
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind is not installed");
        return Ok(());
    }
    for modern in [false, true] {
        let few = count(modern, 1000)?;
        let many = count(modern, 5000)?;
        let name = if modern { "refmcp, 2026-07-28" } else { "refmcp, session" };
        println!("{name}: {}", (many - few) / 4000);
    }
    Ok(())
}

fn count(modern: bool, calls: u32) -> Result<u64> {
    let folder = shell::root().join("target/bench");
    let input = folder.join("calls.jsonl");
    std::fs::write(&input, requests(modern, calls)).context("cannot write the calls")?;
    let script = "cat calls.jsonl | valgrind --tool=callgrind --callgrind-out-file=callgrind.out \
                  ../release/refmcp stdio 2>&1 >/dev/null | sed -n 's/.*Collected : //p'";
    let text = shell::output(Command::new("sh").current_dir(&folder).args(["-c", script]))?;
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
        let runs = |speed: f64| vec![(speed, 10.0), (speed * 9.0, 10.0), (speed / 9.0, 10.0)];
        let text = table(&[runs(1000.0), runs(800.0), runs(500.0), runs(80.0)]);
        assert!(text.contains("| refmcp, session | 800 (89 to 7200) | 0.80 | 10.0 | 10.0 µs |"), "{text}");
    }

    #[test]
    fn every_request_is_json() {
        for modern in [false, true] {
            for line in requests(modern, 3).lines() {
                serde_json::from_str::<Value>(line).unwrap();
            }
        }
    }
}
