//! What a server writes that is no message, told on stderr as it comes.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::ui::progress::Bars;
use crate::ui::text::one_line;

/// So many lines are told of one by one.
const MOST: usize = 5;

/// How the engine tells of a line that is no message.
const LINE: &str = "not a message: ";

const ADVICE: &str =
    "refmcp: a stdio server must write nothing but messages to standard output; log to stderr instead\n";

/// Tells of input that was left out, up to a limit.
#[derive(Debug)]
pub(crate) struct IgnoredInput {
    bars: Bars,
    told: AtomicUsize,
    latest: Mutex<String>,
    /// The first line of a program that is no message.
    first_line: Mutex<Option<String>>,
    /// Whether the server is a program whose standard output carries the messages.
    is_program: bool,
}

impl IgnoredInput {
    pub(crate) fn new(bars: &Bars, is_program: bool) -> Self {
        let (told, latest, first_line) = (AtomicUsize::new(0), Mutex::default(), Mutex::default());
        Self { bars: bars.clone(), told, latest, first_line, is_program }
    }

    /// Something was left out.
    pub(crate) fn tell(&self, what: &str) {
        what.clone_into(&mut self.latest.lock());
        let told = self.told.fetch_add(1, Ordering::Relaxed);
        if told < MOST {
            self.bars.say(&format!("refmcp: ignored from the server: {}\n", one_line(what)));
        }
        if let Some(line) = what.strip_prefix(LINE).filter(|_| self.is_program) {
            let mut first = self.first_line.lock();
            if first.is_none() {
                *first = Some(line.to_owned());
                self.bars.say(ADVICE);
            }
        }
        if told == MOST {
            self.bars.say("refmcp: more that was ignored is not shown; --trace FILE writes all of it\n");
        }
    }

    /// The first line that a program wrote in place of a message.
    pub(crate) fn first_line(&self) -> Option<String> {
        self.first_line.lock().clone()
    }

    /// Whether this is what was left out last: the rule that it breaks need not be told beside it.
    pub(crate) fn is_latest(&self, what: &str) -> bool {
        *self.latest.lock() == what
    }
}
