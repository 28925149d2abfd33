//! Redis is stopped, slow, restarted, or forgets the scripts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_redis::RedisBackplane;
use refmcp_server::backplane::{
    AppendOutcome, Backplane, NewSession, OpenStreamOutcome, ReadFrom, ReadOutcome, SessionId,
    StreamEventKind, StreamKey, StreamReader, Unavailable, WriterEpoch,
};
use refmcp_testkit::redis::RedisServer;

use crate::server::{commands, connect, options};

/// Reached only by what hangs.
const LIMIT: Duration = Duration::from_secs(60);

async fn stream(redis: &RedisBackplane) -> StreamKey {
    let id = SessionId::new("a");
    redis.create_session(&id, NewSession::default(), Duration::from_secs(3600)).await.unwrap();
    match redis.open_stream(&id, Some(RequestId::Integer(7)), WriterEpoch(0)).await.unwrap() {
        OpenStreamOutcome::Opened(number) => StreamKey::new(id, number),
        refused => panic!("{refused:?}"),
    }
}

async fn append(redis: &RedisBackplane, key: &StreamKey, seq: u64) -> Result<AppendOutcome, Unavailable> {
    redis.append(key, WriterEpoch(0), seq, Bytes::from(seq.to_string()), StreamEventKind::Event).await
}

/// Asks again until there is an answer.
async fn in_time<T, F: Future<Output = Result<T, Unavailable>>>(ask: impl Fn() -> F) -> T {
    let asked = async {
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(LIMIT, asked).await.expect("Redis is back")
}

fn causes(error: &Unavailable) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[tokio::test]
async fn flushed_scripts_are_loaded_again() {
    let server = RedisServer::start();
    let (redis, mut commands) = (connect(&server).await, commands(&server).await);
    let key = stream(&redis).await;
    for seq in 1..=3 {
        let _: () = redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut commands).await.unwrap();
        assert_eq!(append(&redis, &key, seq).await.unwrap(), AppendOutcome::Stored);
    }
}

/// A hundred events, during which Redis is killed and started again twice: each arrives once, in order.
#[tokio::test]
async fn no_acknowledged_event_is_lost_when_redis_is_killed() {
    let mut server = RedisServer::start();
    let (one, other) = (Arc::new(connect(&server).await), Arc::new(connect(&server).await));
    let key = stream(&one).await;
    let reading = tokio::spawn({
        let key = key.clone();
        async move {
            let mut seen = Vec::new();
            let begin =
                || StreamReader::begin(other.clone(), key.clone(), ReadFrom::After(seen.len() as u64));
            let mut reader = in_time(begin).await.unwrap();
            while seen.len() < 100 {
                match reader.next().await {
                    Ok(ReadOutcome::Events(events)) => seen.extend(events.into_iter().map(|event| event.seq)),
                    Ok(read) => panic!("{read:?}"),
                    Err(_) => {
                        let from = ReadFrom::After(seen.len() as u64);
                        let begin = || StreamReader::begin(other.clone(), key.clone(), from);
                        reader = in_time(begin).await.unwrap();
                    }
                }
            }
            seen
        }
    });
    for seq in 1..=100 {
        if seq == 30 || seq == 60 {
            server.kill();
            let began = Instant::now();
            let down = append(&one, &key, seq).await.unwrap_err();
            assert!(causes(&down).contains("redis.sock"), "{}", causes(&down));
            assert!(began.elapsed() < LIMIT / 4, "it is told soon");
            assert!(one.session(&key.session).await.is_err());
            assert!(!one.is_connected());
            server.run();
        }
        let appended = in_time(|| append(&one, &key, seq)).await;
        assert!(matches!(appended, AppendOutcome::Stored | AppendOutcome::Already), "{seq}: {appended:?}");
    }
    let seen = tokio::time::timeout(LIMIT, reading).await.expect("all events").unwrap();
    assert_eq!(seen, (1..=100).collect::<Vec<_>>());
}

