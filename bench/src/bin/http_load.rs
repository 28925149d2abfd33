//! Puts load on an HTTP server of this machine, and prints one line of JSON.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use refmcp_bench::load;
use refmcp_bench::process::Server;
use serde_json::Value;

const USAGE: &str = "\
usage: http_load WHAT -- COMMAND [ARGS…]     starts the server; {port} in ARGS stands for its port
       http_load WHAT -- PORT PID            measures one that runs already

WHAT:  calls MODE CONNECTIONS SECONDS        MODE: plain, session, modern (2026-07-28), websocket or task
       exactly MODE CONNECTIONS CALLS        so many CALLS on each connection, then the server is told to stop
       first-answer MODE                     from the start of the server; only with COMMAND
       sessions FEW MANY                     memory of the sessions from FEW to MANY, and how fast they are opened
       streams FEW MANY                      memory of GET streams
       fanout STREAMS UPDATES                one change, told to all streams
       bare-fanout STREAMS UPDATES           the same from bare_fanout";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let split = args.iter().position(|arg| arg == "--").context(USAGE)?;
    let what: Vec<&str> = args[..split].iter().map(String::as_str).collect();
    println!("{}", run(&what, &args[split + 1..])?);
    Ok(())
}

fn run(what: &[&str], target: &[String]) -> Result<Value> {
    if let ["first-answer", mode] = what {
        return load::first_answer(target, mode.parse()?);
    }
    let server = match target {
        [port, pid] if port.parse::<u16>().is_ok() => Server::running(port.parse()?, pid.parse()?),
        command => Server::start(command)?,
    };
    if let ["exactly", mode, connections, calls] = *what {
        return load::exactly(server, mode.parse()?, connections.parse()?, calls.parse()?);
    }
    match *what {
        ["calls", mode, connections, seconds] => {
            let time = Duration::from_secs_f64(seconds.parse()?);
            load::calls(&server, mode.parse()?, connections.parse()?, time)
        }
        ["sessions", few, many] => load::sessions(&server, few.parse()?, many.parse()?),
        ["streams", few, many] => load::streams(&server, few.parse()?, many.parse()?),
        ["fanout", streams, updates] => load::fanout(&server, streams.parse()?, updates.parse()?),
        ["bare-fanout", streams, updates] => load::bare_fanout(&server, streams.parse()?, updates.parse()?),
        _ => bail!(USAGE),
    }
}
