//! The client engine: each call ends exactly once, each request of the server gets at most one response, state stays
//! bounded, and whatever is sent is valid in the revision that was negotiated.

mod messages;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use refmcp_proto::engine::CallId;
use refmcp_proto::engine::client::{
    CallOptions, ClientConfig, ClientEngine, ClientMessage, ClientMessageKind, ClientOutput,
    ClientTaskConfig, ExchangeId, InputHandling, ServerRequestId, TaskIds, TransportError, TransportKind,
    VersionPolicy,
};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{Implementation, InputRequest, JsonObject, LogLevel};
use refmcp_proto::revision::Revision;
use refmcp_proto::time::Timestamp;
use serde_json::{Value, json};

use crate::input::Input;

/// Limits of the engine, small enough to be reached.
const MAX_SERVER_REQUESTS: usize = 4;
const MAX_CALLS: usize = 16;

/// The most events of one run.
const MAX_EVENTS: usize = 200;

/// Checks one message of the client: its revision, the message, and the method of the request that it responds to.
pub type Check<'a> = &'a dyn Fn(Revision, &Value, Option<&str>);

/// Settings from the first bytes, then one event after the other.
pub fn run(bytes: &[u8]) {
    run_checked(bytes, &|_, _, _| {});
}

/// The same, with a check of each message.
pub fn run_checked(bytes: &[u8], check: Check<'_>) {
    let mut input = Input::new(bytes);
    let mut world = World::new(config(&mut input), check);
    world.take_outputs();
    for _ in 0..MAX_EVENTS {
        if input.is_empty() {
            break;
        }
        world.event(&mut input);
        world.take_outputs();
    }
    world.drain();
}

fn config(input: &mut Input<'_>) -> ClientConfig {
    let mut config = ClientConfig::new(Implementation::new("c", "1"));
    let revision = Revision::ALL[input.below(Revision::ALL.len())];
    config.version_policy = match input.below(5) {
        0 => VersionPolicy::Auto,
        1 => VersionPolicy::Legacy,
        2 => VersionPolicy::Modern,
        3 => VersionPolicy::Exactly(revision),
        _ => VersionPolicy::AtMost(revision),
    };
    config.transport = if input.flag() { TransportKind::Http } else { TransportKind::Pipe };
    let offered = json!({ "roots": {}, "sampling": {}, "elicitation": { "form": {}, "url": {} } });
    config.capabilities = serde_json::from_value(offered).expect("capabilities");
    config.capabilities.declare_tasks();
    let count = AtomicU64::new(0);
    let ids = TaskIds::new(move || Some(format!("task-{}", count.fetch_add(1, Ordering::Relaxed)).into()));
    config.tasks = Some(ClientTaskConfig { max_tasks: 3, max_bytes: 5000, ..ClientTaskConfig::new(ids) });
    config.max_rounds = 2;
    config.max_server_requests = MAX_SERVER_REQUESTS;
    config
}

/// The requests of the server with one id.
#[derive(Default)]
struct ServerRequests {
    methods: BTreeSet<String>,
    count: usize,
    responses: usize,
}

struct World<'a> {
    engine: ClientEngine,
    transport: TransportKind,
    now: Timestamp,
    /// Calls, and whether each has ended.
    calls: BTreeMap<CallId, bool>,
    /// Requests that were sent, by exchange, and the method of each.
    sent: BTreeMap<u64, String>,
    last_exchange: u64,
    /// Input that the server needs and the host has not given.
    asked: BTreeMap<ServerRequestId, InputRequest>,
    /// Requests of the server, by their ids.
    server_requests: BTreeMap<String, ServerRequests>,
    closed: bool,
    check: Check<'a>,
}

impl<'a> World<'a> {
    fn new(config: ClientConfig, check: Check<'a>) -> Self {
        let transport = config.transport;
        let now = Timestamp::from_millis(1_000_000);
        let mut engine = ClientEngine::new(Arc::new(config));
        engine.open(now);
        Self {
            engine,
            transport,
            now,
            calls: BTreeMap::new(),
            sent: BTreeMap::new(),
            last_exchange: 0,
            asked: BTreeMap::new(),
            server_requests: BTreeMap::new(),
            closed: false,
            check,
        }
    }

