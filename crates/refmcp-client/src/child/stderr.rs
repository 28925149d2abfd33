//! The standard error of a server: always read, so that the server never blocks on it, and limited in rate.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_transport::Observed;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::time::{Instant, sleep_until};

use super::StderrTo;
use crate::redact::Secrets;

/// Bytes of the longest line that is handed on whole.
const MAX_LINE: usize = 8 << 10;
/// Bytes that are handed on in a second.
const PER_SECOND: usize = 256 << 10;
const SECOND: Duration = Duration::from_secs(1);
/// Bytes that are kept to explain an end.
const MAX_TAIL: usize = 4 << 10;
/// Characters of these that an error quotes.
const MAX_QUOTE: usize = 500;

/// What a server wrote to its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StderrLine<'a> {
    /// A line, without its end. It may hold any characters, those that steer a terminal too.
    Line(&'a str),
    /// So many bytes were left out: the end of a line that was too long, or lines that came too fast.
    Omitted(u64),
}

/// The last lines of standard error, which the error of a server's end quotes.
pub(super) struct StderrTail {
    kept: Mutex<Vec<u8>>,
    /// What is not quoted of it; without this, nothing is.
    secrets: Option<Secrets>,
}

impl StderrTail {
    pub(super) fn new(secrets: Option<Secrets>) -> Self {
        Self { kept: Mutex::default(), secrets }
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock();
        let bytes = last(bytes, MAX_TAIL);
        let surplus = (kept.len() + bytes.len()).saturating_sub(MAX_TAIL).min(kept.len());
        kept.drain(..surplus);
        kept.extend_from_slice(bytes);
    }

    /// The end of it, without secrets and harmless to any terminal: a line behind a space, or several lines that are
    /// indented below.
    pub(super) fn quote(&self) -> Option<String> {
        let secrets = self.secrets.as_ref()?;
        let kept = self.kept.lock();
        let text = String::from_utf8_lossy(&kept);
        // Before it is cut: a part of a secret would not be known.
        let text = secrets.masked(text.trim());
        let surplus = text.chars().count().saturating_sub(MAX_QUOTE);
        let mut quote = if surplus > 0 { "…".to_owned() } else { String::new() };
        for character in text.chars().skip(surplus) {
            match character {
                '\n' => quote.push('\n'),
                '\r' => {}
                character if character.is_control() => quote.extend(character.escape_default()),
                character => quote.push(character),
            }
        }
        let lines: Vec<&str> = quote.lines().filter(|line| !line.trim().is_empty()).collect();
        match lines.as_slice() {
            [] => None,
            [line] => Some(format!(" {line}")),
            lines => Some(lines.iter().map(|line| format!("\n  {line}")).collect()),
        }
    }
}

fn last(bytes: &[u8], count: usize) -> &[u8] {
    bytes.get(bytes.len().saturating_sub(count)..).unwrap_or_default()
}

/// Reads everything that comes, until nothing more does.
pub(super) async fn drain(
    stream: Option<ChildStderr>,
    to: StderrTo,
    stderr_tail: Arc<StderrTail>,
    observed: Observed,
) -> io::Result<()> {
    let Some(mut stream) = stream else { return Ok(()) };
    let mut lines = match to {
        StderrTo::Lines(hand_on) => Some(Lines::new(hand_on)),
        StderrTo::Inherit | StderrTo::Discard => None,
    };
    let mut chunk = vec![0; 16 << 10];
    loop {
        let due = lines.as_ref().and_then(Lines::due);
        let count = tokio::select! {
            count = stream.read(&mut chunk) => count?,
            () = async { sleep_until(due.unwrap_or_else(Instant::now)).await }, if due.is_some() => {
                if let Some(lines) = &mut lines {
                    lines.tell_left_out();
                }
                continue;
            }
        };
        let bytes = chunk.get(..count).unwrap_or_default();
        stderr_tail.keep(bytes);
        if !bytes.is_empty() {
            observed.stderr(bytes);
        }
        if let Some(lines) = &mut lines {
            if bytes.is_empty() {
                lines.end();
            } else {
                lines.take(bytes, Instant::now());
            }
        }
        if bytes.is_empty() {
            return Ok(());
        }
    }
}

