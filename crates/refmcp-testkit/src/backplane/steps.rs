//! Random steps: any sequence of numbers is a sequence of changes and questions to one session, and every answer must be
//! one that the model allows.
//!
//! That the numbers are only numbers lets any source of them be used: a property test that shrinks what it finds, a
//! fuzzer, a seed.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_server::backplane::{
    Backplane, BackplaneSettings, ClaimedCall, DeliverOutcome, ExpectOutcome, OnceOutcome, OpenStreamOutcome,
    ParkOutcome, PostKey, PostOutcome, ReadFrom, ResponseOutcome, SessionId, StreamEventKind, StreamKey,
    StreamNumber, WriterEpoch,
};

use super::fixture::{BackplaneFixture, Replicas, request, text};
use super::model::Stream;

/// How long ended streams, keys, calls and questions last, in ticks. Time passes in steps of [`STEP`] ticks, none of
/// which ends where one of these does: close to the very moment, either answer would be right.
const LASTS: u32 = 100;
const LATE: u32 = 210;
const STEP: u32 = 60;
const STREAM_BYTES: usize = 6_000;

/// Does these steps. Panics when an answer is wrong, and says which step it was.
pub async fn play(fixture: &BackplaneFixture, numbers: &[u64]) {
    let settings = BackplaneSettings {
        stream_bytes: STREAM_BYTES,
        retention: fixture.ticks(LASTS),
        late: fixture.ticks(LATE),
        ..BackplaneSettings::default()
    };
    let (replicas, session) = fixture.session(settings).await;
    let mut world = World::new(fixture, replicas, session);
    for (index, number) in numbers.iter().enumerate() {
        let step = Step { number: *number };
        let right = world.step(step).await;
        assert!(right, "step {index} ({}) was answered wrongly: {world:#?}", step.name());
    }
}

/// One number, taken apart.
#[derive(Debug, Clone, Copy)]
struct Step {
    number: u64,
}

impl Step {
    /// One of so many, by the byte at this place.
    fn pick(self, place: u32, of: usize) -> usize {
        usize::try_from((self.number >> (8 * place)) & 0xff).unwrap_or(0) % of.max(1)
    }

    fn name(self) -> &'static str {
        NAMES[self.pick(0, NAMES.len())]
    }
}

/// What can be done. What is here twice is done more often.
const NAMES: &[&str] = &[
    "open", "next", "next", "next", "any", "any", "final", "cancel", "forget", "stopped", "attach", "unread",
    "read", "read", "read", "detach", "post", "post", "park", "claim", "once", "expect", "answer", "collect",
    "bump", "pass", "sweep",
];

/// The session as it should be.
#[derive(Debug)]
struct World<'a> {
    fixture: &'a BackplaneFixture,
    replicas: Replicas,
    session: SessionId,
    /// The ticks that have passed.
    now: u32,
    said: u64,
    streams: Vec<(StreamNumber, Stream)>,
    posted: HashMap<u128, u64>,
    calls: HashMap<usize, Call>,
    keys: HashMap<u8, u32>,
    questions: HashMap<usize, Question>,
    topics: HashMap<usize, u64>,
}

#[derive(Debug)]
struct Call {
    parked: u32,
    state: Bytes,
    claimant: Option<WriterEpoch>,
}

#[derive(Debug)]
struct Question {
    asked: u32,
    body: Option<Bytes>,
}

impl<'a> World<'a> {
    fn new(fixture: &'a BackplaneFixture, replicas: Replicas, session: SessionId) -> Self {
        let standing = (StreamNumber::GET, Stream::new(None, STREAM_BYTES));
        Self {
            fixture,
            replicas,
            session,
            now: 0,
            said: 0,
            streams: vec![standing],
            posted: HashMap::new(),
            calls: HashMap::new(),
            keys: HashMap::new(),
            questions: HashMap::new(),
            topics: HashMap::new(),
        }
    }

    /// Does a step; `false` when the answer was wrong.
    async fn step(&mut self, step: Step) -> bool {
        let replica = if step.pick(7, 2) == 0 { &self.replicas.one } else { &self.replicas.other }.clone();
        let replica = &replica;
        match step.name() {
            "open" => self.open(replica, step).await,
            name @ ("next" | "any" | "final") => self.append(replica, step, name).await,
            name @ ("forget" | "stopped") => self.own(replica, step, name).await,
            "cancel" => {
                let id = some_request(step);
                let expected =
                    self.streams.iter_mut().filter_map(|(_, s)| s.cancel(&id, self.now).then_some(()));
                let expected = expected.count();
                replica.cancel(&self.session, &id).await.unwrap() == expected
            }
            name @ ("attach" | "unread" | "read" | "detach") => self.listen(replica, step, name).await,
            "post" => self.post(replica, step).await,
            name @ ("park" | "claim") => self.wait(replica, step, name).await,
            "once" => {
                let key = u8::try_from(step.pick(1, 4)).unwrap_or(0);
                let once = replica.once([key; 32], self.fixture.ticks(LASTS)).await.unwrap();
                let fresh = self.keys.get(&key).is_none_or(|used| self.now - used > LASTS);
                if fresh {
                    self.keys.insert(key, self.now);
                }
                once == if fresh { OnceOutcome::First } else { OnceOutcome::Again }
            }
            name @ ("expect" | "answer" | "collect") => self.ask(replica, step, name).await,
            "bump" => self.bump(replica, step).await,
            "pass" => self.pass(replica).await,
            _ => {
                replica.sweep().await.unwrap();
                true
            }
        }
    }

