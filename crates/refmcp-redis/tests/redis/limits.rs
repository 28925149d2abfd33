//! Small limits: whatever is done, each outcome is that of the state in memory.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_redis::RedisBackplane;
use refmcp_server::backplane::{
    AttachOutcome, Backplane, BackplaneSettings, MemoryBackplane, NewSession, NewTask, OpenStreamOutcome,
    PostKey, ReadFrom, SessionId, StreamEventKind, StreamKey, StreamNumber, WriterEpoch,
};
use refmcp_testkit::redis::RedisServer;

use crate::server::options;
use crate::time::time;

/// So small that most of them are reached again and again.
fn settings() -> BackplaneSettings {
    BackplaneSettings {
        sessions: 3,
        facts_bytes: 500,
        streams: 5,
        stream_bytes: 3_000,
        session_bytes: 9_000,
        total_bytes: 16_000,
        retention: Duration::from_secs(2),
        tombstones: 3,
        pending_requests: 3,
        late: Duration::from_secs(2),
        parked_calls: 3,
        tasks: 6,
        owner_tasks: 4,
        owner_task_bytes: 20_000,
        total_task_bytes: 30_000,
        topics: 2,
        keys: 3,
    }
}

/// Where a stream is in both, and what its last reader has there.
#[derive(Debug, Clone, Copy)]
struct Stream {
    numbers: [StreamNumber; 2],
    next: u64,
    readers: [Option<(refmcp_server::backplane::ReaderToken, u64)>; 2],
}

struct Both {
    each: [Arc<dyn Backplane>; 2],
    random: u64,
    count: u64,
    streams: HashMap<usize, Vec<Stream>>,
    /// What came of streams.
    seen: BTreeSet<String>,
}

