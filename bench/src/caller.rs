//! What a client costs: calls are made as fast as they are answered, and the process looks at its own accounts.
//!
//! Usage of the programs: `PROGRAM calls IN_FLIGHT SECONDS HOW` and `PROGRAM memory FEW MANY URL`, where HOW is a URL or
//! `stdio COMMAND [ARGS…]`.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process::{cpu_time, memory};

/// Where the server is.
#[derive(Debug, Clone)]
pub enum How {
    Url(String),
    Stdio(Vec<String>),
}

/// What a program was told to do.
#[derive(Debug)]
pub enum Task {
    Calls { in_flight: usize, time: Duration, how: How },
    Memory { few: usize, many: usize, url: String },
}

/// Reads the command line.
pub fn task() -> Result<Task> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["calls", in_flight, seconds, how @ ..] => Ok(Task::Calls {
            in_flight: in_flight.parse()?,
            time: Duration::from_secs_f64(seconds.parse()?),
            how: match how {
                ["stdio", command @ ..] => {
                    How::Stdio(command.iter().map(|word| (*word).to_owned()).collect())
                }
                [url] => How::Url((*url).to_owned()),
                _ => bail!("no server"),
            },
        }),
        ["memory", few, many, url] => {
            Ok(Task::Memory { few: few.parse()?, many: many.parse()?, url: (*url).to_owned() })
        }
        _ => bail!("see the top of bench/src/caller.rs"),
    }
}

/// Makes calls, so many at a time, and reports what one costs.
pub async fn calls<C, F>(in_flight: usize, time: Duration, call: C) -> Result<Value>
where
    C: Fn() -> F + Send + Sync + Clone + 'static,
    F: Future<Output = Result<()>> + Send,
{
    let (count, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let callers: Vec<_> = (0..in_flight)
        .map(|_| {
            let (call, count, stop) = (call.clone(), count.clone(), stop.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    call().await?;
                    count.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let me = std::process::id();
    let (before, cpu, begun) = (count.load(Ordering::Relaxed), cpu_time(me)?, Instant::now());
    tokio::time::sleep(time).await;
    let calls = count.load(Ordering::Relaxed) - before;
    let (cpu, took) = (cpu_time(me)? - cpu, begun.elapsed().as_secs_f64());
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await?.context("a call failed")?;
    }
    Ok(json!({
        "calls_per_second": calls as f64 / took,
        "cpu_us_per_call": cpu.as_secs_f64() * 1e6 / calls.max(1) as f64,
    }))
}

/// Opens connections one after the other, keeps them, and reports what one more takes.
pub async fn memory_per_connection<K, C, F>(few: usize, many: usize, connect: C) -> Result<Value>
where
    C: Fn() -> F,
    F: Future<Output = Result<K>>,
{
    let mut kept = Vec::with_capacity(many);
    let me = std::process::id();
    let mut at_few = 0;
    for number in 0..many {
        if number == few {
            at_few = memory(me)?;
        }
        kept.push(connect().await?);
    }
    let grown = memory(me)?.saturating_sub(at_few) as f64;
    Ok(json!({ "bytes_per_connection": grown / (many - few) as f64 }))
}