    /// Something that was not said before, and is long now and then.
    fn say(&mut self, step: Step) -> Bytes {
        self.said += 1;
        let width = [1, 10, 1_000, 2_500][step.pick(6, 4)];
        format!("{:0width$}", self.said).into()
    }

    fn key(&self, index: usize) -> StreamKey {
        StreamKey::new(self.session.clone(), self.streams[index].0)
    }

    async fn open(&mut self, replica: &Arc<dyn Backplane>, step: Step) -> bool {
        let id = some_request(step);
        let opened = replica.open_stream(&self.session, Some(id.clone()), WriterEpoch(0)).await.unwrap();
        let OpenStreamOutcome::Opened(number) = opened else { return false };
        let fresh = self.streams.iter().all(|(other, _)| *other != number);
        self.streams.push((number, Stream::new(Some(id), STREAM_BYTES)));
        fresh
    }

    /// A stream with a writer, if there is one.
    fn written(&self, step: Step) -> Option<usize> {
        let count = self.streams.len() - 1;
        (count > 0).then(|| 1 + step.pick(1, count))
    }

    async fn append(&mut self, replica: &Arc<dyn Backplane>, step: Step, name: &str) -> bool {
        let Some(index) = self.written(step) else { return true };
        let (event, key, now) = (self.say(step), self.key(index), self.now);
        let stream = &mut self.streams[index].1;
        let seq = match name {
            "any" => step.pick(3, 256) as u64 % (stream.last() + 3),
            _ => stream.last() + 1,
        };
        let ends = name == "final" || (name == "any" && step.pick(4, 4) == 0);
        let kind = if ends { StreamEventKind::Final } else { StreamEventKind::Event };
        // Now and then by an engine that is not the writer.
        let writer = WriterEpoch(u32::from(step.pick(2, 8) == 0));
        let appended = replica.append(&key, writer, seq, event.clone(), kind).await.unwrap();
        appended == stream.append(writer, seq, event, kind, now)
    }

    async fn own(&mut self, replica: &Arc<dyn Backplane>, step: Step, name: &str) -> bool {
        let Some(index) = self.written(step) else { return true };
        let key = self.key(index);
        let stream = &mut self.streams[index].1;
        match name {
            "forget" => {
                let writer = WriterEpoch(u32::from(step.pick(2, 8) == 0));
                replica.forget(&key, writer).await.unwrap() == stream.forget(writer)
            }
            _ => match stream.stop() {
                Some(stop) => {
                    self.fixture.soon("a stop", replica.writer_stopped(&key)).await.unwrap() == stop
                }
                None => true,
            },
        }
    }

    async fn listen(&mut self, replica: &Arc<dyn Backplane>, step: Step, name: &str) -> bool {
        let index = step.pick(1, self.streams.len());
        let key = self.key(index);
        let stream = &mut self.streams[index].1;
        match name {
            "attach" | "unread" => {
                let after = step.pick(2, 256) as u64 % (stream.last() + 2);
                let from = if name == "attach" { ReadFrom::After(after) } else { ReadFrom::Unread };
                let attached = replica.attach(&key, from).await.unwrap();
                stream.attach(from, &attached)
            }
            "detach" => {
                let count = stream.readers.len();
                let place = (count > 0 && step.pick(2, 2) == 0).then(|| step.pick(3, count));
                let token = place.map(|place| stream.readers[place].0);
                replica.detach(&key, token).await.unwrap();
                // A stream without readers has none to send away.
                if count > 0 && place.is_none_or(|place| place == count - 1) {
                    stream.detach();
                }
                true
            }
            _ if stream.readers.is_empty() => true,
            _ => {
                // Mostly the last one, since only that one gets anything.
                let count = stream.readers.len();
                let place = if step.pick(2, 4) == 0 { step.pick(3, count) } else { count - 1 };
                let (token, after) = stream.readers[place];
                let read = replica.read(&key, token, after).await.unwrap();
                stream.read(place, &read)
            }
        }
    }

