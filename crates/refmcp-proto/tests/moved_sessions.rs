//! Sessions that move: every message of a transcript goes to another engine than the one before, as behind a load
//! balancer, and the client notices nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::{
    CallId, Change, EngineConfig, ExchangeId, FactsChange, InputOutcome, MessageTarget, ParkedCall,
    ResumeError, ServerEngine, SessionFacts, SharedOutput,
};
use refmcp_proto::jsonrpc::RequestId;
use refmcp_proto::model::LogLevel;
use refmcp_proto::revision::{Lifecycle, Revision};
use refmcp_testkit::clock::Clock;
use refmcp_testkit::engine::{TestEngine, config_from, full_config, server_info};
use refmcp_testkit::messages::initialize_params;
use refmcp_testkit::transcript::{Endpoint, Settings, run_folder};
use serde_json::{Value, json};

/// The engines that one session has had, with what processes share of it.
struct MovedSession {
    config: EngineConfig,
    clock: Clock,
    engines: Vec<TestEngine>,
    facts: Option<SessionFacts>,
    /// Which engine expects a response, by the id of its request.
    expected: BTreeMap<RequestId, usize>,
    /// The ids of server requests in the order in which they were made: transcripts count them from 1.
    ids: Vec<Value>,
    sent: Vec<String>,
    /// Whether calls that wait for input move too.
    calls_move: bool,
    parked: Vec<ParkedHere>,
}

/// A call that waits, and the engine that it waits at.
struct ParkedHere {
    engine: usize,
    number: CallId,
    exchange: ExchangeId,
    ids: Vec<RequestId>,
    parked: ParkedCall,
}

impl MovedSession {
    fn new(mut config: EngineConfig, calls_move: bool) -> Self {
        config.max_facts_bytes = Some(64 << 10);
        let first = TestEngine::new(config.clone());
        let clock = first.clock.clone();
        let (expected, ids, sent) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (engines, parked) = (vec![first], Vec::new());
        Self { config, clock, engines, facts: None, expected, ids, sent, calls_move, parked }
    }

    /// Moves the session to a new engine. The facts travel as text.
    fn moved(&mut self) -> usize {
        let facts = self.facts.as_ref().map(|facts| {
            let text = serde_json::to_string(facts).unwrap();
            let read: SessionFacts = serde_json::from_str(&text).unwrap();
            assert_eq!(read, *facts);
            read
        });
        let epoch = u32::try_from(self.engines.len()).unwrap();
        let resumed = TestEngine::resume(self.config.clone(), self.clock.clone(), epoch, facts.as_ref());
        self.engines.push(resumed.unwrap());
        self.engines.len() - 1
    }

    /// Passes on what engines have for each other, until they have nothing more.
    fn share(&mut self) {
        while let Some((from, output)) = self.next_shared() {
            match output {
                SharedOutput::Facts(change) => {
                    change.apply(&mut self.facts);
                    let facts = self.facts.clone().unwrap();
                    for engine in &mut self.engines {
                        engine.engine.adopt(self.clock.now(), &facts).unwrap();
                        engine.settle();
                    }
                }
                SharedOutput::Expect { ids, call, .. } => {
                    let call = call.filter(|_| self.calls_move);
                    let parked = call.and_then(|call| Some((call.number, call.exchange, *call.parked?)));
                    self.parked.extend(parked.map(|(number, exchange, parked)| ParkedHere {
                        engine: from,
                        number,
                        exchange,
                        ids: ids.clone(),
                        parked,
                    }));
                    self.expected.extend(ids.into_iter().map(|id| (id, from)));
                }
                SharedOutput::Claim(call) => {
                    self.parked.retain(|parked| (parked.engine, parked.number) != (from, call));
                    self.engines[from].engine.run_claimed(call);
                    self.engines[from].settle();
                }
                SharedOutput::Response { id, outcome } if self.responds_to_parked(from, &id, &outcome) => {}
                SharedOutput::Withdraw(id) => {
                    self.expected.remove(&id);
                    self.parked.retain(|parked| !parked.ids.contains(&id));
                }
                SharedOutput::Response { id, outcome } => match self.expected.remove(&id) {
                    Some(owner) => {
                        let text = serde_json::to_string(&outcome).unwrap();
                        let outcome: InputOutcome = serde_json::from_str(&text).unwrap();
                        self.engines[owner].deliver(&id, outcome);
                    }
                    None if self.ids.contains(&json!(id)) => {}
                    None => {
                        self.engines[from].engine.report_unknown_response(&id);
                        self.engines[from].settle();
                    }
                },
                SharedOutput::Cancel(id) => {
                    for engine in &mut self.engines {
                        engine.engine.cancel_request(&id);
                        engine.settle();
                    }
                }
            }
        }
        for number in 0..self.engines.len() {
            let sent = self.engines[number].take_sent();
            self.collect(sent.into_iter().map(|message| message.json));
        }
    }

