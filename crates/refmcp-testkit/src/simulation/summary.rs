//! What has happened in many conversations: a simulation that never does something checks nothing of it.

use std::collections::BTreeMap;
use std::fmt;

use crate::history::{Event, Fault, Outcome};

/// How often what has happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Conversations.
    pub conversations: u64,
    /// Events of their histories.
    pub events: u64,
    /// Requests by what became of them.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Injected faults.
    pub faults: BTreeMap<Fault, u64>,
    /// Streams that were resumed.
    pub resumed: u64,
    /// Cancellations that the server has processed.
    pub cancellations: u64,
    /// Side effects of handlers that ran again.
    pub replayed_effects: u64,
}

impl Summary {
    pub(super) fn add(&mut self, history: &[Event]) {
        self.conversations += 1;
        self.events += history.len() as u64;
        for event in history {
            match event {
                Event::Outcome { outcome, .. } => *self.outcomes.entry(*outcome).or_default() += 1,
                Event::Fault { fault, .. } => *self.faults.entry(*fault).or_default() += 1,
                Event::Resumed { .. } => self.resumed += 1,
                Event::CancellationProcessed { .. } => self.cancellations += 1,
                Event::SideEffect { round, .. } if *round > 0 => self.replayed_effects += 1,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} conversations, {} events\noutcomes: {:?}\nfaults: {:?}\n{} streams resumed, {} cancellations \
             processed, {} side effects in later rounds",
            self.conversations,
            self.events,
            self.outcomes,
            self.faults,
            self.resumed,
            self.cancellations,
            self.replayed_effects
        )
    }
}
