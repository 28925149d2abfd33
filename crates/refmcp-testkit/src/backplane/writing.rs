//! Streams have one writer, and events no holes.

use bytes::Bytes;
use refmcp_server::backplane::{
    AppendOutcome, AttachOutcome, BackplaneSettings, OpenStreamOutcome, PostKey, PostOutcome, ReadFrom,
    ReadOutcome, StreamEventKind, StreamKey, StreamNumber, WriterEpoch,
};

use super::fixture::{BackplaneFixture, Writer, drain, kilobyte, numbers, reader, request, text};

pub(super) async fn streams_have_numbers_of_their_own(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    // Clients repeat ids; their streams are different ones all the same.
    let first = Writer::open(&replicas.one, &id, 1).await;
    let second = Writer::open(&replicas.other, &id, 1).await;
    assert_ne!(first.stream.number, second.stream.number);
    assert_ne!(first.stream.number, StreamNumber::GET);
    assert_ne!(second.stream.number, StreamNumber::GET);
    first.append(1, text("first"), StreamEventKind::Event).await;
    second.append(1, text("second"), StreamEventKind::Event).await;
    for (writer, said) in [(&first, "first"), (&second, "second")] {
        let mut reading = reader(&replicas.one, &writer.stream, ReadFrom::After(0)).await;
        assert_eq!(drain(&mut reading).await.0, [(1, text(said))]);
    }
    // The same number in another session is another stream.
    let other = fixture.open(&replicas, "b").await;
    let elsewhere = StreamKey::new(other, first.stream.number);
    assert_eq!(replicas.one.attach(&elsewhere, ReadFrom::After(0)).await.unwrap(), AttachOutcome::Unknown);
}

pub(super) async fn events_have_no_holes(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    assert_eq!(writer.event(2).await, AppendOutcome::Gap { last: 0 });
    assert_eq!(writer.event(0).await, AppendOutcome::Gap { last: 0 });
    writer.events(3).await;
    assert_eq!(writer.event(5).await, AppendOutcome::Gap { last: 3 });
    assert_eq!(writer.event(u64::MAX).await, AppendOutcome::Gap { last: 3 });
    let mut reading = reader(&replicas.other, &writer.stream, ReadFrom::After(0)).await;
    assert_eq!(numbers(&mut reading).await, (vec![1, 2, 3], ReadOutcome::Nothing));
}

pub(super) async fn a_retry_changes_nothing(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    writer.events(2).await;
    assert_eq!(writer.append(1, text("other"), StreamEventKind::Event).await, AppendOutcome::Already);
    assert_eq!(writer.append(2, text("other"), StreamEventKind::Final).await, AppendOutcome::Already);
    assert_eq!(writer.event(3).await, AppendOutcome::Stored, "a retry does not end a stream");
    assert_eq!(writer.end(4).await, AppendOutcome::Stored);
    assert_eq!(writer.end(4).await, AppendOutcome::Already);
    let mut reading = reader(&replicas.other, &writer.stream, ReadFrom::After(0)).await;
    let (events, end) = drain(&mut reading).await;
    let said: Vec<Bytes> = events.into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!((said, end), (["1", "2", "3", "4"].map(text).to_vec(), ReadOutcome::End));
}

pub(super) async fn nothing_follows_the_end(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    writer.events(1).await;
    assert_eq!(writer.end(2).await, AppendOutcome::Stored);
    assert_eq!(writer.event(3).await, AppendOutcome::Ended);
    assert_eq!(writer.end(3).await, AppendOutcome::Ended);
    let mut reading = reader(&replicas.one, &writer.stream, ReadFrom::After(0)).await;
    let ReadOutcome::Events(events) = reading.try_next().await.unwrap() else { panic!("there are events") };
    assert_eq!(
        events.iter().map(|event| event.kind).collect::<Vec<_>>(),
        [StreamEventKind::Event, StreamEventKind::Final]
    );
    assert_eq!(reading.try_next().await.unwrap(), ReadOutcome::End);
    assert_eq!(reading.try_next().await.unwrap(), ReadOutcome::End, "it stays at its end");
}

pub(super) async fn a_forgotten_stream_is_answered_once(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    assert!(writer.forget(&replicas.one).await);
    assert!(!writer.forget(&replicas.other).await);
    assert_eq!(writer.event(1).await, AppendOutcome::Unknown);
    assert_eq!(replicas.one.cancel(&id, &request(1)).await.unwrap(), 0);
    let gone = replicas.one.attach(&writer.stream, ReadFrom::After(0)).await.unwrap();
    assert_eq!(gone, AttachOutcome::Gone { request: None });

    let cancelled = Writer::open(&replicas.one, &id, 3).await;
    assert_eq!(replicas.other.cancel(&id, &request(3)).await.unwrap(), 1);
    assert!(!cancelled.forget(&replicas.one).await);
    let ended = Writer::open(&replicas.one, &id, 4).await;
    ended.end(1).await;
    assert!(!ended.forget(&replicas.one).await);
}

