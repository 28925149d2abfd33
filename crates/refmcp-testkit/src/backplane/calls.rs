//! Questions and their answers, calls that wait, and calls that are cancelled.

use std::sync::Arc;

use refmcp_server::backplane::{
    AppendOutcome, AttachOutcome, Backplane, BackplaneSettings, DeliverOutcome, ExpectOutcome, ParkOutcome,
    ReadFrom, ReadOutcome, ResponseOutcome, SessionId, StreamKey, WriterEpoch, WriterStop,
};

use super::fixture::{BackplaneFixture, Writer, numbers, reader, request, text};

pub(super) async fn an_answer_reaches_its_waiter(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let question = request(1);
    assert_eq!(
        replicas.one.expect_response(&id, &question, fixture.ticks(40)).await.unwrap(),
        ExpectOutcome::Expected
    );
    assert_eq!(
        replicas.one.expect_response(&id, &question, fixture.ticks(1)).await.unwrap(),
        ExpectOutcome::Expected
    );
    let answer = async {
        fixture.pass(3).await;
        replicas.other.deliver_response(&id, &question, text("yes")).await.unwrap()
    };
    let both = async { tokio::join!(replicas.one.wait_response(&id, &question), answer) };
    let (answered, taken) = fixture.soon("the answer", both).await;
    assert_eq!((answered.unwrap(), taken), (ResponseOutcome::Body(text("yes")), DeliverOutcome::Taken));
    let again = fixture.soon("the answer", replicas.other.wait_response(&id, &question)).await.unwrap();
    assert_eq!(again, ResponseOutcome::Body(text("yes")), "the first one to get it may be gone");
}

pub(super) async fn the_first_answer_counts(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let question = request(1);
    assert_eq!(
        replicas.one.deliver_response(&id, &question, text("why?")).await.unwrap(),
        DeliverOutcome::Unknown
    );
    replicas.one.expect_response(&id, &question, fixture.ticks(10)).await.unwrap();
    assert_eq!(
        replicas.one.deliver_response(&id, &question, text("yes")).await.unwrap(),
        DeliverOutcome::Taken
    );
    assert_eq!(
        replicas.other.deliver_response(&id, &question, text("no")).await.unwrap(),
        DeliverOutcome::Late
    );
    let other = fixture.open(&replicas, "b").await;
    assert_eq!(
        replicas.one.deliver_response(&other, &question, text("no")).await.unwrap(),
        DeliverOutcome::Unknown
    );
    let answered = fixture.soon("the answer", replicas.other.wait_response(&id, &question)).await.unwrap();
    assert_eq!(answered, ResponseOutcome::Body(text("yes")));
    assert_eq!(
        replicas.other.deliver_response(&id, &question, text("no")).await.unwrap(),
        DeliverOutcome::Late
    );
}

pub(super) async fn a_late_answer_is_late(fixture: &BackplaneFixture) {
    let settings = BackplaneSettings { late: fixture.ticks(20), ..BackplaneSettings::default() };
    let (replicas, id) = fixture.session(settings).await;
    let (missed, kept) = (request(1), request(2));
    replicas.one.expect_response(&id, &missed, fixture.ticks(4)).await.unwrap();
    replicas.one.expect_response(&id, &kept, fixture.ticks(4)).await.unwrap();
    assert_eq!(
        replicas.other.deliver_response(&id, &kept, text("in time")).await.unwrap(),
        DeliverOutcome::Taken
    );
    let overdue = fixture.soon("the deadline", replicas.one.wait_response(&id, &missed)).await.unwrap();
    assert_eq!(overdue, ResponseOutcome::Overdue);
    fixture.pass(3).await;
    assert_eq!(
        replicas.other.deliver_response(&id, &missed, text("late")).await.unwrap(),
        DeliverOutcome::Late
    );
    let overdue = fixture.soon("the end", replicas.one.wait_response(&id, &missed)).await.unwrap();
    assert_eq!(overdue, ResponseOutcome::Overdue, "a late answer does not count");
    let answered = fixture.soon("the answer", replicas.one.wait_response(&id, &kept)).await.unwrap();
    assert_eq!(
        answered,
        ResponseOutcome::Body(text("in time")),
        "one that came in time can be collected later"
    );
    fixture.pass(30).await;
    assert_eq!(
        replicas.other.deliver_response(&id, &missed, text("much later")).await.unwrap(),
        DeliverOutcome::Unknown
    );
    assert_eq!(
        replicas.one.expect_response(&id, &missed, fixture.ticks(4)).await.unwrap(),
        ExpectOutcome::Expected
    );
    assert_eq!(
        replicas.other.deliver_response(&id, &missed, text("again")).await.unwrap(),
        DeliverOutcome::Taken
    );
}

