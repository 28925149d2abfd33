//! Instructions that one call of `echo`, or one `tasks/get`, takes in user space, counted by valgrind: the one figure that is the same on a busy
//! machine. What starting takes cancels out: it is the difference between a run of many calls and one of few.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Section;
use super::figures::{Goal, table};
use super::servers::{self, Start};
use crate::shell;

/// How a server is called.
#[derive(Clone, Copy)]
enum Mode {
    /// Over standard input and output; whether the calls are of 2026-07-28.
    Stdio { modern: bool },
    /// Over HTTP, as `http_load` names it.
    Http(&'static str),
}

struct Contender {
    name: &'static str,
    start: Start,
    mode: Mode,
    /// The contender that it is compared with, by its place.
    base: usize,
}

const BARE_STDIO: Start = &["target/bench/release/bare_stdio"];
const REFMCP_STDIO: Start = &["target/release/refmcp", "stdio"];
const UNAUDITED_STDIO: Start = &["target/release/refmcp", "stdio", "--no-audit"];
const UNAUDITED_HTTP: Start = &[
    "target/release/refmcp",
    "serve",
    "--port",
    "{port}",
    "--max-sessions-per-client",
    "20000",
    "--no-audit",
];

#[rustfmt::skip]
const CONTENDERS: [Contender; 11] = [
    Contender { name: "stdio: bare loop", start: BARE_STDIO, mode: Mode::Stdio { modern: false }, base: 0 },
    Contender { name: "stdio: bare loop, given requests of 2026-07-28", start: BARE_STDIO, mode: Mode::Stdio { modern: true }, base: 1 },
    Contender { name: "stdio: refmcp, session", start: REFMCP_STDIO, mode: Mode::Stdio { modern: false }, base: 0 },
    Contender { name: "stdio: refmcp, 2026-07-28", start: REFMCP_STDIO, mode: Mode::Stdio { modern: true }, base: 1 },
    Contender { name: "HTTP: the limit", start: servers::LIMIT, mode: Mode::Http("plain"), base: 4 },
    Contender { name: "HTTP: the limit, given requests of 2026-07-28", start: servers::LIMIT, mode: Mode::Http("modern"), base: 5 },
    Contender { name: "HTTP: refmcp, session", start: servers::REFMCP, mode: Mode::Http("session"), base: 4 },
    Contender { name: "HTTP: refmcp, 2026-07-28", start: servers::REFMCP, mode: Mode::Http("modern"), base: 5 },
    Contender { name: "HTTP: refmcp, `tasks/get` in a session", start: servers::REFMCP, mode: Mode::Http("task"), base: 6 },
    Contender { name: "stdio: refmcp, session, without the audit", start: UNAUDITED_STDIO, mode: Mode::Stdio { modern: false }, base: 0 },
    Contender { name: "HTTP: refmcp, session, without the audit", start: UNAUDITED_HTTP, mode: Mode::Http("session"), base: 4 },
];

const STDIO_SESSION: usize = 2;
const HTTP_SESSION: usize = 6;
const HTTP_MODERN: usize = 7;
const HTTP_TASK: usize = 8;
const STDIO_UNAUDITED: usize = 9;
const HTTP_UNAUDITED: usize = 10;

/// Calls over HTTP are made on so many connections.
const CONNECTIONS: u64 = 8;

/// Calls of the shorter run; the longer one has twice as many.
const CALLS: u64 = 4000;

pub(super) fn run() -> Result<Section> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        bail!("instructions are counted by valgrind, which is not installed");
    }
    let mut counts = Vec::new();
    for contender in &CONTENDERS {
        eprintln!("counting instructions: {}", contender.name);
        let (few, many) = (count(contender, CALLS)?, count(contender, 2 * CALLS)?);
        counts.push((many.saturating_sub(few)) as f64 / CALLS as f64);
    }
    Ok(Section { text: shown(&counts), goals: goals(&counts), picture: None })
}

fn shown(counts: &[f64]) -> String {
    let rows = CONTENDERS.iter().zip(counts).map(|(contender, count)| {
        let ratio = count / counts[contender.base];
        [contender.name.to_owned(), format!("{count:.0}"), format!("{ratio:.2}")]
    });
    table(["server", "instructions per call", "of the limit"], rows)
}

