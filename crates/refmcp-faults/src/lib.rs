//! Fault injection: what a server does wrong on purpose, at a position that is named and not at random, so that a client's mistake
//! can be repeated.
//!
//! A [`FaultPlan`] is text, one fault a line; [`Faults`] carries it out on messages. It does no IO: a relay, a server or a test
//! passes messages through it, and does what the [`Output`]s say.
//!
//! ```
//! use refmcp_faults::{FaultPlan, Faults, Output};
//!
//! let plan: FaultPlan = "tools/call 2: answer twice".parse()?;
//! let mut faults = Faults::new(plan);
//! for id in [1, 2] {
//!     let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo"}}}}"#);
//!     faults.client_message(0, call.as_bytes());
//!     let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
//!     assert_eq!(faults.server_message(0, answer.as_bytes()).len(), id);
//! }
//! # Ok::<(), refmcp_faults::PlanError>(())
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod answer;
mod plan;

use std::collections::HashMap;
use std::time::Duration;

use refmcp_proto::jsonrpc::{Incoming, Limits, Message, RequestId, decode};

pub use plan::{Entry, Fault, FaultPlan, PlanError, Position};

/// Carries out a plan on the messages that pass between clients and a server.
#[derive(Debug)]
pub struct Faults {
    plan: FaultPlan,
    /// How many requests there were, and how many of each method that the plan names.
    requests: u32,
    methods: HashMap<String, u32>,
    /// Requests whose answers go wrong.
    open: Vec<Exchange>,
}

/// A request whose answer goes wrong.
#[derive(Debug)]
struct Exchange {
    /// The stream that the request came on.
    channel: u64,
    id: RequestId,
    faults: Vec<Fault>,
    /// Messages that the server has sent since.
    events: u32,
}

/// What becomes of something that the server sent, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A message, which may be none.
    Message(Vec<u8>),
    /// A message after a while; others need not wait for it.
    Later(Duration, Vec<u8>),
    /// The beginning of a message, without its end.
    Part(Vec<u8>),
    /// A message so many bytes a second.
    Slowly(u32, Vec<u8>),
    /// A WebSocket is closed with this code; other connections have none.
    Close(u16),
    /// The connection is cut.
    Cut,
}

/// Requests that are remembered until they are answered; an older one is forgotten.
const MAX_OPEN: usize = 1024;

/// What passes is decoded whatever its size.
const LIMITS: Limits =
    Limits { max_message_size: usize::MAX, depth: 128, name_bytes: usize::MAX, batch: usize::MAX };

impl Faults {
    /// Begins a plan; nothing has passed yet.
    pub fn new(plan: FaultPlan) -> Self {
        Self { plan, requests: 0, methods: HashMap::new(), open: Vec::new() }
    }

    /// A client sent a message on a channel: a pipe, or an HTTP request. Returns what is to be done over HTTP instead of, or
    /// besides, answering it: statuses, headers, the end of the session.
    pub fn client_message(&mut self, channel: u64, message: &[u8]) -> Vec<Fault> {
        let messages = match decode(message, &LIMITS) {
            Ok(Incoming::One(message)) => vec![Ok(message)],
            Ok(Incoming::Batch(batch)) => batch,
            Err(_) => Vec::new(),
        };
        let mut of_http = Vec::new();
        for message in messages {
            if let Ok(Message::Request(request)) = message {
                of_http.extend(self.request(channel, request.id, &request.method));
            }
        }
        of_http
    }

    /// A client opens a stream with GET: what is to be done with it.
    pub fn stream_opened(&mut self) -> Vec<Fault> {
        if !self.plan.names(plan::STREAM) {
            return Vec::new();
        }
        let count = self.methods.entry(plan::STREAM.to_owned()).or_default();
        *count += 1;
        self.plan.of_stream(*count).cloned().collect()
    }

    /// The server sent a message on a channel: what is sent in its place.
    pub fn server_message(&mut self, channel: u64, message: &[u8]) -> Vec<Output> {
        let id = match decode(message, &LIMITS) {
            Ok(Incoming::One(Message::Response(response))) => response.id,
            _ => None,
        };
        // The answer to a POST of HTTP+SSE comes on another stream.
        let of = |exchange: &Exchange| Some(&exchange.id) == id.as_ref();
        let answered = self.open.iter().position(|exchange| exchange.channel == channel && of(exchange));
        let answered = answered.or_else(|| self.open.iter().position(of));
        let cut = self.open.iter_mut().any(|exchange| exchange.is_cut_at(channel));
        let mut outputs = match answered.map(|at| self.open.remove(at)) {
            Some(exchange) => answer::outputs(&exchange.faults, message),
            None => vec![Output::Message(message.to_owned())],
        };
        if cut {
            outputs.push(Output::Cut);
        }
        outputs
    }