pub(super) async fn waiting_for_an_answer_can_be_given_up(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let question = request(1);
    replicas.one.expect_response(&id, &question, fixture.ticks(100)).await.unwrap();
    fixture.never("there is no response yet", replicas.one.wait_response(&id, &question)).await;
    assert_eq!(
        replicas.one.deliver_response(&id, &question, text("yes")).await.unwrap(),
        DeliverOutcome::Taken
    );
    let answered = fixture.soon("the answer", replicas.other.wait_response(&id, &question)).await.unwrap();
    assert_eq!(answered, ResponseOutcome::Body(text("yes")));
}

pub(super) async fn questions_have_a_limit(fixture: &BackplaneFixture) {
    let settings = BackplaneSettings { pending_requests: 2, ..BackplaneSettings::default() };
    let (replicas, id) = fixture.session(settings).await;
    let expect =
        async |number| replicas.one.expect_response(&id, &request(number), fixture.ticks(100)).await.unwrap();
    assert_eq!(expect(1).await, ExpectOutcome::Expected);
    assert_eq!(expect(2).await, ExpectOutcome::Expected);
    assert_eq!(expect(3).await, ExpectOutcome::Full);
    replicas.other.deliver_response(&id, &request(1), text("yes")).await.unwrap();
    assert_eq!(expect(3).await, ExpectOutcome::Full, "the answer is still to be collected");
    fixture.soon("the answer", replicas.one.wait_response(&id, &request(1))).await.unwrap();
    assert_eq!(expect(3).await, ExpectOutcome::Expected);
    assert_eq!(
        replicas.other.deliver_response(&id, &request(2), text("yes")).await.unwrap(),
        DeliverOutcome::Taken
    );
}

pub(super) async fn a_parked_call_is_claimed_once(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let other = fixture.open(&replicas, "b").await;
    let ttl = fixture.ticks(100);
    assert_eq!(replicas.one.park(&id, "call", text("first"), ttl).await.unwrap(), ParkOutcome::Parked);
    assert_eq!(replicas.one.park(&id, "call", text("second"), ttl).await.unwrap(), ParkOutcome::Already);
    assert_eq!(replicas.one.park(&other, "call", text("other"), ttl).await.unwrap(), ParkOutcome::Parked);
    assert_eq!(replicas.one.park(&id, "another", text("third"), ttl).await.unwrap(), ParkOutcome::Parked);
    let mut parked = replicas.other.parked_keys(&id).await.unwrap();
    parked.sort();
    assert_eq!(parked, ["another".into(), Box::from("call")]);
    let claim = async |replica: &Arc<dyn Backplane>, id: &SessionId, claimant| {
        let claimed = replica.claim(id, "call", WriterEpoch(claimant), None).await.unwrap();
        claimed.map(|call| (call.state, call.last))
    };
    for _ in 0..2 {
        let claimed = claim(&replicas.other, &id, 1).await;
        assert_eq!(claimed, Some((text("first"), 0)), "one gets it, and again if it asks again");
        assert_eq!(claim(&replicas.one, &id, 2).await, None);
    }
    assert_eq!(replicas.one.park(&id, "call", text("first"), ttl).await.unwrap(), ParkOutcome::Already);
    assert_eq!(claim(&replicas.one, &id, 2).await, None, "a retry does not bring it back");
    assert_eq!(claim(&replicas.one, &other, 2).await, Some((text("other"), 0)));
    assert_eq!(replicas.one.parked_keys(&id).await.unwrap(), [Box::from("another")]);
}

pub(super) async fn a_claimed_stream_has_another_writer(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let ttl = fixture.ticks(100);
    let first = Writer::open(&replicas.one, &id, 1).await;
    first.events(2).await;
    replicas.one.park(&id, "call", text("state"), ttl).await.unwrap();
    let claim = async |call: &str, claimant, stream: &StreamKey| {
        replicas.other.claim(&id, call, WriterEpoch(claimant), Some(stream.number)).await.unwrap()
    };
    for _ in 0..2 {
        let claimed = claim("call", 2, &first.stream).await.unwrap();
        assert_eq!((claimed.state, claimed.last), (text("state"), 2));
    }
    let second = Writer { backplane: replicas.other.clone(), epoch: WriterEpoch(2), ..first.clone() };
    assert_eq!(first.event(3).await, AppendOutcome::Fenced, "it was taken for dead");
    assert_eq!(first.event(2).await, AppendOutcome::Fenced);
    assert!(!first.forget(&replicas.one).await);
    assert_eq!(second.event(3).await, AppendOutcome::Stored);
    assert_eq!(second.end(4).await, AppendOutcome::Stored);
    assert_eq!(first.end(5).await, AppendOutcome::Fenced);
    let mut reading = reader(&replicas.one, &first.stream, ReadFrom::After(0)).await;
    assert_eq!(numbers(&mut reading).await, (vec![1, 2, 3, 4], ReadOutcome::End));

    let cancelled = Writer::open(&replicas.one, &id, 2).await;
    replicas.one.park(&id, "cancelled", text("state"), ttl).await.unwrap();
    replicas.other.cancel(&id, &request(2)).await.unwrap();
    assert_eq!(claim("cancelled", 2, &cancelled.stream).await, None, "there is nothing to go on with");
}

