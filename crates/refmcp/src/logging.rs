//! Logs go to stderr: stdout belongs to the protocol. Whoever reads stderr slowly, or not at all, must not slow the
//! server down, so a thread of its own writes, and what it cannot keep up with is left out.

use std::io::{IsTerminal, stderr};

use anyhow::{Context, Result};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, registry};

use crate::args::LogFormat;

/// Lines that may wait to be written.
const WAITING_LINES: usize = 4096;

/// What is logged.
type Filter = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts to log what the filter lets through; the last lines are written when the guard goes.
pub(crate) fn start(filter: &str, format: LogFormat) -> Result<WorkerGuard> {
    // A level alone, as there nearly always is, is read much sooner than a filter: commands that do one thing notice.
    let filter: Filter = match filter.parse::<LevelFilter>() {
        Ok(level) => Box::new(level),
        Err(_) => {
            Box::new(EnvFilter::try_new(filter).with_context(|| format!("--log {filter}: not a filter"))?)
        }
    };
    let writer = NonBlockingBuilder::default().buffered_lines_limit(WAITING_LINES).lossy(true);
    let (writer, guard) = writer.thread_name("log").finish(stderr());
    let lines = fmt::layer()
        .with_writer(writer)
        .with_ansi(format == LogFormat::Text && stderr().is_terminal())
        // It would complain about a stderr that nobody reads to stderr, and panic.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => registry().with(filter).with(lines).init(),
        LogFormat::Json => registry().with(filter).with(lines.json().flatten_event(true)).init(),
    }
    Ok(guard)
}
