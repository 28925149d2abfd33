//! From the start of a server to its first answer, and how large it is.

use std::fs;

use anyhow::{Context, Result};

use super::figures::{Spread, table};
use super::servers::{self, Start};
use super::{ROUNDS, Section};
use crate::shell;

#[rustfmt::skip]
const CONTENDERS: [(&str, Start, &str); 7] = [
    ("the limit", servers::LIMIT, "plain"),
    ("refmcp", servers::REFMCP, "session"),
    ("rmcp, TCP_NODELAY", servers::RMCP_NODELAY, "session"),
    ("TypeScript SDK 1", servers::TYPESCRIPT_1, "session"),
    ("TypeScript SDK 2", servers::TYPESCRIPT_2, "modern"),
    ("Python SDK 1", servers::PYTHON_1, "session"),
    ("Python SDK 2", servers::PYTHON_2, "modern"),
];

pub(super) fn run() -> Result<Section> {
    let mut runs = vec![Vec::new(); CONTENDERS.len()];
    for round in 1..=ROUNDS {
        for ((name, start, mode), into) in CONTENDERS.iter().zip(&mut runs) {
            eprintln!("round {round} of {ROUNDS}: {name}");
            into.push(servers::load(&["first-answer", mode], start)?.number("ms")?);
        }
    }
    let mut rows = Vec::new();
    for ((name, start, _), runs) in CONTENDERS.iter().zip(&runs) {
        rows.push([(*name).to_owned(), Spread::of(runs.iter().copied()).shown(1), size(start)?]);
    }
    let text =
        table(["server", "first answer after, ms (lowest to highest)", "size of the program, MiB"], rows);
    Ok(Section { text, goals: Vec::new(), picture: None })
}

/// The size of what we have built; an interpreter and its packages cannot be compared with that.
fn size(start: Start) -> Result<String> {
    let program = start[0];
    if !program.contains("/release/") {
        return Ok(String::new());
    }
    let file = fs::metadata(shell::root().join(program)).with_context(|| format!("no {program}"))?;
    Ok(format!("{:.1}", file.len() as f64 / f64::from(1 << 20)))
}
