//! Sessions begin, change and end.

use std::sync::Arc;

use refmcp_server::backplane::{
    AppendOutcome, AttachOutcome, BackplaneSettings, CreateOutcome, DeliverOutcome, ExpectOutcome,
    NewSession, OpenStreamOutcome, ParkOutcome, PostKey, PostOutcome, ReadFrom, ReadOutcome, ResponseOutcome,
    SessionId, SessionRecord, StreamKey, UpdateOutcome, WriterEpoch, WriterStop,
};

use super::fixture::{BackplaneFixture, Writer, reader, request, text};

pub(super) async fn a_session_is_known_to_every_replica(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    let id = SessionId::new("a");
    assert_eq!(replicas.other.session(&id).await.unwrap(), None);
    let session = NewSession {
        principal: Some("alice".into()),
        revision: "some revision".into(),
        facts: text("facts"),
    };
    let created = replicas.one.create_session(&id, session, fixture.ticks(10)).await.unwrap();
    assert_eq!(created, CreateOutcome::Created);
    let record = SessionRecord {
        principal: Some("alice".into()),
        revision: "some revision".into(),
        facts: text("facts"),
        version: 1,
    };
    assert_eq!(replicas.other.session(&id).await.unwrap(), Some(record));
    assert_eq!(replicas.other.session(&SessionId::new("b")).await.unwrap(), None);
}

pub(super) async fn an_id_opens_one_session(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let again = NewSession { facts: text("other"), ..NewSession::default() };
    let created = replicas.other.create_session(&id, again.clone(), fixture.ticks(10)).await.unwrap();
    assert_eq!(created, CreateOutcome::Taken);
    let record = replicas.one.session(&id).await.unwrap().unwrap();
    assert_eq!(record.facts, text(""), "the first one stays");
    assert!(replicas.one.close_session(&id).await.unwrap());
    let created = replicas.other.create_session(&id, again, fixture.ticks(10)).await.unwrap();
    assert_eq!(created, CreateOutcome::Created);
}

pub(super) async fn a_session_ends_when_it_is_not_used(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    let id = SessionId::new("a");
    let created = replicas.one.create_session(&id, NewSession::default(), fixture.ticks(10)).await.unwrap();
    assert_eq!(created, CreateOutcome::Created);
    let standing = StreamKey::get_stream(id.clone());
    let mut reading = reader(&replicas.one, &standing, ReadFrom::Unread).await;
    for round in 0..6 {
        fixture.pass(6).await;
        if round % 2 == 0 {
            assert!(replicas.other.session(&id).await.unwrap().is_some(), "looking it up is use");
        } else {
            assert_eq!(reading.try_next().await.unwrap(), ReadOutcome::Nothing, "reading is use");
        }
    }
    fixture.pass(14).await;
    assert_eq!(replicas.other.session(&id).await.unwrap(), None);
    assert_eq!(reading.try_next().await.unwrap(), ReadOutcome::Unknown);
    assert!(!replicas.one.close_session(&id).await.unwrap());
    let created = replicas.one.create_session(&id, NewSession::default(), fixture.ticks(10)).await.unwrap();
    assert_eq!(created, CreateOutcome::Created, "the id is free again");
}

pub(super) async fn a_session_stays_while_a_reader_waits(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    let one = &replicas.one;
    for waits in ["reader", "writer", "asker"] {
        let id = SessionId::new(waits);
        one.create_session(&id, NewSession::default(), fixture.ticks(10)).await.unwrap();
        let writer = Writer::open(one, &id, 1).await;
        let mut reading = reader(one, &writer.stream, ReadFrom::After(0)).await;
        one.expect_response(&id, &request(1), fixture.ticks(100)).await.unwrap();
        let wait = async {
            match waits {
                "reader" => drop(reading.next().await),
                "writer" => drop(one.writer_stopped(&writer.stream).await),
                _ => drop(one.wait_response(&id, &request(1)).await),
            }
        };
        let waited = tokio::time::timeout(fixture.ticks(35), wait).await;
        assert!(waited.is_err(), "nothing has happened to the {waits}");
        assert_eq!(writer.event(1).await, AppendOutcome::Stored);
        fixture.pass(14).await;
        assert_eq!(replicas.other.session(&id).await.unwrap(), None, "the {waits} has left");
    }
}

pub(super) async fn what_the_server_says_is_no_use(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    let id = SessionId::new("a");
    replicas.one.create_session(&id, NewSession::default(), fixture.ticks(10)).await.unwrap();
    for number in 0..6 {
        fixture.pass(4).await;
        replicas.one.post(&id, PostKey(number), text("news")).await.unwrap();
    }
    assert_eq!(replicas.one.session(&id).await.unwrap(), None);
}

pub(super) async fn facts_change_by_version(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    assert_eq!(replicas.one.update_session(&id, 1, text("one")).await.unwrap(), UpdateOutcome::Updated(2));
    let UpdateOutcome::Conflict(record) = replicas.other.update_session(&id, 1, text("other")).await.unwrap()
    else {
        panic!("the version was seen before the change");
    };
    assert_eq!((record.version, record.facts), (2, text("one")));
    assert_eq!(
        replicas.other.update_session(&id, 2, text("other")).await.unwrap(),
        UpdateOutcome::Updated(3)
    );
    let record = replicas.one.session(&id).await.unwrap().unwrap();
    assert_eq!((record.version, record.facts), (3, text("other")));
}

