//! Any conversation: each request gets exactly one answer, or none once it is cancelled, and nothing after it.
//!
//! Every message comes by an exchange of its own, so an answer can be told from others with the same id.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use refmcp_proto::engine::{
    CallFailure, Change, DuplicateIds, ExchangeId, HandlerOutcome, KeyedInputRequest, MessageKind,
    MessageTarget, OutgoingMessage, Progress,
};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{CallToolResult, InputRequest, keys};
use refmcp_testkit::engine::{TestEngine, full_config};
use refmcp_testkit::messages::initialize_params;
use serde_json::{Value, json};

use crate::streams::serves;

#[derive(Debug, Clone)]
enum Event {
    Request(Request),
    Batch(Vec<Request>),
    Cancel(u8),
    Finish(Index, Ending),
    Progress(Index, u8),
    Answer(u8, bool),
    Change,
    Wait(u16),
    Garbage(Vec<u8>),
}

#[derive(Debug, Clone)]
struct Request {
    id: u8,
    method: &'static str,
    stateless: bool,
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Done,
    Failed,
    Asking(u8),
}

const METHODS: &[&str] = &[
    "tools/call",
    "tools/call",
    "tools/call",
    "resources/read",
    "prompts/get",
    "tools/list",
    "models/list",
    "ping",
    "logging/setLevel",
    "server/discover",
    "subscriptions/listen",
    "no/such",
    "initialize",
];

fn request() -> impl Strategy<Value = Request> {
    let method = prop::sample::select(METHODS);
    (0..6_u8, method, any::<bool>()).prop_map(|(id, method, stateless)| Request { id, method, stateless })
}

fn event() -> impl Strategy<Value = Event> {
    let ending = prop_oneof![Just(Ending::Done), Just(Ending::Failed), (0..3_u8).prop_map(Ending::Asking)];
    prop_oneof![
        6 => request().prop_map(Event::Request),
        2 => prop::collection::vec(request(), 1..5).prop_map(Event::Batch),
        2 => (0..6_u8).prop_map(Event::Cancel),
        5 => (any::<Index>(), ending).prop_map(|(which, ending)| Event::Finish(which, ending)),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(which, far)| Event::Progress(which, far)),
        3 => (0..8_u8, any::<bool>()).prop_map(|(id, good)| Event::Answer(id, good)),
        1 => Just(Event::Change),
        1 => (0..400_u16).prop_map(Event::Wait),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Event::Garbage),
    ]
}

/// Numbers and texts, of which some look alike.
fn id(number: u8) -> Value {
    if number < 3 { json!(number) } else { json!((number - 3).to_string()) }
}

/// The requests of one exchange: those that came, and which of them may go unanswered.
#[derive(Debug)]
struct Exchange {
    requests: Vec<(u8, bool)>,
    is_batch: bool,
    /// The ids of its answers, once it is answered.
    answered: Option<Vec<Value>>,
}

struct World {
    rig: TestEngine,
    exchanges: Vec<Exchange>,
}