pub(super) async fn a_parked_call_expires(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    replicas.one.park(&id, "call", text("state"), fixture.ticks(5)).await.unwrap();
    fixture.pass(8).await;
    assert!(replicas.other.parked_keys(&id).await.unwrap().is_empty());
    assert_eq!(replicas.other.claim(&id, "call", WriterEpoch(1), None).await.unwrap(), None);
    let parked = replicas.one.park(&id, "call", text("new"), fixture.ticks(5)).await.unwrap();
    assert_eq!(parked, ParkOutcome::Parked);
    let claimed = replicas.other.claim(&id, "call", WriterEpoch(1), None).await.unwrap().unwrap();
    assert_eq!(claimed.state, text("new"));
}

pub(super) async fn parked_calls_have_a_limit(fixture: &BackplaneFixture) {
    let settings = BackplaneSettings { parked_calls: 2, ..BackplaneSettings::default() };
    let (replicas, id) = fixture.session(settings).await;
    let park = async |call: &str| replicas.one.park(&id, call, text("x"), fixture.ticks(100)).await.unwrap();
    assert_eq!(park("a").await, ParkOutcome::Parked);
    assert_eq!(park("b").await, ParkOutcome::Parked);
    assert_eq!(park("c").await, ParkOutcome::Full);
    for number in 0..10 {
        replicas.other.claim(&id, "a", WriterEpoch(1), None).await.unwrap();
        replicas.other.claim(&id, &format!("a {number}"), WriterEpoch(1), None).await.unwrap();
        assert_eq!(park(&format!("a {}", number + 1)).await, ParkOutcome::Parked, "claimed ones make room");
    }
    assert_eq!(park("c").await, ParkOutcome::Full);
    assert!(replicas.other.claim(&id, "b", WriterEpoch(1), None).await.unwrap().is_some());
}

pub(super) async fn cancelling_ends_all_that_runs_under_an_id(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let other = fixture.open(&replicas, "b").await;
    let first = Writer::open(&replicas.one, &id, 1).await;
    let second = Writer::open(&replicas.one, &id, 1).await;
    let ended = Writer::open(&replicas.one, &id, 1).await;
    let unrelated = Writer::open(&replicas.one, &id, 2).await;
    let elsewhere = Writer::open(&replicas.one, &other, 1).await;
    first.events(1).await;
    ended.end(1).await;
    let mut reading = reader(&replicas.one, &first.stream, ReadFrom::After(0)).await;
    assert_eq!(replicas.other.cancel(&id, &request(1)).await.unwrap(), 2);
    assert_eq!(replicas.other.cancel(&id, &request(1)).await.unwrap(), 0);
    assert_eq!(replicas.other.cancel(&id, &request(3)).await.unwrap(), 0);

    assert_eq!(first.event(1).await, AppendOutcome::Already, "it was there before");
    assert_eq!(first.event(2).await, AppendOutcome::Cancelled);
    assert_eq!(first.end(2).await, AppendOutcome::Cancelled);
    assert_eq!(first.end(2).await, AppendOutcome::Cancelled, "a retry hears the same");
    assert_eq!(second.end(1).await, AppendOutcome::Cancelled);
    assert_eq!(
        numbers(&mut reading).await,
        (vec![1], ReadOutcome::End),
        "a reader hears that nothing more comes"
    );
    let attached = replicas.one.attach(&first.stream, ReadFrom::After(1)).await.unwrap();
    assert_eq!(attached, AttachOutcome::Ended);
    assert_eq!(ended.end(1).await, AppendOutcome::Already);
    assert_eq!(unrelated.end(1).await, AppendOutcome::Stored);
    assert_eq!(elsewhere.end(1).await, AppendOutcome::Stored);
}

pub(super) async fn a_writer_hears_why_it_should_stop(fixture: &BackplaneFixture) {
    let (replicas, id) = fixture.session(BackplaneSettings::default()).await;
    let one = Arc::clone(&replicas.one);
    let cancelled = Writer::open(&one, &id, 1).await;
    let ended = Writer::open(&one, &id, 3).await;
    let forgotten = Writer::open(&one, &id, 4).await;
    fixture.never("it may go on", one.writer_stopped(&cancelled.stream)).await;
    let act = async {
        fixture.pass(1).await;
        assert_eq!(cancelled.event(1).await, AppendOutcome::Stored);
        replicas.other.cancel(&id, &request(1)).await.unwrap();
        ended.end(1).await;
        assert!(forgotten.forget(&replicas.other).await);
    };
    let all = async {
        tokio::join!(
            one.writer_stopped(&cancelled.stream),
            one.writer_stopped(&ended.stream),
            one.writer_stopped(&forgotten.stream),
            act
        )
    };
    let (first, second, third, ()) = fixture.soon("the reasons", all).await;
    assert_eq!(first.unwrap(), WriterStop::Cancelled);
    assert_eq!(second.unwrap(), WriterStop::Ended);
    assert_eq!(third.unwrap(), WriterStop::Unknown);
}
