//! An engine with a client's side to type into, and handlers that run at once.
//!
//! Nothing happens by itself: text goes in, time is moved, and whatever the engine wants done is done before the
//! next call returns, so a test sees every consequence in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::{
    CallId, Change, CloseReason, Dispatch, EngineConfig, ExchangeId, HandlerOutcome, InputOutcome,
    OutgoingMessage, Output, ResumeError, ServerEngine, SessionFacts, SharedOutput,
};
use refmcp_proto::jsonrpc::RequestId;
use refmcp_proto::model::{CallToolResult, Implementation, JsonObject, ServerCapabilities};

use crate::clock::Clock;
use crate::script::{self, Step};
use crate::sealer::InsecureTestSealer;

mod settings;

pub use settings::config_from;

/// Something the engine wanted done that is not a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The work on the call with this tag had to stop.
    Stopped(String),
    /// The client's roots are no longer what they were.
    RootsChanged,
    /// The client broke a rule for the first time.
    Finding(&'static str),
    /// The conversation is over.
    Closed(CloseReason),
}

/// What a handler does with a call.
type Handler = Box<dyn FnMut(&Dispatch) -> Vec<Step>>;

/// An engine, its clock, its handlers, and what came out of it.
pub struct TestEngine {
    /// The engine itself.
    pub engine: ServerEngine,
    /// The time it sees.
    pub clock: Clock,
    handler: Handler,
    running: Vec<Dispatch>,
    sent: Vec<OutgoingMessage>,
    events: Vec<Event>,
    shared: VecDeque<SharedOutput>,
}

impl TestEngine {
    /// An engine with the [scripted](crate::script) handlers.
    pub fn new(config: EngineConfig) -> Self {
        Self::with_handler(config, script::steps)
    }

    /// An engine with the scripted handlers, for an authenticated principal.
    pub fn for_principal(config: EngineConfig, principal: &str) -> Self {
        Self::start(config, Some(principal.into()), Box::new(script::steps))
    }

    /// An engine with a handler of its own for every call.
    pub fn with_handler(config: EngineConfig, handler: impl FnMut(&Dispatch) -> Vec<Step> + 'static) -> Self {
        Self::start(config, None, Box::new(handler))
    }

    /// An engine with the scripted handlers that goes on with a session.
    pub fn resume(
        config: EngineConfig,
        clock: Clock,
        epoch: u32,
        facts: Option<&SessionFacts>,
    ) -> Result<Self, ResumeError> {
        let engine = ServerEngine::resume(Arc::new(config), None, clock.now(), epoch, facts)?;
        Ok(Self::of(engine, clock, Box::new(script::steps)))
    }

    fn start(config: EngineConfig, principal: Option<Arc<str>>, handler: Handler) -> Self {
        Self::of(ServerEngine::new(Arc::new(config), principal), Clock::new(), handler)
    }

    fn of(engine: ServerEngine, clock: Clock, handler: Handler) -> Self {
        let (running, sent, events, shared) = (Vec::new(), Vec::new(), Vec::new(), VecDeque::new());
        Self { engine, clock, handler, running, sent, events, shared }
    }

    /// Lets the client send one message, or whatever else it sends.
    pub fn send(&mut self, bytes: &[u8]) {
        self.send_by(ExchangeId::default(), bytes);
    }

    /// Lets the client send by one of several exchanges.
    pub fn send_by(&mut self, channel: ExchangeId, bytes: &[u8]) {
        self.engine.receive(self.clock.now(), channel, bytes);
        self.settle();
    }

    /// Hands the engine the response to a request of its own, wherever it arrived.
    pub fn deliver(&mut self, id: &RequestId, outcome: InputOutcome) {
        self.engine.deliver(self.clock.now(), id, outcome);
        self.settle();
    }

    /// The messages that came out since the last time.
    pub fn take_sent(&mut self) -> Vec<OutgoingMessage> {
        std::mem::take(&mut self.sent)
    }

    /// What else came out since the last time.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The first of what came out for other processes of the session and was not taken yet.
    pub fn next_shared(&mut self) -> Option<SharedOutput> {
        self.shared.pop_front()
    }

    /// The calls that are running, oldest first.
    pub fn running(&self) -> &[Dispatch] {
        &self.running
    }

