//! Calls of `echo`, one after the other on each connection.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::open;
use crate::process::Server;
use crate::request::{FIRST_ID, MESSAGE, Mode, Template, Writer};
use crate::swarm::Swarm;

/// Calls for a while, and what that costs.
pub fn calls(server: &Server, mode: Mode, connections: usize, time: Duration) -> Result<Value> {
    let mut swarm = Swarm::connect(server.port, connections)?;
    let writer = Writer { port: server.port, mode };
    let ids = open(&mut swarm, writer)?;
    let mut callers: Vec<Caller> = ids.iter().map(|id| Caller::new(writer.echo(id.as_deref()))).collect();
    // A third of it before that, to warm up.
    call_until(&mut swarm, &mut callers, Instant::now() + time / 3)?;
    let cpu = server.cpu_time()?;
    let begin = Instant::now();
    let mut latencies = call_until(&mut swarm, &mut callers, begin + time)?;
    let took = begin.elapsed();
    let cpu = server.cpu_time()? - cpu;
    latencies.sort_unstable();
    let count = latencies.len();
    let at = |share: f64| micros(latencies[((count - 1) as f64 * share) as usize]);
    Ok(json!({
        "calls": count,
        "calls_per_second": (count as f64 / took.as_secs_f64()).round(),
        "cpu_us_per_call": micros(cpu) / count as f64,
        "p50_us": at(0.5),
        "p99_us": at(0.99),
    }))
}

/// So many calls on each connection, and then the end of the server: for counting what it executes.
pub fn exactly(server: Server, mode: Mode, connections: usize, calls: u64) -> Result<Value> {
    let mut swarm = Swarm::connect(server.port, connections)?;
    let writer = Writer { port: server.port, mode };
    let ids = open(&mut swarm, writer)?;
    let mut callers: Vec<Caller> = ids.iter().map(|id| Caller::new(writer.echo(id.as_deref()))).collect();
    let latencies = call_while(&mut swarm, &mut callers, |caller, _| caller.id < FIRST_ID + calls)?;
    server.stop()?;
    Ok(json!({ "calls": latencies.len() }))
}

/// How long it takes from the start of a server to the first answer of its tool.
pub fn first_answer(command: &[String], mode: Mode) -> Result<Value> {
    let begin = Instant::now();
    let server = Server::start(command)?;
    let mut swarm = Swarm::connect(server.port, 1)?;
    let writer = Writer { port: server.port, mode };
    let ids = open(&mut swarm, writer)?;
    let mut callers = [Caller::new(writer.echo(ids[0].as_deref()))];
    call_until(&mut swarm, &mut callers, begin)?;
    Ok(json!({ "ms": micros(begin.elapsed()) / 1000.0 }))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// What one connection asks, and what it waits for.
struct Caller {
    request: Template,
    id: u64,
    sent: Instant,
}

impl Caller {
    fn new(request: Template) -> Self {
        Self { request, id: FIRST_ID, sent: Instant::now() }
    }

    fn next(&mut self) -> &[u8] {
        self.id += 1;
        self.sent = Instant::now();
        self.request.with_id(self.id)
    }
}

/// Every caller calls at least once, and again until the time is over; gives the latencies.
fn call_until(swarm: &mut Swarm, callers: &mut [Caller], until: Instant) -> Result<Vec<Duration>> {
    call_while(swarm, callers, |_, now| now < until)
}

/// The same while a caller goes on.
fn call_while(
    swarm: &mut Swarm,
    callers: &mut [Caller],
    goes_on: impl Fn(&Caller, Instant) -> bool,
) -> Result<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(1 << 16);
    let mut waiting = callers.len();
    for (index, caller) in callers.iter_mut().enumerate() {
        swarm.send(index, caller.next())?;
    }
    while waiting > 0 {
        swarm.turn(|index, answer, next| {
            let caller = &mut callers[index];
            let now = Instant::now();
            latencies.push(now - caller.sent);
            answer.expect_echo(caller.id, MESSAGE)?;
            if goes_on(caller, now) {
                next.extend(caller.next());
            } else {
                waiting -= 1;
            }
            Ok(())
        })?;
    }
    Ok(latencies)
}
