//! One change that many have to hear of.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::sessions::{ACCEPTED_AT_ONCE, open_sessions, open_streams, writer};
use crate::answer::{self, contains};
use crate::process::Server;
use crate::request;
use crate::swarm::{Carries, Swarm};

const URI: &str = "file:///resources/notes.txt";
const UPDATED: &str = "notifications/resources/updated";

/// An event such as a server writes it, in its chunk.
const EVENT: &str = concat!(
    "8A\r\nid: 0.1\nevent: message\ndata: ",
    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///resources/notes.txt"}}"#,
    "\n\n\r\n"
);

/// Touches a resource to which every stream's session has subscribed.
pub fn fanout(server: &Server, streams: usize, updates: usize) -> Result<Value> {
    let mut caller = Swarm::connect(server.port, 1)?;
    let ids = open_sessions(server, &mut caller, streams)?;
    let subscribe = request::subscribe(URI);
    for id in &ids {
        let request = writer(server).post(&subscribe, Some(id));
        caller.each(0, |_| request.clone(), |_, answer| answer.expect_result())?;
    }
    let mut listeners = Swarm::connect(server.port, 0)?;
    open_streams(server, &mut listeners, &ids)?;
    let id = ids.first().context("no session")?;
    let touch = request::call("touch_resource", "uri", URI, "");
    let touch = writer(server).post(&touch, Some(id));
    measure(server, &mut listeners, streams, updates, || {
        caller.each(0, |_| touch.clone(), |_, answer| answer.expect_result())
    })
}

/// The same bytes, from a process that does nothing but write them to everyone.
pub fn bare_fanout(server: &Server, streams: usize, updates: usize) -> Result<Value> {
    let mut caller = Swarm::connect(server.port, 1)?;
    let mut listeners = Swarm::connect(server.port, 0)?;
    while listeners.len() < streams {
        let mut greetings = ACCEPTED_AT_ONCE.min(streams - listeners.len());
        let first = listeners.len();
        listeners.grow(server.port, greetings)?;
        for index in first..listeners.len() {
            listeners.carries(index, Carries::Events);
        }
        while greetings > 0 {
            listeners.turn(|_, _, _| {
                greetings -= 1;
                Ok(())
            })?;
        }
    }
    measure(server, &mut listeners, streams, updates, || caller.send(0, EVENT.as_bytes()))
}

fn measure(
    server: &Server,
    listeners: &mut Swarm,
    streams: usize,
    updates: usize,
    mut update: impl FnMut() -> Result<()>,
) -> Result<Value> {
    let (mut cpu, mut took) = (Duration::ZERO, Duration::ZERO);
    // The first one is to warm up.
    for round in 0..=updates {
        let (cpu_before, begin) = (server.cpu_time()?, Instant::now());
        let mut left = streams;
        update()?;
        while left > 0 {
            listeners.turn(|_, event, _| {
                if contains(&event.json, UPDATED.as_bytes()) {
                    ensure!(left > 0 && event.status == answer::EVENT, "one event too many");
                    left -= 1;
                }
                Ok(())
            })?;
        }
        if round > 0 {
            took += begin.elapsed();
            cpu += server.cpu_time()? - cpu_before;
        }
    }
    Ok(json!({
        "cpu_us_per_event": cpu.as_secs_f64() * 1e6 / (streams * updates) as f64,
        "ms_per_update": took.as_secs_f64() * 1e3 / updates as f64,
    }))
}