impl World {
    fn new(duplicates: DuplicateIds) -> Self {
        let mut config = full_config();
        config.policy.duplicate_ids = duplicates;
        config.max_rounds = 3;
        config.timeouts.client_response = Duration::from_secs(300);
        // Handlers that do nothing: how calls go on is for the test to say.
        let mut world = Self { rig: TestEngine::with_handler(config, |_| Vec::new()), exchanges: Vec::new() };
        let opening = initialize_params("c", "2025-03-26", json!({ "roots": {} }));
        let open = json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": opening });
        world.rig.send(open.to_string().as_bytes());
        world
            .rig
            .send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string().as_bytes());
        world.rig.take_sent();
        world
    }

    fn send(&mut self, message: &Value, requests: Vec<(u8, bool)>) {
        let exchange = ExchangeId(self.exchanges.len() as u64 + 1);
        self.exchanges.push(Exchange { requests, is_batch: message.is_array(), answered: None });
        self.rig.send_by(exchange, message.to_string().as_bytes());
    }

    fn play(&mut self, event: &Event) {
        match event {
            Event::Request(request) => self.send(&message(request), vec![(request.id, false)]),
            Event::Batch(requests) => {
                let messages = requests.iter().map(message).collect();
                self.send(&messages, requests.iter().map(|request| (request.id, false)).collect());
            }
            Event::Cancel(number) => {
                for exchange in self.exchanges.iter_mut().filter(|exchange| exchange.answered.is_none()) {
                    let named = exchange.requests.iter_mut().filter(|(other, _)| other == number);
                    named.for_each(|(_, cancelled)| *cancelled = true);
                }
                let params = json!({ "requestId": id(*number) });
                let cancel =
                    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
                self.rig.send(cancel.to_string().as_bytes());
            }
            Event::Finish(which, ending) => self.finish(which, *ending),
            Event::Progress(which, far) => {
                if let Some(call) = pick(which, &self.rig) {
                    let progress = Progress { progress: f64::from(*far), total: None, message: None };
                    self.rig.engine.progress(call, progress);
                    self.rig.settle();
                }
            }
            Event::Answer(number, good) => {
                let mut answer = json!({ "jsonrpc": "2.0", "id": number });
                if *good {
                    answer["result"] = json!({ "roots": [] });
                } else {
                    answer["error"] = json!({ "code": -1, "message": "no" });
                }
                self.rig.send(answer.to_string().as_bytes());
            }
            Event::Change => self.rig.changed(&Change::Tools),
            Event::Wait(seconds) => self.rig.advance(Duration::from_secs(u64::from(*seconds))),
            Event::Garbage(bytes) => self.rig.send(bytes),
        }
    }

    fn finish(&mut self, which: &Index, ending: Ending) {
        let Some(call) = pick(which, &self.rig) else { return };
        let outcome = match ending {
            Ending::Done => HandlerOutcome::Done(Box::new(CallToolResult::text("done").into())),
            Ending::Failed => HandlerOutcome::Failed(CallFailure::Rpc(RpcError::internal("failed"))),
            Ending::Asking(count) => {
                let question =
                    |key: u8| KeyedInputRequest { key: key.to_string(), request: InputRequest::Roots };
                HandlerOutcome::InputRequired {
                    requests: (0..count).map(question).collect(),
                    used: None,
                    once: Default::default(),
                }
            }
        };
        self.rig.finish(call, outcome);
    }

    /// Lets everything come to its end.
    fn drain(&mut self) {
        while self.rig.engine.in_flight() > 0 {
            while let Some(call) = self.rig.running().first().map(|call| call.call) {
                self.rig.finish(call, HandlerOutcome::Done(Box::new(CallToolResult::text("done").into())));
            }
            self.rig.advance(Duration::from_secs(301));
        }
        self.rig.engine.wind_down();
        self.rig.settle();
    }

    /// Notes what came out; fails when something belongs to an exchange that is over.
    fn note(&mut self) -> Result<(), TestCaseError> {
        for OutgoingMessage { to, kind, json } in self.rig.take_sent() {
            let MessageTarget::Exchange(ExchangeId(number)) = to else { continue };
            let Some(exchange) = (number as usize).checked_sub(1).and_then(|at| self.exchanges.get_mut(at))
            else {
                continue;
            };
            prop_assert!(exchange.answered.is_none(), "after the answer: {}", String::from_utf8_lossy(&json));
            if matches!(kind, MessageKind::Response { .. }) {
                let answer: Value = serde_json::from_slice(&json).unwrap();
                prop_assert_eq!(answer.is_array(), exchange.is_batch);
                let answers = answer.as_array().cloned().unwrap_or_else(|| vec![answer]);
                for answer in &answers {
                    prop_assert!(
                        answer.get("result").is_some() != answer.get("error").is_some(),
                        "{}",
                        answer
                    );
                }
                exchange.answered = Some(answers.into_iter().map(|answer| answer["id"].clone()).collect());
            }
        }
        Ok(())
    }

    /// Every request has its answer, but for those that were cancelled while they were open.
    fn check(&self) -> Result<(), TestCaseError> {
        for exchange in &self.exchanges {
            let answers = exchange.answered.as_deref().unwrap_or_default();
            for number in 0..6 {
                let came = exchange.requests.iter().filter(|(other, _)| *other == number);
                let (cancelled, kept): (Vec<bool>, Vec<bool>) =
                    came.map(|(_, cancelled)| *cancelled).partition(|cancelled| *cancelled);
                let answered = answers.iter().filter(|answer| **answer == id(number)).count();
                // A member of a batch may have been done when the cancellation came, and its answer not yet sent.
                let most = if exchange.is_batch { kept.len() + cancelled.len() } else { kept.len() };
                prop_assert!(kept.len() <= answered && answered <= most, "{:?}", exchange);
            }
            prop_assert!(answers.len() <= exchange.requests.len(), "{:?}", exchange);
        }
        Ok(())
    }
}

fn message(request: &Request) -> Value {
    let mut params = json!({ "name": "x", "uri": "file:///x", "level": "info", "notifications": { "toolsListChanged": true } });
    params["_meta"] = json!({ "progressToken": 1 });
    if request.stateless {
        params["_meta"][keys::PROTOCOL_VERSION] = json!("2026-07-28");
        params["_meta"][keys::CLIENT_CAPABILITIES] = json!({ "roots": {} });
    }
    json!({ "jsonrpc": "2.0", "id": id(request.id), "method": request.method, "params": params })
}

fn pick(which: &Index, rig: &TestEngine) -> Option<refmcp_proto::engine::CallId> {
    let running = rig.running();
    (!running.is_empty()).then(|| which.get(running).call)
}

proptest! {
    #[test]
    fn each_request_gets_one_response_or_none_once_cancelled(
        events in prop::collection::vec(event(), 0..60),
        served in any::<bool>(),
    ) {
        let mut world = World::new(if served { DuplicateIds::Serve } else { DuplicateIds::Refuse });
        for event in &events {
            world.play(event);
            world.note()?;
        }
        world.drain();
        world.note()?;
        world.check()?;
        prop_assert_eq!(world.rig.engine.in_flight(), 0);
        prop_assert_eq!(world.rig.engine.deadline(), None);
        prop_assert!(serves(&mut world.rig));
    }
}
