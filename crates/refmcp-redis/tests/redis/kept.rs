//! What is in Redis: no secrets, nothing for ever, and no bytes that are not given back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_redis::RedisBackplane;
use refmcp_server::backplane::{
    AppendOutcome, AttachOutcome, Backplane, BackplaneSettings, CreateOutcome, CreateTaskOutcome, Event,
    NewSession, NewTask, OpenStreamOutcome, ParkOutcome, PostKey, ReadFrom, ReadOutcome, SessionId,
    StreamEventKind, StreamKey, StreamNumber, WriterEpoch,
};
use refmcp_testkit::redis::RedisServer;

use crate::server::{commands, connect, options};

const IDLE: Duration = Duration::from_secs(600);

async fn with(server: &RedisServer, settings: BackplaneSettings) -> RedisBackplane {
    let mut options = options(server);
    options.settings = settings;
    RedisBackplane::connect(options).await.unwrap()
}

async fn session(redis: &RedisBackplane, name: &str) -> SessionId {
    let (id, idle) = (SessionId::new(name), IDLE);
    let session = NewSession { principal: Some("ANN".into()), ..NewSession::default() };
    assert_eq!(redis.create_session(&id, session, idle).await.unwrap(), CreateOutcome::Created);
    id
}

async fn stream(redis: &RedisBackplane, session: &SessionId) -> StreamKey {
    match redis.open_stream(session, Some(RequestId::Integer(7)), WriterEpoch(0)).await.unwrap() {
        OpenStreamOutcome::Opened(number) => StreamKey::new(session.clone(), number),
        refused => panic!("{refused:?}"),
    }
}

async fn append(redis: &RedisBackplane, key: &StreamKey, seq: u64, kind: StreamEventKind) -> AppendOutcome {
    redis.append(key, WriterEpoch(0), seq, Bytes::from(vec![b'x'; 1000]), kind).await.unwrap()
}

async fn read_out(redis: &RedisBackplane, key: &StreamKey) -> Vec<Event> {
    let attached = redis.attach(key, ReadFrom::Unread).await.unwrap();
    let AttachOutcome::Reading { reader, mut after, .. } = attached else { panic!("{attached:?}") };
    let mut events = Vec::new();
    while let ReadOutcome::Events(batch) = redis.read(key, reader, after).await.unwrap() {
        after += batch.len() as u64;
        events.extend(batch);
    }
    events
}

async fn number(commands: &mut MultiplexedConnection, command: &[&str]) -> i64 {
    let mut built = redis::cmd(command[0]);
    command[1..].iter().for_each(|arg| {
        built.arg(arg);
    });
    built.query_async::<Option<i64>>(commands).await.unwrap().unwrap_or(0)
}

async fn keys(commands: &mut MultiplexedConnection) -> Vec<String> {
    redis::cmd("KEYS").arg("*").query_async(commands).await.unwrap()
}

/// Does a bit of everything in a session, which leaves keys of all kinds.
async fn use_all(redis: &RedisBackplane, session: &SessionId) {
    let running = stream(redis, session).await;
    append(redis, &running, 1, StreamEventKind::Event).await;
    let ended = stream(redis, session).await;
    append(redis, &ended, 1, StreamEventKind::Final).await;
    redis.post(session, PostKey(1), Bytes::from_static(b"news")).await.unwrap();
    redis.attach(&running, ReadFrom::After(0)).await.unwrap();
    for number in 0..10 {
        let request = RequestId::Integer(number);
        redis.expect_response(session, &request, IDLE).await.unwrap();
        redis.deliver_response(session, &request, Bytes::from_static(b"yes")).await.unwrap();
        redis.park(session, &format!("call {number}"), Bytes::from_static(b"call"), IDLE).await.unwrap();
    }
    redis.wait_response(session, &RequestId::Integer(1)).await.unwrap();
    redis.claim(session, "call 1", WriterEpoch(0), None).await.unwrap();
    assert_eq!(redis.cancel(session, &RequestId::Integer(7)).await.unwrap(), 1);
}