    /// Takes the response to a call that waits at another engine. With the last one, the engine that got it goes on.
    fn responds_to_parked(&mut self, from: usize, id: &RequestId, outcome: &InputOutcome) -> bool {
        let Some(place) = self.parked.iter().position(|parked| parked.ids.contains(id)) else { return false };
        self.expected.remove(id);
        let parked = &mut self.parked[place];
        let text = serde_json::to_string(&parked.parked).unwrap();
        parked.parked = serde_json::from_str(&text).unwrap();
        parked.ids.retain(|known| known != id);
        parked.parked.respond(id, outcome.clone());
        if !parked.ids.is_empty() {
            // The engine that asked hears of it as well.
            let engine = &mut self.engines[parked.engine];
            engine.deliver(id, outcome.clone());
        } else {
            let ParkedHere { engine, number, exchange, parked, .. } = self.parked.remove(place);
            self.engines[engine].engine.abandon(number);
            self.engines[engine].settle();
            self.engines[from].engine.resume_call(exchange, parked.into_call());
            self.engines[from].settle();
        }
        true
    }

    fn next_shared(&mut self) -> Option<(usize, SharedOutput)> {
        let mut engines = self.engines.iter_mut().enumerate();
        engines.find_map(|(number, engine)| Some((number, engine.next_shared()?)))
    }

    /// Takes messages in, with ids as transcripts count them.
    fn collect(&mut self, messages: impl Iterator<Item = Vec<u8>>) {
        for json in messages {
            let mut message: Value = serde_json::from_slice(&json).unwrap();
            if message["method"].is_string() && message["id"].is_number() {
                self.ids.push(message["id"].clone());
                if let Some(id) = message.pointer_mut("/params/elicitationId") {
                    *id = json!(format!("elicitation-{}", self.ids.len()));
                }
            }
            let counted = |id: &Value| self.ids.iter().position(|known| known == id).map(|at| json!(at + 1));
            if message["method"].is_string() {
                for place in ["/id", "/params/requestId"] {
                    if let Some(id) = message.pointer_mut(place)
                        && let Some(counted) = counted(id)
                    {
                        *id = counted;
                    }
                }
            }
            self.sent.push(message.to_string());
        }
    }

    /// The client's text, with the ids of its responses as they were sent to it.
    fn with_real_ids(&self, text: &str) -> String {
        let Ok(mut message) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
        let real = |message: &mut Value| {
            if message.get("method").is_some() || message.get("id").is_none() {
                return false;
            }
            let number = message["id"].as_u64().unwrap_or_default();
            let id = usize::try_from(number).ok().and_then(|number| self.ids.get(number.checked_sub(1)?));
            id.map(|id| message["id"] = id.clone()).is_some()
        };
        let changed = match &mut message {
            Value::Array(items) => items.iter_mut().map(real).fold(false, |any, changed| any | changed),
            one => real(one),
        };
        if changed { message.to_string() } else { text.to_owned() }
    }
}

impl Endpoint for MovedSession {
    fn send(&mut self, text: &str) {
        let text = self.with_real_ids(text);
        let engine = self.moved();
        self.engines[engine].send(text.as_bytes());
        self.share();
    }

    fn receive(&mut self) -> Vec<String> {
        std::mem::take(&mut self.sent)
    }

    fn advance(&mut self, by: Duration) {
        let end = self.clock.now() + by;
        let next =
            |engines: &[TestEngine]| engines.iter().filter_map(|engine| engine.engine.deadline()).min();
        while let Some(deadline) = next(&self.engines).filter(|deadline| *deadline <= end) {
            self.clock.advance(deadline - self.clock.now());
            for engine in &mut self.engines {
                engine.engine.tick(self.clock.now());
                engine.settle();
            }
            self.share();
        }
        self.clock.advance(end - self.clock.now());
    }

    fn act(&mut self, order: &str) -> Result<(), String> {
        if order.starts_with("finish") {
            let acted = self.engines.iter_mut().any(|engine| engine.act(order).is_ok());
            self.share();
            return if acted { Ok(()) } else { Err(order.to_owned()) };
        }
        // The backplane keeps one of the equal messages that processes have for a session.
        let mut for_session = BTreeSet::new();
        for number in 0..self.engines.len() {
            self.engines[number].act(order)?;
            let mut sent = self.engines[number].take_sent();
            sent.retain(|message| {
                message.to != MessageTarget::Session || for_session.insert(message.json.clone())
            });
            self.collect(sent.into_iter().map(|message| message.json));
        }
        self.share();
        Ok(())
    }

