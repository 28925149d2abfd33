//! Sessions, and the memory they and their streams take.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::open;
use crate::process::Server;
use crate::request::{Mode, Writer};
use crate::swarm::{Carries, Swarm};

/// Connections over which sessions are opened.
const OPENERS: usize = 8;

/// As many new connections as the queue before a server has room for.
pub(super) const ACCEPTED_AT_ONCE: usize = 100;

/// Opens many sessions: how fast, and what memory each takes once there are `few`.
pub fn sessions(server: &Server, few: usize, many: usize) -> Result<Value> {
    let mut swarm = Swarm::connect(server.port, OPENERS)?;
    open_sessions(server, &mut swarm, few)?;
    let (memory, cpu, begin) = (server.memory()?, server.cpu_time()?, Instant::now());
    open_sessions(server, &mut swarm, many - few)?;
    let count = (many - few) as f64;
    Ok(json!({
        "bytes_per_session": grown(memory, server.memory()?) / count,
        "sessions_per_second": count / begin.elapsed().as_secs_f64(),
        "cpu_us_per_session": (server.cpu_time()? - cpu).as_secs_f64() * 1e6 / count,
    }))
}

/// Opens many sessions, and then a GET stream for each: what memory each of the streams takes beyond `few`.
pub fn streams(server: &Server, few: usize, many: usize) -> Result<Value> {
    let ids = open_sessions(server, &mut Swarm::connect(server.port, OPENERS)?, many)?;
    let mut swarm = Swarm::connect(server.port, 0)?;
    open_streams(server, &mut swarm, &ids[..few])?;
    let memory = server.memory()?;
    open_streams(server, &mut swarm, &ids[few..])?;
    Ok(json!({ "bytes_per_stream": grown(memory, server.memory()?) / (many - few) as f64 }))
}

fn grown(before: u64, after: u64) -> f64 {
    after as f64 - before as f64
}

pub(super) fn writer(server: &Server) -> Writer {
    Writer { port: server.port, mode: Mode::Session }
}

/// Opens sessions over all connections in turn, and gives their ids.
pub(super) fn open_sessions(server: &Server, swarm: &mut Swarm, count: usize) -> Result<Vec<String>> {
    let mut ids = Vec::with_capacity(count);
    while ids.len() < count {
        ids.extend(open(swarm, writer(server))?.into_iter().flatten());
    }
    Ok(ids)
}

/// Opens the GET stream of each of the sessions.
pub(super) fn open_streams(server: &Server, swarm: &mut Swarm, ids: &[String]) -> Result<()> {
    for ids in ids.chunks(ACCEPTED_AT_ONCE) {
        let first = swarm.len();
        swarm.grow(server.port, ids.len())?;
        for index in first..swarm.len() {
            swarm.carries(index, Carries::Events);
        }
        swarm.each(
            first,
            |index| writer(server).get(&ids[index - first]),
            |_, answer| {
                ensure!(answer.status == 200, "no stream: {}", answer.shown());
                Ok(())
            },
        )?;
    }
    Ok(())
}