fn goals(counts: &[f64]) -> Vec<Goal> {
    let of_the_limit = |index: usize| vec![counts[index] / counts[CONTENDERS[index].base]];
    vec![
        Goal {
            what: "a call over HTTP in a session, of the limit",
            most: 1.05,
            figures: of_the_limit(HTTP_SESSION),
        },
        Goal {
            what: "a call over HTTP in 2026-07-28, of the limit",
            most: 1.05,
            figures: of_the_limit(HTTP_MODERN),
        },
        Goal {
            what: "`tasks/get` over HTTP, of a call in a session",
            most: 1.3,
            figures: of_the_limit(HTTP_TASK),
        },
        Goal {
            what: "a call with the audit that is on by default, of one without, over stdio and HTTP",
            most: 1.03,
            figures: vec![
                counts[STDIO_SESSION] / counts[STDIO_UNAUDITED],
                counts[HTTP_SESSION] / counts[HTTP_UNAUDITED],
            ],
        },
        Goal {
            what: "a call over stdio in a session",
            most: 11_000.0,
            figures: vec![counts[STDIO_SESSION].round()],
        },
    ]
}

/// The instructions of a run with so many calls.
fn count(contender: &Contender, calls: u64) -> Result<u64> {
    const LOG: &str = "target/bench/callgrind.log";
    let log = shell::root().join(LOG);
    let log_option = format!("--log-file={}", log.display());
    // A thread that finds nothing to do looks for work elsewhere, as often as it happens to.
    let valgrind = ["env", "TOKIO_WORKER_THREADS=1", "valgrind", "--tool=callgrind"];
    let options = [log_option.as_str(), "--callgrind-out-file=target/bench/callgrind.out"];
    let command = [&valgrind[..], &options, contender.start].concat();
    match contender.mode {
        Mode::Stdio { modern } => {
            let input = shell::root().join("target/bench/calls.jsonl");
            fs::write(&input, requests(modern, calls)).context("cannot write the calls")?;
            let script = format!("cat {} | {} > /dev/null", input.display(), command.join(" "));
            shell::output(Command::new("sh").current_dir(shell::root()).args(["-c", &script]))?;
        }
        Mode::Http(mode) => {
            let what = ["exactly", mode, &CONNECTIONS.to_string(), &(calls / CONNECTIONS).to_string()];
            servers::load(&what, &command)?;
        }
    }
    let text = fs::read_to_string(&log).with_context(|| format!("cannot read {LOG}"))?;
    collected(&text).with_context(|| format!("valgrind said {text:?}"))
}

/// The number of instructions that callgrind has collected, by its log.
fn collected(log: &str) -> Option<u64> {
    log.lines().find_map(|line| line.split_once("Collected : "))?.1.trim().parse().ok()
}

fn requests(modern: bool, calls: u64) -> String {
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
    fn every_request_is_json() {
        for modern in [false, true] {
            for line in requests(modern, 3).lines() {
                serde_json::from_str::<serde_json::Value>(line).unwrap();
            }
        }
    }

    #[test]
    fn the_number_is_read_from_the_log() {
        let log = "==7== Callgrind, a call-graph\n==7== Events    : Ir\n==7== Collected : 123456\n";
        assert_eq!(collected(log), Some(123_456));
        assert_eq!(collected("==7== valgrind: no such file"), None);
    }

    #[test]
    fn each_is_compared_with_the_limit_of_its_transport_and_requests() {
        let counts = [100.0, 200.0, 150.0, 500.0, 1000.0, 2000.0, 1040.0, 2200.0, 1248.0, 148.0, 1030.0];
        let text = shown(&counts);
        assert!(text.contains("| stdio: refmcp, 2026-07-28 | 500 | 2.50 |"), "{text}");
        assert!(text.contains("| HTTP: refmcp, session | 1040 | 1.04 |"), "{text}");
        let figures: Vec<f64> = goals(&counts).iter().map(|goal| goal.figures[0]).collect();
        assert_eq!(figures, [1.04, 1.1, 1.2, 150.0 / 148.0, 150.0]);
    }
}
