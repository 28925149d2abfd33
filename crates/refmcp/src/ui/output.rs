//! Standard output and stderr. A reader that leaves has read enough, and that is no fault.

use std::io::{self, IsTerminal, Write};
#[cfg(unix)]
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use tokio::sync::Notify;

use super::text::escaped_json;
use crate::args::OutputFormat;

const CANNOT_PRINT: &str = "cannot write to standard output";

/// A write to standard output found that its reader had left.
static READER_LEFT: Notify = Notify::const_new();

/// How often it is looked whether standard output still has a reader.
#[cfg(unix)]
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Prints the result of a command that exchanges no messages: text for people, or one JSON document, in JSONL on one line.
pub(crate) fn show(
    format: OutputFormat,
    result: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<()> {
    print_result(match format {
        OutputFormat::Text => return print(text().as_bytes()).context(CANNOT_PRINT),
        OutputFormat::Json => serde_json::to_string_pretty(result).map(|json| json + "\n"),
        OutputFormat::Jsonl => serde_json::to_string(result).map(|json| json + "\n"),
    })
}

/// The same for a list, of which JSONL has each item on a line.
pub(crate) fn show_list<T: Serialize>(
    format: OutputFormat,
    items: &[T],
    text: impl FnOnce() -> String,
) -> Result<()> {
    if format != OutputFormat::Jsonl {
        return show(format, &items, text);
    }
    print_result(items.iter().map(|item| serde_json::to_string(item).map(|json| json + "\n")).collect())
}

/// Writes where clients are served. A closed standard output only loses that; they are served all the same.
pub(crate) fn announce(banner: &str) {
    if let Err(error) = print(banner.as_bytes()) {
        tracing::debug!(%error, "the banner was not read");
    }
}

fn print_result(text: serde_json::Result<String>) -> Result<()> {
    print_json(&text.context("cannot write the result as JSON")?).context(CANNOT_PRINT)
}

/// Writes JSON to standard output. A terminal gets characters that would control it as escape sequences.
pub(crate) fn print_json(json: &str) -> io::Result<()> {
    if io::stdout().is_terminal() { print(escaped_json(json).as_bytes()) } else { print(json.as_bytes()) }
}

/// Writes JSON to stderr, in the same way.
pub(crate) fn print_json_aside(json: &str) {
    if io::stderr().is_terminal() { print_aside(&escaped_json(json)) } else { print_aside(json) }
}

/// Writes to standard output.
pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    write_wanted(&mut io::stdout().lock(), bytes)
}

/// Writes to stderr. Where that fails, there is no other place to tell of it, and it is no reason to end.
pub(crate) fn print_aside(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Waits until standard output has no reader any more: by the pipe itself where the system tells of it, else by a write.
pub(crate) async fn reader_left() {
    tokio::select! {
        () = READER_LEFT.notified() => {}
        () = pipe_broken() => {}
    }
}

#[cfg(unix)]
async fn pipe_broken() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    // The end of a terminal is told by a signal.
    if io::stdout().is_terminal() {
        return std::future::pending().await;
    }
    loop {
        let stdout = io::stdout();
        let mut pipe = [PollFd::new(&stdout, PollFlags::empty())];
        let found = poll(&mut pipe, Some(&Timespec::default()));
        let [pipe] = pipe;
        if found.is_ok() && pipe.revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            return;
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

#[cfg(not(unix))]
async fn pipe_broken() {
    std::future::pending().await
}

fn write_wanted(output: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            READER_LEFT.notify_one();
            Ok(())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_a_reader_who_left_is_no_fault() {
        assert!(write_wanted(&mut Failing(io::ErrorKind::BrokenPipe), b"x").is_ok());
        assert!(write_wanted(&mut Failing(io::ErrorKind::StorageFull), b"x").is_err());
    }
}
