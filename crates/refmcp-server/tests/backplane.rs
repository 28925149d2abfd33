//! The state of one process keeps the contract of every backplane.

use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use refmcp_server::backplane::MemoryBackplane;
use refmcp_testkit::backplane::races::RACES;
use refmcp_testkit::backplane::{BackplaneFixture, CASES, Case, Replicas, steps};

fn fixture(tick: Duration) -> BackplaneFixture {
    BackplaneFixture::new(tick, |settings| async {
        let memory = Arc::new(MemoryBackplane::new(settings));
        Replicas { one: memory.clone(), other: memory }
    })
}

async fn run(cases: &[Case], name: &str, tick: Duration) {
    let case = cases.iter().find(|case| case.name == name).expect("a case of the contract");
    (case.run)(&fixture(tick)).await;
}

macro_rules! contract {
    ($($name:ident)*) => {
        $(#[tokio::test(start_paused = true)]
        async fn $name() {
            run(CASES, stringify!($name), Duration::from_secs(1)).await;
        })*

        #[test]
        fn the_contract_is_complete() {
            let run = [$(stringify!($name)),*];
            assert_eq!(run.to_vec(), CASES.iter().map(|case| case.name).collect::<Vec<_>>());
        }
    };
}

contract! {
    a_session_is_known_to_every_replica
    an_id_opens_one_session
    a_session_ends_when_it_is_not_used
    a_session_stays_while_a_reader_waits
    what_the_server_says_is_no_use
    facts_change_by_version
    a_closed_session_is_unknown_with_all_in_it
    closing_a_session_wakes_its_waiters
    sessions_have_a_limit
    long_facts_are_refused
    streams_have_numbers_of_their_own
    events_have_no_holes
    a_retry_changes_nothing
    nothing_follows_the_end
    a_forgotten_stream_is_answered_once
    streams_have_a_limit
    long_events_are_refused
    every_replica_posts_to_the_get_stream
    the_get_stream_has_no_single_writer
    a_reader_goes_on_exactly_there
    reading_begins_where_something_follows
    the_last_reader_reads
    a_reader_can_be_sent_away
    the_unread_begins_behind_every_reader
    a_reader_further_behind_makes_nothing_unread
    a_waiting_reader_hears_of_news
    earlier_events_are_read_at_once
    what_is_dropped_is_said_to_be_gone
    the_final_event_is_not_dropped
    a_full_session_keeps_unread_ends
    an_ended_stream_is_kept_for_a_while
    tombstones_have_a_limit
    an_answer_reaches_its_waiter
    the_first_answer_counts
    a_late_answer_is_late
    waiting_for_an_answer_can_be_given_up
    questions_have_a_limit
    a_parked_call_is_claimed_once
    a_claimed_stream_has_another_writer
    a_parked_call_expires
    parked_calls_have_a_limit
    cancelling_ends_all_that_runs_under_an_id
    a_writer_hears_why_it_should_stop
    a_task_is_known_to_every_replica
    a_task_changes_by_version
    a_change_of_a_task_is_heard
    a_task_expires
    tasks_are_listed_by_owner
    tasks_have_limits
    a_replica_is_there_while_it_says_so
    changes_are_told_once_each
    a_waiter_learns_of_a_change
    a_key_is_good_once
    keys_have_a_limit
}

macro_rules! races {
    ($($name:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $name() {
            run(RACES, stringify!($name), Duration::from_millis(200)).await;
        })*

        #[test]
        fn the_races_are_complete() {
            let run = [$(stringify!($name)),*];
            assert_eq!(run.to_vec(), RACES.iter().map(|case| case.name).collect::<Vec<_>>());
        }
    };
}

races! {
    one_creates_a_session
    no_change_of_facts_is_lost
    one_retry_is_stored
    one_reader_remains
    readers_follow_a_writer
    posts_have_numbers_without_holes
    one_claims_a_call
    one_uses_a_key
    one_answer_counts
    an_end_or_a_cancellation
    closing_wins_over_everything
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_steps_are_answered_as_the_model_allows(numbers in vec(any::<u64>(), 1..400)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(steps::play(&fixture(Duration::from_secs(1)), &numbers));
    }
}
