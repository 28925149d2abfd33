//! A bounded number of seeds: conversations hold their invariants, and do what they are to try out.

use super::*;
use crate::history::{Fault, Outcome};

#[test]
fn conversations_hold_their_invariants() {
    let summary = run(0..2_000).unwrap_or_else(|failure| panic!("{failure}"));
    for outcome in [
        Outcome::Result,
        Outcome::ServerError,
        Outcome::Lost,
        Outcome::TimedOut,
        Outcome::Cancelled,
        Outcome::Refused,
    ] {
        assert!(summary.outcomes.contains_key(&outcome), "{outcome:?} in {summary}");
    }
    for fault in [
        Fault::Cut,
        Fault::Reconnected,
        Fault::SessionsLost,
        Fault::Restarted,
        Fault::HandlerFails,
        Fault::HandlerHangs,
        Fault::InputRefused,
        Fault::InputWithheld,
        Fault::LogOverrun,
    ] {
        assert!(summary.faults.contains_key(&fault), "{fault:?} in {summary}");
    }
    let counts = [summary.resumed, summary.cancellations, summary.replayed_effects];
    assert!(counts.iter().all(|count| *count > 100), "{summary}");
}

#[test]
fn a_seed_always_does_the_same() {
    for seed in 0..50 {
        assert_eq!(transcript(seed), transcript(seed), "seed {seed}");
    }
}
