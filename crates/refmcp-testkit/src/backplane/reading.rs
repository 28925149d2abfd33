//! Readers go on exactly where they stopped, or are told that they cannot.

use refmcp_server::backplane::{
    AppendOutcome, AttachOutcome, BackplaneSettings, OpenStreamOutcome, PostKey, ReadFrom, ReadOutcome,
    StreamEventKind, StreamKey, StreamNumber, WriterEpoch,
};

use super::fixture::{BackplaneFixture, Writer, drain, kilobyte, numbers, reader, request, text};

pub(super) async fn a_reader_goes_on_exactly_there(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    writer.events(600).await;
    assert_eq!(writer.end(601).await, AppendOutcome::Stored);
    for after in [0, 1, 299, 600] {
        let mut reading = reader(&replicas.other, &writer.stream, ReadFrom::After(after)).await;
        let (events, end) = drain(&mut reading).await;
        let expected: Vec<_> = (after + 1..=601).map(|seq| (seq, text(&seq.to_string()))).collect();
        assert_eq!((events, end), (expected, ReadOutcome::End));
        assert_eq!((reading.after(), reading.missed()), (601, 0));
    }
}

pub(super) async fn reading_begins_where_something_follows(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    writer.events(2).await;
    let attach = async |after| replicas.other.attach(&writer.stream, ReadFrom::After(after)).await.unwrap();
    assert!(matches!(attach(2).await, AttachOutcome::Reading { after: 2, missed: 0, .. }), "more may follow");
    assert_eq!(attach(3).await, AttachOutcome::Beyond);
    assert_eq!(attach(u64::MAX).await, AttachOutcome::Beyond);
    writer.end(3).await;
    assert_eq!(attach(3).await, AttachOutcome::Ended);
    assert_eq!(attach(4).await, AttachOutcome::Beyond);
    assert!(matches!(attach(2).await, AttachOutcome::Reading { .. }));

    let standing = StreamKey::get_stream(id.clone());
    let attached = replicas.one.attach(&standing, ReadFrom::After(0)).await.unwrap();
    assert!(
        matches!(attached, AttachOutcome::Reading { after: 0, .. }),
        "it is there before anything is posted"
    );
    assert_eq!(replicas.one.attach(&standing, ReadFrom::After(1)).await.unwrap(), AttachOutcome::Beyond);
    let unknown = StreamKey::new(id, StreamNumber(1_000_000));
    assert_eq!(replicas.one.attach(&unknown, ReadFrom::After(0)).await.unwrap(), AttachOutcome::Unknown);
    assert_eq!(replicas.one.attach(&unknown, ReadFrom::Unread).await.unwrap(), AttachOutcome::Unknown);
}

pub(super) async fn the_last_reader_reads(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    writer.events(2).await;
    let mut first = reader(&replicas.one, &writer.stream, ReadFrom::After(0)).await;
    assert_eq!(numbers(&mut first).await, (vec![1, 2], ReadOutcome::Nothing));
    let next = async {
        fixture.pass(1).await;
        reader(&replicas.other, &writer.stream, ReadFrom::After(1)).await
    };
    let (told, mut second) = fixture.soon("the second", async { tokio::join!(first.next(), next) }).await;
    assert_eq!(told.unwrap(), ReadOutcome::Replaced);
    writer.event(3).await;
    assert_eq!(numbers(&mut first).await, (vec![], ReadOutcome::Replaced));
    assert_eq!(numbers(&mut second).await, (vec![2, 3], ReadOutcome::Nothing));
    // A failed attempt replaces no reader.
    let beyond = replicas.one.attach(&writer.stream, ReadFrom::After(9)).await.unwrap();
    assert_eq!(beyond, AttachOutcome::Beyond);
    assert_eq!(numbers(&mut second).await, (vec![], ReadOutcome::Nothing));
}

