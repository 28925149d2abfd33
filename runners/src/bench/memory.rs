//! What sessions and their streams take of memory, and how fast sessions are opened.

use anyhow::Result;

use super::Section;
use super::figures::{Goal, Spread, table};
use super::servers::{self, Start};

const ROUNDS: usize = 3;
const KIB: f64 = 1024.0;

struct Contender {
    name: &'static str,
    start: Start,
    /// Sessions before the measurement, and after it; fewer where opening them takes long.
    sessions: [&'static str; 2],
    streams: bool,
}

#[rustfmt::skip]
const CONTENDERS: [Contender; 4] = [
    Contender { name: "refmcp", start: servers::REFMCP, sessions: ["1000", "11000"], streams: true },
    Contender { name: "rmcp, TCP_NODELAY", start: servers::RMCP_NODELAY, sessions: ["1000", "11000"], streams: true },
    Contender { name: "TypeScript SDK 1", start: servers::TYPESCRIPT_1, sessions: ["200", "1200"], streams: false },
    Contender { name: "Python SDK 1", start: servers::PYTHON_1, sessions: ["200", "1200"], streams: false },
];

#[derive(Default)]
struct Runs {
    session_kib: Vec<f64>,
    sessions_per_second: Vec<f64>,
    session_cpu: Vec<f64>,
    stream_kib: Vec<f64>,
}

pub(super) fn run() -> Result<Section> {
    let mut results: Vec<Runs> = CONTENDERS.iter().map(|_| Runs::default()).collect();
    for round in 1..=ROUNDS {
        for (contender, runs) in CONTENDERS.iter().zip(&mut results) {
            eprintln!("round {round} of {ROUNDS}: {}", contender.name);
            let [few, many] = contender.sessions;
            let report = servers::load(&["sessions", few, many], contender.start)?;
            runs.session_kib.push(report.number("bytes_per_session")? / KIB);
            runs.sessions_per_second.push(report.number("sessions_per_second")?);
            runs.session_cpu.push(report.number("cpu_us_per_session")?);
            if contender.streams {
                let report = servers::load(&["streams", "2000", "8000"], contender.start)?;
                runs.stream_kib.push(report.number("bytes_per_stream")? / KIB);
            }
        }
    }
    let rows = CONTENDERS.iter().zip(&results).map(|(contender, runs)| {
        let streams = Spread::of(runs.stream_kib.iter().copied());
        [
            contender.name.to_owned(),
            Spread::of(runs.session_kib.iter().copied()).shown(1),
            if contender.streams { streams.shown(1) } else { "not measured".to_owned() },
            Spread::of(runs.sessions_per_second.iter().copied()).shown(0),
            Spread::of(runs.session_cpu.iter().copied()).shown(0),
        ]
    });
    let heads =
        ["server", "KiB per idle session", "KiB per GET stream", "sessions opened/s", "CPU per session, µs"];
    let text = table(heads, rows);
    let ours = |values: &[f64]| vec![Spread::of(values.iter().copied()).median];
    let goals = vec![
        Goal { what: "KiB per idle session", most: 1.5, figures: ours(&results[0].session_kib) },
        Goal { what: "KiB per GET stream", most: 12.0, figures: ours(&results[0].stream_kib) },
    ];
    Ok(Section { text, goals, picture: None })
}
