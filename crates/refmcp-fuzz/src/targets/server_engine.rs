//! The server engine: each request gets exactly one response, or none once it is cancelled, and nothing follows it;
//! state stays bounded; and whatever is sent is valid in the revision of its receiver.

mod messages;

use std::collections::BTreeMap;
use std::time::Duration;

use refmcp_proto::engine::{
    CallFailure, Change, DuplicateIds, EarlyRequests, EngineConfig, ExchangeId, HandlerOutcome, LogMessage,
    MessageKind, MessageTarget, OutgoingMessage, Policy, Progress,
};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{CallToolResult, LogLevel};
use refmcp_proto::revision::{Method, Revision};
use refmcp_testkit::engine::{TestEngine, full_config};
use refmcp_testkit::script::{self, Step};
use serde_json::{Value, json};

use crate::input::Input;
use messages::{Draft, answer, cancelled, initialize};

/// Limits of the engine, small enough to be reached.
const MAX_IN_FLIGHT: usize = 6;
const MAX_SUBSCRIPTIONS: usize = 3;

/// The most events of one run.
const MAX_EVENTS: usize = 200;

/// Checks one message of the server: its revision, the message, and the method of the request that it responds to.
pub type Check<'a> = &'a dyn Fn(Revision, &Value, Option<&str>);

/// Settings from the first bytes, then one event after the other.
pub fn run(bytes: &[u8]) {
    run_checked(bytes, &|_, _, _| {});
}

/// The same, with a check of each message.
pub fn run_checked(bytes: &[u8], check: Check<'_>) {
    let mut input = Input::new(bytes);
    let mut world = World::new(config(&mut input), check);
    for _ in 0..MAX_EVENTS {
        if input.is_empty() {
            break;
        }
        world.event(&mut input);
        world.take_sent();
        world.check_bounds();
    }
    world.drain();
    world.check_responses();
}

fn config(input: &mut Input<'_>) -> EngineConfig {
    let flags = input.byte();
    let mut config = full_config();
    config.policy = if flags & 1 == 1 { Policy::LENIENT } else { Policy::STRICT };
    if flags & 2 == 2 {
        config.policy.duplicate_ids = DuplicateIds::Serve;
    }
    if flags & 4 == 4 {
        config.policy.early_requests = EarlyRequests::Hold(Duration::from_secs(5));
    }
    config.policy.announce_end = flags & 8 == 0;
    if flags & 16 == 16 {
        config.timeouts.ping_after = Some(Duration::from_secs(20));
    }
    config.max_rounds = 3;
    config.max_in_flight = MAX_IN_FLIGHT;
    config.max_subscriptions = MAX_SUBSCRIPTIONS;
    config.max_state_bytes = 4096;
    config.timeouts.client_response = Duration::from_secs(300);
    config
}

/// One exchange: the requests that came by it.
#[derive(Debug, Default)]
struct Exchange {
    requests: Vec<Sent>,
    is_batch: bool,
    /// Bytes that were not made here; how many requests are in them is not known.
    is_raw: bool,
    /// Whether requests may stay without a response: the client has disconnected, or has sent what may be a cancellation.
    may_be_cancelled: bool,
    /// The revision of the session when it came.
    session: Option<Revision>,
    /// The ids of its responses, once it has been responded to.
    responses: Option<Vec<Value>>,
}

/// A request that was sent.
#[derive(Debug)]
struct Sent {
    id: Value,
    method: String,
    /// The revision that it names itself.
    revision: Option<Revision>,
    cancelled: bool,
}

struct World<'a> {
    engine: TestEngine,
    exchanges: Vec<Exchange>,
    /// Requests of the server that wait for a response.
    server_requests: Vec<Value>,
    /// A request that was answered with a state, and that state.
    state: Option<(Draft, String)>,
    /// What each exchange with one request sent, to be repeated with a state.
    drafts: BTreeMap<u64, Draft>,
    check: Check<'a>,
}

impl<'a> World<'a> {
    fn new(config: EngineConfig, check: Check<'a>) -> Self {
        // Handlers that do nothing: the input says how calls go on.
        let engine = TestEngine::with_handler(config, |_| Vec::new());
        let (exchanges, server_requests, drafts) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { engine, exchanges, server_requests, state: None, drafts, check }
    }

