//! Tasks, which belong to no session: they change by version, are listed by owner, and have limits. The replicas that run
//! them say that they are there.

use std::time::Duration;

use bytes::Bytes;
use refmcp_server::backplane::{
    BackplaneSettings, CreateTaskOutcome, NewTask, TaskEntry, TaskRecord, UpdateTaskOutcome,
};

use super::fixture::{BackplaneFixture, Replicas, kilobyte, text};

/// A task of this owner, which does not end by itself.
fn task(id: &str, owner: &str, ttl: Duration) -> NewTask {
    NewTask { id: id.into(), owner: owner.into(), state: text("state"), call: text("call"), ttl: Some(ttl) }
}

async fn create(fixture: &BackplaneFixture, replicas: &Replicas, id: &str, owner: &str) -> CreateTaskOutcome {
    replicas.one.create_task(task(id, owner, fixture.ticks(1000))).await.unwrap()
}

async fn update(replicas: &Replicas, version: u64, state: Bytes, call: Option<Bytes>) -> UpdateTaskOutcome {
    replicas.other.update_task("a", version, state, call).await.unwrap()
}

pub(super) async fn a_task_is_known_to_every_replica(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    assert_eq!(replicas.other.task("a").await.unwrap(), None);
    assert_eq!(create(fixture, &replicas, "a", "ann").await, CreateTaskOutcome::Created);
    let again = replicas.other.create_task(task("a", "bob", fixture.ticks(10))).await.unwrap();
    assert_eq!(again, CreateTaskOutcome::Taken);
    let record = TaskRecord { state: text("state"), version: 1 };
    assert_eq!(replicas.other.task("a").await.unwrap(), Some(record));
    assert_eq!(replicas.other.task_call("a").await.unwrap(), Some(text("call")));
    let forever = NewTask { ttl: None, ..task("b", "ann", Duration::ZERO) };
    assert_eq!(replicas.one.create_task(forever).await.unwrap(), CreateTaskOutcome::Created);
    fixture.pass(10).await;
    assert!(replicas.other.task("b").await.unwrap().is_some());
}

pub(super) async fn a_task_changes_by_version(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    create(fixture, &replicas, "a", "ann").await;
    assert_eq!(update(&replicas, 1, text("second"), None).await, UpdateTaskOutcome::Updated(2));
    let record = TaskRecord { state: text("second"), version: 2 };
    assert_eq!(update(&replicas, 1, text("late"), None).await, UpdateTaskOutcome::Conflict(record.clone()));
    assert_eq!(replicas.one.task("a").await.unwrap(), Some(record));
    assert_eq!(replicas.one.task_call("a").await.unwrap(), Some(text("call")), "it was not replaced");
    update(&replicas, 2, text("third"), Some(text("new"))).await;
    assert_eq!(replicas.one.task_call("a").await.unwrap(), Some(text("new")));
    update(&replicas, 3, text("over"), Some(Bytes::new())).await;
    assert_eq!(replicas.one.task_call("a").await.unwrap(), None, "it is not needed any more");
    let unknown = replicas.one.update_task("b", 1, text("x"), None).await.unwrap();
    assert_eq!(unknown, UpdateTaskOutcome::Unknown);
}

pub(super) async fn a_change_of_a_task_is_heard(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    create(fixture, &replicas, "a", "ann").await;
    fixture.soon("another version", replicas.one.task_changed("a", 7)).await.unwrap();
    fixture.soon("no such task", replicas.one.task_changed("b", 1)).await.unwrap();
    fixture.never("nothing has changed", replicas.one.task_changed("a", 1)).await;
    let change = async {
        fixture.pass(2).await;
        update(&replicas, 1, text("second"), None).await
    };
    let both = async {
        tokio::join!(replicas.one.task_changed("a", 1), replicas.other.task_changed("a", 1), change)
    };
    let (one, other, changed) = fixture.soon("the change", both).await;
    one.unwrap();
    other.unwrap();
    assert_eq!(changed, UpdateTaskOutcome::Updated(2));
}