/// Cuts what comes into lines, and limits how many are handed on.
struct Lines {
    hand_on: Arc<dyn Fn(StderrLine<'_>) + Send + Sync>,
    line: Vec<u8>,
    /// Bytes of the line that are too many.
    cut: u64,
    /// The end of the second that is counted, and the bytes that may still be handed on in it.
    second: Option<(Instant, usize)>,
    left_out: u64,
}

impl Lines {
    fn new(hand_on: Arc<dyn Fn(StderrLine<'_>) + Send + Sync>) -> Self {
        Self { hand_on, line: Vec::new(), cut: 0, second: None, left_out: 0 }
    }

    fn take(&mut self, bytes: &[u8], now: Instant) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, complete) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let fits = text.len().min(MAX_LINE.saturating_sub(self.line.len()));
            self.line.extend_from_slice(text.get(..fits).unwrap_or_default());
            self.cut += (text.len() - fits) as u64;
            if complete {
                self.finish_line(now);
            }
        }
    }

    fn finish_line(&mut self, now: Instant) {
        let (end, budget) = match self.second {
            Some((end, budget)) if now < end => (end, budget),
            _ => {
                self.tell_left_out();
                (now + SECOND, PER_SECOND)
            }
        };
        // A blank line costs something too, or there would be no end of them.
        let cost = self.line.len() + 1;
        if cost > budget {
            self.left_out += cost as u64;
            // A shorter line that still fits would stand where it does not belong.
            self.second = Some((end, 0));
        } else {
            self.second = Some((end, budget - cost));
            let text = String::from_utf8_lossy(&self.line);
            (self.hand_on)(StderrLine::Line(text.strip_suffix('\r').unwrap_or(&text)));
        }
        self.left_out += std::mem::take(&mut self.cut);
        self.line.clear();
    }

    /// When it is time to tell that something was left out, though nothing more comes.
    fn due(&self) -> Option<Instant> {
        let (end, _) = self.second?;
        (self.left_out > 0).then_some(end)
    }

    fn tell_left_out(&mut self) {
        self.second = None;
        if self.left_out > 0 {
            (self.hand_on)(StderrLine::Omitted(std::mem::take(&mut self.left_out)));
        }
    }

    /// Nothing more comes: the last line may lack its end.
    fn end(&mut self) {
        if !self.line.is_empty() {
            self.finish_line(Instant::now());
        }
        self.tell_left_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> (Lines, Arc<Mutex<Vec<String>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let writing = seen.clone();
        let hand_on = move |line: StderrLine<'_>| {
            writing.lock().push(match line {
                StderrLine::Line(text) => text.chars().take(10).collect(),
                StderrLine::Omitted(bytes) => format!("{bytes} left out"),
            });
        };
        (Lines::new(Arc::new(hand_on)), seen)
    }

    #[test]
    fn what_is_left_out_is_told_where_it_was() {
        let (mut lines, seen) = lines();
        let now = Instant::now();
        assert_eq!(lines.due(), None);
        lines.take(&[b'x'; MAX_LINE], now);
        lines.take(b"yy\nnext\n", now);
        assert_eq!(lines.due(), Some(now + SECOND));
        lines.tell_left_out();
        assert_eq!(lines.due(), None);
        assert_eq!(*seen.lock(), ["xxxxxxxxxx", "next", "2 left out"]);
    }

    #[test]
    fn a_flood_is_let_through_by_the_second() {
        let (mut lines, seen) = lines();
        let now = Instant::now();
        let flood = b"complaint\n".repeat(PER_SECOND);
        lines.take(&flood, now);
        let handed_on = PER_SECOND / 10;
        assert_eq!(seen.lock().len(), handed_on);
        lines.take(b"a\n", now + SECOND / 2);
        assert_eq!(seen.lock().len(), handed_on, "not even a short one");
        lines.take(b"b\n", now + SECOND);
        let left_out = flood.len() - handed_on * 10 + 2;
        assert_eq!(seen.lock()[handed_on..], [format!("{left_out} left out"), "b".to_owned()]);
    }

    #[test]
    fn the_tail_is_the_last() {
        let tail = StderrTail::new(Some(Secrets::default().with_value("hush")));
        assert_eq!(tail.quote(), None);
        tail.keep(b" \n");
        assert_eq!(tail.quote(), None);
        tail.keep(b"one\n");
        assert_eq!(tail.quote().unwrap(), " one");
        tail.keep(b"\r\nkey hush\n");
        assert_eq!(tail.quote().unwrap(), "\n  one\n  key ***");
        for _ in 0..100 {
            tail.keep(&[b'x'; MAX_TAIL - 1]);
            tail.keep(&[b'y'; MAX_TAIL * 3]);
            tail.keep(b"z");
            assert_eq!(tail.kept.lock().len(), MAX_TAIL);
        }
        let quote = tail.quote().unwrap();
        assert!(quote.starts_with(" …yy") && quote.ends_with("yz"), "{quote}");
        assert_eq!(quote.chars().count(), MAX_QUOTE + 2);
    }
}