pub(super) async fn streams_have_a_limit(fixture: &BackplaneFixture) {
    let (replicas, id) =
        fixture.session(BackplaneSettings { streams: 3, ..BackplaneSettings::default() }).await;
    replicas.one.post(&id, PostKey(1), text("the standing one does not count")).await.unwrap();
    let first = Writer::open(&replicas.one, &id, 1).await;
    let second = Writer::open(&replicas.one, &id, 2).await;
    let third = Writer::open(&replicas.one, &id, 3).await;
    assert_eq!(replicas.other.open_stream(&id, None, WriterEpoch(1)).await.unwrap(), OpenStreamOutcome::Full);
    second.end(1).await;
    assert_eq!(
        replicas.other.open_stream(&id, None, WriterEpoch(1)).await.unwrap(),
        OpenStreamOutcome::Full,
        "it is unread"
    );
    let mut reading = reader(&replicas.one, &second.stream, ReadFrom::After(0)).await;
    assert_eq!(numbers(&mut reading).await, (vec![1], ReadOutcome::End));
    Writer::open(&replicas.other, &id, 4).await;
    let gone = replicas.one.attach(&second.stream, ReadFrom::After(0)).await.unwrap();
    assert_eq!(gone, AttachOutcome::Gone { request: Some(request(2)) });
    assert_eq!(first.event(1).await, AppendOutcome::Stored);
    assert!(third.forget(&replicas.one).await);
    Writer::open(&replicas.other, &id, 5).await;
}

pub(super) async fn long_events_are_refused(fixture: &BackplaneFixture) {
    let (replicas, id) =
        fixture.session(BackplaneSettings { stream_bytes: 5_000, ..BackplaneSettings::default() }).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    let long = Bytes::from(vec![b'x'; 5_001]);
    assert_eq!(writer.append(1, long.clone(), StreamEventKind::Event).await, AppendOutcome::TooLarge);
    assert_eq!(writer.append(1, kilobyte(1), StreamEventKind::Event).await, AppendOutcome::Stored);
    assert_eq!(writer.append(2, long.clone(), StreamEventKind::Final).await, AppendOutcome::TooLarge);
    assert_eq!(
        writer.append(2, kilobyte(2), StreamEventKind::Final).await,
        AppendOutcome::Stored,
        "a short end still fits"
    );
    assert_eq!(replicas.one.post(&id, PostKey(1), long).await.unwrap(), PostOutcome::TooLarge);
    let mut reading = reader(&replicas.one, &writer.stream, ReadFrom::After(0)).await;
    assert_eq!(numbers(&mut reading).await, (vec![1, 2], ReadOutcome::End));
}

pub(super) async fn every_replica_posts_to_the_get_stream(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    assert_eq!(replicas.one.post(&id, PostKey(7), text("a")).await.unwrap(), PostOutcome::Stored(1));
    assert_eq!(replicas.other.post(&id, PostKey(8), text("b")).await.unwrap(), PostOutcome::Stored(2));
    assert_eq!(replicas.one.post(&id, PostKey(7), text("a")).await.unwrap(), PostOutcome::Already(1));
    assert_eq!(replicas.other.post(&id, PostKey(9), text("c")).await.unwrap(), PostOutcome::Stored(3));
    let other = fixture.open(&replicas, "b").await;
    assert_eq!(replicas.one.post(&other, PostKey(7), text("z")).await.unwrap(), PostOutcome::Stored(1));
    let mut reading = reader(&replicas.one, &StreamKey::get_stream(id), ReadFrom::After(0)).await;
    let events = [(1, text("a")), (2, text("b")), (3, text("c"))].to_vec();
    assert_eq!(drain(&mut reading).await, (events, ReadOutcome::Nothing));
}

pub(super) async fn the_get_stream_has_no_single_writer(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let standing = StreamKey::get_stream(id.clone());
    replicas.one.post(&id, PostKey(1), text("a")).await.unwrap();
    let appended =
        replicas.one.append(&standing, WriterEpoch(1), 2, text("b"), StreamEventKind::Final).await.unwrap();
    assert_eq!(appended, AppendOutcome::Unknown);
    assert!(!replicas.one.forget(&standing, WriterEpoch::default()).await.unwrap());
    let mut reading = reader(&replicas.one, &standing, ReadFrom::After(0)).await;
    assert_eq!(numbers(&mut reading).await, (vec![1], ReadOutcome::Nothing));
}
