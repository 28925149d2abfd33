//! The simulated server: its engines, their handlers, and what a driver does around them over a pipe.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::vec;

use refmcp_proto::engine::server::PeerCache;
use refmcp_proto::engine::{
    CallId, Change, Dispatch, EngineConfig, ExchangeId, LogMessage, MessageKind, OutgoingMessage, Output,
    Progress, ServerEngine,
};
use refmcp_proto::frame::{Line, LineDecoder, encode_line};
use refmcp_proto::jsonrpc::RequestId;
use refmcp_proto::model::LogLevel;
use refmcp_server::backplane::{MemoryBackplane, StreamReader};

use super::handlers::{Script, Step};
use super::http_server::{ServerStream, small_or_usual};
use super::network::{ConnectionId, Payload, Side};
use super::plan::{Plan, Restart, Transport};
use super::queue::Scheduled;
use super::{BEGINNING, Simulation, configs, nonce};
use crate::history::{Event, Fault};

/// How long calls go on after their client has gone, in milliseconds.
const GRACE: u64 = 5_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EngineId(pub(super) usize);

/// The server.
pub(super) struct Server {
    pub(super) config: Arc<EngineConfig>,
    /// `None` is over.
    pub(super) engines: Vec<Option<ServedEngine>>,
    pub(super) pipes: BTreeMap<ConnectionId, EngineId>,
    pub(super) sessions: BTreeMap<u64, EngineId>,
    /// The sessions so far.
    pub(super) last_session: u64,
    /// Keeps the streams of sessions.
    pub(super) backplane: Option<Arc<MemoryBackplane>>,
    pub(super) last_post: u128,
    peers: Arc<PeerCache>,
}

/// An engine, and what is around it.
pub(super) struct ServedEngine {
    pub(super) engine: ServerEngine,
    /// The client, by its index.
    pub(super) client: usize,
    pub(super) place: Place,
    running: Vec<Running>,
    pub(super) streams: BTreeMap<ExchangeId, ServerStream>,
    pub(super) readers: Vec<(ConnectionId, StreamReader)>,
    pub(super) last_exchange: u64,
    /// When a deadline is scheduled for.
    deadline: Option<u64>,
}

/// What an engine serves.
pub(super) enum Place {
    Pipe(ConnectionId, LineDecoder),
    Session {
        number: u64,
        epoch: u32,
    },
    /// One request of a revision without sessions.
    Request,
}

/// A handler that runs.
struct Running {
    call: CallId,
    nonce: u64,
    /// What it does next.
    next: Option<Step>,
    steps: vec::IntoIter<(u64, Step)>,
}

impl Server {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            config: configs::server(plan),
            engines: Vec::new(),
            pipes: BTreeMap::new(),
            sessions: BTreeMap::new(),
            last_session: 0,
            backplane: (plan.transport == Transport::Http).then(|| small_or_usual(plan)),
            last_post: 0,
            peers: Arc::default(),
        }
    }

    pub(super) fn get(&mut self, id: EngineId) -> Option<&mut ServedEngine> {
        self.engines[id.0].as_mut()
    }

    pub(super) fn add(&mut self, engine: ServerEngine, client: usize, place: Place) -> EngineId {
        self.engines.push(Some(ServedEngine {
            engine,
            client,
            place,
            running: Vec::new(),
            streams: BTreeMap::new(),
            readers: Vec::new(),
            last_exchange: 0,
            deadline: None,
        }));
        EngineId(self.engines.len() - 1)
    }

    pub(super) fn new_engine(&self) -> ServerEngine {
        ServerEngine::new(self.config.clone(), None).with_peers(self.peers.clone())
    }
}

impl Simulation {
    pub(super) fn server_arrival(&mut self, connection: ConnectionId, payload: Payload) {
        match payload {
            Payload::Bytes(bytes) => self.pipe_bytes(connection, &bytes),
            Payload::Request(request) => self.http_request(connection, &request),
            Payload::Head(_) | Payload::End => {}
        }
    }

