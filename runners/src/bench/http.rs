//! Calls of `echo` over HTTP.

use anyhow::Result;

use super::figures::{Goal, Spread, table};
use super::servers::{self, Start};
use super::{ROUNDS, Section, chart};

/// A server, and how it is spoken to.
struct Contender {
    name: &'static str,
    start: Start,
    mode: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Limit,
    Ours,
    Rmcp,
    /// Other languages: so much slower that one number of connections says it all, and slower to warm up.
    Script,
}

const LIMIT: usize = 0;
const LIMIT_MODERN: usize = 1;
const SESSION: usize = 2;
const MODERN: usize = 3;

#[rustfmt::skip]
const CONTENDERS: [Contender; 13] = [
    Contender { name: "the limit", start: servers::LIMIT, mode: "plain", kind: Kind::Limit },
    Contender { name: "the limit, given requests of 2026-07-28", start: servers::LIMIT, mode: "modern", kind: Kind::Limit },
    Contender { name: "refmcp, session", start: servers::REFMCP, mode: "session", kind: Kind::Ours },
    Contender { name: "refmcp, 2026-07-28", start: servers::REFMCP, mode: "modern", kind: Kind::Ours },
    Contender { name: "refmcp, WebSocket", start: servers::REFMCP, mode: "websocket", kind: Kind::Ours },
    Contender { name: "rmcp, session", start: servers::RMCP, mode: "session", kind: Kind::Rmcp },
    Contender { name: "rmcp, session, TCP_NODELAY", start: servers::RMCP_NODELAY, mode: "session", kind: Kind::Rmcp },
    Contender { name: "rmcp, stateless, JSON", start: servers::RMCP_JSON, mode: "plain", kind: Kind::Rmcp },
    Contender { name: "rmcp, 2026-07-28, JSON", start: servers::RMCP_JSON, mode: "modern", kind: Kind::Rmcp },
    Contender { name: "TypeScript SDK 1, session", start: servers::TYPESCRIPT_1, mode: "session", kind: Kind::Script },
    Contender { name: "TypeScript SDK 2, 2026-07-28", start: servers::TYPESCRIPT_2, mode: "modern", kind: Kind::Script },
    Contender { name: "Python SDK 1, session", start: servers::PYTHON_1, mode: "session", kind: Kind::Script },
    Contender { name: "Python SDK 2, 2026-07-28", start: servers::PYTHON_2, mode: "modern", kind: Kind::Script },
];

const CONNECTIONS: [u32; 3] = [1, 64, 512];

/// The number of connections that every server gets, and that the picture shows.
const TYPICAL: u32 = 64;

/// What a contender did with some number of connections.
struct Row {
    contender: usize,
    cpu: Spread,
    speed: Spread,
    p50: Spread,
    p99: Spread,
}

pub(super) fn run() -> Result<Section> {
    let mut text = String::new();
    let mut picture = None;
    let mut results = Vec::new();
    for connections in CONNECTIONS {
        let rows = measure(connections)?;
        let plural = if connections == 1 { "" } else { "s" };
        text += &format!("{connections} connection{plural}:\n\n{}\n", shown(&rows));
        if connections == TYPICAL {
            picture = Some(chart::draw(&bars(&rows)));
        }
        results.push(rows);
    }
    Ok(Section { text, goals: goals(&results), picture })
}

fn measure(connections: u32) -> Result<Vec<Row>> {
    let mut reports: Vec<Vec<[f64; 4]>> = vec![Vec::new(); CONTENDERS.len()];
    for round in 1..=ROUNDS {
        for (contender, into) in CONTENDERS.iter().zip(&mut reports) {
            eprintln!("{connections} at once, round {round} of {ROUNDS}: {}", contender.name);
            let seconds = if contender.kind == Kind::Script { "2" } else { "1.2" };
            let what = ["calls", contender.mode, &connections.to_string(), seconds];
            let report = servers::load(&what, contender.start)?;
            let number = |name| report.number(name);
            into.push([
                number("cpu_us_per_call")?,
                number("calls_per_second")?,
                number("p50_us")?,
                number("p99_us")?,
            ]);
        }
    }
    let column = |runs: &[[f64; 4]], column: usize| Spread::of(runs.iter().map(|run| run[column]));
    let rows = reports.iter().enumerate().map(|(contender, runs)| Row {
        contender,
        cpu: column(runs, 0),
        speed: column(runs, 1),
        p50: column(runs, 2),
        p99: column(runs, 3),
    });
    Ok(rows.collect())
}