    fn events(&mut self) -> Vec<String> {
        self.engines.iter_mut().flat_map(Endpoint::events).collect()
    }
}

/// What one engine alone knows: the ids and the number of requests that it has in flight, and when it last heard of the
/// client.
fn concerns_one_engine(settings: &Settings) -> bool {
    ["ping after", "most in flight", "duplicate ids"].iter().any(|name| settings.contains_key(*name))
}

#[test]
fn a_session_that_moves_with_every_message_is_like_one_that_stays() {
    run_moved(false);
}

#[test]
fn a_call_that_moves_while_it_waits_is_like_one_that_stays() {
    run_moved(true);
}

fn run_moved(calls_move: bool) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let info = serde_json::to_value(server_info()).unwrap();
    let mut moves = 0;
    let mut start = |settings: &Settings, revision: Revision| {
        let config = config_from(settings)?;
        if revision.lifecycle() != Lifecycle::Handshake || concerns_one_engine(settings) {
            return Ok(Box::new(TestEngine::new(config)) as Box<dyn Endpoint>);
        }
        moves += 1;
        Ok(Box::new(MovedSession::new(config, calls_move)) as Box<dyn Endpoint>)
    };
    if let Err(problems) = run_folder(&folder, &info, &mut start) {
        panic!("{problems}");
    }
    assert!(moves > 100, "{moves} sessions have moved");
}

fn opened(config: EngineConfig) -> TestEngine {
    let mut engine = TestEngine::new(config);
    let params = initialize_params("test", "2025-11-25", json!({ "elicitation": {}, "roots": {} }));
    request(&mut engine, 0, "initialize", params);
    engine.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    engine
}

/// Sends a request; gives the first message that comes back.
fn request(engine: &mut TestEngine, id: i64, method: &str, params: impl Into<Value>) -> Value {
    let params: Value = params.into();
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    engine.send(message.to_string().as_bytes());
    let sent = engine.take_sent();
    sent.first().map(|first| serde_json::from_slice(&first.json).unwrap()).unwrap_or_default()
}

fn shared_config() -> EngineConfig {
    EngineConfig { max_facts_bytes: Some(1000), ..full_config() }
}

#[test]
fn engines_of_one_session_make_different_ids() {
    let ask = json!({ "name": "ask_roots" });
    let mut engines = vec![opened(shared_config())];
    let mut ids = BTreeSet::new();
    for epoch in 1..=3 {
        let last = engines.last_mut().unwrap();
        ids.insert(request(last, 1, "tools/call", ask.clone())["id"].as_i64().unwrap());
        ids.insert(request(last, 2, "tools/call", ask.clone())["id"].as_i64().unwrap());
        let facts = last.engine.facts().unwrap();
        engines.push(TestEngine::resume(shared_config(), Clock::new(), epoch, Some(&facts)).unwrap());
    }
    assert_eq!(ids.len(), 6, "{ids:?}");
    assert_eq!(ids.first(), Some(&1), "a session that stays has small ids");
    assert!(*ids.last().unwrap() < 1 << 53, "ids are exact in floating point");
    let epochs = ids.iter().map(|id| ServerEngine::epoch_of_request(&RequestId::Integer(*id)));
    assert_eq!(epochs.collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2].map(Some));
    let refused = TestEngine::resume(shared_config(), Clock::new(), 1 << 21, None).err();
    assert_eq!(refused, Some(ResumeError::Epoch));
}

#[test]
fn an_engine_refuses_a_session_of_a_revision_that_it_does_not_have() {
    let facts = opened(shared_config()).engine.facts().unwrap();
    let only_old = EngineConfig { revisions: vec![Revision::ALL[0]], ..shared_config() };
    let refused = ServerEngine::resume(Arc::new(only_old), None, Clock::new().now(), 1, Some(&facts)).err();
    assert_eq!(refused, Some(ResumeError::Revision(facts.peer.revision)));
    assert_eq!(TestEngine::new(shared_config()).engine.facts(), None, "before initialize there are none");
}

#[test]
fn changes_at_two_engines_are_both_made() {
    let mut engine = opened(shared_config());
    let subscribed = |uri: &str| FactsChange::Subscribed(uri.to_owned());
    let mine = [subscribed("file:///a.txt"), FactsChange::Unsubscribed("b".to_owned())];
    let theirs = [FactsChange::LogLevel(LogLevel::Error), subscribed("c")];
    let mut base = engine.engine.facts();
    [subscribed("b"), subscribed("d")].iter().for_each(|change| change.apply(&mut base));
    let [one, other] = [[&mine, &theirs], [&theirs, &mine]].map(|order| {
        let mut facts = base.clone();
        // A retry changes nothing.
        order.into_iter().flatten().chain(order[1]).for_each(|change| change.apply(&mut facts));
        facts.unwrap()
    });
    assert_eq!(one, other, "in whichever order");
    assert_eq!(one.subscriptions, ["c", "d", "file:///a.txt"].map(String::from).into());
    assert_eq!(one.log_level, LogLevel::Error);
    engine.engine.adopt(engine.clock.now(), &one).unwrap();
    assert_eq!(engine.engine.facts(), Some(one));
    engine.take_sent();
    engine.changed(&Change::Resource("file:///a.txt".to_owned()));
    assert_eq!(engine.take_sent().len(), 1);
    assert_eq!(engine.engine.watched_resources().collect::<Vec<_>>(), ["c", "d", "file:///a.txt"]);
}

