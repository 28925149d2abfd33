//! For each invariant, a history that breaks exactly it, next to one that does not.

use super::*;

fn sent(client: ClientNumber, request: RequestNumber, nonce: u64) -> Event {
    Event::Sent { client, request, nonce: Some(nonce) }
}

fn outcome(client: ClientNumber, request: RequestNumber, outcome: Outcome) -> Event {
    Event::Outcome { client, request, outcome }
}

fn result(client: ClientNumber, request: RequestNumber) -> Event {
    outcome(client, request, Outcome::Result)
}

fn fault(client: ClientNumber) -> Event {
    Event::Fault { client: Some(client), request: None, fault: Fault::Cut }
}

/// An event of a stream, whose hash is 10 times its number.
fn event(stream: StreamNumber, seq: u64) -> Event {
    received(1, stream, Some(seq), seq * 10, None, false)
}

fn received(
    client: ClientNumber,
    stream: StreamNumber,
    seq: Option<u64>,
    hash: u64,
    nonce: Option<u64>,
    is_response: bool,
) -> Event {
    Event::Received { client, stream: Some(stream), seq, hash, nonce, is_response }
}

fn holds(history: &[Event]) {
    assert_eq!(check(history), []);
}

/// The history breaks this invariant, once, and no other.
fn breaks(invariant: Invariant, history: &[Event]) {
    let broken: Vec<Invariant> = check(history).into_iter().map(|violation| violation.invariant).collect();
    assert_eq!(broken, [invariant], "{history:#?}");
}

#[test]
fn a_request_has_one_outcome() {
    holds(&[sent(1, 1, 5), result(1, 1), sent(2, 1, 6), fault(2), outcome(2, 1, Outcome::Lost)]);
    breaks(Invariant::OneOutcome, &[sent(1, 1, 5)]);
    breaks(Invariant::OneOutcome, &[sent(1, 1, 5), result(1, 1), result(1, 1)]);
    breaks(Invariant::OneOutcome, &[result(1, 1)]);
}

#[test]
fn events_are_contiguous_across_resumes() {
    let resumed = |after| Event::Resumed { client: 1, stream: 4, after };
    let disconnected = Event::Disconnected { client: 1 };
    holds(&[event(4, 1), event(4, 2), disconnected, resumed(Some(2)), event(4, 3), event(9, 1)]);
    // What was received before may come again, if the client asks for it and it is the same.
    holds(&[event(4, 1), event(4, 2), resumed(Some(1)), event(4, 2)]);
    holds(&[event(4, 1), resumed(None), event(4, 3)]);
    breaks(Invariant::ContiguousEvents, &[event(4, 2)]);
    breaks(Invariant::ContiguousEvents, &[event(4, 1), event(4, 3)]);
    breaks(Invariant::ContiguousEvents, &[event(4, 1), resumed(Some(1)), event(4, 1)]);
    breaks(Invariant::ContiguousEvents, &[event(4, 1), resumed(None), event(4, 1)]);
    let other = received(1, 4, Some(2), 7, None, false);
    breaks(Invariant::ContiguousEvents, &[event(4, 1), event(4, 2), resumed(Some(1)), other]);
}

#[test]
fn nonces_stay_with_their_client_and_request() {
    let ends = [result(1, 1), result(1, 2), result(2, 1)];
    let of = |client, stream, nonce| {
        let begins = vec![sent(1, 1, 5), sent(1, 2, 6), sent(2, 1, 7)];
        [begins, vec![received(client, stream, None, 0, Some(nonce), false)], ends.to_vec()].concat()
    };
    holds(&of(1, 1, 5));
    // A later round of a request has a number of its own, and the GET stream belongs to no request.
    holds(&of(1, 3, 5));
    holds(&of(1, GET_STREAM, 6));
    breaks(Invariant::OwnNonces, &of(2, 1, 5));
    breaks(Invariant::OwnNonces, &of(1, 1, 6));
    breaks(Invariant::OwnNonces, &of(1, 1, 8));
}

#[test]
fn nothing_follows_the_response() {
    let response = received(1, 4, None, 0, None, true);
    let other = received(1, 4, None, 0, None, false);
    holds(&[other.clone(), response.clone()]);
    breaks(Invariant::NothingAfterResponse, &[response.clone(), other]);
    breaks(Invariant::NothingAfterResponse, &[response.clone(), response]);
}

#[test]
fn a_side_effect_happens_once_in_a_round() {
    let effect = |nonce, effect, round| Event::SideEffect { nonce, effect, round };
    holds(&[effect(5, 0, 0), effect(5, 1, 0), effect(5, 0, 1), effect(6, 0, 0)]);
    breaks(Invariant::EffectsOnce, &[effect(5, 0, 0), effect(5, 0, 0)]);
}

#[test]
fn errors_need_a_fault() {
    let all = Event::Fault { client: None, request: None, fault: Fault::Restarted };
    let of = |request| Event::Fault { client: Some(1), request, fault: Fault::HandlerFails };
    let failed = outcome(1, 1, Outcome::ServerError);
    let reported = Event::Reported { client: 1, what: "RPC-01".into() };
    for explained in [fault(1), all, of(Some(1))] {
        holds(&[sent(1, 1, 5), explained, failed.clone()]);
    }
    holds(&[sent(1, 1, 5), outcome(1, 1, Outcome::Cancelled)]);
    holds(&[fault(1), reported.clone()]);
    for unexplained in [fault(2), of(Some(2))] {
        breaks(Invariant::NoErrorWithoutFault, &[sent(1, 1, 5), unexplained, failed.clone()]);
    }
    for silent in [Outcome::Lost, Outcome::TimedOut, Outcome::Refused] {
        breaks(Invariant::NoErrorWithoutFault, &[sent(1, 1, 5), outcome(1, 1, silent)]);
    }
    breaks(Invariant::NoErrorWithoutFault, std::slice::from_ref(&reported));
    breaks(Invariant::NoErrorWithoutFault, &[of(Some(1)), reported]);
    // A fault explains nothing that happened before.
    breaks(Invariant::NoErrorWithoutFault, &[sent(1, 1, 5), failed, fault(1)]);
}

#[test]
fn a_cancelled_request_is_not_answered() {
    let cancelled = Event::CancellationProcessed { client: 1, request: 4 };
    let answered = |client, request| Event::Answered { client, request };
    holds(&[answered(1, 4), cancelled.clone(), answered(1, 5), answered(2, 4)]);
    breaks(Invariant::NoAnswerAfterCancellation, &[cancelled, answered(1, 4)]);
}

#[test]
fn nothing_remains() {
    let remaining = |count| Event::Remaining { what: "calls", count };
    holds(&[remaining(0)]);
    breaks(Invariant::NothingRemains, &[remaining(2)]);
}
