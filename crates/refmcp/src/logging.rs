//! Logs go to stderr: stdout belongs to the protocol.

use std::io::{IsTerminal, stderr};

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;

/// Starts to log what the filter lets through.
pub(crate) fn start(filter: &str) -> Result<()> {
    let filter = EnvFilter::try_new(filter).with_context(|| format!("--log {filter}: not a filter"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal())
        // It would complain about a stderr that nobody reads to stderr, and panic.
        .log_internal_errors(false)
        .init();
    Ok(())
}
