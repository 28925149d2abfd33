//! Calls of `echo`, or requests for a task, one after the other on each connection.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::open;
use crate::answer::Answer;
use crate::process::Server;
use crate::request::{FIRST_ID, MESSAGE, Mode, TASK, Template, Writer};
use crate::swarm::Swarm;

/// By when tasks that do nothing are over; an answer that says otherwise fails.
const END_OF_TASKS: Duration = Duration::from_secs(1);

/// Calls for a while, and what that costs.
pub fn calls(server: &Server, mode: Mode, connections: usize, time: Duration) -> Result<Value> {
    let mut swarm = Swarm::connect(server.port, connections)?;
    let mut callers = callers(&mut swarm, Writer { port: server.port, mode })?;
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
    let mut callers = callers(&mut swarm, Writer { port: server.port, mode })?;
    let latencies = call_while(&mut swarm, &mut callers, |caller, _| caller.id < FIRST_ID + calls)?;
    server.stop()?;
    Ok(json!({ "calls": latencies.len() }))
}

/// How long it takes from the start of a server to the first answer of its tool.
pub fn first_answer(command: &[String], mode: Mode) -> Result<Value> {
    let begin = Instant::now();
    let server = Server::start(command)?;
    let mut swarm = Swarm::connect(server.port, 1)?;
    let mut callers = callers(&mut swarm, Writer { port: server.port, mode })?;
    call_until(&mut swarm, &mut callers, begin)?;
    Ok(json!({ "ms": micros(begin.elapsed()) / 1000.0 }))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Opens every connection, and says what each will ask.
fn callers(swarm: &mut Swarm, writer: Writer) -> Result<Vec<Caller>> {
    let ids = open(swarm, writer)?;
    if writer.mode != Mode::Task {
        return Ok(ids.iter().map(|id| Caller::new(writer.echo(id.as_deref()), false)).collect());
    }
    let mut tasks = vec![String::new(); swarm.len()];
    swarm.each(
        0,
        |index| writer.post(TASK, ids[index].as_deref()),
        |index, answer| {
            tasks[index] = answer.task_id()?;
            Ok(())
        },
    )?;
    std::thread::sleep(END_OF_TASKS);
    let asks = |(id, task): (&Option<String>, &String)| writer.get_task(id.as_deref(), task);
    Ok(ids.iter().zip(&tasks).map(|both| Caller::new(asks(both), true)).collect())
}

/// What one connection asks, and what it waits for.
struct Caller {
    request: Template,
    gets_task: bool,
    id: u64,
    sent: Instant,
}

impl Caller {
    fn new(request: Template, gets_task: bool) -> Self {
        Self { request, gets_task, id: FIRST_ID, sent: Instant::now() }
    }

    fn expect(&self, answer: &Answer<'_>) -> Result<()> {
        if self.gets_task { answer.expect_completed(self.id) } else { answer.expect_echo(self.id, MESSAGE) }
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
            caller.expect(answer)?;
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