impl Both {
    fn pick(&mut self, of: u64) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ (number >> 31)) % of
    }

    /// Bytes of another length each time, so that no two things are the same size.
    fn bytes(&mut self) -> Bytes {
        let length = 330 + self.pick(4) * 200 + self.count % 200;
        Bytes::from(vec![b'x'; usize::try_from(length).unwrap()])
    }

    /// A time that no other thing has.
    fn soon(&self) -> Duration {
        Duration::from_millis(3_000 + self.count)
    }

    /// Does one thing in both, and compares what came of it.
    async fn step(&mut self) {
        self.count += 1;
        let place = usize::try_from(self.pick(4)).unwrap();
        let id = SessionId::new(format!("session {place}"));
        let (bytes, soon, which) = (self.bytes(), self.soon(), self.pick(4));
        let request = RequestId::Integer(i64::try_from(which).unwrap());
        let [memory, redis] = self.each.clone();
        macro_rules! same {
            ($method:ident($($argument:expr),*)) => {{
                let (expected, found) = (memory.$method($($argument),*).await, redis.$method($($argument),*).await);
                same(stringify!($method), self.count, expected.unwrap(), &found.unwrap())
            }};
        }
        match self.pick(22) {
            0 | 1 => {
                let facts = bytes.slice(..bytes.len() % 600);
                let new = NewSession { facts, ..NewSession::default() };
                let created = same!(create_session(&id, new.clone(), Duration::from_secs(3600)));
                if created == refmcp_server::backplane::CreateOutcome::Created {
                    self.streams.insert(place, Vec::new());
                }
            }
            2 if self.pick(6) == 0 => drop(same!(close_session(&id))),
            3 => drop(same!(update_session(&id, which, bytes.slice(..bytes.len() % 600)))),
            4 | 5 => {
                // Their numbers differ.
                let call = Some(RequestId::Integer(i64::try_from(self.count).unwrap()));
                let opened = [
                    memory.open_stream(&id, call.clone(), WriterEpoch(0)).await.unwrap(),
                    redis.open_stream(&id, call, WriterEpoch(0)).await.unwrap(),
                ];
                match opened {
                    [OpenStreamOutcome::Opened(one), OpenStreamOutcome::Opened(other)] => {
                        let stream = Stream { numbers: [one, other], next: 1, readers: [None; 2] };
                        self.streams.entry(place).or_default().push(stream);
                    }
                    [expected, found] => drop(same("open_stream", self.count, expected, &found)),
                }
            }
            6..=12 => self.stream(place, &id, bytes).await,
            13 => drop(same!(post(&id, PostKey(self.count.into()), bytes.clone()))),
            14 => drop(same!(expect_response(&id, &request, soon))),
            15 => drop(same!(deliver_response(&id, &request, bytes.clone()))),
            16 => drop(same!(park(&id, &format!("call {which}"), bytes.clone(), soon))),
            17 => drop(same!(claim(&id, &format!("call {which}"), WriterEpoch(1), None))),
            18 => {
                let (name, owner) =
                    (format!("task {}", which + 4 * self.pick(2)), format!("owner {}", which % 2));
                let (state, call) = (bytes.clone(), bytes.clone());
                let task = NewTask { id: name.into(), owner: owner.into(), state, call, ttl: Some(soon) };
                same!(create_task(task.clone()));
            }
            19 => {
                let call = [None, Some(Bytes::new()), Some(bytes.clone())]
                    [usize::try_from(which % 3).unwrap()]
                .clone();
                drop(same!(update_task(
                    &format!("task {which}"),
                    1 + self.count % 3,
                    bytes.clone(),
                    call.clone()
                )));
            }
            20 => drop(same!(once([u8::try_from(self.count % 8).unwrap(); 32], soon))),
            _ => {
                tokio::time::sleep(Duration::from_millis(self.count % 400)).await;
                drop(same!(session(&id)));
                memory.sweep().await.unwrap();
                redis.sweep().await.unwrap();
            }
        }
    }

    /// Writes or reads a stream.
    async fn stream(&mut self, place: usize, id: &SessionId, bytes: Bytes) {
        let count = self.streams.get(&place).map_or(0, Vec::len);
        if count == 0 {
            return;
        }
        // Mostly one of the last.
        let back = usize::try_from(self.pick(5)).unwrap().min(count - 1);
        let mut stream = self.streams[&place][count - 1 - back];
        let what = self.pick(8);
        let mut outcomes = Vec::new();
        for (which, each) in self.each.clone().iter().enumerate() {
            let key = StreamKey::new(id.clone(), stream.numbers[which]);
            outcomes.push(match what {
                0..=3 => {
                    let kind = if what == 0 { StreamEventKind::Final } else { StreamEventKind::Event };
                    let appended = each.append(&key, WriterEpoch(0), stream.next, bytes.clone(), kind).await;
                    format!("{:?}", appended.unwrap())
                }
                4 => {
                    let attached = each.attach(&key, ReadFrom::Unread).await.unwrap();
                    if let AttachOutcome::Reading { reader, after, .. } = attached {
                        stream.readers[which] = Some((reader, after));
                    }
                    format!("{attached:?}")
                }
                5 | 6 => {
                    let Some((reader, after)) = stream.readers[which] else { continue };
                    let read = each.read(&key, reader, after).await.unwrap();
                    if let refmcp_server::backplane::ReadOutcome::Events(events) = &read {
                        stream.readers[which] = Some((reader, after + events.len() as u64));
                    }
                    format!("{read:?}")
                }
                _ if self.count.is_multiple_of(3) => {
                    format!("{:?}", each.forget(&key, WriterEpoch(0)).await.unwrap())
                }
                _ => continue,
            });
        }
        if let [expected, found] = &outcomes[..] {
            let word = expected.split(|c: char| !c.is_alphanumeric()).next().unwrap();
            self.seen.insert(word.to_owned());
            same(&format!("stream {what}"), self.count, expected, &found);
            if what <= 3 && expected == "Stored" {
                stream.next += 1;
            }
        }
        if let Some(streams) = self.streams.get_mut(&place) {
            streams[count - 1 - back] = stream;
        }
    }
}

fn same<T: Debug + PartialEq>(what: &str, step: u64, expected: T, found: &T) -> T {
    assert_eq!(found, &expected, "step {step}: {what}");
    expected
}

#[tokio::test(start_paused = true)]
async fn every_outcome_is_that_of_the_state_in_memory() {
    let server = RedisServer::start();
    let mut seen = BTreeSet::new();
    for seed in 0..5 {
        let mut options = options(&server);
        options.prefix = format!("seed-{seed}");
        options.settings = settings();
        options.time = Some(time());
        options.timeout = Duration::from_secs(3600);
        let redis = Arc::new(RedisBackplane::connect(options).await.unwrap());
        let memory = Arc::new(MemoryBackplane::new(settings()));
        let mut both = Both {
            each: [memory, redis],
            random: seed << 32,
            count: 0,
            streams: HashMap::new(),
            seen: BTreeSet::new(),
        };
        for _ in 0..500 {
            // No two things happen at the same time, so both have the same order.
            tokio::time::sleep(Duration::from_millis(1)).await;
            both.step().await;
        }
        seen.append(&mut both.seen);
    }
    for outcome in ["Stored", "Full", "Ended", "Unknown", "Gone", "Events"] {
        assert!(seen.contains(outcome), "no step has come to {outcome}: {seen:?}");
    }
}
