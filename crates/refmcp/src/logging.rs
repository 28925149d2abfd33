//! The log, on stderr: stdout belongs to the protocol. A reader of stderr that is slow, or stopped, must not slow the
//! server down, so a thread writes, and lines that it cannot keep up with are dropped. The thread starts with the first
//! line: most commands log nothing.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write, stderr};
use std::sync::Arc;

use anyhow::Result;
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, registry};

use crate::args::{LogFormat, usage};
use crate::ui::redact::masked;
use crate::ui::suggest::nearest;
use crate::ui::text::one_line;

/// Lines that may wait to be written.
const WAITING_LINES: usize = 4096;

/// Shows a line; it must not block.
type LineSink = dyn Fn(&str) + Send + Sync;

/// Where lines go.
static DESTINATION: Mutex<Destination> = Mutex::new(Destination { sink: None, thread: None });

/// The destination of lines.
struct Destination {
    /// What takes them instead of stderr, while a [`Redirect`] or [`Held`] is there.
    sink: Option<Arc<LineSink>>,
    /// The thread that writes them to stderr, once there was one.
    thread: Option<(NonBlocking, WorkerGuard)>,
}

impl Destination {
    /// Waits until the lines so far are written; the next one starts another thread.
    fn flush() {
        let thread = DESTINATION.lock().thread.take();
        drop(thread);
    }
}

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogStyle {
    /// As lines of a log, with time, level and module: the log of a server.
    Lines,
    /// Warnings and errors like other messages of the program: a person reads them beside the output of a command.
    Messages,
}

/// Starts to log what the filter lets through. The last lines are written when the returned value is dropped.
pub(crate) fn start(filter: &str, format: LogFormat, style: LogStyle) -> Result<Log> {
    // A level alone, the usual case, is parsed much faster than a filter: short commands notice.
    let filter: Box<dyn Layer<Registry> + Send + Sync> = match filter.parse::<LevelFilter>() {
        Ok(level) => Box::new(level),
        Err(_) => Box::new(parse_filter(filter)?),
    };
    let lines = fmt::layer()
        .with_writer(Writer)
        .with_ansi(format == LogFormat::Text && stderr().is_terminal())
        // It would report a closed stderr to stderr, and panic.
        .log_internal_errors(false);
    match (format, style) {
        (LogFormat::Text, LogStyle::Lines) => registry().with(filter).with(lines).init(),
        (LogFormat::Text, LogStyle::Messages) => {
            registry().with(filter).with(lines.map_event_format(MessageFormat)).init();
        }
        (LogFormat::Json, _) => registry().with(filter).with(lines.json().flatten_event(true)).init(),
    }
    Ok(Log)
}

/// A filter of several words. A word alone is the name of a module, so a mistyped level would be one, and log nothing.
fn parse_filter(filter: &str) -> Result<EnvFilter> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    for word in filter.split(',').map(str::trim).filter(|word| !word.contains([':', '=', '['])) {
        if let Some(level) = nearest(word, &LEVELS).filter(|level| !level.eq_ignore_ascii_case(word)) {
            return Err(usage!("--log {word}: did you mean {level:?}?").into());
        }
    }
    EnvFilter::try_new(filter).map_err(|error| usage!("--log {filter}: not a filter: {error}").into())
}

/// Warnings and errors as messages of the program, other events as lines of a log.
struct MessageFormat<F>(F);

impl<S, N, F> FormatEvent<S, N> for MessageFormat<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: fmt::format::Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        if *event.metadata().level() > Level::WARN {
            return self.0.format_event(context, writer, event);
        }
        let mut message = EventMessage::default();
        event.record(&mut message);
        let about = if message.fields.is_empty() {
            String::new()
        } else {
            format!(" ({})", one_line(&message.fields.join(", ")))
        };
        writeln!(writer, "refmcp: {}{about}", one_line(&message.text))
    }
}

/// The text of an event, and its other fields.
#[derive(Default)]
struct EventMessage {
    text: String,
    fields: Vec<String>,
}

impl Visit for EventMessage {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.text = format!("{value:?}"),
            name => self.fields.push(format!("{name} {value:?}")),
        }
    }
}

/// Hands every line to this function until the returned value is dropped: the user of a terminal knows where on it
/// there is room.
pub(crate) fn redirect(sink: impl Fn(&str) + Send + Sync + 'static) -> Redirect {
    DESTINATION.lock().sink = Some(Arc::new(sink));
    Redirect
}

/// Keeps lines until the returned value is dropped, while a question waits for its answer at the end of a line. `None` where
/// lines are redirected.
pub(crate) fn hold() -> Option<Held> {
    Destination::flush();
    let mut destination = DESTINATION.lock();
    if destination.sink.is_some() {
        return None;
    }
    let held = Held::default();
    let lines = held.lines.clone();
    destination.sink = Some(Arc::new(move |line| {
        let mut lines = lines.lock();
        if lines.len() < WAITING_LINES {
            lines.push(line.to_owned());
        }
    }));
    Some(held)
}

/// Lines that are written once this is dropped.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Held {
    lines: Arc<Mutex<Vec<String>>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        DESTINATION.lock().sink = None;
        // A closed stderr is not read.
        let _ = stderr().write_all(self.lines.lock().concat().as_bytes());
    }
}

/// Keeps lines from stderr.
pub(crate) struct Redirect;

impl Drop for Redirect {
    fn drop(&mut self) {
        DESTINATION.lock().sink = None;
    }
}

/// The log of this process.
pub(crate) struct Log;

impl Drop for Log {
    fn drop(&mut self) {
        Destination::flush();
    }
}

/// Starts the thread with the first line.
struct Writer;

impl<'a> MakeWriter<'a> for Writer {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        let mut destination = DESTINATION.lock();
        if let Some(sink) = &destination.sink {
            return Line::Sink(sink.clone());
        }
        let (lines, _) = destination.thread.get_or_insert_with(|| {
            let writer = NonBlockingBuilder::default().buffered_lines_limit(WAITING_LINES).lossy(true);
            writer.thread_name("log").finish(stderr())
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
    fn lines_are_held_back_from_a_question() {
        let held = hold().unwrap();
        assert!(hold().is_none());
        Writer.make_writer().write_all(b"WARN a\n").unwrap();
        assert_eq!(*held.lines.lock(), ["WARN a\n"]);
        drop(held);
        assert!(matches!(Writer.make_writer(), Line::Stderr(_)));
    }

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
