//! A deterministic simulation of conversations: real engines of both sides, and a network in virtual time between them,
//! all from one seed.
//!
//! The network delays, reorders between streams and cuts at any byte; clients cancel, connect again while the old
//! connection lives, read slowly, refuse input; the server restarts, with its sessions or without. What happens is a
//! [`history`], whose invariants are checked. Nothing runs beside it, so a seed always does the same.
//!
//! ```
//! let summary = refmcp_testkit::simulation::run(0..20).unwrap();
//! assert_eq!(summary.conversations, 20);
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `plan` | what happens in a conversation, from its seed |
//! | `network` | connections, delays and cuts |
//! | `server`, `http_server` | the server: engines, handlers, and what drivers do around them |
//! | `client`, `http_client` | clients: engines, what their application does, and what transports do |
//! | `handlers` | what the tools of the server do |
//! | `configs` | settings of the engines |
//!
//! Over HTTP, streams of sessions go through the real in-memory backplane; what is simulated of `refmcp-http` is when a
//! response becomes a stream, who reads it and how it is resumed.

mod client;
mod configs;
mod handlers;
mod http_client;
mod http_server;
mod network;
mod nonce;
mod plan;
mod queue;
mod server;
mod summary;

use std::fmt;
use std::ops::Range;

use refmcp_proto::time::Timestamp;

use crate::history::{self, Event, Fault, Violation};
use crate::random::Random;
use client::Client;
use network::{Network, Payload, Side, Signal};
use plan::{Plan, Restart};
use queue::{Queue, Scheduled};
use server::Server;
pub use summary::Summary;

/// When conversations begin, in milliseconds since the Unix epoch.
const BEGINNING: u64 = 1_800_000_000_000;

/// Conversations end after so many steps, or never.
const MAX_STEPS: usize = 50_000;

/// A seed whose conversation breaks an invariant.
#[derive(Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What is broken.
    pub violations: Vec<Violation>,
    /// The conversation, line by line.
    pub transcript: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        f.write_str(&self.transcript)?;
        for violation in &self.violations {
            writeln!(f, "{violation}")?;
        }
        write!(f, "run it again with: cargo xtask simulate --seed {}", self.seed)
    }
}

impl std::error::Error for Failure {}

/// Runs the conversations of these seeds, up to the first that breaks an invariant.
pub fn run(seeds: Range<u64>) -> Result<Summary, Box<Failure>> {
    let mut summary = Summary::default();
    for seed in seeds {
        let simulation = Simulation::run(seed, None);
        let violations = history::check(&simulation.history);
        if !violations.is_empty() {
            return Err(Box::new(Failure { seed, violations, transcript: transcript(seed) }));
        }
        summary.add(&simulation.history);
    }
    Ok(summary)
}

/// The conversation of a seed, line by line.
#[must_use]
pub fn transcript(seed: u64) -> String {
    Simulation::run(seed, Some(String::new())).transcript.unwrap_or_default()
}

/// A conversation under way.
struct Simulation {
    plan: Plan,
    random: Random,
    /// Milliseconds since the beginning.
    now: u64,
    queue: Queue,
    network: Network,
    server: Server,
    clients: Vec<Client>,
    next_nonce: u64,
    history: Vec<Event>,
    transcript: Option<String>,
}

impl Simulation {
    fn run(seed: u64, transcript: Option<String>) -> Self {
        let mut random = Random::new(seed);
        let plan = Plan::new(&mut random);
        let mut simulation = Self {
            network: Network::new(plan.network),
            server: Server::new(&plan),
            now: 0,
            queue: Queue::default(),
            clients: Vec::new(),
            next_nonce: 1,
            history: Vec::with_capacity(64),
            transcript,
            random,
            plan,
        };
        simulation.tell(|this| format!("{:?}", this.plan));
        simulation.play();
        simulation
    }

    fn play(&mut self) {
        for actions in std::mem::take(&mut self.plan.clients) {
            self.add_client(actions.into());
        }
        if let Some((at, _)) = self.plan.restart {
            self.queue.push(at, Scheduled::Restart);
        }
        self.schedule_signals();
        let mut steps = 0;
        while let Some((at, scheduled)) = self.queue.pop() {
            self.now = at;
            self.step(scheduled);
            self.schedule_signals();
            steps += 1;
            if steps > MAX_STEPS {
                self.record(Event::Remaining { what: "conversations that do not end", count: 1 });
                return;
            }
        }
        self.end();
    }