    /// Moves the clock, and wakes the engine whenever it wants to be woken on the way.
    pub fn advance(&mut self, by: Duration) {
        let end = self.clock.now() + by;
        while let Some(next) = self.engine.deadline().filter(|next| *next <= end) {
            self.clock.advance(next - self.clock.now());
            self.engine.tick(self.clock.now());
            self.settle();
            // A deadline that does not move away would be met for ever.
            assert!(self.engine.deadline() != Some(next), "the engine's deadline {next:?} did not pass");
        }
        self.clock.advance(end - self.clock.now());
    }

    /// Ends a call.
    pub fn finish(&mut self, call: CallId, outcome: HandlerOutcome) {
        self.running.retain(|running| running.call != call);
        self.engine.finish(self.clock.now(), call, outcome);
        self.settle();
    }

    /// Ends the call with this tag, with a text that names it; `false` when none runs.
    pub fn finish_tagged(&mut self, tag: &str) -> bool {
        let call = self.running.iter().find(|call| script::tag(call) == tag).map(|call| call.call);
        if let Some(call) = call {
            let result = CallToolResult::text(format!("{tag} is done"));
            self.finish(call, HandlerOutcome::Done(Box::new(result.into())));
        }
        call.is_some()
    }

    /// Tells the engine of a change.
    pub fn changed(&mut self, change: &Change) {
        self.engine.changed(change);
        self.settle();
    }

    /// Does what the engine wants done until it wants nothing.
    pub fn settle(&mut self) {
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Send(sending) => self.sent.push(sending),
                Output::Run(dispatch) => self.run(dispatch),
                Output::Cancel(call) => self.stop(call),
                // What a channel is comes from the transport, which a conversation written down has none of.
                Output::NoResponse(_) => {}
                // Every answer is among what was sent.
                Output::Responded(_) => {}
                // Nothing is forwarded here, and tasks are not the engine's.
                Output::Listening(_) | Output::ListensForTasks { .. } => {}
                // Requests of the session have tests of their own.
                Output::Ready | Output::ClientResponded { .. } => {}
                Output::RootsChanged => self.events.push(Event::RootsChanged),
                Output::Finding(finding) => self.events.push(Event::Finding(finding.rule.id)),
                Output::Shared(output) => self.shared.push_back(output),
                Output::Close(reason) => self.events.push(Event::Closed(reason)),
            }
        }
    }

    fn run(&mut self, dispatch: Dispatch) {
        let steps = (self.handler)(&dispatch);
        let call = dispatch.call;
        self.running.push(dispatch);
        for step in steps {
            match step {
                Step::Progress(progress) => self.engine.progress(call, progress),
                Step::Log(note) => self.engine.log(Some(call), note),
                Step::End(outcome) => {
                    self.running.retain(|running| running.call != call);
                    self.engine.finish(self.clock.now(), call, outcome);
                }
            }
        }
    }

    fn stop(&mut self, call: CallId) {
        if let Some(at) = self.running.iter().position(|running| running.call == call) {
            let dispatch = self.running.remove(at);
            self.events.push(Event::Stopped(script::tag(&dispatch)));
        }
    }
}

impl std::fmt::Debug for TestEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestEngine")
            .field("engine", &self.engine)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

/// The name and version of the server.
pub fn server_info() -> Implementation {
    Implementation::new("rig", "1")
}

/// Settings of a server that offers everything, sealed by the insecure test sealer.
pub fn full_config() -> EngineConfig {
    let mut capabilities = ServerCapabilities {
        logging: Some(JsonObject::new()),
        completions: Some(JsonObject::new()),
        tools: Some(Default::default()),
        prompts: Some(Default::default()),
        resources: Some(Default::default()),
        ..ServerCapabilities::default()
    };
    capabilities.tools.get_or_insert_default().list_changed = Some(true);
    capabilities.prompts.get_or_insert_default().list_changed = Some(true);
    let resources = capabilities.resources.get_or_insert_default();
    resources.list_changed = Some(true);
    resources.subscribe = Some(true);
    let mut config = EngineConfig::new(server_info(), capabilities, Arc::new(InsecureTestSealer::new(1)));
    config.custom_methods = ["models/list", "models/select"].map(Arc::from).into();
    config.session_methods = ["models/select"].map(Arc::from).into();
    config
}
