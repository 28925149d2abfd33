//! Who takes part, and how they are started; `{port}` stands for the port they get.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell;

pub(super) type Start = &'static [&'static str];

pub(super) const LIMIT: Start = &["target/bench/release/bare_http", "{port}"];
pub(super) const LIMIT_FANOUT: Start = &["target/bench/release/bare_fanout", "{port}"];
pub(super) const REFMCP: Start =
    &["target/release/refmcp", "serve", "--port", "{port}", "--max-sessions-per-client", "20000"];
pub(super) const RMCP: Start = &["target/bench/release/rmcp_echo", "defaults", "{port}"];
pub(super) const RMCP_NODELAY: Start = &["target/bench/release/rmcp_echo", "nodelay", "{port}"];
pub(super) const RMCP_JSON: Start = &["target/bench/release/rmcp_echo", "json", "{port}"];
pub(super) const TYPESCRIPT_1: Start = &["node", "target/bench/typescript/v1.mjs", "{port}"];
pub(super) const TYPESCRIPT_2: Start = &["node", "target/bench/typescript/v2.mjs", "{port}"];
pub(super) const PYTHON_1: Start = &["target/bench/python-v1/bin/python", "bench/python/v1.py", "{port}"];
pub(super) const PYTHON_2: Start = &["target/bench/python-v2/bin/python", "bench/python/v2.py", "{port}"];

/// Starts the server, puts load on it, and gives what the load reports.
pub(super) fn load(what: &[&str], server: &[&str]) -> Result<Report> {
    let mut load = Command::new(shell::root().join("target/bench/release/http_load"));
    load.current_dir(shell::root()).args(what).arg("--").args(server);
    let text = shell::output(&mut load).with_context(|| server.join(" "))?;
    Ok(Report(serde_json::from_str(&text)?))
}

/// A line of numbers, each with its name.
pub(super) struct Report(pub(super) Value);

impl Report {
    pub(super) fn number(&self, name: &str) -> Result<f64> {
        self.0[name].as_f64().with_context(|| format!("no {name} in {}", self.0))
    }
}