    fn step(&mut self, scheduled: Scheduled) {
        match scheduled {
            Scheduled::Signal(Signal::Arrival(connection, side)) => {
                let Some(payload) = self.network.take(connection, side) else { return };
                self.tell_arrival(connection, side, &payload);
                match side {
                    Side::Client => self.client_arrival(connection, payload),
                    Side::Server => self.server_arrival(connection, payload),
                }
                if side == Side::Client {
                    self.server_drained(connection);
                }
            }
            Scheduled::Signal(Signal::Closed(connection, side)) => {
                if self.network.shut(connection, side) {
                    self.tell(|_| format!("{side:?} loses connection {}", connection.0));
                    match side {
                        Side::Client => self.client_disconnected(connection),
                        Side::Server => self.server_disconnected(connection),
                    }
                }
            }
            Scheduled::Restart => self.restart(),
            Scheduled::Action(client) => self.act(client),
            Scheduled::Cancel(client, call) => self.cancel(client, call),
            Scheduled::Respond(client, request, response) => self.respond(client, request, *response),
            Scheduled::ClientDeadline(client) => self.client_deadline(client),
            Scheduled::Resume(client, exchange) => self.resume_stream(client, exchange),
            Scheduled::Finish(client) => self.finish_client(client),
            Scheduled::Handler(engine, call) => self.run_handler(engine, call),
            Scheduled::EngineDeadline(engine) => self.engine_deadline(engine),
            Scheduled::DecideStream(engine, exchange) => self.decide_late(engine, exchange),
            Scheduled::Grace(engine) => self.end_engine(engine),
        }
    }

    /// Schedules what the network has to tell, and records its cuts.
    fn schedule_signals(&mut self) {
        for (at, signal) in self.network.signals.drain(..) {
            self.queue.push(at, Scheduled::Signal(signal));
        }
        while let Some(client) = self.network.cuts.pop() {
            self.fault(Some(client), None, Fault::Cut);
        }
    }

    fn restart(&mut self) {
        let Some((_, restart)) = self.plan.restart else { return };
        let fault = match restart {
            Restart::SessionsLost => Fault::SessionsLost,
            Restart::SessionsKept => Fault::Restarted,
        };
        self.fault(None, None, fault);
        for connection in self.network.open_at_server() {
            self.network.break_off(&mut self.random, self.now, connection);
            self.network.shut(connection, Side::Server);
        }
        self.restart_server(restart);
    }

    /// What is left when nothing happens any more.
    fn end(&mut self) {
        let calls = self.clients.iter().map(|client| client.engine.in_flight()).sum();
        self.record(Event::Remaining { what: "calls of clients", count: calls });
        self.end_server();
    }

    fn time(&self) -> Timestamp {
        Timestamp::from_millis(BEGINNING + self.now)
    }

    fn record(&mut self, event: Event) {
        self.tell(|_| format!("  {event:?}"));
        self.history.push(event);
    }

    fn fault(&mut self, client: Option<usize>, request: Option<u64>, fault: Fault) {
        let client = client.map(|client| self.clients[client].number);
        self.record(Event::Fault { client, request, fault });
    }

    /// Adds a line to the transcript, if there is one.
    fn tell(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.transcript.is_some() {
            let line = format!("{:>7} {}\n", self.now, line(self));
            self.transcript.iter_mut().for_each(|transcript| transcript.push_str(&line));
        }
    }

    fn tell_arrival(&mut self, connection: network::ConnectionId, side: Side, payload: &Payload) {
        self.tell(|_| {
            let shown = match payload {
                Payload::Bytes(bytes) => String::from_utf8_lossy(bytes).trim_end().replace('\n', "⏎"),
                Payload::Request(request) => {
                    let body = String::from_utf8_lossy(&request.body);
                    format!("{:?} {:?} {:?} {body}", request.method, request.session, request.last_event)
                }
                Payload::Head(head) => format!("{head:?}"),
                Payload::End => "end".to_owned(),
            };
            format!("to {side:?} on {}: {shown}", connection.0)
        });
    }
}

#[cfg(test)]
mod tests;