#[tokio::test]
async fn keys_tell_no_secrets_and_all_expire() {
    let server = RedisServer::start();
    let settings = BackplaneSettings { tombstones: 1, streams: 1, ..BackplaneSettings::default() };
    let (redis, mut commands) = (with(&server, BackplaneSettings::default()).await, commands(&server).await);
    let id = session(&redis, "SECRET-SESSION").await;
    use_all(&redis, &id).await;
    // Another one with a tombstone.
    let other = with(&server, settings).await;
    let id = session(&other, "SECRET-OTHER").await;
    for _ in 0..2 {
        let ended = stream(&other, &id).await;
        append(&other, &ended, 1, StreamEventKind::Final).await;
        read_out(&other, &ended).await;
    }
    for (name, ttl) in [("SECRET-TASK", Some(IDLE)), ("SECRET-FOREVER", None)] {
        let (state, call) = (Bytes::from_static(b"state"), Bytes::from_static(b"call"));
        let task = NewTask { id: name.into(), owner: "SECRET-OWNER".into(), state, call, ttl };
        assert_eq!(redis.create_task(task).await.unwrap(), CreateTaskOutcome::Created);
    }
    redis.once([7; 32], IDLE).await.unwrap();
    redis.bump("tools").await.unwrap();
    redis.renew_replica("SECRET-REPLICA", IDLE).await.unwrap();

    let found = keys(&mut commands).await;
    assert!(found.len() > 20, "{found:?}");
    for key in &found {
        assert!(key.starts_with("refmcp:1:") && !key.contains("SECRET"), "{key}");
        let (left, kind) = (
            number(&mut commands, &["PTTL", key]).await,
            redis::cmd("TYPE").arg(key).query_async::<String>(&mut commands).await.unwrap(),
        );
        assert!(left > 0, "{key} is for ever");
        let dump: Vec<u8> = redis::cmd("DUMP").arg(key).query_async(&mut commands).await.unwrap();
        assert!(!dump.windows(6).any(|bytes| bytes == b"SECRET"), "{key} ({kind}) has a secret");
    }
    let tags = found.iter().filter_map(|key| Some(key.split_once('{')?.1.split_once('}')?.0));
    assert_eq!(
        tags.collect::<std::collections::BTreeSet<_>>().len(),
        2,
        "a session's keys have one hash tag"
    );
}

#[tokio::test]
async fn the_first_key_of_each_kind_expires() {
    let server = RedisServer::start();
    let (redis, mut commands) = (with(&server, BackplaneSettings::default()).await, commands(&server).await);
    session(&redis, "a").await;
    for key in keys(&mut commands).await {
        assert!(number(&mut commands, &["PTTL", &key]).await > 0, "{key} is for ever");
    }
}

