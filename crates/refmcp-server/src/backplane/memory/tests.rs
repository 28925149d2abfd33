//! What only the state of one process has: bytes that come back, and sessions that pay for each other. The rest is in
//! the contract that every implementation keeps.

use super::*;
use crate::backplane::{Event, StreamNumber};

const IDLE: Duration = Duration::from_secs(60);

fn id(name: &str) -> SessionId {
    SessionId::new(name)
}

async fn session(memory: &MemoryBackplane, name: &str) -> SessionId {
    let created = memory.create_session(&id(name), NewSession::default(), IDLE).await.unwrap();
    assert_eq!(created, CreateOutcome::Created);
    id(name)
}

async fn stream(memory: &MemoryBackplane, session: &SessionId) -> StreamKey {
    match memory.open_stream(session, Some(RequestId::Integer(7)), WriterEpoch(0)).await.unwrap() {
        OpenStreamOutcome::Opened(number) => StreamKey::new(session.clone(), number),
        refused => panic!("{refused:?}"),
    }
}

async fn append(memory: &MemoryBackplane, key: &StreamKey, seq: u64, kind: StreamEventKind) -> AppendOutcome {
    memory.append(key, WriterEpoch(0), seq, Bytes::from(vec![b'x'; 1000]), kind).await.unwrap()
}

async fn read_out(memory: &MemoryBackplane, key: &StreamKey) -> Vec<Event> {
    let attached = memory.attach(key, ReadFrom::Unread).await.unwrap();
    let AttachOutcome::Reading { reader, mut after, .. } = attached else { panic!("{attached:?}") };
    let mut events = Vec::new();
    while let ReadOutcome::Events(batch) = memory.read(key, reader, after).await.unwrap() {
        after += batch.len() as u64;
        events.extend(batch);
    }
    events
}

