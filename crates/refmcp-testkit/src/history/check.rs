//! Checks the invariants of a history, in one pass.

use std::collections::{BTreeMap, BTreeSet};

use super::{ClientNumber, Event, Fault, Invariant, Outcome, RequestNumber, StreamNumber, Violation};

/// The events that break an invariant, in their order; requests without an outcome come last.
#[must_use]
pub fn check(history: &[Event]) -> Vec<Violation> {
    let mut checker = Checker::default();
    for (index, event) in history.iter().enumerate() {
        checker.index = index;
        checker.event(event);
    }
    checker.end();
    checker.violations
}

/// What is known of the history so far.
#[derive(Default)]
struct Checker {
    index: usize,
    violations: Vec<Violation>,
    requests: BTreeMap<(ClientNumber, RequestNumber), Request>,
    nonces: BTreeMap<u64, (ClientNumber, RequestNumber)>,
    streams: BTreeMap<(ClientNumber, StreamNumber), Stream>,
    hashes: BTreeMap<(ClientNumber, StreamNumber, u64), u64>,
    effects: BTreeSet<(u64, u32, u32)>,
    cancelled: BTreeSet<(ClientNumber, RequestNumber)>,
    faults: Vec<(Option<ClientNumber>, Option<RequestNumber>, Fault)>,
}

/// A request, from its beginning to its outcome.
struct Request {
    sent: usize,
    outcome: Option<Outcome>,
}

/// A stream as its client knows it.
#[derive(Default)]
struct Stream {
    /// The number of the last event.
    last: u64,
    /// Events were skipped on purpose: any later one may be next.
    reopened: bool,
    answered: bool,
}

impl Checker {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Sent { client, request, nonce } => {
                let request = (*client, *request);
                self.requests.insert(request, Request { sent: self.index, outcome: None });
                if let Some(nonce) = nonce {
                    self.nonces.insert(*nonce, request);
                }
            }
            Event::Received { client, stream, seq, hash, nonce, is_response } => {
                self.own_nonce(*client, *stream, *nonce);
                if let Some(stream) = stream {
                    self.received((*client, *stream), *is_response);
                    if let Some(seq) = seq {
                        self.numbered((*client, *stream), *seq, *hash);
                    }
                }
            }
            Event::Outcome { client, request, outcome } => self.outcome(*client, *request, *outcome),
            Event::Resumed { client, stream, after } => {
                let stream = self.streams.entry((*client, *stream)).or_default();
                stream.last = after.unwrap_or(stream.last);
                stream.reopened = after.is_none();
            }
            Event::SideEffect { nonce, effect, round } => {
                if !self.effects.insert((*nonce, *effect, *round)) {
                    let what = format!("effect {effect} of nonce {nonce} happens twice in round {round}");
                    self.violated(Invariant::EffectsOnce, what);
                }
            }
            Event::Answered { client, request } => {
                if self.cancelled.contains(&(*client, *request)) {
                    let what = format!("request {request} of client {client} was cancelled before");
                    self.violated(Invariant::NoAnswerAfterCancellation, what);
                }
            }
            Event::CancellationProcessed { client, request } => {
                self.cancelled.insert((*client, *request));
            }
            Event::Reported { client, what } => {
                if !self.is_explained(*client, None) {
                    let what = format!("client {client}: {what}");
                    self.violated(Invariant::NoErrorWithoutFault, what);
                }
            }
            Event::Fault { client, request, fault } => self.faults.push((*client, *request, *fault)),
            Event::Remaining { what, count } => {
                if *count > 0 {
                    self.violated(Invariant::NothingRemains, format!("{count} {what}"));
                }
            }
            Event::Disconnected { .. } => {}
        }
    }

    /// Each request has an outcome once everything is over.
    fn end(&mut self) {
        let open = self.requests.iter().filter(|(_, request)| request.outcome.is_none());
        let violations = open.map(|((client, number), request)| Violation {
            invariant: Invariant::OneOutcome,
            index: request.sent,
            what: format!("request {number} of client {client} has no outcome"),
        });
        self.violations.extend(violations.collect::<Vec<_>>());
    }

    fn outcome(&mut self, client: ClientNumber, number: RequestNumber, outcome: Outcome) {
        let Some(request) = self.requests.get_mut(&(client, number)) else {
            let what = format!("request {number} of client {client} was never made");
            return self.violated(Invariant::OneOutcome, what);
        };
        if let Some(before) = request.outcome.replace(outcome) {
            let what = format!("request {number} of client {client}: {before:?}, then {outcome:?}");
            self.violated(Invariant::OneOutcome, what);
        }
        let needs_fault = !matches!(outcome, Outcome::Result | Outcome::Cancelled);
        if needs_fault && !self.is_explained(client, Some(number)) {
            let what = format!("request {number} of client {client}: {outcome:?}");
            self.violated(Invariant::NoErrorWithoutFault, what);
        }
    }

    /// Whether a fault has been injected that concerns this client, and this request where one is named.
    fn is_explained(&self, client: ClientNumber, request: Option<RequestNumber>) -> bool {
        self.faults.iter().any(|(of_client, of_request, _)| {
            of_client.is_none_or(|of| of == client) && (of_request.is_none() || *of_request == request)
        })
    }

    fn own_nonce(&mut self, client: ClientNumber, stream: Option<StreamNumber>, nonce: Option<u64>) {
        let Some(nonce) = nonce else { return };
        let Some((owner, request)) = self.nonces.get(&nonce).copied() else {
            return self.violated(Invariant::OwnNonces, format!("no request has the nonce {nonce}"));
        };
        // The stream of a request that is repeated with input has another number than the request.
        let is_foreign =
            stream.is_some_and(|stream| stream != request && self.requests.contains_key(&(client, stream)));
        if owner != client || is_foreign {
            let what = format!(
                "client {client} receives nonce {nonce} of request {request} of client {owner} on {stream:?}"
            );
            self.violated(Invariant::OwnNonces, what);
        }
    }

    fn received(&mut self, key: (ClientNumber, StreamNumber), is_response: bool) {
        let stream = self.streams.entry(key).or_default();
        if stream.answered {
            let what = format!("stream {} of client {} had its response", key.1, key.0);
            return self.violated(Invariant::NothingAfterResponse, what);
        }
        stream.answered = is_response;
    }

    fn numbered(&mut self, (client, number): (ClientNumber, StreamNumber), seq: u64, hash: u64) {
        let stream = self.streams.entry((client, number)).or_default();
        let is_next = seq == stream.last + 1 || stream.reopened && seq > stream.last;
        let expected = stream.last + 1;
        stream.last = seq;
        stream.reopened = false;
        if !is_next {
            let what = format!("stream {number} of client {client}: event {seq} instead of {expected}");
            self.violated(Invariant::ContiguousEvents, what);
        }
        if self.hashes.insert((client, number, seq), hash).is_some_and(|before| before != hash) {
            let what = format!("event {seq} of stream {number} of client {client} was another before");
            self.violated(Invariant::ContiguousEvents, what);
        }
    }

    fn violated(&mut self, invariant: Invariant, what: String) {
        self.violations.push(Violation { invariant, index: self.index, what });
    }
}