    fn pipe_bytes(&mut self, connection: ConnectionId, bytes: &[u8]) {
        let id = match self.server.pipes.get(&connection) {
            Some(id) => *id,
            None => {
                let client = self.network.get(connection).client;
                let place = Place::Pipe(connection, LineDecoder::with_chunk(1 << 20, 256));
                let engine = self.server.new_engine();
                let id = self.server.add(engine, client, place);
                self.server.pipes.insert(connection, id);
                id
            }
        };
        if let Some(ServedEngine { place: Place::Pipe(_, decoder), .. }) = self.server.get(id) {
            decoder.feed(bytes);
        }
        while let Some(ServedEngine { place: Place::Pipe(_, decoder), .. }) = self.server.get(id)
            && let Some(Line::Text(line)) = decoder.next_line()
        {
            let line = line.to_vec();
            self.engine_receives(id, ExchangeId::default(), &line);
            self.settle(id);
        }
    }

    /// An engine takes in a message.
    pub(super) fn engine_receives(&mut self, id: EngineId, exchange: ExchangeId, message: &[u8]) {
        let now = self.time();
        let Some(served) = self.server.get(id) else { return };
        // A cancellation may overtake its request, and is then of no effect.
        let is_known =
            |id: &u64| i64::try_from(*id).is_ok_and(|id| served.engine.has_request(&RequestId::Integer(id)));
        let cancelled = cancelled_request(message).filter(is_known);
        served.engine.receive(now, exchange, message);
        let client = served.client;
        if let Some(request) = cancelled {
            let client = self.clients[client].number;
            self.record(Event::CancellationProcessed { client, request });
        }
    }

    /// Does what an engine wants done, until it wants nothing.
    pub(super) fn settle(&mut self, id: EngineId) {
        while let Some(output) = self.server.get(id).and_then(|served| served.engine.poll()) {
            self.output(id, output);
        }
        self.pump_readers(id);
        let Some(served) = self.server.get(id) else { return };
        let deadline = served.engine.deadline().map(|at| at.as_millis() - BEGINNING);
        if let Some(at) = deadline
            && served.deadline.is_none_or(|scheduled| at < scheduled)
        {
            served.deadline = Some(at);
            self.queue.push(at, Scheduled::EngineDeadline(id));
        }
    }

    pub(super) fn engine_deadline(&mut self, id: EngineId) {
        let now = self.time();
        let Some(served) = self.server.get(id) else { return };
        served.deadline = None;
        if served.engine.deadline().is_some_and(|at| at <= now) {
            served.engine.tick(now);
        }
        self.settle(id);
    }

    fn output(&mut self, id: EngineId, output: Output) {
        let Some(client) = self.server.get(id).map(|served| served.client) else { return };
        let number = self.clients[client].number;
        match output {
            Output::Send(message) => self.send(id, number, message),
            Output::Run(dispatch) => self.start_handler(id, client, &dispatch),
            Output::Cancel(call) => {
                if let Some(served) = self.server.get(id) {
                    served.running.retain(|running| running.call != call);
                }
            }
            Output::NoResponse(exchange) => self.no_response(id, exchange),
            Output::Finding(finding) => {
                let what = format!("{}: {}", finding.rule.id, finding.what).into();
                self.record(Event::Reported { client: number, what });
            }
            Output::Close(_) => {
                self.record(Event::Reported { client: number, what: "no response to a ping".into() });
                self.close_engine(id);
            }
            Output::Ready
            | Output::ClientResponded { .. }
            | Output::RootsChanged
            | Output::Listening(_)
            | Output::ListensForTasks { .. }
            | Output::Responded(_)
            | Output::Shared(_) => {}
        }
    }