    fn event(&mut self, input: &mut Input<'_>) {
        match input.below(15) {
            13 => {
                let task = messages::task(input);
                self.notify("notifications/tasks/status", Some(task));
            }
            0 => {
                let (message, method) = initialize(input);
                self.send(&message, vec![sent(&message, &method, None)], None);
            }
            1 => self.notify("notifications/initialized", None),
            2 | 3 => {
                let draft = Draft::read(input);
                let message = draft.message(None);
                self.send(&message, vec![sent(&message, &draft.method, draft.revision)], Some(draft));
            }
            4 => {
                let drafts: Vec<Draft> = (0..1 + input.below(4)).map(|_| Draft::read(input)).collect();
                let messages: Vec<Value> = drafts.iter().map(|draft| draft.message(None)).collect();
                let requests = messages.iter().zip(&drafts);
                let requests = requests.map(|(message, draft)| sent(message, &draft.method, draft.revision));
                let requests = requests.collect();
                self.send(&Value::Array(messages), requests, None);
            }
            5 => {
                let id = messages::id(input.below(6));
                self.cancel(|sent| sent.id == id);
                self.engine.send(cancelled(&id).to_string().as_bytes());
            }
            6 | 7 => self.finish(input),
            8 => self.report(input),
            9 => {
                let expected = self.server_requests.get(input.below(8)).cloned();
                let message = answer(input, expected.as_ref());
                self.server_requests.retain(|request| request["id"] != message["id"]);
                self.engine.send(message.to_string().as_bytes());
            }
            10 => {
                let change = match input.below(4) {
                    0 => Change::Tools,
                    1 => Change::Prompts,
                    2 => Change::Resources,
                    _ => Change::Resource("file:///a.txt".to_owned()),
                };
                self.engine.changed(&change);
            }
            11 => self.engine.advance(Duration::from_secs(u64::from(input.byte()) * 2)),
            12 => self.repeat(input),
            _ => self.send_raw(input),
        }
    }

    fn send(&mut self, message: &Value, requests: Vec<Sent>, draft: Option<Draft>) {
        let number = self.exchanges.len() as u64 + 1;
        let session = self.engine.engine.peer().map(|peer| peer.revision);
        let is_batch = message.is_array();
        self.exchanges.push(Exchange { requests, is_batch, session, ..Exchange::default() });
        if let Some(draft) = draft {
            self.drafts.insert(number, draft);
        }
        self.engine.send_by(ExchangeId(number), message.to_string().as_bytes());
    }