fn shown(rows: &[Row]) -> String {
    let heads = [
        "server",
        "server CPU per call, µs (lowest to highest)",
        "of the limit",
        "of rmcp's best",
        "calls/s",
        "p50, µs",
        "p99, µs",
    ];
    let best = best_of_rmcp(rows);
    table(
        heads,
        rows.iter().map(|row| {
            [
                CONTENDERS[row.contender].name.to_owned(),
                row.cpu.shown(1),
                format!("{:.2}", row.cpu.median / limit(rows, row).cpu.median),
                format!("{:.2}", row.cpu.median / best),
                format!("{:.0}", row.speed.median),
                format!("{:.0}", row.p50.median),
                format!("{:.0}", row.p99.median),
            ]
        }),
    )
}

/// The limit, given the same requests as this one.
fn limit<'a>(rows: &'a [Row], row: &Row) -> &'a Row {
    &rows[if CONTENDERS[row.contender].mode == "modern" { LIMIT_MODERN } else { LIMIT }]
}

fn best_of_rmcp(rows: &[Row]) -> f64 {
    let rmcp = rows.iter().filter(|row| CONTENDERS[row.contender].kind == Kind::Rmcp);
    rmcp.map(|row| row.cpu.median).fold(f64::INFINITY, f64::min)
}

fn goals(results: &[Vec<Row>]) -> Vec<Goal> {
    let each = |figure: &dyn Fn(&[Row]) -> f64| results.iter().map(|rows| figure(rows)).collect();
    let of_the_limit =
        |index: usize| each(&|rows| rows[index].cpu.median / limit(rows, &rows[index]).cpu.median);
    let of_rmcp = |index: usize| each(&|rows| rows[index].cpu.median / best_of_rmcp(rows));
    let latency = |index: usize| {
        let rows = &results[0];
        vec![rows[index].p50.median / limit(rows, &rows[index]).p50.median]
    };
    vec![
        Goal { what: "CPU per call in a session, of the limit", most: 1.20, figures: of_the_limit(SESSION) },
        Goal { what: "CPU per call in 2026-07-28, of the limit", most: 1.20, figures: of_the_limit(MODERN) },
        Goal { what: "CPU per call in a session, of rmcp's best", most: 0.5, figures: of_rmcp(SESSION) },
        Goal { what: "CPU per call in 2026-07-28, of rmcp's best", most: 0.5, figures: of_rmcp(MODERN) },
        Goal { what: "p50 in a session, 1 connection, of the limit", most: 1.3, figures: latency(SESSION) },
        Goal { what: "p50 in 2026-07-28, 1 connection, of the limit", most: 1.3, figures: latency(MODERN) },
    ]
}

/// What the picture shows: CPU time of each, as a multiple of the limit.
fn bars(rows: &[Row]) -> Vec<chart::Bar> {
    let others = rows.iter().filter(|row| CONTENDERS[row.contender].kind != Kind::Limit);
    others
        .map(|row| {
            let Contender { name, kind, .. } = CONTENDERS[row.contender];
            let times = row.cpu.median / limit(rows, row).cpu.median;
            chart::Bar { name, times, micros: row.cpu.median, ours: kind == Kind::Ours }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many microseconds as the contender's place in the list, plus ten.
    fn rows() -> Vec<Row> {
        let same = |value: f64| Spread { median: value, lowest: value, highest: value };
        let row = |contender| {
            let figure = same(10.0 + contender as f64);
            Row { contender, cpu: figure, speed: figure, p50: figure, p99: figure }
        };
        (0..CONTENDERS.len()).map(row).collect()
    }

    #[test]
    fn everyone_is_compared_with_the_limit_of_the_same_requests() {
        let text = shown(&rows());
        assert!(text.contains("| refmcp, session | 12.0 (12.0 to 12.0) | 1.20 | 0.80 |"), "{text}");
        assert!(text.contains("| refmcp, 2026-07-28 | 13.0 (13.0 to 13.0) | 1.18 | 0.87 |"), "{text}");
    }

    #[test]
    fn goals_have_a_figure_for_each_number_of_connections() {
        let goals = goals(&[rows(), rows(), rows()]);
        assert_eq!(goals[0].figures, [1.2, 1.2, 1.2]);
        assert_eq!(goals[4].figures, [1.2]);
    }

    #[test]
    fn the_limit_has_no_bar() {
        let bars = bars(&rows());
        assert_eq!(bars.len(), CONTENDERS.len() - 2);
        assert_eq!(bars[0].name, "refmcp, session");
    }
}