/// A reader whose connection is cut while it waits hears what came meanwhile.
#[tokio::test]
async fn a_waiter_looks_again_after_a_reconnection() {
    let server = RedisServer::start();
    let mut options = options(&server);
    options.poll = LIMIT * 10;
    let (one, other) = (connect(&server).await, Arc::new(RedisBackplane::connect(options).await.unwrap()));
    let key = stream(&one).await;
    let begun = StreamReader::begin(other.clone(), key.clone(), ReadFrom::After(0)).await;
    let mut reader = begun.unwrap().unwrap();
    assert_eq!(reader.try_next().await.unwrap(), ReadOutcome::Nothing);
    // A look that was under way when the connection was cut is an error; the next one waits again.
    let waiting = tokio::spawn(async move {
        loop {
            if let Ok(read) = reader.next().await {
                return read;
            }
        }
    });
    let mut commands = commands(&server).await;
    for seq in 1..=20 {
        let _: i64 = redis::cmd("CLIENT")
            .arg(&["KILL", "SKIPME", "yes", "TYPE", "pubsub"])
            .query_async(&mut commands)
            .await
            .unwrap();
        in_time(|| append(&one, &key, seq)).await;
    }
    let read = tokio::time::timeout(LIMIT, waiting).await.expect("it is heard").unwrap();
    assert!(matches!(read, ReadOutcome::Events(_)), "{read:?}");
}

#[tokio::test]
async fn a_slow_redis_is_an_error_in_time() {
    let server = RedisServer::start();
    let mut options = options(&server);
    options.timeout = Duration::from_millis(200);
    let redis = RedisBackplane::connect(options).await.unwrap();
    let key = stream(&redis).await;
    let mut commands = commands(&server).await;
    let _: () = redis::cmd("CLIENT").arg(&["PAUSE", "1500", "ALL"]).query_async(&mut commands).await.unwrap();
    let slow = append(&redis, &key, 1).await.unwrap_err();
    assert!(causes(&slow).contains("did not reply within"), "{}", causes(&slow));
    // Whether it was stored is unknown, and doing it again is safe.
    let appended = in_time(|| append(&redis, &key, 1)).await;
    assert!(matches!(appended, AppendOutcome::Stored | AppendOutcome::Already), "{appended:?}");
    assert_eq!(append(&redis, &key, 2).await.unwrap(), AppendOutcome::Stored);
}

/// Redis closes connections with subscriptions that have much outstanding: by default 32 MB, which a few readers of long
/// events reach together.
#[tokio::test]
async fn long_replies_do_not_end_the_connection() {
    let server = RedisServer::start();
    let (redis, mut commands) = (Arc::new(connect(&server).await), commands(&server).await);
    let limit = ["SET", "client-output-buffer-limit", "pubsub 1mb 0 0"];
    let _: () = redis::cmd("CONFIG").arg(&limit).query_async(&mut commands).await.unwrap();
    let key = stream(&redis).await;
    let event = Bytes::from(vec![b'x'; 3 << 20]);
    let appended = redis.append(&key, WriterEpoch(0), 1, event.clone(), StreamEventKind::Event).await;
    assert_eq!(appended.unwrap(), AppendOutcome::Stored);
    let reader = StreamReader::begin(redis.clone(), key.clone(), ReadFrom::After(0)).await;
    let read = reader.unwrap().unwrap().try_next().await.unwrap();
    assert!(matches!(&read, ReadOutcome::Events(events) if events[0].bytes == event), "it is read");
}

#[tokio::test]
async fn a_full_redis_refuses_and_recovers() {
    let server = RedisServer::start();
    let (redis, mut commands) = (Arc::new(connect(&server).await), commands(&server).await);
    let key = stream(&redis).await;
    assert_eq!(append(&redis, &key, 1).await.unwrap(), AppendOutcome::Stored);
    let mut limit = async |bytes: &str| {
        let set = redis::cmd("CONFIG").arg(&["SET", "maxmemory", bytes]).to_owned();
        let _: () = set.query_async(&mut commands).await.unwrap();
    };
    limit("1").await;
    let full = append(&redis, &key, 2).await.unwrap_err();
    assert!(causes(&full).contains("maxmemory"), "{}", causes(&full));
    limit("0").await;
    assert_eq!(append(&redis, &key, 2).await.unwrap(), AppendOutcome::Stored, "nothing was half done");
    limit("1").await;
    // What needs no room goes on: to look up, to read, to cancel and to close.
    assert!(redis.session(&key.session).await.unwrap().is_some());
    let reader = StreamReader::begin(redis.clone(), key.clone(), ReadFrom::After(0)).await;
    let read = reader.unwrap().unwrap().try_next().await.unwrap();
    assert!(matches!(&read, ReadOutcome::Events(events) if events.len() == 2), "{read:?}");
    redis.renew_replica("a", LIMIT).await.unwrap();
    assert!(redis.is_replica_there("a").await.unwrap());
    assert_eq!(redis.cancel(&key.session, &RequestId::Integer(7)).await.unwrap(), 1);
    assert!(redis.close_session(&key.session).await.unwrap(), "what frees memory is not refused");
}