    fn event(&mut self, input: &mut Input<'_>) {
        let kind = input.below(14);
        // Some messages come on the stream of an exchange, and some on none.
        let from = match self.transport {
            TransportKind::Pipe => None,
            TransportKind::Http => self.exchange(input).filter(|_| input.flag()).map(ExchangeId),
        };
        match kind {
            0 | 1 => {
                let Some(exchange) = self.exchange(input) else { return };
                let method = self.sent.get(&exchange).cloned().unwrap_or_default();
                let message = messages::response(input, exchange, &method);
                let from = from.map(|_| ExchangeId(exchange));
                self.engine.receive(self.now, from, message.to_string().as_bytes());
            }
            2 | 3 => self.call(input),
            4 => {
                let message = messages::request(input);
                self.note_request(&message);
                self.engine.receive(self.now, from, message.to_string().as_bytes());
            }
            5 => {
                let exchange = self.exchange(input).unwrap_or(1);
                let message = messages::notification(input, exchange);
                self.engine.receive(self.now, from, message.to_string().as_bytes());
            }
            6 | 7 => self.respond(input),
            8 => {
                let calls: Vec<CallId> = self.calls.keys().copied().collect();
                if !calls.is_empty() {
                    self.engine.cancel(self.now, calls[input.below(calls.len())], "the input says so");
                }
            }
            9 => self.advance(Duration::from_millis(u64::from(input.byte()) * 500)),
            10 => {
                let why = match input.below(4) {
                    0 => TransportError::Broken("gone".to_owned()),
                    1 => TransportError::SessionLost,
                    2 => TransportError::Refused {
                        status: 400,
                        error: input.flag().then(|| RpcError::new(-32_022, "unsupported")),
                        body: String::new(),
                        retry_after: None,
                    },
                    _ => TransportError::Unreachable("nothing there".to_owned()),
                };
                if let Some(exchange) = self.exchange(input) {
                    self.engine.ended(self.now, ExchangeId(exchange), why);
                }
            }
            11 => match input.below(4) {
                0 => self.engine.unreadable(self.now, from, "too long"),
                1 => self.engine.ignored_input(self.now, &input.text()),
                2 => self.engine.line_abandoned("half a line"),
                _ => self.engine.notify("notifications/roots/list_changed", None),
            },
            12 if input.below(16) == 0 => self.engine.closed(TransportError::Closed),
            _ => {
                let line = input.line();
                // It may be a request of the server, which gets a response.
                self.note_requests(line);
                self.engine.receive(self.now, from, line);
            }
        }
    }

    /// One of the exchanges that were sent, the last ones first.
    fn exchange(&self, input: &mut Input<'_>) -> Option<u64> {
        let at = input.below(6).min(self.sent.len().saturating_sub(1));
        self.sent.keys().rev().nth(at).copied()
    }

    fn call(&mut self, input: &mut Input<'_>) {
        if self.engine.in_flight() >= MAX_CALLS {
            return;
        }
        let (method, name, params) = messages::call(input);
        let flags = input.byte();
        let options = CallOptions {
            idle: Duration::from_secs(10),
            total: Duration::from_secs(60),
            progress: flags & 1 == 1,
            input: if flags & 2 == 2 { InputHandling::Manual } else { InputHandling::Automatic },
            log_level: (flags & 4 == 4).then_some(LogLevel::Info),
            meta: if flags & 8 == 8 { messages::meta() } else { JsonObject::new() },
            ..CallOptions::default()
        };
        let name = name.map(Arc::from);
        let call = self.engine.call(self.now, method.into(), name, params.into(), options);
        assert_eq!(self.calls.insert(call, false), None, "a number twice");
    }

    /// The host gives input, or refuses.
    fn respond(&mut self, input: &mut Input<'_>) {
        let numbers: Vec<ServerRequestId> = self.asked.keys().copied().collect();
        let number = numbers.get(input.below(numbers.len() + 1)).copied();
        let number = number.unwrap_or(ServerRequestId(u64::from(input.byte())));
        let response = match (self.asked.remove(&number), input.below(4)) {
            (_, 0) | (None, _) => Err(RpcError::new(-1, "refused")),
            (Some(request), _) => Ok(messages::input(&request)),
        };
        self.engine.respond(self.now, number, response);
    }

    fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        for _ in 0..10_000 {
            let Some(next) = self.engine.deadline().filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            self.engine.tick(self.now);
            self.take_outputs();
            assert!(
                self.engine.deadline().is_none_or(|next| next > self.now),
                "a deadline that does not pass"
            );
        }
        panic!("deadlines without an end");
    }

    fn note_requests(&mut self, line: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
        let messages = message.as_array().cloned().unwrap_or_else(|| vec![message]);
        messages.iter().for_each(|message| self.note_request(message));
    }

    fn note_request(&mut self, message: &Value) {
        if let (Some(id), Some(Value::String(method))) = (message.get("id"), message.get("method")) {
            let requests = self.server_requests.entry(id.to_string()).or_default();
            requests.methods.insert(method.clone());
            requests.count += 1;
        }
    }

    fn take_outputs(&mut self) {
        while let Some(output) = self.engine.poll() {
            match output {
                ClientOutput::Send(message) => self.sent(&message),
                ClientOutput::Done(call, _) => {
                    let ended = self.calls.get_mut(&call).expect("a call that was made");
                    assert!(!std::mem::replace(ended, true), "{call:?} ends twice");
                }
                ClientOutput::Request(asked) => {
                    assert!(!self.closed, "a request after the end");
                    assert!(self.asked.insert(asked.id, asked.request).is_none(), "a number twice");
                }
                ClientOutput::RequestCancelled(number) => drop(self.asked.remove(&number)),
                ClientOutput::Closed(_) => {
                    assert!(!std::mem::replace(&mut self.closed, true), "closed twice");
                }
                ClientOutput::Opened(server) => {
                    assert!(!self.closed && Revision::ALL.contains(&server.revision));
                }
                ClientOutput::Abandon(exchange) => assert!(exchange.0 <= self.last_exchange),
                ClientOutput::Ignored(what) => assert!(what.len() < 4096, "{} bytes of a text", what.len()),
                ClientOutput::Notification(..) | ClientOutput::Task(..) | ClientOutput::Finding(_) => {}
            }
        }
        assert!(self.asked.len() <= MAX_SERVER_REQUESTS, "{} open requests", self.asked.len());
        let open = self.calls.values().filter(|ended| !**ended).count();
        assert_eq!(self.engine.in_flight(), open, "calls in flight");
    }

    fn sent(&mut self, message: &ClientMessage) {
        assert!(!self.closed, "a message after the end");
        assert!(!message.json.contains(&b'\n'), "a line break in a message");
        assert!(self.last_exchange.max(message.exchange.0) < u64::MAX / 2);
        let json: Value = serde_json::from_slice(&message.json).expect("a message is JSON");
        let responds = match &message.kind {
            ClientMessageKind::Request { method, .. } => {
                assert_eq!(json["method"], **method);
                let before = self.sent.insert(message.exchange.0, method.to_string());
                assert_eq!(before, None, "an exchange twice");
                assert_eq!(json["id"], message.exchange.0);
                None
            }
            ClientMessageKind::Notification { method } => {
                assert_eq!(json["method"], **method);
                None
            }
            ClientMessageKind::Response => {
                // An id with escapes is written otherwise than it came.
                let known = self.server_requests.entry(json["id"].to_string()).or_default();
                known.responses += 1;
                assert!(known.count == 0 || known.responses <= known.count, "too many responses: {json}");
                // Which of several requests with one id is meant cannot be told.
                let Some(method) = known.methods.first().filter(|_| known.methods.len() == 1) else { return };
                Some(method.clone())
            }
        };
        self.last_exchange = self.last_exchange.max(message.exchange.0);
        let stated = [json.pointer("/params/protocolVersion"), meta_version(&json)];
        let stated = stated.into_iter().flatten().find_map(|version| version.as_str()?.parse().ok());
        let revision = message.rules.map(|rules| rules.revision).or(stated);
        if let Some(revision) = revision.or_else(|| self.engine.server().map(|server| server.revision)) {
            (self.check)(revision, &json, responds.as_deref());
        }
    }

    /// Lets every deadline pass, then ends the connection.
    fn drain(&mut self) {
        self.advance(Duration::from_secs(1000));
        let endless: BTreeSet<CallId> =
            self.calls.iter().filter(|call| !call.1).map(|call| *call.0).collect();
        for call in &endless {
            self.engine.cancel(self.now, *call, "the end");
        }
        self.engine.closed(TransportError::Closed);
        self.take_outputs();
        assert!(self.closed && self.calls.values().all(|ended| *ended), "{:?}", self.calls);
        assert!(self.asked.is_empty(), "requests that are never cancelled: {:?}", self.asked);
        self.engine.tick(self.now);
        self.take_outputs();
        let late = self.engine.call(self.now, "tools/list".into(), None, "{}".into(), CallOptions::default());
        self.calls.insert(late, false);
        self.take_outputs();
        assert!(self.calls[&late], "a call after the end fails at once");
    }
}

fn meta_version(json: &Value) -> Option<&Value> {
    json.pointer("/params/_meta")?.get(refmcp_proto::model::keys::PROTOCOL_VERSION)
}