pub(super) async fn a_reader_can_be_sent_away(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    writer.events(1).await;
    let mut first = reader(&replicas.one, &writer.stream, ReadFrom::After(0)).await;
    assert_eq!(numbers(&mut first).await, (vec![1], ReadOutcome::Nothing));
    let detach = async {
        fixture.pass(1).await;
        replicas.other.detach(&writer.stream, None).await
    };
    let (told, detached) =
        fixture.soon("being sent away", async { tokio::join!(first.next(), detach) }).await;
    detached.unwrap();
    assert_eq!(told.unwrap(), ReadOutcome::Detached);
    assert_eq!(writer.event(2).await, AppendOutcome::Stored, "the stream goes on");
    assert_eq!(numbers(&mut first).await, (vec![], ReadOutcome::Detached));
    let mut second = reader(&replicas.other, &writer.stream, ReadFrom::After(1)).await;
    assert_eq!(numbers(&mut second).await, (vec![2], ReadOutcome::Nothing));
    assert_eq!(numbers(&mut first).await, (vec![], ReadOutcome::Replaced));
    replicas.one.detach(&writer.stream, Some(first.token())).await.unwrap();
    assert_eq!(numbers(&mut second).await, (vec![], ReadOutcome::Nothing), "another reader was meant");
    replicas.one.detach(&writer.stream, Some(second.token())).await.unwrap();
    assert_eq!(numbers(&mut second).await, (vec![], ReadOutcome::Detached));
}

pub(super) async fn the_unread_begins_behind_every_reader(fixture: &BackplaneFixture) {
    let settings = BackplaneSettings { stream_bytes: 5_000, ..BackplaneSettings::default() };
    let (replicas, id) = fixture.session(settings).await;
    let standing = StreamKey::get_stream(id.clone());
    for number in 1..=3 {
        replicas.one.post(&id, PostKey(number), text("a")).await.unwrap();
    }
    let mut first = reader(&replicas.one, &standing, ReadFrom::Unread).await;
    assert_eq!(numbers(&mut first).await.0, [1, 2, 3]);
    let mut behind = reader(&replicas.other, &standing, ReadFrom::After(1)).await;
    assert_eq!(numbers(&mut behind).await.0, [2, 3]);
    replicas.one.post(&id, PostKey(4), text("b")).await.unwrap();
    let mut unread = reader(&replicas.other, &standing, ReadFrom::Unread).await;
    assert_eq!((unread.after(), unread.missed()), (3, 0));
    assert_eq!(numbers(&mut unread).await.0, [4]);
    for number in 5..=20 {
        replicas.one.post(&id, PostKey(number), kilobyte(1)).await.unwrap();
    }
    let mut unread = reader(&replicas.other, &standing, ReadFrom::Unread).await;
    assert!(unread.missed() > 0, "unread events are gone, and the reader learns it");
    assert_eq!(unread.after(), 4 + unread.missed());
    let seen = numbers(&mut unread).await.0;
    assert_eq!(seen.last(), Some(&20));
    assert_eq!(seen.len() as u64 + unread.missed(), 16);
}

pub(super) async fn a_reader_further_behind_makes_nothing_unread(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    writer.events(1000).await;
    let mut first = reader(&replicas.one, &writer.stream, ReadFrom::Unread).await;
    assert_eq!(numbers(&mut first).await.0.len(), 1000);
    let mut behind = reader(&replicas.other, &writer.stream, ReadFrom::After(0)).await;
    assert!(matches!(behind.try_next().await.unwrap(), ReadOutcome::Events(_)));
    assert_eq!(reader(&replicas.one, &writer.stream, ReadFrom::Unread).await.after(), 1000);
}

