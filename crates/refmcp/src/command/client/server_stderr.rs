//! The standard error of servers that are started: shown, hidden or written to a file, as the options say. The last
//! lines of one that is hidden are kept, to be told when the server fails.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use refmcp_client::child::{StderrLine, StderrTo};

use crate::args::{ServerStderr, SharedOptions};
use crate::store::append_private;
use crate::ui::progress::Bars;
use crate::ui::redact::masked;
use crate::ui::style::Paint;
use crate::ui::text::one_line;

/// Lines that are kept, and characters of each.
const KEPT_LINES: usize = 10;
const MAX_LINE_CHARACTERS: usize = 200;

/// The last lines that were not shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    fn keep(&self, line: &str) {
        let mut lines = self.0.lock();
        lines.push_back(one_line(line).chars().take(MAX_LINE_CHARACTERS).collect());
        while lines.len() > KEPT_LINES {
            lines.pop_front();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// What went wrong with the server, and the last that it wrote where that is not said already.
    pub(crate) fn added_to(&self, what: &str) -> String {
        let mut lines = self.0.lock();
        match lines.make_contiguous() {
            lines if lines.is_empty() || what.contains("; it last wrote:") => what.to_owned(),
            [line] => format!("{what}; it last wrote: {line}"),
            lines => {
                let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
                format!("{what}; it last wrote:{lines}")
            }
        }
    }
}

/// Where a server's standard error goes.
///
/// # Errors
///
/// The file cannot be written to.
pub(crate) fn stderr_to(shared: &SharedOptions, bars: &Bars, last: &LastLines) -> Result<StderrTo> {
    Ok(StderrTo::Lines(match &shared.server_stderr {
        ServerStderr::Show => {
            let paint = Paint::for_stream(&std::io::stderr(), shared.no_color);
            let bars = bars.clone();
            Arc::new(move |line| bars.say(&format!("{}\n", paint.faint(&one_line(&words(line))))))
        }
        ServerStderr::Hide => {
            let last = last.clone();
            Arc::new(move |line| last.keep(&words(line)))
        }
        ServerStderr::File(path) => {
            let (file, last) = (Mutex::new(opened(path)?), last.clone());
            Arc::new(move |line| {
                let line = words(line);
                last.keep(&line);
                // In one piece: another server may write to the same file.
                let written = file.lock().write_all(format!("{line}\n").as_bytes());
                if let Err(error) = written {
                    tracing::warn!("what the server writes to its stderr is lost: {error}");
                }
            })
        }
    }))
}

/// A file that only its owner reads: servers write all kinds of things.
fn opened(path: &Path) -> Result<File> {
    append_private(path).with_context(|| format!("--server-stderr: cannot write to {}", path.display()))
}

/// What a server wrote, without the secrets of targets.
fn words(line: StderrLine<'_>) -> String {
    match line {
        StderrLine::Line(line) => masked(line).into_owned(),
        StderrLine::Omitted(bytes) => format!("({bytes} bytes left out)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_told_once() {
        let last = LastLines::default();
        assert_eq!(last.added_to("it failed"), "it failed");
        for number in 0..KEPT_LINES + 2 {
            last.keep(&format!("line {number}{}", "x".repeat(MAX_LINE_CHARACTERS)));
        }
        let told = last.added_to("it failed");
        assert!(
            told.starts_with("it failed; it last wrote:\n  line 2x") && told.contains("\n  line 11x"),
            "{told}"
        );
        assert!(told.len() < KEPT_LINES * (MAX_LINE_CHARACTERS + 12) + 40, "{told}");
        assert_eq!(last.added_to(&told), told);
    }
}
