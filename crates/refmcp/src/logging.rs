//! The log, on stderr: stdout belongs to the protocol. A reader of stderr that is slow, or stopped, must not slow the
//! server down, so a thread writes, and lines that it cannot keep up with are dropped. The thread starts with the first
//! line: most commands log nothing.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write, stderr};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, registry};

use crate::args::LogFormat;
use crate::ui::redact::masked;

/// Lines that may wait to be written.
const WAITING_LINES: usize = 4096;

/// Shows a line; it must not block.
type LineSink = dyn Fn(&str) + Send + Sync;

/// Where lines go instead of stderr, while a [`Redirect`] is there.
static SINK: Mutex<Option<Arc<LineSink>>> = Mutex::new(None);

/// Starts to log what the filter lets through. The last lines are written when the returned value is dropped.
pub(crate) fn start(filter: &str, format: LogFormat) -> Result<Log> {
    // A level alone, the usual case, is parsed much faster than a filter: short commands notice.
    let filter: Box<dyn Layer<Registry> + Send + Sync> = match filter.parse::<LevelFilter>() {
        Ok(level) => Box::new(level),
        Err(_) => {
            Box::new(EnvFilter::try_new(filter).with_context(|| format!("--log {filter}: not a filter"))?)
        }
    };
    let writer = Writer::default();
    let log = Log { thread: writer.thread.clone() };
    let lines = fmt::layer()
        .with_writer(writer)
        .with_ansi(format == LogFormat::Text && stderr().is_terminal())
        // It would report a closed stderr to stderr, and panic.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => registry().with(filter).with(lines).init(),
        LogFormat::Json => registry().with(filter).with(lines.json().flatten_event(true)).init(),
    }
    Ok(log)
}

/// Hands every line to this function until the returned value is dropped: the user of a terminal knows where on it
/// there is room.
pub(crate) fn redirect(sink: impl Fn(&str) + Send + Sync + 'static) -> Redirect {
    *SINK.lock() = Some(Arc::new(sink));
    Redirect
}

/// Keeps lines from stderr.
#[derive(Debug)]
pub(crate) struct Redirect;

impl Drop for Redirect {
    fn drop(&mut self) {
        *SINK.lock() = None;
    }
}

/// The log of this process.
#[derive(Debug)]
pub(crate) struct Log {
    thread: Arc<Mutex<Option<WorkerGuard>>>,
}

impl Drop for Log {
    fn drop(&mut self) {
        drop(self.thread.lock().take());
    }
}

/// Starts the thread with the first line.
#[derive(Default)]
struct Writer {
    lines: OnceLock<NonBlocking>,
    thread: Arc<Mutex<Option<WorkerGuard>>>,
}

impl<'a> MakeWriter<'a> for Writer {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        if let Some(sink) = SINK.lock().clone() {
            return Line::Sink(sink);
        }
        let lines = self.lines.get_or_init(|| {
            let writer = NonBlockingBuilder::default().buffered_lines_limit(WAITING_LINES).lossy(true);
            let (lines, guard) = writer.thread_name("log").finish(stderr());
            *self.thread.lock() = Some(guard);
            lines
        });
        Line::Stderr(lines.clone())
    }
}

/// An event as one line: a line break in it, from a file's name or a peer, could forge another event.
fn in_one_line(line: &[u8]) -> Cow<'_, [u8]> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    if !text.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return line.into();
    }
    let escaped = text.iter().flat_map(|byte| match byte {
        b'\n' => b"\\n",
        b'\r' => b"\\r",
        other => std::slice::from_ref(other),
    });
    escaped.chain(&line[text.len()..]).copied().collect()
}

/// The destination of one event, which is written at once.
enum Line {
    Stderr(NonBlocking),
    Sink(Arc<LineSink>),
}

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let shown = in_one_line(line);
        let shown = String::from_utf8_lossy(&shown);
        let shown = masked(&shown);
        match self {
            Self::Stderr(lines) => lines.write_all(shown.as_bytes())?,
            Self::Sink(sink) => sink(&shown),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stderr(lines) => lines.flush(),
            Self::Sink(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        for (written, shown) in [
            (&b"WARN a\n"[..], &b"WARN a\n"[..]),
            (b"WARN a\nERROR forged\r\n", b"WARN a\\nERROR forged\\r\n"),
            (b"no end", b"no end"),
            (b"\n", b"\n"),
            (b"", b""),
        ] {
            assert_eq!(&*in_one_line(written), shown);
        }
    }
}
