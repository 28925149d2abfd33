//! What holds however many do it at once. For a runtime with several threads and the real clock; each case repeats
//! itself, since a race that is lost once in a while is lost.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use refmcp_server::backplane::{
    AppendOutcome, AttachOutcome, Backplane, BackplaneSettings, CreateOutcome, DeliverOutcome, NewSession,
    OnceOutcome, ParkOutcome, PostKey, PostOutcome, ReadFrom, ReadOutcome, ResponseOutcome, SessionId,
    StreamEventKind, StreamReader, UpdateOutcome, WriterEpoch,
};
use tokio::sync::Barrier;

use super::Case;
use super::fixture::{BackplaneFixture, Replicas, Writer, request, text};

/// How many compete.
const RIVALS: usize = 8;
/// How often.
const ROUNDS: usize = 20;

/// All races.
pub const RACES: &[Case] = &[
    Case { name: "one_creates_a_session", run: |fixture| Box::pin(one_creates_a_session(fixture)) },
    Case { name: "no_change_of_facts_is_lost", run: |fixture| Box::pin(no_change_of_facts_is_lost(fixture)) },
    Case { name: "one_retry_is_stored", run: |fixture| Box::pin(one_retry_is_stored(fixture)) },
    Case { name: "one_reader_remains", run: |fixture| Box::pin(one_reader_remains(fixture)) },
    Case { name: "readers_follow_a_writer", run: |fixture| Box::pin(readers_follow_a_writer(fixture)) },
    Case { name: "posts_have_numbers_without_holes", run: |fixture| Box::pin(posts_have_numbers(fixture)) },
    Case { name: "one_claims_a_call", run: |fixture| Box::pin(one_claims_a_call(fixture)) },
    Case { name: "one_uses_a_key", run: |fixture| Box::pin(one_uses_a_key(fixture)) },
    Case { name: "one_answer_counts", run: |fixture| Box::pin(one_answer_counts(fixture)) },
    Case { name: "an_end_or_a_cancellation", run: |fixture| Box::pin(an_end_or_a_cancellation(fixture)) },
    Case { name: "closing_wins_over_everything", run: |fixture| Box::pin(closing_wins(fixture)) },
];

/// Runs something many times at once, on both replicas; each has its own number.
async fn compete<T, F>(
    replicas: &Replicas,
    act: impl Fn(Arc<dyn Backplane>, usize) -> F + Clone + Send + 'static,
) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send,
{
    let start = Arc::new(Barrier::new(RIVALS));
    let rivals: Vec<_> = (0..RIVALS)
        .map(|number| {
            let backplane = if number % 2 == 0 { &replicas.one } else { &replicas.other }.clone();
            let (start, act) = (start.clone(), act.clone());
            tokio::spawn(async move {
                start.wait().await;
                act(backplane, number).await
            })
        })
        .collect();
    let mut results = Vec::new();
    for rival in rivals {
        results.push(rival.await.unwrap());
    }
    results
}

fn count<T: PartialEq>(results: &[T], wanted: &T) -> usize {
    results.iter().filter(|result| *result == wanted).count()
}

async fn one_creates_a_session(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    for round in 0..ROUNDS {
        let (id, idle) = (SessionId::new(round.to_string()), fixture.ticks(1000));
        let results = compete(&replicas, move |backplane, _| {
            let id = id.clone();
            async move { backplane.create_session(&id, NewSession::default(), idle).await.unwrap() }
        })
        .await;
        assert_eq!(count(&results, &CreateOutcome::Created), 1, "{results:?}");
    }
}