    async fn post(&mut self, replica: &Arc<dyn Backplane>, step: Step) -> bool {
        let event = self.say(step);
        // Now and then the last one again: its event is surely still there.
        let last = self.posted.len() as u128;
        let key = if step.pick(2, 4) == 0 && last > 0 { last - 1 } else { last };
        let posted = replica.post(&self.session, PostKey(key), event.clone()).await.unwrap();
        let standing = &mut self.streams[0].1;
        match self.posted.get(&key) {
            Some(seq) => posted == PostOutcome::Already(*seq),
            None => {
                standing.push(event);
                self.posted.insert(key, standing.last());
                posted == PostOutcome::Stored(standing.last())
            }
        }
    }

    async fn wait(&mut self, replica: &Arc<dyn Backplane>, step: Step, name: &str) -> bool {
        let (call, state) = (step.pick(1, 3), self.say(step));
        let key = call.to_string();
        self.calls.retain(|_, call| self.now - call.parked <= LASTS);
        if name == "claim" {
            let claimant = WriterEpoch(u32::try_from(step.pick(2, 3)).unwrap_or(0));
            let index = self.written(step).filter(|_| step.pick(3, 2) == 0);
            let number = index.map(|index| self.streams[index].0);
            let claimed = replica.claim(&self.session, &key, claimant, number).await.unwrap();
            let mut stream = index.map(|index| &mut self.streams[index].1);
            if stream.as_ref().is_some_and(|stream| stream.stop().is_some()) {
                return claimed.is_none();
            }
            let known = self.calls.get_mut(&call);
            let given = known.filter(|call| call.claimant.is_none_or(|by| by == claimant));
            let expected = given.map(|call| {
                call.claimant = Some(claimant);
                if let Some(stream) = &mut stream {
                    stream.writer = claimant;
                }
                let last = stream.as_ref().map_or(0, |stream| stream.last());
                ClaimedCall { state: call.state.clone(), last }
            });
            return claimed == expected;
        }
        let ttl = self.fixture.ticks(LASTS);
        let parked = replica.park(&self.session, &key, state.clone(), ttl).await.unwrap();
        if self.calls.contains_key(&call) {
            return parked == ParkOutcome::Already;
        }
        self.calls.insert(call, Call { parked: self.now, state, claimant: None });
        let waiting = self.calls.values().filter(|call| call.claimant.is_none()).count();
        parked == ParkOutcome::Parked && replica.parked_keys(&self.session).await.unwrap().len() == waiting
    }

    async fn ask(&mut self, replica: &Arc<dyn Backplane>, step: Step, name: &str) -> bool {
        let (place, body) = (step.pick(1, 3), self.say(step));
        let id = RequestId::Text(format!("question {place}").into());
        let now = self.now;
        self.questions.retain(|_, question| now - question.asked <= LASTS + LATE);
        let question = self.questions.get_mut(&place);
        match (name, question) {
            ("expect", known) => {
                let is_new = known.is_none();
                let within = self.fixture.ticks(LASTS);
                let expected = replica.expect_response(&self.session, &id, within).await.unwrap();
                if is_new {
                    self.questions.insert(place, Question { asked: now, body: None });
                }
                expected == ExpectOutcome::Expected
            }
            ("answer", None) => {
                replica.deliver_response(&self.session, &id, text("x")).await.unwrap()
                    == DeliverOutcome::Unknown
            }
            ("answer", Some(question)) => {
                let answer = replica.deliver_response(&self.session, &id, body.clone()).await.unwrap();
                if question.body.is_some() || now - question.asked > LASTS {
                    return answer == DeliverOutcome::Late;
                }
                question.body = Some(body);
                answer == DeliverOutcome::Taken
            }
            (_, question) => {
                let expected = match question {
                    None => ResponseOutcome::Unknown,
                    Some(question) => match question.body.clone() {
                        Some(body) => ResponseOutcome::Body(body),
                        None if now - question.asked > LASTS => ResponseOutcome::Overdue,
                        None => return true,
                    },
                };
                self.fixture.soon("an answer", replica.wait_response(&self.session, &id)).await.unwrap()
                    == expected
            }
        }
    }

    async fn bump(&mut self, replica: &Arc<dyn Backplane>, step: Step) -> bool {
        let topic = step.pick(1, 3);
        let name = topic.to_string();
        let newest = self.topics.values().max().copied().unwrap_or(0);
        let generation = replica.bump(&name).await.unwrap();
        self.topics.insert(topic, generation);
        let changes = self.fixture.soon("the change", replica.changes(newest)).await.unwrap();
        generation > newest && changes.topics == [(name.into(), generation)] && changes.latest == generation
    }

    /// Time passes; reading the session keeps it open.
    async fn pass(&mut self, replica: &Arc<dyn Backplane>) -> bool {
        self.fixture.pass(STEP).await;
        self.now += STEP;
        for (_, stream) in &mut self.streams {
            stream.settle(self.now, LASTS);
        }
        replica.session(&self.session).await.unwrap().is_some()
    }
}

fn some_request(step: Step) -> RequestId {
    request(i64::try_from(step.pick(5, 3)).unwrap_or(0))
}