pub(super) async fn a_waiting_reader_hears_of_news(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    let mut reading = reader(&replicas.other, &writer.stream, ReadFrom::After(0)).await;
    fixture.never("there is nothing to read", reading.next()).await;
    let mut seen = Vec::new();
    let read = async {
        loop {
            match reading.next().await.unwrap() {
                ReadOutcome::Events(events) => seen.extend(events.into_iter().map(|event| event.seq)),
                ReadOutcome::End => break,
                other => panic!("{other:?}"),
            }
        }
    };
    let write = async {
        for seq in 1..=20 {
            if seq % 4 == 0 {
                fixture.pass(1).await;
            }
            assert_eq!(writer.event(seq).await, AppendOutcome::Stored);
        }
        fixture.pass(1).await;
        assert_eq!(writer.end(21).await, AppendOutcome::Stored);
    };
    fixture.soon("all events", async { tokio::join!(read, write) }).await;
    assert_eq!(seen, (1..=21).collect::<Vec<_>>());
}

pub(super) async fn earlier_events_are_read_at_once(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    writer.events(1).await;
    let mut reading = reader(&replicas.other, &writer.stream, ReadFrom::After(0)).await;
    assert_eq!(numbers(&mut reading).await, (vec![1], ReadOutcome::Nothing));
    let waited = tokio::time::timeout(fixture.ticks(2), reading.next()).await;
    assert!(waited.is_err(), "there is nothing to hear");
    writer.event(2).await;
    fixture.pass(2).await;
    let read = fixture.soon("what came meanwhile", reading.next()).await.unwrap();
    let ReadOutcome::Events(events) = read else { panic!("{read:?}") };
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [2]);
}

pub(super) async fn what_is_dropped_is_said_to_be_gone(fixture: &BackplaneFixture) {
    let settings = BackplaneSettings { stream_bytes: 10_000, ..BackplaneSettings::default() };
    let (replicas, id) = fixture.session(settings).await;
    let writer = Writer::open(&replicas.one, &id, 42).await;
    let mut slow = reader(&replicas.one, &writer.stream, ReadFrom::After(0)).await;
    for seq in 1..=100 {
        assert_eq!(writer.append(seq, kilobyte(seq), StreamEventKind::Event).await, AppendOutcome::Stored);
    }
    let gone = ReadOutcome::Gone { request: Some(request(42)) };
    assert_eq!(numbers(&mut slow).await, (vec![], gone.clone()));
    assert_eq!(fixture.soon("the news", slow.next()).await.unwrap(), gone);
    let attached = replicas.other.attach(&writer.stream, ReadFrom::After(50)).await.unwrap();
    assert_eq!(attached, AttachOutcome::Gone { request: Some(request(42)) });
    let mut back = reader(&replicas.other, &writer.stream, ReadFrom::After(97)).await;
    assert_eq!(
        drain(&mut back).await,
        ((98..=100).map(|seq| (seq, kilobyte(seq))).collect(), ReadOutcome::Nothing),
        "the newest are kept"
    );
    assert_eq!(
        writer.append(3, kilobyte(3), StreamEventKind::Event).await,
        AppendOutcome::Already,
        "also when it is gone"
    );
}

pub(super) async fn the_final_event_is_not_dropped(fixture: &BackplaneFixture) {
    let settings =
        BackplaneSettings { stream_bytes: 5_000, session_bytes: 30_000, ..BackplaneSettings::default() };
    let (replicas, id) = fixture.session(settings).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    for seq in 1..=10 {
        writer.append(seq, kilobyte(seq), StreamEventKind::Event).await;
    }
    assert_eq!(writer.append(11, kilobyte(11), StreamEventKind::Final).await, AppendOutcome::Stored);
    // Others fill the session and pay for it themselves.
    for number in 2..10 {
        let other = Writer::open(&replicas.one, &id, number).await;
        for seq in 1..=10 {
            assert_eq!(other.append(seq, kilobyte(seq), StreamEventKind::Event).await, AppendOutcome::Stored);
        }
    }
    let mut reading = reader(&replicas.other, &writer.stream, ReadFrom::After(10)).await;
    assert_eq!(drain(&mut reading).await, (vec![(11, kilobyte(11))], ReadOutcome::End));
}