/// Redis drops the key of a task by itself when no replica has swept for long. Its owner has room again all the same.
#[tokio::test]
async fn dropped_tasks_leave_nothing() {
    let server = RedisServer::start();
    let settings = BackplaneSettings { owner_tasks: 2, ..BackplaneSettings::default() };
    let (redis, mut commands) = (with(&server, settings).await, commands(&server).await);
    let create = async |id: &str, ttl| {
        let (state, call) = (Bytes::from_static(b"state"), Bytes::from_static(b"call"));
        let task = NewTask { id: id.into(), owner: "owner".into(), state, call, ttl };
        redis.create_task(task).await.unwrap()
    };
    assert_eq!(create("kept", None).await, CreateTaskOutcome::Created);
    let bytes = number(&mut commands, &["HGET", "refmcp:1:tasks", "bytes"]).await;
    let kept = keys(&mut commands).await;
    for name in ["first", "second"] {
        // What lasts for a moment is over by the next step that sweeps.
        assert_eq!(create(name, Some(Duration::from_millis(1))).await, CreateTaskOutcome::Created, "{name}");
        for key in keys(&mut commands).await.iter().filter(|key| key.starts_with("refmcp:1:task:")) {
            if !kept.contains(key) {
                number(&mut commands, &["DEL", key]).await;
            }
        }
        while number(&mut commands, &["ZCARD", "refmcp:1:tasks:ends"]).await > 0 {
            redis.sweep().await.unwrap();
        }
    }
    assert_eq!(number(&mut commands, &["HGET", "refmcp:1:tasks", "count"]).await, 1);
    assert_eq!(number(&mut commands, &["HGET", "refmcp:1:tasks", "bytes"]).await, bytes);
    assert_eq!(redis.tasks("owner", 0, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn all_bytes_come_back() {
    let server = RedisServer::start();
    let short = Duration::from_millis(20);
    let settings = BackplaneSettings { retention: short, late: short, ..BackplaneSettings::default() };
    let (redis, mut commands) = (with(&server, settings).await, commands(&server).await);
    let id = session(&redis, "a").await;
    let empty = number(&mut commands, &["GET", "refmcp:1:total"]).await;
    assert!(empty > 0);
    let running = stream(&redis, &id).await;
    for seq in 1..=10 {
        append(&redis, &running, seq, StreamEventKind::Event).await;
    }
    let ended = stream(&redis, &id).await;
    append(&redis, &ended, 1, StreamEventKind::Final).await;
    let forgotten = stream(&redis, &id).await;
    append(&redis, &forgotten, 1, StreamEventKind::Event).await;
    assert!(redis.forget(&forgotten, WriterEpoch(0)).await.unwrap());
    for number in 0..10 {
        let request = RequestId::Integer(number);
        redis.expect_response(&id, &request, short).await.unwrap();
        redis.deliver_response(&id, &request, Bytes::from_static(b"yes")).await.unwrap();
        redis.park(&id, &format!("call {number}"), Bytes::from_static(b"call"), short).await.unwrap();
    }
    let task = NewTask {
        id: "task".into(),
        owner: "owner".into(),
        state: Bytes::from_static(b"state"),
        call: Bytes::from_static(b"call"),
        ttl: Some(short),
    };
    redis.create_task(task).await.unwrap();
    redis.once([7; 32], short).await.unwrap();
    assert_eq!(redis.cancel(&id, &RequestId::Integer(7)).await.unwrap(), 1);
    assert!(number(&mut commands, &["GET", "refmcp:1:total"]).await > empty + 10_000);
    assert!(number(&mut commands, &["HGET", "refmcp:1:tasks", "bytes"]).await > 0);
    tokio::time::sleep(short * 3).await;
    redis.sweep().await.unwrap();
    assert_eq!(number(&mut commands, &["GET", "refmcp:1:total"]).await, empty);
    assert_eq!(number(&mut commands, &["HGET", "refmcp:1:tasks", "bytes"]).await, 0);
    assert_eq!(number(&mut commands, &["HGET", "refmcp:1:tasks", "count"]).await, 0);
    assert_eq!(number(&mut commands, &["ZCARD", "refmcp:1:keys"]).await, 0);
    assert!(redis.close_session(&id).await.unwrap());
    assert_eq!(number(&mut commands, &["GET", "refmcp:1:total"]).await, 0);
    let left = keys(&mut commands).await;
    assert!(
        left.iter().all(|key| !key.contains('{') && !key.contains("owner") && !key.contains("task:")),
        "{left:?}"
    );
}

#[tokio::test]
async fn unused_sessions_are_swept() {
    let server = RedisServer::start();
    let (redis, mut commands) = (connect(&server).await, commands(&server).await);
    let idle = Duration::from_millis(20);
    for number in 0..500 {
        let id = SessionId::new(number.to_string());
        redis.create_session(&id, NewSession::default(), idle).await.unwrap();
    }
    tokio::time::sleep(idle * 3).await;
    redis.sweep().await.unwrap();
    assert_eq!(number(&mut commands, &["ZCARD", "refmcp:1:sessions"]).await, 0);
    assert_eq!(number(&mut commands, &["GET", "refmcp:1:total"]).await, 0);
    assert!(keys(&mut commands).await.iter().all(|key| !key.contains('{')));
}

#[tokio::test]
async fn the_largest_session_makes_room() {
    let server = RedisServer::start();
    let redis =
        with(&server, BackplaneSettings { total_bytes: 100_000, ..BackplaneSettings::default() }).await;
    let mut commands = commands(&server).await;
    let (large, small) = (session(&redis, "large").await, session(&redis, "small").await);
    let (much, little) = (stream(&redis, &large).await, stream(&redis, &small).await);
    for seq in 1..=10 {
        assert_eq!(append(&redis, &little, seq, StreamEventKind::Event).await, AppendOutcome::Stored);
    }
    for seq in 1..=300 {
        assert_eq!(append(&redis, &much, seq, StreamEventKind::Event).await, AppendOutcome::Stored);
        assert!(number(&mut commands, &["GET", "refmcp:1:total"]).await <= 100_000);
    }
    assert_eq!(read_out(&redis, &little).await.len(), 10);
    assert_eq!(append(&redis, &much, 301, StreamEventKind::Final).await, AppendOutcome::Stored);
    assert_eq!(read_out(&redis, &much).await.last().map(|event| event.seq), Some(301));
}

#[tokio::test]
async fn unread_ends_of_streams_stay() {
    let server = RedisServer::start();
    let redis =
        with(&server, BackplaneSettings { session_bytes: 20_000, ..BackplaneSettings::default() }).await;
    let id = session(&redis, "a").await;
    let mut ended = Vec::new();
    loop {
        let opened = redis.open_stream(&id, None, WriterEpoch(0)).await.unwrap();
        let OpenStreamOutcome::Opened(number) = opened else { break };
        let stream = StreamKey::new(id.clone(), number);
        if append(&redis, &stream, 1, StreamEventKind::Final).await != AppendOutcome::Stored {
            break;
        }
        ended.push(stream);
    }
    assert!((6..20).contains(&ended.len()), "{}", ended.len());
    // Once one of them was read, it does not.
    assert_eq!(read_out(&redis, &ended[3]).await.len(), 1);
    let next = stream(&redis, &id).await;
    assert_eq!(append(&redis, &next, 1, StreamEventKind::Event).await, AppendOutcome::Stored);
    let gone = redis.attach(&ended[3], ReadFrom::After(0)).await.unwrap();
    assert_eq!(gone, AttachOutcome::Gone { request: None });
    assert_eq!(read_out(&redis, &ended[0]).await.len(), 1);
}

#[tokio::test]
async fn what_was_given_makes_room_before_unread_events_do() {
    let server = RedisServer::start();
    let redis =
        with(&server, BackplaneSettings { session_bytes: 20_000, ..BackplaneSettings::default() }).await;
    let id = session(&redis, "a").await;
    let unread = stream(&redis, &id).await;
    for seq in 1..=3 {
        append(&redis, &unread, seq, StreamEventKind::Event).await;
    }
    for number in 0..20 {
        let (request, call) = (RequestId::Integer(number), format!("call {number}"));
        let kept = Bytes::from(vec![b'x'; 4000]);
        redis.expect_response(&id, &request, IDLE).await.unwrap();
        assert_eq!(redis.park(&id, &call, kept.clone(), IDLE).await.unwrap(), ParkOutcome::Parked);
        redis.deliver_response(&id, &request, kept.clone()).await.unwrap();
        for _ in 0..2 {
            redis.wait_response(&id, &request).await.unwrap();
            assert!(redis.claim(&id, &call, WriterEpoch(0), None).await.unwrap().is_some(), "{number}");
        }
    }
    assert_eq!(read_out(&redis, &unread).await.len(), 3);
}

/// Redis is stopped and loses the last things that it has accepted: what it gives out afterwards is new all the same.
#[tokio::test]
async fn nothing_is_given_out_twice_after_a_loss() {
    let mut server = RedisServer::start();
    let redis = Arc::new(connect(&server).await);
    let id = session(&redis, "a").await;
    let mut commands = commands(&server).await;
    let key = keys(&mut commands).await.into_iter().find(|key| key.ends_with('}')).unwrap();
    let (first, generation) = (stream(&redis, &id).await, redis.bump("tools").await.unwrap());
    // As if the last moments were not written. A restart takes longer.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let _: () = redis::cmd("HSET").arg(&key).arg("opened").arg(0).query_async(&mut commands).await.unwrap();
    let _: () = redis::cmd("DEL").arg("refmcp:1:generations").query_async(&mut commands).await.unwrap();
    let second = stream(&redis, &id).await;
    assert!(second.number > first.number, "{first:?} {second:?}");
    let changes = redis.changes(generation).await.unwrap();
    assert!(changes.missed, "a generation that is not known any more is as good as missed changes");
    assert!(redis.bump("tools").await.unwrap() > generation);
    let unknown = StreamKey::new(id, StreamNumber(u64::MAX));
    assert_eq!(redis.attach(&unknown, ReadFrom::After(0)).await.unwrap(), AttachOutcome::Unknown);
    server.kill();
}