async fn no_change_of_facts_is_lost(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let session = id.clone();
    compete(&replicas, move |backplane, _| {
        let id = session.clone();
        async move {
            for _ in 0..ROUNDS {
                let mut record = backplane.session(&id).await.unwrap().unwrap();
                loop {
                    tokio::task::yield_now().await;
                    let more = text(&format!("{}x", String::from_utf8_lossy(&record.facts)));
                    match backplane.update_session(&id, record.version, more).await.unwrap() {
                        UpdateOutcome::Updated(_) => break,
                        UpdateOutcome::Conflict(newer) => record = newer,
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
    })
    .await;
    let record = replicas.one.session(&id).await.unwrap().unwrap();
    assert_eq!((record.facts.len(), record.version), (RIVALS * ROUNDS, (RIVALS * ROUNDS) as u64 + 1));
}

async fn one_retry_is_stored(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    for seq in 1..=ROUNDS as u64 {
        let writer = writer.clone();
        let results = compete(&replicas, move |backplane, number| {
            let writer = writer.clone();
            async move {
                let said = text(&number.to_string());
                let appended =
                    backplane.append(&writer.stream, writer.epoch, seq, said.clone(), StreamEventKind::Event);
                (appended.await.unwrap(), said)
            }
        })
        .await;
        let stored: Vec<_> =
            results.iter().filter(|(appended, _)| *appended == AppendOutcome::Stored).collect();
        assert_eq!(stored.len(), 1, "{results:?}");
        assert_eq!(
            results.iter().filter(|(appended, _)| *appended == AppendOutcome::Already).count(),
            RIVALS - 1
        );
    }
}

async fn one_reader_remains(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    for _ in 0..ROUNDS {
        let writer = Writer::open(&replicas.one, &id, 1).await;
        writer.events(1).await;
        let stream = writer.stream.clone();
        let readers = compete(&replicas, move |backplane, _| {
            let stream = stream.clone();
            async move { backplane.attach(&stream, ReadFrom::After(0)).await.unwrap() }
        })
        .await;
        let mut tokens = BTreeSet::new();
        let mut reading = 0;
        for attached in readers {
            let AttachOutcome::Reading { reader, after, .. } = attached else { panic!("{attached:?}") };
            assert!(tokens.insert(reader), "no two readers are the same");
            match replicas.one.read(&writer.stream, reader, after).await.unwrap() {
                ReadOutcome::Events(_) => reading += 1,
                other => assert_eq!(other, ReadOutcome::Replaced),
            }
        }
        assert_eq!(reading, 1);
        assert!(writer.forget(&replicas.one).await);
    }
}

/// Readers take the stream from each other while it is written: each goes on behind what it knows, and everybody who
/// gets to the end has seen every event once.
async fn readers_follow_a_writer(fixture: &BackplaneFixture) {
    const EVENTS: u64 = 300;
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let writer = Writer::open(&replicas.one, &id, 1).await;
    let stream = writer.stream.clone();
    let writing = tokio::spawn(async move {
        for seq in 1..EVENTS {
            assert_eq!(writer.event(seq).await, AppendOutcome::Stored);
            if seq % 7 == 0 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(writer.end(EVENTS).await, AppendOutcome::Stored);
    });
    let follow = compete(&replicas, move |backplane, _| {
        let stream = stream.clone();
        async move {
            let mut seen = 0;
            loop {
                let from = ReadFrom::After(seen);
                let begun = StreamReader::begin(backplane.clone(), stream.clone(), from).await.unwrap();
                let Ok(mut reading) = begun else { return (seen, begun.map(|_| ()).unwrap_err()) };
                loop {
                    match reading.next().await.unwrap() {
                        ReadOutcome::Events(events) => {
                            for event in events {
                                assert_eq!(event.seq, seen + 1);
                                assert_eq!(event.bytes, text(&event.seq.to_string()));
                                seen = event.seq;
                            }
                        }
                        ReadOutcome::End => return (seen, AttachOutcome::Ended),
                        ReadOutcome::Replaced => break,
                        other => panic!("{other:?}"),
                    }
                }
                // Lets the others have it for a moment.
                tokio::task::yield_now().await;
            }
        }
    });
    let ends = fixture.soon("all readers", follow).await;
    assert_eq!(count(&ends, &(EVENTS, AttachOutcome::Ended)), RIVALS, "{ends:?}");
    writing.await.unwrap();
}

async fn posts_have_numbers(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let posted = compete(&replicas, move |backplane, number| {
        let id = id.clone();
        async move {
            let mut numbers = Vec::new();
            for round in 0..ROUNDS {
                // Two post the same: one of them posts it, the other hears that it was posted.
                let key = PostKey((number / 2 * ROUNDS + round) as u128);
                numbers.push(match backplane.post(&id, key, text("news")).await.unwrap() {
                    PostOutcome::Stored(seq) => (seq, true),
                    PostOutcome::Already(seq) => (seq, false),
                    other => panic!("{other:?}"),
                });
            }
            numbers
        }
    })
    .await;
    let all: Vec<(u64, bool)> = posted.into_iter().flatten().collect();
    let expected: BTreeSet<u64> = (1..=(RIVALS / 2 * ROUNDS) as u64).collect();
    let stored: Vec<u64> = all.iter().filter(|(_, stored)| *stored).map(|(seq, _)| *seq).collect();
    assert_eq!(stored.len(), expected.len());
    assert_eq!(stored.into_iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(all.into_iter().map(|(seq, _)| seq).collect::<BTreeSet<_>>(), expected);
}

async fn one_claims_a_call(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    for round in 0..ROUNDS {
        let (id, call, ttl) = (id.clone(), round.to_string(), fixture.ticks(1000));
        let results = compete(&replicas, move |backplane, number| {
            let (id, call) = (id.clone(), call.clone());
            async move {
                let parked = backplane.park(&id, &call, text("state"), ttl).await.unwrap();
                let claimant = WriterEpoch(u32::try_from(number).unwrap());
                (parked, backplane.claim(&id, &call, claimant, None).await.unwrap().is_some())
            }
        })
        .await;
        let parked = results.iter().filter(|(parked, _)| *parked == ParkOutcome::Parked).count();
        let claimed = results.iter().filter(|(_, claimed)| *claimed).count();
        assert_eq!((parked, claimed), (1, 1), "{results:?}");
    }
}

async fn one_uses_a_key(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    for round in 0..ROUNDS {
        let (key, ttl) = ([u8::try_from(round).unwrap(); 32], fixture.ticks(1000));
        let results =
            compete(&replicas, move |backplane, _| async move { backplane.once(key, ttl).await.unwrap() })
                .await;
        assert_eq!(
            (count(&results, &OnceOutcome::First), count(&results, &OnceOutcome::Again)),
            (1, RIVALS - 1)
        );
    }
}

/// All wait for the answer and all give one: one is taken, and all get it.
async fn one_answer_counts(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    for round in 0..ROUNDS {
        let question = request(i64::try_from(round).unwrap());
        replicas.one.expect_response(&id, &question, fixture.ticks(1000)).await.unwrap();
        let id = id.clone();
        let both = compete(&replicas, move |backplane, number| {
            let (id, question) = (id.clone(), question.clone());
            async move {
                let body = text(&number.to_string());
                tokio::join!(async { backplane.wait_response(&id, &question).await.unwrap() }, async {
                    (backplane.deliver_response(&id, &question, body.clone()).await.unwrap(), body.clone())
                })
            }
        });
        let results = fixture.soon("the answers", both).await;
        let taken: Vec<_> =
            results.iter().filter(|(_, (answer, _))| *answer == DeliverOutcome::Taken).collect();
        assert_eq!(taken.len(), 1, "{results:?}");
        let body = ResponseOutcome::Body(taken[0].1.1.clone());
        let answered: Vec<ResponseOutcome> = results.iter().map(|(answered, _)| answered.clone()).collect();
        assert_eq!(count(&answered, &body), RIVALS, "{answered:?}");
    }
}

/// Some end it, some cancel it, some give its answer another way: one of them does.
async fn an_end_or_a_cancellation(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    for round in 0..ROUNDS {
        let number = i64::try_from(round).unwrap();
        let writer = Writer::open(&replicas.one, &id, number).await;
        let results = compete(&replicas, move |backplane, rival| {
            let writer = writer.clone();
            async move {
                let stream = &writer.stream;
                match rival % 3 {
                    0 => {
                        let end = backplane
                            .append(stream, writer.epoch, 1, text("end"), StreamEventKind::Final)
                            .await
                            .unwrap();
                        end == AppendOutcome::Stored
                    }
                    1 => backplane.cancel(&stream.session, &request(number)).await.unwrap() == 1,
                    _ => writer.forget(&backplane).await,
                }
            }
        })
        .await;
        assert_eq!(count(&results, &true), 1, "{results:?}");
    }
}

async fn closing_wins(fixture: &BackplaneFixture) {
    let replicas = fixture.replicas(BackplaneSettings::default()).await;
    for round in 0..ROUNDS {
        let id = fixture.open(&replicas, &round.to_string()).await;
        let writer = Writer::open(&replicas.one, &id, 1).await;
        let session = id.clone();
        let stream = writer.clone();
        let closed = compete(&replicas, move |backplane, number| {
            let (id, writer) = (session.clone(), stream.clone());
            async move {
                if number < 2 {
                    return backplane.close_session(&id).await.unwrap();
                }
                for seq in 1..=5 {
                    let _ = backplane
                        .append(&writer.stream, writer.epoch, seq, text("x"), StreamEventKind::Event)
                        .await;
                    let _ = backplane.park(&id, &seq.to_string(), text("x"), std::time::Duration::MAX).await;
                    let _ = backplane.post(&id, PostKey(seq.into()), text("x")).await;
                }
                false
            }
        })
        .await;
        assert_eq!(count(&closed, &true), 1);
        assert_eq!(replicas.other.session(&id).await.unwrap(), None);
        assert_eq!(writer.event(1).await, AppendOutcome::Unknown);
        assert!(replicas.one.parked_keys(&id).await.unwrap().is_empty());
    }
}