#[tokio::test(start_paused = true)]
async fn all_bytes_are_freed() {
    let memory = MemoryBackplane::default();
    let session = session(&memory, "a").await;
    let empty = memory.bytes();
    let running = stream(&memory, &session).await;
    for seq in 1..=10 {
        append(&memory, &running, seq, StreamEventKind::Event).await;
    }
    let ended = stream(&memory, &session).await;
    append(&memory, &ended, 1, StreamEventKind::Final).await;
    let forgotten = stream(&memory, &session).await;
    append(&memory, &forgotten, 1, StreamEventKind::Event).await;
    assert!(memory.forget(&forgotten, WriterEpoch(0)).await.unwrap());
    for number in 0..10 {
        let request = RequestId::Integer(number);
        memory.expect_response(&session, &request, IDLE / 4).await.unwrap();
        memory.deliver_response(&session, &request, Bytes::from_static(b"yes")).await.unwrap();
        memory.park(&session, &format!("call {number}"), Bytes::from_static(b"call"), IDLE).await.unwrap();
    }
    memory.wait_response(&session, &RequestId::Integer(1)).await.unwrap();
    memory.claim(&session, "call 1", WriterEpoch(0), None).await.unwrap();
    assert_eq!(memory.cancel(&session, &RequestId::Integer(7)).await.unwrap(), 1);
    for _ in 0..20 {
        tokio::time::advance(IDLE / 2).await;
        assert!(memory.session(&session).await.unwrap().is_some());
    }
    memory.sweep().await.unwrap();
    assert_eq!(memory.bytes(), empty);
    assert!(memory.close_session(&session).await.unwrap());
    assert_eq!((memory.bytes(), memory.session_count()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_are_freed() {
    let memory = MemoryBackplane::default();
    for name in ["looked up", "swept"] {
        let session = session(&memory, name).await;
        append(&memory, &stream(&memory, &session).await, 1, StreamEventKind::Event).await;
    }
    tokio::time::advance(IDLE).await;
    assert_eq!(memory.session_count(), 2, "nothing runs in the background");
    assert_eq!(memory.session(&id("looked up")).await.unwrap(), None);
    assert_eq!(memory.session_count(), 1);
    memory.sweep().await.unwrap();
    assert_eq!((memory.bytes(), memory.session_count()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_largest_session_is_evicted_first() {
    let settings = BackplaneSettings { total_bytes: 100_000, ..BackplaneSettings::default() };
    let memory = MemoryBackplane::new(settings);
    let (large, small) = (session(&memory, "large").await, session(&memory, "small").await);
    let (much, little) = (stream(&memory, &large).await, stream(&memory, &small).await);
    for seq in 1..=10 {
        assert_eq!(append(&memory, &little, seq, StreamEventKind::Event).await, AppendOutcome::Stored);
    }
    for seq in 1..=1000 {
        assert_eq!(append(&memory, &much, seq, StreamEventKind::Event).await, AppendOutcome::Stored);
        assert!(memory.bytes() <= 100_000);
    }
    assert_eq!(read_out(&memory, &little).await.len(), 10);
    assert_eq!(append(&memory, &much, 1001, StreamEventKind::Final).await, AppendOutcome::Stored);
    assert_eq!(read_out(&memory, &much).await.last().map(|event| event.seq), Some(1001));
}

#[tokio::test(start_paused = true)]
async fn unread_stream_ends_are_not_evicted() {
    let memory =
        MemoryBackplane::new(BackplaneSettings { session_bytes: 20_000, ..BackplaneSettings::default() });
    let session = session(&memory, "a").await;
    let mut ended = Vec::new();
    let refused = loop {
        let OpenStreamOutcome::Opened(number) =
            memory.open_stream(&session, None, WriterEpoch(0)).await.unwrap()
        else {
            break AppendOutcome::Full;
        };
        let stream = StreamKey::new(session.clone(), number);
        match append(&memory, &stream, 1, StreamEventKind::Final).await {
            AppendOutcome::Stored => ended.push(stream),
            refused => break refused,
        }
    };
    assert_eq!(refused, AppendOutcome::Full);
    assert!(ended.len() > 5);
    // Once one of them was read, it does.
    assert_eq!(read_out(&memory, &ended[3]).await.len(), 1);
    let next = stream(&memory, &session).await;
    assert_eq!(append(&memory, &next, 1, StreamEventKind::Event).await, AppendOutcome::Stored);
    let gone = memory.attach(&ended[3], ReadFrom::After(0)).await.unwrap();
    assert_eq!(gone, AttachOutcome::Gone { request: None });
    assert_eq!(read_out(&memory, &ended[0]).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_given_makes_room_before_unread_events_do() {
    let memory =
        MemoryBackplane::new(BackplaneSettings { session_bytes: 20_000, ..BackplaneSettings::default() });
    let session = session(&memory, "a").await;
    let unread = stream(&memory, &session).await;
    for seq in 1..=3 {
        assert_eq!(append(&memory, &unread, seq, StreamEventKind::Event).await, AppendOutcome::Stored);
    }
    for number in 0..20 {
        let (request, call) = (RequestId::Integer(number), format!("call {number}"));
        let kept = Bytes::from(vec![b'x'; 4000]);
        memory.expect_response(&session, &request, IDLE).await.unwrap();
        let parked = memory.park(&session, &call, kept.clone(), IDLE).await.unwrap();
        assert_eq!(parked, ParkOutcome::Parked, "{number}");
        let delivered = memory.deliver_response(&session, &request, kept.clone()).await.unwrap();
        assert_eq!(delivered, DeliverOutcome::Taken, "{number}");
        for _ in 0..2 {
            let response = memory.wait_response(&session, &request).await.unwrap();
            assert_eq!(response, ResponseOutcome::Body(kept.clone()), "{number}");
            assert!(memory.claim(&session, &call, WriterEpoch(0), None).await.unwrap().is_some(), "{number}");
        }
    }
    assert_eq!(read_out(&memory, &unread).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn forgotten_topics_look_changed_and_tombstones_stay_known() {
    let memory =
        MemoryBackplane::new(BackplaneSettings { topics: 2, tombstones: 1, ..BackplaneSettings::default() });
    memory.bump("a").await.unwrap();
    memory.bump("b").await.unwrap();
    memory.bump("c").await.unwrap();
    assert!(memory.changes(0).await.unwrap().missed);

    let session = session(&memory, "a").await;
    for _ in 0..2 {
        append(&memory, &stream(&memory, &session).await, 1, StreamEventKind::Final).await;
    }
    tokio::time::advance(Duration::from_secs(30)).await;
    memory.session(&session).await.unwrap();
    for _ in 0..10 {
        tokio::time::advance(Duration::from_secs(30)).await;
        memory.session(&session).await.unwrap();
    }
    let gone = async |number| {
        memory.attach(&StreamKey::new(session.clone(), StreamNumber(number)), ReadFrom::After(0)).await
    };
    assert_eq!(gone(1).await.unwrap(), AttachOutcome::Gone { request: None });
    assert_eq!(gone(2).await.unwrap(), AttachOutcome::Gone { request: Some(RequestId::Integer(7)) });
    assert_eq!(gone(3).await.unwrap(), AttachOutcome::Unknown);
}
