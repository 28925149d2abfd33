//! Topics, whose changes reach every replica, and one-time keys.

use refmcp_server::backplane::{BackplaneSettings, OnceOutcome, TopicChanges};

use super::fixture::BackplaneFixture;

/// The names of what has changed, and where to go on.
fn names(changes: &TopicChanges) -> (Vec<&str>, u64) {
    assert!(!changes.missed, "nothing was forgotten");
    (changes.topics.iter().map(|(name, _)| &**name).collect(), changes.latest)
}

pub(super) async fn changes_are_told_once_each(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    let begin = replicas.one.latest().await.unwrap();
    for topic in ["a", "b", "a", "a", "c", "b"] {
        replicas.one.bump(topic).await.unwrap();
    }
    let changes = fixture.soon("the changes", replicas.other.changes(begin)).await.unwrap();
    let (topics, latest) = names(&changes);
    assert_eq!(topics, ["a", "c", "b"]);
    assert_eq!(replicas.other.latest().await.unwrap(), latest);
    let generations: Vec<u64> = changes.topics.iter().map(|(_, generation)| *generation).collect();
    assert!(generations.is_sorted() && generations.last() == Some(&latest), "{generations:?}");
    fixture.never("nothing has changed since", replicas.other.changes(latest)).await;
    replicas.one.bump("a").await.unwrap();
    let changes = fixture.soon("the change", replicas.other.changes(latest)).await.unwrap();
    assert_eq!(names(&changes).0, ["a"]);
    // Another one who listens, and has heard less.
    let changes = fixture.soon("the changes", replicas.one.changes(begin)).await.unwrap();
    assert_eq!(names(&changes).0, ["c", "b", "a"]);
}

pub(super) async fn a_waiter_learns_of_a_change(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings { topics: 4, ..BackplaneSettings::default() }).await;
    let begin = replicas.one.latest().await.unwrap();
    let bump = async {
        fixture.pass(2).await;
        replicas.other.bump("a").await.unwrap()
    };
    let all = async { tokio::join!(replicas.one.changes(begin), replicas.other.changes(begin), bump) };
    let (one, other, generation) = fixture.soon("the change", all).await;
    for changes in [one.unwrap(), other.unwrap()] {
        assert_eq!(names(&changes), (vec!["a"], generation));
    }
    for number in 0..10 {
        replicas.one.bump(&format!("topic {number}")).await.unwrap();
    }
    let changes = fixture.soon("the changes", replicas.other.changes(generation)).await.unwrap();
    assert!(changes.missed, "more has changed than is remembered");
    fixture.never("that is all", replicas.other.changes(changes.latest)).await;
}

pub(super) async fn a_key_is_good_once(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    let once = async |key: u8, ticks| replicas.one.once([key; 32], fixture.ticks(ticks)).await.unwrap();
    assert_eq!(once(1, 10).await, OnceOutcome::First);
    assert_eq!(once(1, 10).await, OnceOutcome::Again);
    assert_eq!(replicas.other.once([1; 32], fixture.ticks(100)).await.unwrap(), OnceOutcome::Again);
    assert_eq!(once(2, 100).await, OnceOutcome::First);
    fixture.pass(14).await;
    assert_eq!(once(1, 10).await, OnceOutcome::First, "trying again has not prolonged it");
    assert_eq!(once(2, 10).await, OnceOutcome::Again);
}

pub(super) async fn keys_have_a_limit(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings { keys: 2, ..BackplaneSettings::default() }).await;
    let once = async |key: u8, ticks| replicas.one.once([key; 32], fixture.ticks(ticks)).await.unwrap();
    assert_eq!(once(1, 10).await, OnceOutcome::First);
    assert_eq!(once(2, 100).await, OnceOutcome::First);
    assert_eq!(once(3, 100).await, OnceOutcome::Full);
    assert_eq!(once(1, 100).await, OnceOutcome::Again, "what is remembered stays so");
    fixture.pass(14).await;
    assert_eq!(once(3, 100).await, OnceOutcome::First);
    assert_eq!(once(4, 100).await, OnceOutcome::Full);
}
