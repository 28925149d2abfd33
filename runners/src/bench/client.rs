//! Clients side by side, against the same server; and how soon the command line has something to say.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::figures::{Goal, Spread, table};
use super::servers::Report;
use super::{ROUNDS, Section};
use crate::shell;

const SERVER: &str = "target/release/refmcp";
const OURS: &str = "target/bench/release/our_client";
const RMCP: &str = "target/bench/release/rmcp_client";
const NOTHING: &str = "target/bench/release/nothing";
const SECONDS: &str = "1.5";

/// A client, the revision it is asked to speak, and how it reaches the server.
struct Contender {
    name: &'static str,
    program: &'static str,
    revision: Option<&'static str>,
    transport: Transport,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Http,
    WebSocket,
    Stdio,
}

const SESSION: Option<&str> = Some("2025-11-25");

#[rustfmt::skip]
const CONTENDERS: [Contender; 7] = [
    Contender { name: "refmcp, HTTP, session", program: OURS, revision: SESSION, transport: Transport::Http },
    Contender { name: "refmcp, HTTP, 2026-07-28", program: OURS, revision: None, transport: Transport::Http },
    Contender { name: "rmcp, HTTP", program: RMCP, revision: None, transport: Transport::Http },
    Contender { name: "refmcp, stdio, session", program: OURS, revision: SESSION, transport: Transport::Stdio },
    Contender { name: "refmcp, stdio, 2026-07-28", program: OURS, revision: None, transport: Transport::Stdio },
    Contender { name: "rmcp, stdio", program: RMCP, revision: None, transport: Transport::Stdio },
    Contender { name: "refmcp, WebSocket", program: OURS, revision: SESSION, transport: Transport::WebSocket },
];

/// The rows of `CONTENDERS` that goals are about: ours, and the one it is to be ahead of.
const RIVALS: [(usize, usize); 2] = [(0, 2), (3, 5)];

const IN_FLIGHT: [usize; 2] = [1, 64];

#[derive(Default)]
struct Runs {
    per_second: [Vec<f64>; 2],
    cpu: [Vec<f64>; 2],
}

pub(super) fn run() -> Result<Section> {
    let server = Server::start()?;
    let mut results: Vec<Runs> = CONTENDERS.iter().map(|_| Runs::default()).collect();
    let mut memory = [Vec::new(), Vec::new()];
    let (mut first_byte, mut nothing) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        for (contender, runs) in CONTENDERS.iter().zip(&mut results) {
            eprintln!("round {round} of {ROUNDS}: {}", contender.name);
            for (at, in_flight) in IN_FLIGHT.into_iter().enumerate() {
                let report = calls(contender, in_flight, &server)?;
                runs.per_second[at].push(report.number("calls_per_second")?);
                runs.cpu[at].push(report.number("cpu_us_per_call")?);
            }
        }
        for (program, into) in [OURS, RMCP].into_iter().zip(&mut memory) {
            let report = report(Command::new(path(program)).args([
                "memory",
                "100",
                "600",
                &server.url("http", "/mcp"),
            ]))?;
            into.push(report.number("bytes_per_connection")? / 1024.0);
        }
        for _ in 0..4 {
            first_byte.push(until_first_byte()?);
            nothing.push(until_the_end(NOTHING)?);
        }
    }
    Ok(section(&results, &memory, &first_byte, &nothing))
}

fn section(results: &[Runs], memory: &[Vec<f64>; 2], first_byte: &[f64], nothing: &[f64]) -> Section {
    let spread = |values: &[f64]| Spread::of(values.iter().copied());
    let rows = CONTENDERS.iter().zip(results).map(|(contender, runs)| {
        [
            contender.name.to_owned(),
            spread(&runs.per_second[0]).shown(0),
            spread(&runs.cpu[0]).shown(1),
            spread(&runs.per_second[1]).shown(0),
            spread(&runs.cpu[1]).shown(1),
        ]
    });
    let heads = [
        "client",
        "calls/s, one at a time",
        "CPU of the client per call, µs",
        "calls/s, 64 in flight",
        "CPU of the client per call, µs",
    ];
    let mut text = table(heads, rows);
    text += "\n";
    text += &table(
        ["client", "KiB per connection (HTTP)"],
        [("refmcp", &memory[0]), ("rmcp", &memory[1])]
            .map(|(name, values)| [name.to_owned(), spread(values).shown(1)]),
    );
    text += "\n";
    text += &table(
        ["program", "ms"],
        [
            [
                "`refmcp info URL`, from its start to the first byte it sends".to_owned(),
                spread(first_byte).shown(2),
            ],
            ["an empty Rust program, from its start to its end".to_owned(), spread(nothing).shown(2)],
        ],
    );
    // How much slower than the rival, so that less is better as in every other goal.
    let behind = |at: usize| {
        RIVALS
            .iter()
            .map(|(ours, theirs)| {
                spread(&results[*theirs].per_second[at]).median
                    / spread(&results[*ours].per_second[at]).median
            })
            .collect::<Vec<f64>>()
    };
    let goals = vec![
        Goal {
            what: "calls/s of rmcp's client, of ours (one at a time: HTTP, stdio)",
            most: 1.0,
            figures: behind(0),
        },
        Goal {
            what: "calls/s of rmcp's client, of ours (64 in flight: HTTP, stdio)",
            most: 0.67,
            figures: behind(1),
        },
        Goal {
            what: "memory per connection, of rmcp's",
            most: 1.0,
            figures: vec![spread(&memory[0]).median / spread(&memory[1]).median],
        },
        Goal {
            what: "first byte of the command line, of an empty program's whole run",
            most: 3.0,
            figures: vec![spread(first_byte).median / spread(nothing).median],
        },
    ];
    Section { text, goals, picture: None }
}

fn calls(contender: &Contender, in_flight: usize, server: &Server) -> Result<Report> {
    let mut command = Command::new(path(contender.program));
    command.args(["calls", &in_flight.to_string(), SECONDS]);
    match contender.transport {
        Transport::Http => command.arg(server.url("http", "/mcp")),
        Transport::WebSocket => command.arg(server.url("ws", "/mcp/ws")),
        Transport::Stdio => command.arg("stdio").arg(path(SERVER)).arg("stdio"),
    };
    if let Some(revision) = contender.revision {
        command.env("REVISION", revision);
    }
    report(&mut command).with_context(|| contender.name.to_owned())
}

fn report(command: &mut Command) -> Result<Report> {
    Ok(Report(serde_json::from_str(&shell::output(command)?)?))
}

fn path(program: &str) -> std::path::PathBuf {
    shell::root().join(program)
}

/// Milliseconds from the start of the command line to the first byte that a server gets of it.
fn until_first_byte() -> Result<f64> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let begun = Instant::now();
    let mut child = Command::new(path(SERVER))
        .args(["info", &url])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let (mut stream, _) = listener.accept()?;
    stream.read_exact(&mut [0])?;
    let took = begun.elapsed();
    child.kill()?;
    child.wait()?;
    Ok(took.as_secs_f64() * 1e3)
}

fn until_the_end(program: &str) -> Result<f64> {
    let begun = Instant::now();
    Command::new(path(program)).status()?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

/// The server that all clients talk to.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start() -> Result<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut child = Command::new(path(SERVER))
            .args(["serve", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begun.elapsed() > Duration::from_secs(10) {
                child.kill()?;
                bail!("the server does not listen");
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(Self { child, port })
    }

    fn url(&self, scheme: &str, at: &str) -> String {
        format!("{scheme}://127.0.0.1:{}{at}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone by now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