pub(super) async fn a_full_session_keeps_unread_ends(fixture: &BackplaneFixture) {
    let settings = BackplaneSettings {
        stream_bytes: 10_000,
        session_bytes: 50_000,
        streams: 1000,
        ..BackplaneSettings::default()
    };
    let (replicas, id) = fixture.session(settings).await;
    let mut kept = Vec::new();
    for number in 0..200 {
        let OpenStreamOutcome::Opened(stream) =
            replicas.one.open_stream(&id, Some(request(number)), WriterEpoch(1)).await.unwrap()
        else {
            break;
        };
        let stream = StreamKey::new(id.clone(), stream);
        match replicas
            .one
            .append(&stream, WriterEpoch(1), 1, kilobyte(1), StreamEventKind::Final)
            .await
            .unwrap()
        {
            AppendOutcome::Stored => kept.push(stream),
            AppendOutcome::Full => break,
            other => panic!("{other:?}"),
        }
    }
    assert!((10..100).contains(&kept.len()), "some fit, not all: {}", kept.len());
    for stream in &kept {
        let mut reading = reader(&replicas.other, stream, ReadFrom::After(0)).await;
        assert_eq!(numbers(&mut reading).await, (vec![1], ReadOutcome::End));
    }
    let writer = Writer::open(&replicas.other, &id, 1000).await;
    assert_eq!(
        writer.append(1, kilobyte(1), StreamEventKind::Final).await,
        AppendOutcome::Stored,
        "now they make room"
    );
}

pub(super) async fn an_ended_stream_is_kept_for_a_while(fixture: &BackplaneFixture) {
    let settings = BackplaneSettings { retention: fixture.ticks(10), ..BackplaneSettings::default() };
    let (replicas, id) = fixture.session(settings).await;
    let (ended, running) =
        (Writer::open(&replicas.one, &id, 1).await, Writer::open(&replicas.one, &id, 2).await);
    ended.events(2).await;
    running.events(1).await;
    ended.end(3).await;
    fixture.pass(5).await;
    let mut reading = reader(&replicas.other, &ended.stream, ReadFrom::After(1)).await;
    assert_eq!(numbers(&mut reading).await, (vec![2, 3], ReadOutcome::End));
    fixture.pass(9).await;
    for from in [ReadFrom::After(0), ReadFrom::After(3), ReadFrom::Unread] {
        let gone = replicas.other.attach(&ended.stream, from).await.unwrap();
        assert_eq!(gone, AttachOutcome::Gone { request: Some(request(1)) });
    }
    assert_eq!(numbers(&mut reading).await, (vec![], ReadOutcome::Gone { request: Some(request(1)) }));
    assert_eq!(ended.event(4).await, AppendOutcome::Ended);
    let mut other = reader(&replicas.other, &running.stream, ReadFrom::After(0)).await;
    assert_eq!(numbers(&mut other).await, (vec![1], ReadOutcome::Nothing), "one that runs stays");
}

pub(super) async fn tombstones_have_a_limit(fixture: &BackplaneFixture) {
    let settings =
        BackplaneSettings { retention: fixture.ticks(2), tombstones: 2, ..BackplaneSettings::default() };
    let (replicas, id) = fixture.session(settings).await;
    let mut ended = Vec::new();
    for number in 1..=3 {
        let writer = Writer::open(&replicas.one, &id, number).await;
        writer.end(1).await;
        ended.push(writer.stream);
    }
    fixture.pass(5).await;
    replicas.one.sweep().await.unwrap();
    let mut known = Vec::new();
    for stream in &ended {
        match replicas.other.attach(stream, ReadFrom::After(0)).await.unwrap() {
            AttachOutcome::Gone { request } => known.push(request),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(known, [None, Some(request(2)), Some(request(3))]);
}