    fn send(&mut self, id: EngineId, client: u32, message: OutgoingMessage) {
        if matches!(message.kind, MessageKind::Response { .. })
            && let Some(request) = response_id(&message.json)
        {
            self.record(Event::Answered { client, request });
        }
        let Some(served) = self.server.get(id) else { return };
        if let Place::Pipe(connection, _) = served.place {
            let mut line = Vec::with_capacity(message.json.len() + 1);
            encode_line(&mut line, &message.json);
            self.network.send(&mut self.random, self.now, connection, Side::Client, Payload::Bytes(line));
        } else {
            self.send_http(id, message);
        }
    }

    fn start_handler(&mut self, id: EngineId, client: usize, dispatch: &Dispatch) {
        let Script { nonce, steps, fault } = Script::new(dispatch);
        if let (Some(fault), RequestId::Integer(request)) = (fault, &dispatch.id) {
            self.fault(Some(client), u64::try_from(*request).ok(), fault);
        }
        let call = dispatch.call;
        if let Some(served) = self.server.get(id) {
            served.running.push(Running { call, nonce, next: None, steps: steps.into_iter() });
        }
        self.advance_handler(id, call);
    }

    /// The time of a handler's next step has come.
    pub(super) fn run_handler(&mut self, id: EngineId, call: CallId) {
        self.advance_handler(id, call);
        self.settle(id);
        self.end_if_answered(id);
    }

    /// Takes the steps of a handler that are due.
    fn advance_handler(&mut self, id: EngineId, call: CallId) {
        loop {
            let Some(running) = self.running(id, call) else { return };
            let nonce = running.nonce;
            let step = match running.next.take() {
                Some(step) => step,
                None => match running.steps.next() {
                    None => return,
                    Some((0, step)) => step,
                    Some((delay, step)) => {
                        running.next = Some(step);
                        return self.queue.push(self.now + delay, Scheduled::Handler(id, call));
                    }
                },
            };
            self.handler_step(id, call, nonce, step);
        }
    }

    fn running(&mut self, id: EngineId, call: CallId) -> Option<&mut Running> {
        self.server.get(id)?.running.iter_mut().find(|running| running.call == call)
    }

    fn handler_step(&mut self, id: EngineId, call: CallId, nonce: u64, step: Step) {
        let now = self.time();
        match step {
            Step::Effect(effect, round) => self.record(Event::SideEffect { nonce, effect, round }),
            Step::Change => {
                for index in 0..self.server.engines.len() {
                    if let Some(served) = &mut self.server.engines[index] {
                        served.engine.changed(&Change::Tools);
                        self.settle(EngineId(index));
                    }
                }
            }
            Step::Progress(progress) => {
                let message = Some(nonce::mark(nonce));
                if let Some(served) = self.server.get(id) {
                    served.engine.progress(call, Progress { progress, total: None, message });
                }
            }
            Step::Log => {
                let data = nonce::mark(nonce).into();
                if let Some(served) = self.server.get(id) {
                    let level = LogLevel::Warning;
                    served.engine.log(Some(call), LogMessage { level, logger: None, data });
                }
            }
            Step::End(outcome) => {
                let Some(served) = self.server.get(id) else { return };
                served.running.retain(|running| running.call != call);
                served.engine.finish(now, call, *outcome);
            }
        }
    }

    pub(super) fn server_disconnected(&mut self, connection: ConnectionId) {
        let Some(id) = self.server.pipes.get(&connection).copied() else {
            return self.http_disconnected(connection);
        };
        let Some(served) = self.server.get(id) else { return };
        served.engine.close_input();
        self.settle(id);
        let busy = self.server.get(id).is_some_and(|served| served.engine.in_flight() > 0);
        let grace = if busy { GRACE } else { 0 };
        self.queue.push(self.now + grace, Scheduled::Grace(id));
    }

    /// The server ends a connection or a session by itself.
    fn close_engine(&mut self, id: EngineId) {
        let Some(served) = self.server.get(id) else { return };
        match served.place {
            Place::Pipe(connection, _) => {
                self.network.close(&mut self.random, self.now, connection, Side::Server);
                self.queue.push(self.now, Scheduled::Grace(id));
            }
            Place::Session { number, .. } => self.end_session(number),
            Place::Request => {}
        }
    }