    fn notify(&mut self, method: &str, params: Option<Value>) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if let Some(params) = params {
            message["params"] = params;
        }
        self.engine.send(message.to_string().as_bytes());
    }

    /// Any bytes, or the end of an exchange.
    fn send_raw(&mut self, input: &mut Input<'_>) {
        if input.below(4) == 0 && !self.exchanges.is_empty() {
            let at = input.below(self.exchanges.len());
            self.exchanges[at].may_be_cancelled = true;
            self.engine.engine.close_exchange(ExchangeId(at as u64 + 1));
            return self.engine.settle();
        }
        let line = input.line();
        // It may be a cancellation of whatever is open.
        if String::from_utf8_lossy(line).to_lowercase().contains("cancel") || line.contains(&b'\\') {
            self.exchanges.iter_mut().for_each(|exchange| exchange.may_be_cancelled = true);
        }
        self.exchanges.push(Exchange { is_raw: true, ..Exchange::default() });
        self.engine.send_by(ExchangeId(self.exchanges.len() as u64), line);
    }

    fn cancel(&mut self, which: impl Fn(&Sent) -> bool) {
        self.exchanges.iter_mut().for_each(|exchange| exchange.cancel(&which));
    }

    /// Ends one of the calls that run.
    fn finish(&mut self, input: &mut Input<'_>) {
        let running = self.engine.running();
        if running.is_empty() {
            return;
        }
        let dispatch = running[input.below(running.len())].clone();
        let call = dispatch.call;
        match input.below(5) {
            0 => self.engine.finish(call, HandlerOutcome::Failed(RpcError::internal("failed").into())),
            1 => {
                let failure = CallFailure::ResourceNotFound { uri: "file:///gone".to_owned() };
                self.engine.finish(call, HandlerOutcome::Failed(failure));
            }
            _ => {
                let mut ended = false;
                for step in script::steps(&dispatch) {
                    match step {
                        Step::Progress(progress) => self.engine.engine.progress(call, progress),
                        Step::Log(message) => self.engine.engine.log(Some(call), message),
                        Step::End(outcome) => {
                            ended = true;
                            self.engine.finish(call, outcome);
                        }
                    }
                }
                if !ended && dispatch.method == Method::CallTool {
                    self.engine.finish(call, done());
                }
            }
        }
    }

    /// Progress or a log message of a call, or one of none.
    fn report(&mut self, input: &mut Input<'_>) {
        let running = self.engine.running();
        let call = (!running.is_empty()).then(|| running[input.below(running.len())].call);
        let number = f64::from(input.byte());
        match call.filter(|_| input.flag()) {
            Some(call) => {
                let progress = Progress { progress: number, total: Some(100.0), message: None };
                self.engine.engine.progress(call, progress);
            }
            None => {
                let level = if input.flag() { LogLevel::Error } else { LogLevel::Debug };
                self.engine.engine.log(call, LogMessage { level, logger: None, data: json!(number) });
            }
        }
        self.engine.settle();
    }

    /// Repeats a call with the state and the input that it required, or with something else.
    fn repeat(&mut self, input: &mut Input<'_>) {
        let Some((draft, state)) = &self.state else { return };
        let mut state = state.clone();
        if input.below(4) == 0 {
            state.truncate(input.below(state.len().min(256)));
            state.push_str(&input.text());
        }
        let responses = json!({
            "name": { "action": "accept", "content": { "name": "n" } },
            "first": { "action": "decline" },
            "roots": { "roots": [] },
        });
        let responses = if input.below(4) == 0 { json!(input.text()) } else { responses };
        let draft = Draft { id: messages::id(input.below(6)), ..draft.clone() };
        let message = draft.message(Some((json!(state), responses)));
        self.send(&message, vec![sent(&message, &draft.method, draft.revision)], Some(draft));
    }

    fn take_sent(&mut self) {
        // What is answered before a session is there is the same in every revision with sessions.
        let session = self.engine.engine.peer().map_or(Revision::LATEST_SESSION, |peer| peer.revision);
        for OutgoingMessage { to, kind, json } in self.engine.take_sent() {
            assert!(!json.contains(&b'\n'), "a line break in a message");
            let message: Value = serde_json::from_slice(&json).expect("a message is JSON");
            let number = match to {
                MessageTarget::Exchange(ExchangeId(number)) => number,
                MessageTarget::Session => 0,
            };
            if kind == MessageKind::Request {
                self.server_requests.push(message.clone());
                self.server_requests.truncate(64);
            }
            let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
            let Some(exchange) = at.and_then(|at| self.exchanges.get_mut(at)) else {
                (self.check)(session, &message, None);
                continue;
            };
            assert!(exchange.responses.is_none(), "after the response: {message}");
            exchange.check(session, &message, self.check);
            if matches!(kind, MessageKind::Response { .. }) {
                exchange.respond(&message);
                let state = message.pointer("/result/requestState").and_then(Value::as_str);
                if let (Some(state), Some(draft)) = (state, self.drafts.get(&number)) {
                    self.state = Some((draft.clone(), state.to_owned()));
                }
            }
        }
    }

    fn check_bounds(&self) {
        let engine = &self.engine.engine;
        assert!(engine.in_flight() <= MAX_IN_FLIGHT, "{} calls in flight", engine.in_flight());
        assert!(engine.subscriptions().count() <= MAX_SUBSCRIPTIONS, "too many subscriptions");
        assert!(engine.listening() <= MAX_SUBSCRIPTIONS, "too many listeners");
        assert!(self.engine.running().len() <= MAX_IN_FLIGHT, "handlers of calls that are over");
    }

    /// Lets everything come to its end.
    fn drain(&mut self) {
        for _ in 0..20 {
            while let Some(call) = self.engine.running().first().map(|call| call.call) {
                self.engine.finish(call, HandlerOutcome::Failed(RpcError::internal("the end").into()));
            }
            if self.engine.engine.in_flight() == 0 {
                break;
            }
            self.engine.advance(Duration::from_secs(301));
        }
        self.engine.advance(Duration::from_secs(6));
        while let Some(call) = self.engine.running().first().map(|call| call.call) {
            self.engine.finish(call, HandlerOutcome::Failed(RpcError::internal("the end").into()));
        }
        self.engine.engine.wind_down();
        self.engine.settle();
        self.take_sent();
        assert_eq!(self.engine.engine.in_flight(), 0, "calls that never end");
    }

    fn check_responses(&self) {
        for exchange in self.exchanges.iter().filter(|exchange| !exchange.is_raw) {
            exchange.check_responses();
        }
    }
}

