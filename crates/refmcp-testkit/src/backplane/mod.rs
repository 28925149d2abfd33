//! What every backplane must do, as cases to run against one.
//!
//! An implementation says how to make one, and how long a tick is: every time in the cases is a number of ticks, which
//! pass on tokio's clock. A state that lives in the process runs on a paused clock and needs no time at all; one
//! behind a socket runs on the real clock, with ticks that are long enough for a few round trips.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use refmcp_server::backplane::MemoryBackplane;
//! use refmcp_testkit::backplane::{BackplaneFixture, CASES, Replicas};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let fixture = BackplaneFixture::new(Duration::from_secs(1), |settings| async {
//!     let memory = Arc::new(MemoryBackplane::new(settings));
//!     Replicas { one: memory.clone(), other: memory }
//! });
//! for case in CASES {
//!     (case.run)(&fixture).await;
//! }
//! # }
//! ```
//!
//! Besides the [`CASES`] there are [`races`], for a runtime with several threads, and [`steps`]: any sequence of
//! numbers is a sequence of changes and questions, whose answers are compared with those of a small model.

mod calls;
mod fixture;
mod model;
pub mod races;
mod reading;
mod sessions;
pub mod steps;
mod tasks;
mod topics;
mod writing;

use std::future::Future;
use std::pin::Pin;

pub use fixture::{BackplaneFixture, Replicas};

/// Something that must hold.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// What holds.
    pub name: &'static str,
    /// Panics when it does not.
    pub run: for<'a> fn(&'a BackplaneFixture) -> Running<'a>,
}

/// A case that runs.
pub type Running<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

macro_rules! cases {
    ($($group:ident::$name:ident,)*) => {
        &[$(Case { name: stringify!($name), run: |fixture| Box::pin($group::$name(fixture)) },)*]
    };
}

/// Everything that must hold, on a runtime of any kind.
pub const CASES: &[Case] = cases! {
    sessions::a_session_is_known_to_every_replica,
    sessions::an_id_opens_one_session,
    sessions::a_session_ends_when_it_is_not_used,
    sessions::a_session_stays_while_a_reader_waits,
    sessions::what_the_server_says_is_no_use,
    sessions::facts_change_by_version,
    sessions::a_closed_session_is_unknown_with_all_in_it,
    sessions::closing_a_session_wakes_its_waiters,
    sessions::sessions_have_a_limit,
    sessions::long_facts_are_refused,
    writing::streams_have_numbers_of_their_own,
    writing::events_have_no_holes,
    writing::a_retry_changes_nothing,
    writing::nothing_follows_the_end,
    writing::a_forgotten_stream_is_answered_once,
    writing::streams_have_a_limit,
    writing::long_events_are_refused,
    writing::every_replica_posts_to_the_get_stream,
    writing::the_get_stream_has_no_single_writer,
    reading::a_reader_goes_on_exactly_there,
    reading::reading_begins_where_something_follows,
    reading::the_last_reader_reads,
    reading::a_reader_can_be_sent_away,
    reading::the_unread_begins_behind_every_reader,
    reading::a_reader_further_behind_makes_nothing_unread,
    reading::a_waiting_reader_hears_of_news,
    reading::earlier_events_are_read_at_once,
    reading::what_is_dropped_is_said_to_be_gone,
    reading::the_final_event_is_not_dropped,
    reading::a_full_session_keeps_unread_ends,
    reading::an_ended_stream_is_kept_for_a_while,
    reading::tombstones_have_a_limit,
    calls::an_answer_reaches_its_waiter,
    calls::the_first_answer_counts,
    calls::a_late_answer_is_late,
    calls::waiting_for_an_answer_can_be_given_up,
    calls::questions_have_a_limit,
    calls::a_parked_call_is_claimed_once,
    calls::a_claimed_stream_has_another_writer,
    calls::a_parked_call_expires,
    calls::parked_calls_have_a_limit,
    calls::cancelling_ends_all_that_runs_under_an_id,
    calls::a_writer_hears_why_it_should_stop,
    tasks::a_task_is_known_to_every_replica,
    tasks::a_task_changes_by_version,
    tasks::a_change_of_a_task_is_heard,
    tasks::a_task_expires,
    tasks::tasks_are_listed_by_owner,
    tasks::tasks_have_limits,
    tasks::a_replica_is_there_while_it_says_so,
    topics::changes_are_told_once_each,
    topics::a_waiter_learns_of_a_change,
    topics::a_key_is_good_once,
    topics::keys_have_a_limit,
};
