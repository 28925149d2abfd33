//! What a server writes that is no message, told on stderr as it comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::budget::Budget;
use crate::ui::progress::Bars;
use crate::ui::text::one_line;

/// So many lines are told of one by one.
const MAX_LINES: usize = 5;

/// How the engine tells of a line that is no message.
const LINE: &str = "not a message: ";

/// The same of a line that has begun and has no end.
const UNFINISHED: &str = "a line without an end: ";

/// How long an answer that cannot be used is held back: a little longer than the engine waits for a better one, since the
/// error of the request tells of it otherwise.
const HOLD: Duration = Duration::from_millis(1_500);

const ADVICE: &str =
    "refmcp: a stdio server must write nothing but messages to standard output; log to stderr instead\n";

const ADVICE_ON_ENDS: &str = "refmcp: a stdio server must end each message with a line break, and flush it\n";

/// Tells of input that was left out, up to a limit.
pub(crate) struct IgnoredInput {
    bars: Bars,
    told: AtomicUsize,
    latest: Mutex<String>,
    /// An answer that cannot be used and was not told of yet.
    held: Mutex<Option<String>>,
    /// Whether a task waits to tell of it.
    is_waiting: AtomicBool,
    /// The first line of a program that is no message.
    first_line: Mutex<Option<String>>,
    /// Whether the server is a program whose standard output carries the messages.
    is_program: bool,
    /// How long the server is waited for.
    limit: String,
}

impl IgnoredInput {
    pub(crate) fn new(bars: &Bars, is_program: bool, budget: &Budget) -> Self {
        Self {
            bars: bars.clone(),
            told: AtomicUsize::new(0),
            latest: Mutex::default(),
            held: Mutex::default(),
            is_waiting: AtomicBool::new(false),
            first_line: Mutex::default(),
            is_program,
            limit: budget.allowance(),
        }
    }

    /// Something was left out. An answer that cannot be used is told of once: by the error of the request that it ends, or
    /// a moment later.
    pub(crate) fn tell(self: &Arc<Self>, what: &str) {
        what.clone_into(&mut self.latest.lock());
        let is_answer = !what.starts_with(LINE);
        let held = is_answer.then(|| what.to_owned());
        let earlier = std::mem::replace(&mut *self.held.lock(), held).filter(|earlier| earlier != what);
        if let Some(earlier) = earlier {
            self.say(&earlier);
        }
        if !is_answer {
            return self.say(what);
        }
        // A server may send such answers without end.
        if self.is_waiting.swap(true, Ordering::Relaxed) {
            return;
        }
        let this = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(HOLD).await;
            this.is_waiting.store(false, Ordering::Relaxed);
            this.release();
        });
    }

    /// Tells of an answer that was held back and ended no request.
    pub(crate) fn release(&self) {
        let held = self.held.lock().take();
        if let Some(held) = held {
            self.say(&held);
        }
    }

    /// A request failed, for this reason.
    pub(crate) fn failed(&self, why: &str) {
        let mut held = self.held.lock();
        if held.as_ref().is_some_and(|held| why.contains(held)) {
            *held = None;
        }
    }

    fn say(&self, what: &str) {
        let told = self.told.fetch_add(1, Ordering::Relaxed);
        let line = what.strip_prefix(LINE);
        let unfinished = line.and_then(|line| line.strip_prefix(UNFINISHED));
        if told < MAX_LINES {
            self.bars.say(&match unfinished {
                Some(begun) => format!(
                    "refmcp: the server has begun a line and not ended it: {}; waiting for the rest, {}\n",
                    one_line(begun),
                    self.limit
                ),
                None => format!("refmcp: ignored from the server: {}\n", one_line(what)),
            });
        }
        if let Some(line) = line.filter(|_| self.is_program) {
            let mut first = self.first_line.lock();
            if first.is_none() {
                *first = Some(line.to_owned());
                let is_message = unfinished.is_some_and(|begun| begun.trim_start().starts_with('{'));
                self.bars.say(if is_message { ADVICE_ON_ENDS } else { ADVICE });
            }
        }
        if told == MAX_LINES {
            self.bars.say("refmcp: more that was ignored is not shown; --record FILE writes all of it\n");
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