#[test]
fn a_process_that_stops_leaves_parked_calls() {
    let mut engine = opened(shared_config());
    let question = request(&mut engine, 1, "tools/call", json!({ "name": "ask_roots" }));
    request(&mut engine, 2, "tools/call", json!({ "name": "never", "arguments": { "tag": "t" } }));
    let shared = std::iter::from_fn(|| engine.next_shared());
    let parked = shared.filter_map(|output| match output {
        SharedOutput::Expect { call: Some(call), .. } => Some((call.exchange, *call.parked?)),
        _ => None,
    });
    let [(exchange, mut parked)] = <[_; 1]>::try_from(parked.collect::<Vec<_>>()).unwrap();
    assert_eq!(engine.engine.leave_parked(|_| false), [], "it may not be in the backplane");
    assert_eq!(engine.engine.leave_parked(|_| true), [exchange]);
    assert_eq!(engine.engine.in_flight(), 1, "one that runs is not parked");
    engine.engine.cancel_all();
    engine.settle();
    assert!(engine.take_sent().is_empty(), "the client is told nothing");
    assert_eq!(engine.engine.leave_parked(|_| true), []);

    let mut other =
        TestEngine::resume(shared_config(), Clock::new(), 1, engine.engine.facts().as_ref()).unwrap();
    other.engine.resume_call(ExchangeId(9), parked.clone().into_call());
    assert_eq!(other.engine.in_flight(), 0, "it waits");
    let id = RequestId::Integer(question["id"].as_i64().unwrap());
    parked.respond(&RequestId::Integer(77), InputOutcome::TimedOut);
    parked.respond(&id, InputOutcome::Response(json!({ "roots": [] })));
    other.engine.resume_call(ExchangeId(9), parked.into_call());
    other.settle();
    let sent = other.take_sent();
    assert_eq!((sent.len(), sent[0].to), (1, MessageTarget::Exchange(ExchangeId(9))));
    let answer: Value = serde_json::from_slice(&sent[0].json).unwrap();
    assert!(answer["id"] == 1 && answer.get("result").is_some(), "{answer}");
}

#[test]
fn a_pong_that_arrives_elsewhere_counts_as_a_message() {
    let mut config = shared_config();
    config.timeouts.ping_after = Some(Duration::from_secs(30));
    let mut engine = opened(config);
    engine.take_sent();
    for _ in 0..3 {
        engine.advance(Duration::from_secs(30));
        let pings = engine.take_sent();
        assert_eq!(pings.len(), 1, "one after each silence");
        let ping: Value = serde_json::from_slice(&pings[0].json).unwrap();
        let id = RequestId::Integer(ping["id"].as_i64().unwrap());
        engine.deliver(&id, InputOutcome::Response(json!({})));
        assert_eq!(engine.engine.deadline(), Some(engine.clock.now() + Duration::from_secs(30)));
    }
}

#[test]
fn facts_have_a_limit() {
    let mut engine = TestEngine::new(shared_config());
    let mut params = initialize_params("test", "2025-11-25", json!({}));
    params["clientInfo"]["description"] = "x".repeat(1000).into();
    let refused = request(&mut engine, 1, "initialize", params);
    assert_eq!(refused["error"]["code"], -32600);
    let told = refused["error"]["message"].as_str().unwrap();
    assert!(told.contains("client information") && told.contains("at most 1000 are kept"), "{told}");
    assert!(engine.engine.peer().is_none());

    let mut engine = opened(shared_config());
    let long = json!({ "uri": format!("file:///{}", "x".repeat(1000)) });
    let refused = request(&mut engine, 1, "resources/subscribe", long.clone());
    assert!(refused["error"]["message"].as_str().unwrap().contains("subscriptions"), "{refused}");
    assert_eq!(
        request(&mut engine, 2, "resources/subscribe", json!({ "uri": "file:///a.txt" }))["result"],
        json!({})
    );
    let stays = request(&mut opened(full_config()), 1, "resources/subscribe", long);
    assert!(!stays.to_string().contains("are kept"), "a session that stays needs no limit: {stays}");
}