pub(super) async fn a_task_expires(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    replicas.one.create_task(task("a", "ann", fixture.ticks(5))).await.unwrap();
    fixture.soon("its end", replicas.other.task_changed("a", 1)).await.unwrap();
    fixture.pass(2).await;
    assert_eq!(replicas.other.task("a").await.unwrap(), None);
    assert_eq!(replicas.other.task_call("a").await.unwrap(), None);
    assert_eq!(update(&replicas, 1, text("late"), None).await, UpdateTaskOutcome::Unknown);
    assert!(replicas.other.tasks("ann", 0, 10).await.unwrap().is_empty());
    assert_eq!(create(fixture, &replicas, "a", "bob").await, CreateTaskOutcome::Created);
}

pub(super) async fn tasks_are_listed_by_owner(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    for (id, owner) in [("a", "ann"), ("x", "bob"), ("b", "ann"), ("c", "ann")] {
        create(fixture, &replicas, id, owner).await;
    }
    update(&replicas, 1, text("changed"), None).await;
    let page = async |after, most| replicas.other.tasks("ann", after, most).await.unwrap();
    let states = |entries: &[TaskEntry]| entries.iter().map(|entry| entry.state.clone()).collect::<Vec<_>>();
    let first = page(0, 2).await;
    assert_eq!(states(&first), [text("changed"), text("state")], "in the order in which they were created");
    let rest = page(first[1].position, 2).await;
    assert_eq!(rest.len(), 1);
    assert!(page(rest[0].position, 2).await.is_empty());
    assert_eq!(replicas.one.tasks("bob", 0, 10).await.unwrap().len(), 1);
    assert!(replicas.one.tasks("eve", 0, 10).await.unwrap().is_empty());
}

pub(super) async fn tasks_have_limits(fixture: &BackplaneFixture) {
    let limited = BackplaneSettings { tasks: 3, owner_tasks: 2, ..BackplaneSettings::default() };
    let replicas = fixture.replicas(limited).await;
    for (id, owner, outcome) in [
        ("a", "ann", CreateTaskOutcome::Created),
        ("b", "ann", CreateTaskOutcome::Created),
        ("c", "ann", CreateTaskOutcome::Full),
        ("c", "bob", CreateTaskOutcome::Created),
        ("d", "eve", CreateTaskOutcome::Full),
    ] {
        assert_eq!(create(fixture, &replicas, id, owner).await, outcome, "{id} of {owner}");
    }
    let limited = BackplaneSettings { owner_task_bytes: 8000, ..BackplaneSettings::default() };
    let replicas = fixture.replicas(limited).await;
    create(fixture, &replicas, "a", "ann").await;
    let long: Bytes = (0..10).flat_map(kilobyte).collect();
    assert_eq!(update(&replicas, 1, long.clone(), None).await, UpdateTaskOutcome::Full);
    assert_eq!(replicas.one.task("a").await.unwrap().map(|task| task.version), Some(1), "it is as it was");
    assert_eq!(update(&replicas, 1, kilobyte(1), None).await, UpdateTaskOutcome::Updated(2));
    let state = NewTask { state: long, ..task("b", "ann", fixture.ticks(1000)) };
    assert_eq!(replicas.one.create_task(state).await.unwrap(), CreateTaskOutcome::Full);
}

pub(super) async fn a_replica_is_there_while_it_says_so(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    assert!(!replicas.other.is_replica_there("a").await.unwrap(), "it has never said so");
    replicas.one.renew_replica("a", fixture.ticks(4)).await.unwrap();
    for _ in 0..3 {
        fixture.pass(2).await;
        assert!(replicas.other.is_replica_there("a").await.unwrap());
        assert!(!replicas.other.is_replica_there("b").await.unwrap());
        replicas.one.renew_replica("a", fixture.ticks(4)).await.unwrap();
    }
    fixture.pass(5).await;
    assert!(!replicas.other.is_replica_there("a").await.unwrap());
    replicas.other.renew_replica("a", fixture.ticks(4)).await.unwrap();
    assert!(replicas.one.is_replica_there("a").await.unwrap(), "it can come back");
}