pub(super) async fn a_closed_session_is_unknown_with_all_in_it(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    writer.events(1).await;
    let mut reading = reader(&replicas.other, &writer.stream, ReadFrom::After(0)).await;
    replicas.one.expect_response(&id, &request(1), fixture.ticks(10)).await.unwrap();
    replicas.one.park(&id, "call", text("state"), fixture.ticks(10)).await.unwrap();
    assert!(replicas.other.close_session(&id).await.unwrap());
    assert!(!replicas.other.close_session(&id).await.unwrap());

    let one = &replicas.one;
    assert_eq!(one.session(&id).await.unwrap(), None);
    assert_eq!(one.update_session(&id, 1, text("")).await.unwrap(), UpdateOutcome::Unknown);
    assert_eq!(one.open_stream(&id, None, WriterEpoch(1)).await.unwrap(), OpenStreamOutcome::Unknown);
    assert_eq!(writer.event(2).await, AppendOutcome::Unknown);
    assert_eq!(one.post(&id, PostKey(1), text("")).await.unwrap(), PostOutcome::Unknown);
    assert!(!writer.forget(one).await);
    assert_eq!(
        fixture.soon("the end", one.writer_stopped(&writer.stream)).await.unwrap(),
        WriterStop::Unknown
    );
    assert_eq!(one.cancel(&id, &request(1)).await.unwrap(), 0);
    assert_eq!(one.attach(&writer.stream, ReadFrom::After(0)).await.unwrap(), AttachOutcome::Unknown);
    assert_eq!(reading.try_next().await.unwrap(), ReadOutcome::Unknown);
    one.detach(&writer.stream, None).await.unwrap();
    assert_eq!(
        one.expect_response(&id, &request(2), fixture.ticks(1)).await.unwrap(),
        ExpectOutcome::Unknown
    );
    assert_eq!(one.deliver_response(&id, &request(1), text("")).await.unwrap(), DeliverOutcome::Unknown);
    assert_eq!(
        fixture.soon("the end", one.wait_response(&id, &request(1))).await.unwrap(),
        ResponseOutcome::Unknown
    );
    assert_eq!(one.park(&id, "other", text(""), fixture.ticks(1)).await.unwrap(), ParkOutcome::Unknown);
    assert_eq!(one.claim(&id, "call", WriterEpoch(1), None).await.unwrap(), None);
    assert!(one.parked_keys(&id).await.unwrap().is_empty());

    fixture.open(&replicas, "a").await;
    assert_eq!(
        one.claim(&id, "call", WriterEpoch(1), None).await.unwrap(),
        None,
        "a new session has nothing of the old one"
    );
    assert_eq!(one.attach(&writer.stream, ReadFrom::After(0)).await.unwrap(), AttachOutcome::Unknown);
}

pub(super) async fn closing_a_session_wakes_its_waiters(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    let mut reading = reader(&replicas.one, &writer.stream, ReadFrom::After(0)).await;
    let question = request(1);
    replicas.one.expect_response(&id, &question, fixture.ticks(1000)).await.unwrap();
    let close = async {
        fixture.pass(1).await;
        replicas.other.close_session(&id).await.unwrap()
    };
    let one = Arc::clone(&replicas.one);
    let (read, stop, answered, closed) = fixture
        .soon("the end", async {
            tokio::join!(
                reading.next(),
                one.writer_stopped(&writer.stream),
                one.wait_response(&id, &question),
                close
            )
        })
        .await;
    assert!(closed);
    assert_eq!(read.unwrap(), ReadOutcome::Unknown);
    assert_eq!(stop.unwrap(), WriterStop::Unknown);
    assert_eq!(answered.unwrap(), ResponseOutcome::Unknown);
}

pub(super) async fn sessions_have_a_limit(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings { sessions: 2, ..BackplaneSettings::default() }).await;
    let create = async |name: &str, ticks| {
        let id = SessionId::new(name);
        replicas.one.create_session(&id, NewSession::default(), fixture.ticks(ticks)).await.unwrap()
    };
    assert_eq!(create("a", 10).await, CreateOutcome::Created);
    assert_eq!(create("b", 100).await, CreateOutcome::Created);
    assert_eq!(create("c", 100).await, CreateOutcome::Full);
    assert!(replicas.other.close_session(&SessionId::new("b")).await.unwrap());
    assert_eq!(create("c", 100).await, CreateOutcome::Created);
    assert_eq!(create("d", 100).await, CreateOutcome::Full);
    fixture.pass(14).await;
    assert_eq!(create("d", 100).await, CreateOutcome::Created, "one has ended by itself");
}

pub(super) async fn long_facts_are_refused(fixture: &BackplaneFixture) {
    let (replicas, id) =
        fixture.session(BackplaneSettings { facts_bytes: 10, ..BackplaneSettings::default() }).await;
    let long = NewSession { facts: text("01234567890"), ..NewSession::default() };
    let created = replicas.one.create_session(&SessionId::new("b"), long, fixture.ticks(10)).await.unwrap();
    assert_eq!(created, CreateOutcome::TooLarge);
    assert_eq!(
        replicas.one.update_session(&id, 1, text("01234567890")).await.unwrap(),
        UpdateOutcome::TooLarge
    );
    assert_eq!(
        replicas.one.update_session(&id, 1, text("0123456789")).await.unwrap(),
        UpdateOutcome::Updated(2)
    );
}