impl Exchange {
    /// Requests that have their response cannot be cancelled any more.
    fn cancel(&mut self, which: impl Fn(&Sent) -> bool) {
        if self.responses.is_none() {
            self.requests.iter_mut().filter(|sent| which(sent)).for_each(|sent| sent.cancelled = true);
        }
    }

    /// Checks a message on this exchange.
    fn check(&self, session: Revision, message: &Value, check: Check<'_>) {
        if let Value::Array(items) = message {
            return items.iter().for_each(|item| self.check(session, item, check));
        }
        let named = |sent: &&Sent| message.get("method").is_none() && sent.id == message["id"];
        let mut requests = self.requests.iter().filter(named);
        let (request, more) = (requests.next(), requests.next());
        // Which of several requests with one id is meant cannot be told, nor what is in bytes that were not made here.
        if more.is_some() || self.is_raw && message.get("result").is_some() {
            return;
        }
        // Nor which request of a batch a message of the server is for, where they name different revisions.
        let stated = |sent: &Sent| sent.revision;
        if request.is_none()
            && self.requests.iter().any(|sent| stated(sent) != self.requests.first().and_then(stated))
        {
            return;
        }
        // A session that was initialized again has calls of both revisions.
        if self.session.is_some_and(|before| before != session) {
            return;
        }
        // Notifications on an exchange are those of its first request.
        let stated = request.or(self.requests.first()).and_then(|sent| sent.revision);
        let revision = stated.unwrap_or(session);
        let agreed = message.pointer("/result/protocolVersion").and_then(Value::as_str);
        let revision = agreed.and_then(|agreed| agreed.parse().ok()).unwrap_or(revision);
        check(revision, message, request.map(|sent| sent.method.as_str()));
    }

    fn respond(&mut self, message: &Value) {
        assert!(self.is_raw || message.is_array() == self.is_batch || message["id"].is_null(), "{message}");
        let messages = message.as_array().map_or(std::slice::from_ref(message), Vec::as_slice);
        for message in messages {
            assert!(message.get("result").is_some() != message.get("error").is_some(), "{message}");
        }
        self.responses = Some(messages.iter().map(|message| message["id"].clone()).collect());
    }

    /// Every request has its response, but for those that were cancelled while they were open.
    fn check_responses(&self) {
        let responses = self.responses.as_deref().unwrap_or_default();
        // A batch that is refused as a whole has one error without an id.
        if self.is_batch && responses.iter().any(Value::is_null) {
            return;
        }
        for request in &self.requests {
            let same = |other: &&Sent| other.id == request.id;
            let all = self.requests.iter().filter(same).count();
            let open =
                self.requests.iter().filter(same).filter(|sent| !sent.cancelled && !self.may_be_cancelled);
            let open = open.count();
            let responded = responses.iter().filter(|id| **id == request.id).count();
            // A member of a batch may have been done when the cancellation came, and its response not yet sent.
            let most = if self.is_batch || self.may_be_cancelled { all } else { open };
            assert!((open..=most).contains(&responded), "{responded} responses: {self:?}");
        }
        assert!(responses.len() <= self.requests.len(), "{self:?}");
    }
}

fn sent(message: &Value, method: &str, revision: Option<Revision>) -> Sent {
    Sent { id: message["id"].clone(), method: method.to_owned(), revision, cancelled: false }
}

fn done() -> HandlerOutcome {
    HandlerOutcome::Done(Box::new(CallToolResult::text("done").into()))
}
