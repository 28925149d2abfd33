//! Standard output. A reader that leaves has read enough, and that is no fault.

use std::io::{self, Write};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::args::OutputFormat;

/// Prints the result of a command that exchanges no messages: text for people, or one JSON document, in JSONL on one line.
pub(crate) fn show(
    format: OutputFormat,
    result: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<()> {
    print_result(match format {
        OutputFormat::Text => Ok(text()),
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

fn print_result(text: serde_json::Result<String>) -> Result<()> {
    let text = text.context("cannot write the result as JSON")?;
    print(text.as_bytes()).context("cannot write to standard output")
}

/// Writes to standard output.
pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    write_wanted(&mut io::stdout().lock(), bytes)
}

fn write_wanted(output: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => Ok(()),
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
