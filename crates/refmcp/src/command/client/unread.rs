//! What a server writes that is no message, told on stderr as it comes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::ui::progress::Bars;
use crate::ui::text::one_line;

/// So many lines are told of one by one.
const MOST: usize = 5;

/// Tells of input that was left out, up to a limit.
#[derive(Debug)]
pub(crate) struct UnreadInput {
    bars: Bars,
    told: AtomicUsize,
    latest: Mutex<String>,
}

impl UnreadInput {
    pub(crate) fn new(bars: &Bars) -> Self {
        Self { bars: bars.clone(), told: AtomicUsize::new(0), latest: Mutex::default() }
    }

    /// Something was left out.
    pub(crate) fn tell(&self, what: &str) {
        what.clone_into(&mut self.latest.lock().unwrap_or_else(PoisonError::into_inner));
        let told = self.told.fetch_add(1, Ordering::Relaxed);
        if told < MOST {
            self.bars.say(&format!("refmcp: ignored from the server: {}\n", one_line(what)));
        }
        if told == MOST {
            self.bars.say("refmcp: more that was ignored is not shown; --trace FILE writes all of it\n");
        }
    }

    /// Whether this is what was left out last: the rule that it breaks need not be told beside it.
    pub(crate) fn is_latest(&self, what: &str) -> bool {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) == what
    }
}