    /// Whether a client answers the request of [`Fault::UnknownRequest`], of which the server knows nothing.
    pub fn is_answer_to_fault(message: &[u8]) -> bool {
        let id = match decode(message, &LIMITS) {
            Ok(Incoming::One(Message::Response(response))) => response.id,
            _ => None,
        };
        id.is_some_and(|id| id == RequestId::from(answer::UNKNOWN_REQUEST_ID))
    }

    fn request(&mut self, channel: u64, id: RequestId, method: &str) -> Vec<Fault> {
        self.requests += 1;
        // Methods that no position names are not counted: clients choose them.
        let mut of_method = 0;
        if self.plan.names(method) {
            let count = self.methods.entry(method.to_owned()).or_default();
            *count += 1;
            of_method = *count;
        }
        let faults: Vec<Fault> = self.plan.at(method, self.requests, of_method).cloned().collect();
        if !faults.is_empty() {
            if self.open.len() == MAX_OPEN {
                self.open.remove(0);
            }
            self.open.push(Exchange { channel, id, faults: faults.clone(), events: 0 });
        }
        faults.into_iter().filter(Fault::is_of_http).collect()
    }
}

impl Exchange {
    /// Counts a message on this channel, after which it may be cut.
    fn is_cut_at(&mut self, channel: u64) -> bool {
        if self.channel != channel {
            return false;
        }
        self.events += 1;
        self.faults
            .iter()
            .any(|fault| matches!(fault, Fault::CutAfterEvent(events) if *events == self.events))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(plan: &str) -> Faults {
        Faults::new(plan.parse().unwrap())
    }

    fn call(id: u32) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo"}}}}"#)
    }

    fn answer(id: u32) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#)
    }

    const PROGRESS: &str =
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;

    fn passes(outputs: &[Output], message: &str) -> bool {
        outputs == [Output::Message(message.as_bytes().to_owned())]
    }

    #[test]
    fn a_position_is_a_request_and_the_others_are_as_they_were() {
        let mut faults = faults("tools/call 2: no answer\nrequest 3: answer twice");
        for id in 1..=4 {
            assert!(faults.client_message(0, call(id).as_bytes()).is_empty());
        }
        let outputs = |faults: &mut Faults, id| faults.server_message(0, answer(id).as_bytes());
        assert!(passes(&outputs(&mut faults, 1), &answer(1)));
        assert!(outputs(&mut faults, 2).is_empty());
        assert_eq!(outputs(&mut faults, 3).len(), 2);
        assert!(passes(&outputs(&mut faults, 4), &answer(4)));
    }

    #[test]
    fn every_request_of_a_method() {
        let mut faults = faults("every tools/call: no answer");
        for id in 1..=3 {
            faults.client_message(0, call(id).as_bytes());
            assert!(faults.server_message(0, answer(id).as_bytes()).is_empty());
        }
        faults.client_message(0, br#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#);
        assert!(passes(&faults.server_message(0, answer(9).as_bytes()), &answer(9)));
    }

    #[test]
    fn a_stream_is_cut_after_an_event() {
        let mut faults = faults("tools/call: cut after event 2");
        faults.client_message(7, call(1).as_bytes());
        assert!(passes(&faults.server_message(7, PROGRESS.as_bytes()), PROGRESS));
        // Events of other streams do not count.
        assert!(passes(&faults.server_message(8, PROGRESS.as_bytes()), PROGRESS));
        assert_eq!(faults.server_message(7, PROGRESS.as_bytes()).last(), Some(&Output::Cut));
    }

    #[test]
    fn answers_are_found_on_other_streams_by_their_id() {
        let mut faults = faults("tools/call: no answer");
        faults.client_message(7, call(1).as_bytes());
        assert!(faults.server_message(3, answer(1).as_bytes()).is_empty());
    }

    #[test]
    fn streams_are_counted_apart() {
        let mut faults = faults("stream 2: wrong endpoint /x; every request: no answer");
        faults.client_message(0, call(1).as_bytes());
        assert!(faults.stream_opened().is_empty());
        assert_eq!(faults.stream_opened(), [Fault::WrongEndpoint("/x".to_owned())]);
        assert!(faults.stream_opened().is_empty());
    }

    #[test]
    fn faults_of_http_are_told_with_the_request() {
        let mut faults = faults("tools/call: status 503\ntools/call: answer twice");
        let told = faults.client_message(1, call(1).as_bytes());
        assert_eq!(told, [Fault::Status { code: 503, retry_after: None }]);
    }

    #[test]
    fn what_is_remembered_is_limited() {
        let mut faults = faults("every request: no answer");
        for id in 0..10_000 {
            faults.client_message(0, call(id).as_bytes());
        }
        assert_eq!(faults.open.len(), MAX_OPEN);
    }
}