    /// Ends what an engine still has, and drops it.
    pub(super) fn end_engine(&mut self, id: EngineId) {
        let Some(served) = self.server.get(id) else { return };
        served.engine.wind_down();
        served.engine.cancel_all();
        self.settle(id);
        let Some(served) = self.server.engines[id.0].take() else { return };
        let remaining = [
            ("calls of the server", served.engine.in_flight()),
            ("subscriptions of the server", served.engine.listening()),
            ("handlers", served.running.len()),
            ("streams of the server", served.streams.len()),
        ];
        for (what, count) in remaining.into_iter().filter(|(_, count)| *count > 0) {
            self.record(Event::Remaining { what, count });
        }
    }

    /// Starts the server again. All connections are lost.
    pub(super) fn restart_server(&mut self, restart: Restart) {
        let now = self.time();
        let kept = match restart {
            Restart::SessionsLost => BTreeMap::new(),
            Restart::SessionsKept => std::mem::take(&mut self.server.sessions),
        };
        let mut before = std::mem::take(&mut self.server.engines);
        // Numbers of engines are not used again.
        self.server.engines.resize_with(before.len(), || None);
        self.server.pipes.clear();
        self.server.sessions.clear();
        if restart == Restart::SessionsLost && self.server.backplane.is_some() {
            self.server.backplane = Some(small_or_usual(&self.plan));
        }
        for (number, id) in kept {
            let Some(served) = before[id.0].take() else { continue };
            let Place::Session { epoch, .. } = served.place else { continue };
            let (facts, epoch) = (served.engine.facts(), epoch + 1);
            let resumed = ServerEngine::resume(self.server.config.clone(), None, now, epoch, facts.as_ref());
            let Ok(engine) = resumed else {
                self.record(Event::Remaining { what: "sessions that cannot be resumed", count: 1 });
                continue;
            };
            if engine.facts() != facts {
                self.record(Event::Remaining { what: "sessions whose facts have changed", count: 1 });
            }
            let id = self.server.add(engine, served.client, Place::Session { number, epoch });
            self.server.sessions.insert(number, id);
            self.settle(id);
        }
    }

    /// What is left when all clients have gone, and all time has passed.
    pub(super) fn end_server(&mut self) {
        let left = self.server.engines.iter().flatten().count();
        if !self.history.iter().any(|event| matches!(event, Event::Fault { .. })) {
            self.record(Event::Remaining { what: "engines without a client", count: left });
        }
        for number in self.server.sessions.keys().copied().collect::<Vec<_>>() {
            self.end_session(number);
        }
        for index in 0..self.server.engines.len() {
            self.end_engine(EngineId(index));
        }
        if let Some(backplane) = &self.server.backplane {
            let (sessions, bytes) = (backplane.session_count(), backplane.bytes());
            self.record(Event::Remaining { what: "sessions of the backplane", count: sessions });
            self.record(Event::Remaining { what: "bytes of the backplane", count: bytes });
        }
    }

    /// The log has dropped what a reader needs.
    pub(super) fn log_overrun(&mut self, client: usize) {
        self.fault(Some(client), None, Fault::LogOverrun);
    }
}

/// The id of a response, as the engines write it.
pub(super) fn response_id(json: &[u8]) -> Option<u64> {
    let rest = json.strip_prefix(br#"{"jsonrpc":"2.0","id":"#)?;
    let id = nonce::digits(rest)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &rest[digits..];
    (rest.starts_with(br#","result":"#) || rest.starts_with(br#","error":"#)).then_some(id)
}

/// The request that a message cancels.
fn cancelled_request(message: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(message).ok()?;
    let (_, params) = text.split_once(r#""method":"notifications/cancelled""#)?;
    let (_, id) = params.split_once(r#""requestId":"#)?;
    nonce::digits(id.as_bytes())
}
