//! Logs go to stderr: stdout belongs to the protocol. Whoever reads stderr slowly, or not at all, must not slow the
//! server down, so a thread of its own writes, and what it cannot keep up with is left out. The thread is there from
//! the first line on: most commands have nothing to log.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write, stderr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context, Result};
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, registry};

use crate::args::LogFormat;

/// Lines that may wait to be written.
const WAITING_LINES: usize = 4096;

/// What is logged.
type Filter = Box<dyn Layer<Registry> + Send + Sync>;

/// Shows a line in its own way; it must not wait.
type Say = dyn Fn(&str) + Send + Sync;

/// Who shows the lines instead of the thread, while somebody does: there is one log, and one stderr.
static SHOWN_BY: Mutex<Option<Arc<Say>>> = Mutex::new(None);

/// Starts to log what the filter lets through; the last lines are written when the log goes.
pub(crate) fn start(filter: &str, format: LogFormat) -> Result<Log> {
    // A level alone, as there nearly always is, is read much sooner than a filter: commands that do one thing notice.
    let filter: Filter = match filter.parse::<LevelFilter>() {
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
        // It would complain about a stderr that nobody reads to stderr, and panic.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => registry().with(filter).with(lines).init(),
        LogFormat::Json => registry().with(filter).with(lines.json().flatten_event(true)).init(),
    }
    Ok(log)
}

/// Has every line shown by this function, until what is returned goes: whoever uses the terminal knows where on it
/// there is room.
pub(crate) fn shown_by(say: impl Fn(&str) + Send + Sync + 'static) -> ShownElsewhere {
    show_by(Some(Arc::new(say)));
    ShownElsewhere
}

fn show_by(say: Option<Arc<Say>>) {
    *SHOWN_BY.lock().unwrap_or_else(PoisonError::into_inner) = say;
}

/// While this is there, lines are not written to stderr from here.
#[derive(Debug)]
pub(crate) struct ShownElsewhere;

impl Drop for ShownElsewhere {
    fn drop(&mut self) {
        show_by(None);
    }
}

/// The log of this process.
#[derive(Debug)]
pub(crate) struct Log {
    thread: Arc<Mutex<Option<WorkerGuard>>>,
}

impl Drop for Log {
    fn drop(&mut self) {
        drop(self.thread.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Hands every line to whoever shows it.
#[derive(Default)]
struct Writer {
    lines: OnceLock<NonBlocking>,
    thread: Arc<Mutex<Option<WorkerGuard>>>,
}

impl Writer {
    fn started(&self) -> &NonBlocking {
        self.lines.get_or_init(|| {
            let writer = NonBlockingBuilder::default().buffered_lines_limit(WAITING_LINES).lossy(true);
            let (lines, guard) = writer.thread_name("log").finish(stderr());
            *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
            lines
        })
    }
}

impl<'a> MakeWriter<'a> for Writer {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        match SHOWN_BY.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            Some(say) => Line::Said(say),
            None => Line::Written(self.started().clone()),
        }
    }
}

/// An event as one line: a line break inside it, in a file's name or a peer's words, could forge another event.
fn in_one_line(line: &[u8]) -> Cow<'_, [u8]> {
    let end = line.strip_suffix(b"\n").map_or(line.len(), <[u8]>::len);
    let (text, rest) = line.split_at(end);
    if !text.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return line.into();
    }
    let mut shown = Vec::with_capacity(line.len() + 8);
    for byte in text {
        match byte {
            b'\n' => shown.extend(b"\\n"),
            b'\r' => shown.extend(b"\\r"),
            other => shown.push(*other),
        }
    }
    shown.extend(rest);
    shown.into()
}

/// Where one line goes, which is written at once.
enum Line {
    Written(NonBlocking),
    Said(Arc<Say>),
}

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let shown = in_one_line(line);
        match self {
            Self::Written(lines) => lines.write_all(&shown)?,
            Self::Said(say) => say(&String::from_utf8_lossy(&shown)),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Written(lines) => lines.flush(),
            Self::Said(_) => Ok(()),
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
